"""libgguf's native dequantizer behind the adapter protocol. Its numbers are reported as is."""

import importlib.metadata

import gguf_assay_adapter as adapter
import libgguf
import numpy


def describe():
    return {
        "name": "libgguf",
        "version": importlib.metadata.version("libgguf"),
        "language": "python",
        "home": "https://github.com/hlky/libgguf",
        "ops": ["dequantize"],
    }


def read(_path):
    raise adapter.Unimplemented("reading files")


def dequantize(type_name, blocks):
    try:
        qtype = libgguf.GGMLQuantizationType[type_name]
        numbers = libgguf.dequantize_rows(numpy.frombuffer(blocks, numpy.uint8), qtype)
    except KeyError:
        raise adapter.Unimplemented(type_name) from None
    except ValueError as error:
        # Its words for what it has a name of and no dequantizer, or another way to store.
        if str(error) != "unsupported quantization type":
            raise
        raise adapter.Unimplemented(f"{type_name}: {error}") from None
    return numbers.astype("<f4").tobytes()


adapter.serve(describe, read, dequantize)
