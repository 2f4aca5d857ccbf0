"""Writes the config and the header of each checkpoint of a folder to NAME.json, with those values
that judging looks at: tensors of few bytes, of one word over and over, and of groups in order. All
other bytes are taken for zeros.

    python3 make.py FOLDER

The checkpoints are tiny ones with random weights, written by auto-round 0.16.1 (-autoround),
llm-compressor 0.14.0.1 with compressed-tensors 0.19.0 (-ct-) and transformers 5.24.0 with
bitsandbytes 0.50.2 (-bnb-).
"""

import json
import pathlib
import struct
import sys

here = pathlib.Path(__file__).parent
for folder in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    data = (folder / "model.safetensors").read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = []
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        bytes_ = data[8 + length + start : 8 + length + end]
        tensor = {"name": name, "dtype": entry["dtype"], "shape": entry["shape"]}
        if len(bytes_) <= 128:
            tensor["hex"] = bytes_.hex()
        elif bytes_ == bytes_[:4] * (len(bytes_) // 4):
            tensor["repeat"] = bytes_[:4].hex()
        elif entry["dtype"] == "I32" and len(entry["shape"]) == 1:
            groups = struct.unpack(f"<{len(bytes_) // 4}i", bytes_)
            size = groups.index(1)
            assert groups == tuple(i // size for i in range(len(groups))), name
            tensor["group_of"] = size
        tensors.append(tensor)
    lines = ",\n".join("    " + json.dumps(tensor) for tensor in tensors)
    config = json.dumps(json.loads((folder / "config.json").read_text()))
    text = f'{{\n  "config": {config},\n  "tensors": [\n{lines}\n  ]\n}}\n'
    (here / f"{folder.name}.json").write_text(text)
