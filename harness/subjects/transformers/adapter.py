"""transformers' loader of GGUF files behind the adapter protocol: names, numbers and config of what it loads."""

import contextlib
import json
import logging
import math
import pathlib
import re
import tempfile

import gguf_assay_adapter as adapter
import torch
import transformers
from safetensors import safe_open

torch.set_num_threads(1)
# What it logs is part of its answer.
transformers.utils.logging.disable_default_handler()

# What is not a model that generates text from text alone is loaded by another class.
CLASSES = {"t5": "AutoModelForSeq2SeqLM", "t5encoder": "T5EncoderModel"}


def describe():
    return {
        "name": "transformers",
        "version": transformers.__version__,
        "language": "python",
        "home": "https://github.com/huggingface/transformers",
        "ops": ["map_names"],
    }


def read(path):
    raise adapter.Unimplemented("it hands out models, and no files")


@contextlib.contextmanager
def heard():
    """What transformers logs, without colours and the padding of tables."""
    lines = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: lines.append(PADDING.sub(" ", STYLE.sub("", record.getMessage())))
    logger = logging.getLogger("transformers")
    logger.addHandler(handler)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)


STYLE = re.compile(r"\x1b\[[0-9;]*m")
PADDING = re.compile(r" {2,}|[-+]{4,}")


def plain(value):
    """A config as JSON: what is not a number there, such as an infinite limit, as its name."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def map_names(architecture, to, request):
    if to != "transformers":
        raise adapter.Unimplemented("it writes no GGUF")
    path = pathlib.Path(request["path"])
    loader = getattr(transformers, CLASSES.get(architecture, "AutoModelForCausalLM"))
    with heard() as log:
        try:
            model = loader.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
        except Exception as error:
            # Which parameters do not fit stands in the report that it logs before.
            for line in log:
                error.add_note(line)
            raise
    # It counts as quantized, which are not saved, though all numbers are those of float32 now. Saved
    # as a model that was never loaded, its names are those of a checkpoint: experts apart, nothing that
    # is tied.
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    if hasattr(model, "_weight_conversions"):
        del model._weight_conversions
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        config = json.loads((pathlib.Path(folder) / "config.json").read_text())
        names = []
        for part in sorted(pathlib.Path(folder).glob("*.safetensors")):
            with safe_open(part, "pt") as tensors:
                for name in tensors.keys():
                    tensor = tensors.get_tensor(name).to(torch.float32).contiguous()
                    numbers = tensor.numpy().astype("<f4").tobytes()
                    names.append(adapter.name(name, shape=tensor.shape, numbers=numbers))
    return {"names": names, "config": plain(config)}


adapter.serve(describe, read, map_names=map_names)
