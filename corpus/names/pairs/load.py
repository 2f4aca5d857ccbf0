#!/usr/bin/env python3
"""Loads with transformers what gguf-assay makes of the files of whole pairs, and compares with the sources.

    load.py GGUF_ASSAY FOLDER [NAME...]

GGUF_ASSAY is the command, FOLDER has whole pairs as make.py makes them. Of each pair the file goes by
`names --export` and `names --config` to a checkpoint; transformers has to load it with no parameter
missing and none unexpected, and to answer with the same numbers. So a field that no file tells, and
whose default is not the source's, shows. Needs torch and transformers 5.24.0; run by hand.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers

# A file has the tokenizer's, which the pairs have none of.
TOKENS = ["pad_token_id", "bos_token_id", "eos_token_id"]


def load(folder):
    config = json.loads((folder / "config.json").read_text())
    model_class = getattr(transformers, config["architectures"][0])
    model, info = model_class.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    return model.eval(), {key: sorted(names) for key, names in info.items() if names}


def answer(model):
    tokens = torch.arange(3, 23).unsqueeze(0)
    more = {"decoder_input_ids": tokens} if model.config.is_encoder_decoder else {}
    with torch.no_grad():
        return model(tokens, **more).logits


def compare(command, source, folder):
    file = source.with_name(f"{source.name}.gguf")
    export = [command, "names", file, "--export", folder / "model.safetensors"]
    subprocess.run(export, check=True, capture_output=True)
    config = subprocess.run([command, "names", file, "--config"], check=True, capture_output=True)
    config, expected = json.loads(config.stdout), json.loads((source / "config.json").read_text())
    for outer in [config, config.get("text_config", {})]:
        within = expected | expected.get("text_config", {})
        outer.update({token: within[token] for token in TOKENS if token in within})
    (folder / "config.json").write_text(json.dumps(config))
    (found, wrong), (expected, _) = load(folder), load(source)
    if wrong:
        return f"WRONG {wrong}"
    found, expected = answer(found), answer(expected)
    error = (found - expected).abs().max() / expected.abs().max()
    return f"{'same' if error < 1e-5 else 'OTHER'} numbers, {error:.1g} of the largest"


def main():
    command, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    names = sys.argv[3:] or sorted(path.stem for path in folder.glob("*.gguf"))
    for name in names:
        with tempfile.TemporaryDirectory() as out:
            try:
                print(name, compare(command, folder / name, pathlib.Path(out)), flush=True)
            except Exception as error:  # One that fails is no reason to leave out the others.
                print(name, "FAILED", type(error).__name__, str(error)[:200], flush=True)


if __name__ == "__main__":
    main()
