"""compressed-tensors behind the adapter protocol: the class of its config, and what its compressors unpack."""

import pathlib

import compressed_tensors
import gguf_assay_adapter as adapter
import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.compressors.mx_utils import decompress_mx_scale
from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
from compressed_tensors.quantization import QuantizationConfig
from compressed_tensors.quantization.lifecycle.apply import _scheme_from_targets
from compressed_tensors.quantization.lifecycle.forward import dequantize
from compressed_tensors.utils.match import is_match, match_targets
from compressed_tensors.utils.safetensors_load import get_checkpoint_files, get_quantization_config
from safetensors import safe_open

torch.set_num_threads(1)

# What a weight is stored as under its own name.
STORED = (torch.int8, torch.float8_e4m3fn)


def describe():
    return {
        "name": "compressed-tensors",
        "version": compressed_tensors.__version__,
        "language": "python",
        "home": "https://github.com/vllm-project/compressed-tensors",
        "ops": ["judge_checkpoint", "unpack"],
    }


def declared_in(path):
    """The config's fields. What is not of its own method it has no word on."""
    fields = get_quantization_config(get_checkpoint_files(path)["config.json"])
    method = fields.get("quant_method") if isinstance(fields, dict) else None
    if method != "compressed-tensors":
        raise adapter.Unimplemented(f"the method {method}")
    return fields


def tensors_of(path, prefix=""):
    found = {}
    for file in sorted(pathlib.Path(path).glob("*.safetensors")):
        with safe_open(file, "pt") as opened:
            found.update({key: opened.get_tensor(key) for key in opened.keys() if key.startswith(prefix)})
    return found


def scheme_of(config, module):
    """As `apply_quantization_config` finds it, taking the module for a Linear; none if it is left out."""
    targets = {target: scheme for scheme in config.config_groups.values() for target in scheme.targets}
    linear = torch.nn.Linear(1, 1, device="meta")
    if not is_match(module, linear, targets, config.ignore or ()):
        return None
    return _scheme_from_targets(targets, match_targets(module, linear, targets), module)


def layout_of(config, scheme):
    return getattr(scheme.format, "value", scheme.format) or config.format


def numbers(config, scheme, state):
    """What the compressor of the module's format makes of its tensors, in float32."""
    layout = layout_of(config, scheme)
    compressor = BaseCompressor.get_value_from_registry(layout)
    for name in compressor.compression_param_names(scheme):
        # Those of inputs are no part of the weight.
        if not name.startswith("input_") and name not in state:
            # The words of its CompressedTensorsDequantizer, which infers a format of its own.
            raise ValueError(f"Missing expected compression param {name}")
    scale = state["weight_scale"]
    if layout not in ("nvfp4-pack-quantized", "mxfp4-pack-quantized"):
        # Numbers come out in the type of scales.
        state["weight_scale"] = scale.to(torch.float32)
        return compressor.decompress(state, scheme)["weight"]
    # Its compressors of FP4 round products to bfloat16: these are their steps in float32.
    packed = state["weight_packed"]
    rows, half = packed.shape
    if layout == "mxfp4-pack-quantized":
        scale = decompress_mx_scale(scale)
    return dequantize(
        x_q=unpack_fp4_from_uint8(packed, rows, half * 2, dtype=torch.float32),
        scale=scale.to(torch.float32),
        args=scheme.weights,
        global_scale=state.get("weight_global_scale"),
        dtype=torch.float32,
    )


def judge_checkpoint(path, tp):
    if tp not in (None, 1):
        raise adapter.Unimplemented("splitting over ranks")
    config = QuantizationConfig.model_validate(declared_in(path))
    modules = {}
    for name, tensor in tensors_of(path).items():
        module, _, leaf = name.rpartition(".")
        modules.setdefault(module, {})[leaf] = tensor
    bits = set()
    for module, state in modules.items():
        stored = state.get("weight")
        if not any(leaf.startswith("weight_") for leaf in state) and (
            stored is None or stored.dtype not in STORED
        ):
            continue
        scheme = scheme_of(config, module)
        if scheme is not None:
            numbers(config, scheme, state)
            bits.add(scheme.weights.num_bits)
    answer = {"method": config.quant_method}
    if len(bits) == 1:
        answer["bits"] = bits.pop()
    return answer


def unpack(path, module):
    config = QuantizationConfig.model_validate(declared_in(path))
    scheme = scheme_of(config, module)
    if scheme is None:
        raise ValueError(f"{module} is no target of the config")
    prefix = f"{module}."
    state = {name.removeprefix(prefix): tensor for name, tensor in tensors_of(path, prefix).items()}
    weight = numbers(config, scheme, state)
    return weight.shape, weight.to(torch.float32).contiguous().numpy().astype("<f4").tobytes()


adapter.serve(describe, judge_checkpoint=judge_checkpoint, unpack=unpack)
