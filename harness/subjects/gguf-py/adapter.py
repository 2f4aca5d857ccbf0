"""gguf-py's reader behind the adapter protocol. What it hands out is reported as it is."""

import hashlib
import importlib.metadata
import re

import gguf_assay_adapter as adapter
import numpy
from gguf import (
    MODEL_ARCH_NAMES,
    GGMLQuantizationType,
    GGUFReader,
    GGUFValueType,
    get_tensor_name_map,
    quants,
)

# The reader's own entries among the fields, ahead of those of the file.
HEADER = ("GGUF.version", "GGUF.tensor_count", "GGUF.kv_count")

NAMES = {
    GGUFValueType.UINT8: "u8",
    GGUFValueType.INT8: "i8",
    GGUFValueType.UINT16: "u16",
    GGUFValueType.INT16: "i16",
    GGUFValueType.UINT32: "u32",
    GGUFValueType.INT32: "i32",
    GGUFValueType.FLOAT32: "f32",
    GGUFValueType.BOOL: "bool",
    GGUFValueType.STRING: "string",
    GGUFValueType.ARRAY: "array",
    GGUFValueType.UINT64: "u64",
    GGUFValueType.INT64: "i64",
    GGUFValueType.FLOAT64: "f64",
}


def describe():
    return {
        "name": "gguf-py",
        "version": importlib.metadata.version("gguf"),
        "language": "python",
        "home": "https://github.com/ggml-org/llama.cpp/tree/master/gguf-py",
        "ops": ["read", "dequantize", "map_names"],
    }


def scalar(value_type, number):
    """One element of a part."""
    if value_type is GGUFValueType.FLOAT32:
        return adapter.f32(number)
    if value_type is GGUFValueType.FLOAT64:
        return adapter.f64(number)
    if value_type is GGUFValueType.BOOL:
        return bool(number)
    return adapter.integer(number)


def value(field):
    """A field's value, found as ``ReaderField.contents`` finds it, with its type."""
    main = field.types[0]
    if main is GGUFValueType.STRING:
        return {"string": adapter.text(field.parts[-1].tobytes())}
    if main is not GGUFValueType.ARRAY:
        return {NAMES[main]: scalar(main, field.parts[-1][0])}
    parts = [field.parts[index] for index in field.data]
    if len(field.types) == 1:
        # No element, so no type among the field's; the file's own number for it is a part. One
        # that does not exist has no name to report, and the reader has accepted it.
        return adapter.array(NAMES.get(int(field.parts[3][0]), "u8"), [])
    # Arrays in arrays come out flat, with the innermost type.
    element = field.types[-1]
    if element is GGUFValueType.STRING:
        return adapter.array("string", [adapter.text(part.tobytes()) for part in parts])
    if element is GGUFValueType.ARRAY:
        return adapter.array("array", [])
    numbers = (number for part in parts for number in part.tolist())
    return adapter.array(NAMES[element], [scalar(element, number) for number in numbers])


def sha256(data):
    """Of a tensor's values, in little-endian order whatever order the reader says they are in."""
    little = data.astype(data.dtype.newbyteorder("<"), copy=False)
    return hashlib.sha256(little.tobytes()).hexdigest()


def read(path):
    reader = GGUFReader(path)
    fields = [field for name, field in reader.fields.items() if name not in HEADER]
    return {
        "version": int(reader.fields["GGUF.version"].parts[0][0]),
        "metadata": [[adapter.text(field.name), value(field)] for field in fields],
        "tensors": [
            adapter.tensor(
                name=tensor.name,
                type_name=tensor.tensor_type.name,
                dims=tensor.shape,
                # The reader adds in 64 bits, so that a tensor may end up before its section.
                offset=(int(tensor.data_offset) - int(reader.data_offset)) % 2**64,
                sha256=sha256(tensor.data),
            )
            for tensor in reader.tensors
        ],
    }


def dequantize(type_name, blocks):
    try:
        tensor_type = GGMLQuantizationType[type_name]
        numbers = quants.dequantize(numpy.frombuffer(blocks, numpy.uint8), tensor_type)
    except (KeyError, NotImplementedError) as error:
        raise adapter.Unimplemented(f"{type_name}: {error}") from None
    return numbers.astype("<f4").tobytes()


def map_names(architecture, to, request):
    """The names that its table has for those of a checkpoint, as converters look them up."""
    if to != "gguf":
        raise adapter.Unimplemented("its table has names of GGUF for those of transformers, and not back")
    known = {name: arch for arch, name in MODEL_ARCH_NAMES.items()}
    if architecture not in known:
        raise adapter.Unimplemented(f"the architecture {architecture}")
    config = request["config"]
    layers = next((config[key] for key in LAYERS if config.get(key)), 0)
    # Blocks that predict tokens further on stand behind the others.
    layers += config.get("num_nextn_predict_layers") or 0
    table = get_tensor_name_map(known[architecture], min(layers, MOST_LAYERS))
    names = {}
    for parameter in (entry["name"] for entry in request["names"]):
        name = table.get_name(EXPERT.sub(".experts.", parameter), try_suffixes=(".weight", ".bias"))
        if name is None:
            # What its users say then (convert_hf_to_gguf.py); the table itself answers None.
            raise ValueError(f"Can not map tensor {parameter!r}")
        names.setdefault(name, []).append(parameter)
    return {"names": [adapter.name(name, of=parameters) for name, parameters in names.items()]}


# The number of an expert, which the table's names do not have: converters merge experts before.
EXPERT = re.compile(r"\.experts\.\d+\.")
# Where configs have the number of layers, as converters look for it.
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
# The table has an entry for each name and layer.
MOST_LAYERS = 1000

adapter.serve(describe, read, dequantize, map_names)
