#!/usr/bin/env python3
"""Records pairs beside this file.

    record.py FOLDER

FOLDER has, for each NAME, the checkpoint NAME/ as transformers' save_pretrained wrote it
(config.json, model.safetensors) and NAME.gguf as llama.cpp's converter made it from that. Of each
pair this keeps config.json, the names, shapes and SHA-256 of the checkpoint's tensors in source.json,
and the GGUF file: whole, or up to its data where a smaller pair stands for it. Tensors whose numbers
change on the way (`x + 1`, `-exp(x)`) are kept in inexact.safetensors.
Needs Python 3.9 or newer and nothing else.
"""

import hashlib
import json
import pathlib
import shutil
import struct
import sys

# Large, and there is a smaller pair of the same architecture.
HEADER_ONLY = {"gpt-oss", "llama-mixtral", "phi3", "qwen2", "qwen3", "qwen3moe"}
# Tensors whose numbers do not come back bit for bit, by the end of their names.
INEXACT = {
    "bitnet": "_proj.weight",
    "gemma": "norm.weight",
    "gemma2": "norm.weight",
    "gemma3": "norm.weight",
    "mamba": ".A_log",
    "mamba2": ".A_log",
    "nemotron": "norm.weight",
}


def safetensors(path):
    """Header (without __metadata__) and data of a safetensors file."""
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    return header, data[8 + size :]


def data_offset(data):
    """Where the data section of a GGUF file (little-endian, version 3) starts."""
    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
    tensors, entries = struct.unpack_from("<QQ", data, 8)
    place, alignment = 24, 32

    def string(place):
        (size,) = struct.unpack_from("<Q", data, place)
        return data[place + 8 : place + 8 + size], place + 8 + size

    def skip(kind, place):
        if kind == 8:
            return string(place)[1]
        if kind == 9:
            kind, count = struct.unpack_from("<IQ", data, place)
            place += 12
            for _ in range(count):
                place = skip(kind, place)
            return place
        return place + sizes[kind]

    for _ in range(entries):
        key, place = string(place)
        (kind,) = struct.unpack_from("<I", data, place)
        if key == b"general.alignment":
            (alignment,) = struct.unpack_from("<I", data, place + 4)
        place = skip(kind, place + 4)
    for _ in range(tensors):
        _, place = string(place)
        (rank,) = struct.unpack_from("<I", data, place)
        place += 4 + 8 * rank + 4 + 8
    return (place + alignment - 1) // alignment * alignment


def record(folder, name, out):
    header, data = safetensors(folder / name / "model.safetensors")
    tensors, inexact = {}, {}
    for tensor, entry in sorted(header.items()):
        start, end = entry["data_offsets"]
        digest = hashlib.sha256(data[start:end]).hexdigest()
        tensors[tensor] = {"dtype": entry["dtype"], "shape": entry["shape"], "sha256": digest}
        if name in INEXACT and tensor.endswith(INEXACT[name]):
            inexact[tensor] = (entry, data[start:end])
    out.mkdir(exist_ok=True)
    rows = ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in tensors.items())
    (out / "source.json").write_text("{\n" + rows + "\n}\n")
    shutil.copyfile(folder / name / "config.json", out / "config.json")
    if inexact:
        small, place = {}, 0
        for tensor, (entry, part) in inexact.items():
            offsets = [place, place + len(part)]
            small[tensor] = {**entry, "data_offsets": offsets}
            place += len(part)
        text = json.dumps(small).encode()
        text += b" " * (-len(text) % 8)
        parts = b"".join(part for _, part in inexact.values())
        (out / "inexact.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + parts)
    gguf = (folder / f"{name}.gguf").read_bytes()
    if name in HEADER_ONLY:
        gguf = gguf[: data_offset(gguf)]
    (out / "model.gguf").write_bytes(gguf)


def main():
    folder = pathlib.Path(sys.argv[1])
    here = pathlib.Path(__file__).parent
    for gguf in sorted(folder.glob("*.gguf")):
        record(folder, gguf.stem, here / gguf.stem)


if __name__ == "__main__":
    main()
