#!/usr/bin/env python3
"""Records what gguf-py's TensorNameMap answers for the tensors of every pair in corpus/names/pairs.

    gguf_py.py > gguf-py.json

Needs the PyPI package gguf 0.19.0. Layers are written `N`, experts `E`; what gguf-py has no answer
for is left out.
"""

import importlib.metadata
import json
import pathlib
import re

import gguf


def main():
    names = {value: key for key, value in gguf.MODEL_ARCH_NAMES.items()}
    answers = {}
    pairs = pathlib.Path(__file__).resolve().parents[3] / "corpus/names/pairs"
    for folder in sorted(pairs.iterdir()):
        if not folder.is_dir():
            continue
        reader = (folder / "model.gguf").read_bytes()[:4096]
        # The first key of a converted file is general.architecture.
        place = reader.index(b"general.architecture") + len(b"general.architecture") + 4
        size = int.from_bytes(reader[place : place + 8], "little")
        architecture = reader[place + 8 : place + 8 + size].decode()
        if architecture not in names:
            continue
        table = gguf.get_tensor_name_map(names[architecture], 8)
        rows = answers.setdefault(architecture, {})
        for tensor in json.loads((folder / "source.json").read_text()):
            answer = table.get_name(tensor, try_suffixes=(".weight", ".bias"))
            if answer is not None:
                tensor = re.sub(r"\.(layers|h|block|blocks)\.\d+\.", r".\1.N.", tensor)
                tensor = re.sub(r"\.experts\.\d+\.", ".experts.E.", tensor)
                rows[tensor] = re.sub(r"^(enc\.|dec\.)?blk\.\d+\.", r"\1blk.N.", answer)
    version = importlib.metadata.version("gguf")
    rows = ",\n".join(f" {json.dumps(k)}: {json.dumps(v, sort_keys=True)}" for k, v in sorted(answers.items()))
    print(f'{{"version": "gguf {version}", "names": {{\n{rows}\n}}}}')


if __name__ == "__main__":
    main()
