"""transformers' reading of checkpoints behind the adapter protocol, as far as it goes without torch: it
finds the files, opens them with safetensors, and makes the class of the quantization config."""

import importlib.metadata
import os

import gguf_assay_adapter as adapter
import transformers
from safetensors import safe_open
from transformers import CONFIG_MAPPING
from transformers.configuration_utils import PreTrainedConfig
from transformers.quantizers.auto import AutoHfQuantizer, AutoQuantizationConfig
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME
from transformers.utils.hub import get_checkpoint_shard_files


def describe():
    return {
        "name": "transformers-config",
        "version": transformers.__version__,
        "language": "python",
        "home": "https://github.com/huggingface/transformers",
        "ops": ["judge_checkpoint"],
    }


def weights(path):
    """The files that `from_pretrained` takes, in its order: one file before an index."""
    single = os.path.join(path, SAFE_WEIGHTS_NAME)
    if os.path.isfile(single):
        return [single]
    index = os.path.join(path, SAFE_WEIGHTS_INDEX_NAME)
    if os.path.isfile(index):
        return get_checkpoint_shard_files(path, index)[0]
    raise OSError(f"{path} has neither {SAFE_WEIGHTS_NAME} nor {SAFE_WEIGHTS_INDEX_NAME}")


def declared_in(path):
    """What `get_hf_quantizer` finds: the config's own, or else that of the class's text config."""
    fields, _ = PreTrainedConfig.get_config_dict(path)
    # Parts of models have no `model_type`, or one that nobody has: they get the class that all are made of.
    known = fields.get("model_type")
    config = (CONFIG_MAPPING[known] if known in CONFIG_MAPPING else PreTrainedConfig).from_dict(fields)
    text = config.get_text_config(decoder=True)
    return getattr(config, "quantization_config", None) or getattr(text, "quantization_config", None)


def judge_checkpoint(path, tp):
    if tp not in (None, 1):
        raise adapter.Unimplemented("splitting over ranks")
    declared = declared_in(path)
    for file in weights(path):
        with safe_open(file, framework="np") as opened:
            opened.keys()
    if declared is None or not AutoHfQuantizer.supports_quant_method(declared):
        return {"method": None}
    try:
        made = AutoQuantizationConfig.from_dict(dict(declared))
    except (ImportError, importlib.metadata.PackageNotFoundError) as error:
        raise adapter.Unimplemented(str(error))
    except NameError as error:
        # bitsandbytes has types of torch for defaults.
        if "torch" not in str(error):
            raise
        raise adapter.Unimplemented(f"the config of {declared.get('quant_method')} without torch")
    method = made.quant_method
    answer = {"method": getattr(method, "value", method)}
    for field in ("bits", "group_size"):
        value = getattr(made, field, None)
        if isinstance(value, int):
            answer[field] = value
    return answer


adapter.serve(describe, judge_checkpoint=judge_checkpoint)
