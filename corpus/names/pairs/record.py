#!/usr/bin/env python3
"""Records pairs beside this file.

    record.py FOLDER

FOLDER has, for each NAME, the checkpoint NAME/ as transformers' save_pretrained wrote it
(config.json, model.safetensors) and NAME.gguf as llama.cpp's converter made it from that. Of each
pair this keeps config.json, the names, shapes and SHA-256 of the checkpoint's tensors in source.json,
and the GGUF file. Tensors whose numbers change on the way (`x + 1`, `-exp(x)`) are kept in
inexact.safetensors.
Needs Python 3.9 or newer and nothing else.
"""

import hashlib
import json
import pathlib
import shutil
import struct
import sys

DELTA = ("norm.weight", ".A_log", "pre_fc_norm_embedding.weight", "pre_fc_norm_hidden.weight")
# Tensors whose numbers do not come back bit for bit, by the end or ends of their names.
INEXACT = {
    "bitnet": "_proj.weight",
    "gemma": "norm.weight",
    "gemma2": "norm.weight",
    "gemma3": "norm.weight",
    "gemma3-sees": "norm.weight",
    "mamba": ".A_log",
    "mamba2": ".A_log",
    "nemotron": "norm.weight",
    "step35": "norm.weight",
    # Hybrids.
    "qwen3next": DELTA,
    "qwen3next-trunk": DELTA,
    "qwen35": DELTA,
    "qwen35-trunk": DELTA,
    "qwen35moe": DELTA,
    "qwen4exp": ("norm.weight", ".A_log", ".norm_conv.weight", ".norm_key.weight", ".norm_query.weight", "_layernorm.weight"),
    "granitehybrid": ".A_log",
    "granitehybrid-dense": ".A_log",
    "granitehybrid-bamba": ".A_log",
    "nemotron_h": ".A_log",
    "nemotron_h_moe": ".A_log",
    "nemotron_h_moe-nextn": ".A_log",
    "falcon-h1": ("_proj.weight", "embed_tokens.weight", "lm_head.weight", ".A_log"),
    "falcon-h1-plain": ".A_log",
    "dots3note": ("q_a_layernorm.weight", "kv_a_layernorm.weight"),
    "jamba": ".A_log",
    "mamba-falcon": ".A_log",
    "kimi-linear": ".A_log",
    # Within checkpoints that see.
    "minimax-m3": "norm.weight",
    "qwen35-sees": DELTA,
    "qwen35moe-sees": DELTA,
    "qwen4exp-sees": ("norm.weight", ".A_log", "_layernorm.weight"),
}


def safetensors(path):
    """Header (without __metadata__) and data of a safetensors file."""
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    return header, data[8 + size :]


def digests(header, data):
    """Of each tensor the type, the shape and the SHA-256 of its bytes."""
    tensors = {}
    for tensor, entry in sorted(header.items()):
        start, end = entry["data_offsets"]
        digest = hashlib.sha256(data[start:end]).hexdigest()
        tensors[tensor] = {"dtype": entry["dtype"], "shape": entry["shape"], "sha256": digest}
    return tensors


def write_rows(path, rows):
    rows = ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in rows.items())
    path.write_text("{\n" + rows + "\n}\n")


def record(folder, name, out):
    header, data = safetensors(folder / name / "model.safetensors")
    inexact = {}
    for tensor, entry in sorted(header.items()):
        start, end = entry["data_offsets"]
        if name in INEXACT and tensor.endswith(INEXACT[name]):
            inexact[tensor] = (entry, data[start:end])
    out.mkdir(exist_ok=True)
    write_rows(out / "source.json", digests(header, data))
    if (folder / name / "dequantized.safetensors").exists():
        dequantized = safetensors(folder / name / "dequantized.safetensors")
        write_rows(out / "dequantized.json", digests(*dequantized))
    if (folder / name / "memory.json").exists():
        memory = json.loads((folder / name / "memory.json").read_text())
        write_rows(out / "memory.json", dict(sorted(memory.items())))
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
    shutil.copyfile(folder / f"{name}.gguf", out / "model.gguf")


def main():
    folder = pathlib.Path(sys.argv[1])
    here = pathlib.Path(__file__).parent
    for gguf in sorted(folder.glob("*.gguf")):
        record(folder, gguf.stem, here / gguf.stem)


if __name__ == "__main__":
    main()
