"""The adapter protocol in Python: requests as JSON lines on stdin, answers on stdout.

An adapter imports its reader, and calls ``serve(describe, read)``, with ``dequantize``, ``map_names``,
``judge_checkpoint`` and ``unpack`` if it has those. Whatever the reader raises is reported as it is; the suite judges it.
"""

import json
import os
import struct
import sys

PROTOCOL = 1


class Unimplemented(Exception):
    """Raised by an adapter for what its reader openly does not do."""


def text(data):
    """Bytes or a str as JSON: a string, or ``{"hex": …}`` for bytes that are not UTF-8."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return {"hex": raw.hex()}


def integer(value):
    """An integer: a decimal string, so that no digit is lost."""
    return str(int(value))


def f32(value):
    """A float that came from 32 bits, as those bits."""
    return "0x%08x" % struct.unpack("<I", struct.pack("<f", value))


def f64(value):
    """A float, as its bits."""
    return "0x%016x" % struct.unpack("<Q", struct.pack("<d", value))


def array(element_type, values):
    """An array value whose elements are encoded, without their type."""
    return {"array": {"type": element_type, "values": values}}


def tensor(name, type_name=None, dims=None, offset=None, sha256=None):
    """A tensor; ``dims`` has the contiguous one first. What is None is not compared."""
    answer = {"name": text(name)}
    if type_name is not None:
        answer["type"] = type_name
    if dims is not None:
        answer["dims"] = [integer(dim) for dim in dims]
    if offset is not None:
        answer["offset"] = integer(offset)
    if sha256 is not None:
        answer["sha256"] = sha256
    return answer


def name(name, of=None, shape=None, numbers=None):
    """A name of the other side: the names it comes from, its shape in the order of its side, and its
    numbers as the bytes of little-endian ``float32``. What is None is not compared."""
    answer = {"name": name}
    if of is not None:
        answer["from"] = list(of)
    if shape is not None:
        answer["shape"] = [int(dim) for dim in shape]
    if numbers is not None:
        answer["f32"] = numbers.hex()
    return answer


def kind(error):
    """The name of an exception's type, with its module unless it is Python's own."""
    cls = type(error)
    if cls.__module__ == "builtins":
        return cls.__qualname__
    return f"{cls.__module__}.{cls.__qualname__}"


def message(error):
    """What an exception says, with its notes. A KeyError's text is its key's repr, which would quote a
    sentence."""
    said = error.args[0] if isinstance(error, KeyError) and len(error.args) == 1 else error
    return "\n".join([str(said), *getattr(error, "__notes__", [])])


def unable(type_name, _blocks):
    """For readers that dequantize nothing."""
    raise Unimplemented(f"dequantizing {type_name}")


def unmapped(_architecture, to, _request):
    """For readers that map no names."""
    raise Unimplemented(f"mapping names to {to}")


def unread(_path):
    """For what reads no files."""
    raise Unimplemented("reading files")


def unjudged(_path, _tp):
    """For readers that judge no checkpoints."""
    raise Unimplemented("judging checkpoints")


def packed(_path, _module):
    """For readers that unpack no modules."""
    raise Unimplemented("unpacking modules")


def serve(
    describe,
    read=unread,
    dequantize=unable,
    map_names=unmapped,
    judge_checkpoint=unjudged,
    unpack=packed,
):
    """Answers requests until stdin ends.

    ``describe()`` gives a dict with ``name``, ``version``, ``language``, ``home`` and ``ops``;
    ``read(path)`` one with ``version``, ``metadata`` and ``tensors``; ``dequantize(type_name, blocks)``
    the numbers of the blocks as the bytes of little-endian ``float32``;
    ``map_names(architecture, to, request)`` one with ``names``, a list of what ``name`` gives, and
    ``config`` on the way to transformers. ``to`` is ``transformers`` (the request has ``path``, ``names``
    and ``metadata``) or ``gguf`` (``config`` and ``names``). ``judge_checkpoint(path, tp)`` gives one with
    ``method`` and what else is known, or raises what is wrong with the folder (``tp`` may be None);
    ``unpack(path, module)`` the shape of a module and its numbers as the bytes of little-endian ``float32``.
    """
    # What a reader prints must not end up among the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if request["op"] == "describe":
            answer = {"protocol": PROTOCOL, **describe()}
        else:
            answer = {"id": request["id"]}
            try:
                if request["op"] == "dequantize":
                    blocks = bytes.fromhex(request["hex"])
                    answer["ok"] = {"f32": dequantize(request["type"], blocks).hex()}
                elif request["op"] == "map_names":
                    architecture, to = request["architecture"], request["to"]
                    answer["ok"] = map_names(architecture, to, request)
                elif request["op"] == "judge_checkpoint":
                    answer["ok"] = judge_checkpoint(request["path"], request.get("tp"))
                elif request["op"] == "unpack":
                    shape, numbers = unpack(request["path"], request["module"])
                    answer["ok"] = {"shape": list(shape), "f32": bytes(numbers).hex()}
                else:
                    answer["ok"] = read(request["path"])
            except Unimplemented as what:
                answer["unimplemented"] = str(what)
            except Exception as error:  # not SystemExit: a reader that exits is seen to exit
                answer["error"] = {"message": message(error), "kind": kind(error)}
        # Not straight into the file: an answer that cannot be encoded must not be half written.
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
