#!/usr/bin/env python3
"""Makes the slices beside it, and figures.json: how far quantized weights are from their source.

    slice.py CHECKPOINTS

CHECKPOINTS is a folder with tiny-qwen3-bf16 and tiny-qwen3moe-bf16, two models of random weights, and
what auto-round 0.16.1, llm-compressor and bitsandbytes made of them. A slice is the first 64 rows and
columns of one module, still packed. Needs torch and safetensors. The unpacking here is written apart
from the crate's, after the text of each format; figures are mean |w - source| / mean |source|. Run by
hand; what it writes is committed. The weights are free for any use.
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file

HERE = pathlib.Path(__file__).parent
SIZE = 64
E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
IN_ORDER, AWQ_ORDER = list(range(8)), [0, 4, 1, 5, 2, 6, 3, 7]
WORDS = 2**32 - 1


def fields(words, bits, dim):
    """The fields of words of 32 bits, low ones first, along a dimension."""
    words = words.long() & WORDS
    parts = [(words >> shift) & (2**bits - 1) for shift in range(0, 32, bits)]
    return torch.stack(parts, dim + 1).flatten(dim, dim + 1)


def grouped(weight, zero, scale, group):
    """[out, in], with zero points and scales [out, groups]."""
    spread = lambda x: x.repeat_interleave(group, 1)
    return (weight - spread(zero)).float() * spread(scale.float())


def gptq(t, bits, less=1):
    zero = (fields(t["qzeros"], bits, 1) + less) % 2**bits
    return grouped(fields(t["qweight"], bits, 0).T, zero.T, t["scales"].T, 32)


def awq(t, order=AWQ_ORDER, less=0):
    sort = lambda x: x.reshape(len(x), -1, 8)[:, :, order].flatten(1)
    weight, zero = sort(fields(t["qweight"], 4, 1)), sort(fields(t["qzeros"], 4, 1))
    return grouped(weight.T, (zero.T + less) % 16, t["scales"].T, 32)


def packed(t, offset=8, more=0):
    weight, zero = fields(t["weight_packed"], 4, 1), fields(t["weight_zero_point"], 4, 0)
    if offset == 0:
        weight = (weight ^ 8)
    return grouped(weight, (zero + more) % 16, t["weight_scale"], 32)


def nibbles(data, low_first=True):
    pair = [data & 15, data >> 4]
    return torch.stack(pair if low_first else pair[::-1], -1).flatten(-2).long()


def mxfp4(t, low_first=True, gguf=False):
    data = t["weight_packed"]
    codes = nibbles(data, low_first)
    if gguf:
        blocks = data.reshape(len(data), -1, 16)
        codes = torch.cat([blocks & 15, blocks >> 4], -1).flatten(1).long()
    return E2M1[codes] * (2.0 ** (t["weight_scale"].float() - 127)).repeat_interleave(32, 1)


def fp8_rows(t, power=1):
    return t["weight"].float() * t["weight_scale"].float() ** power


def fp8_blocks(t, power=1, transposed=False):
    scale = t["weight_scale_inv"].float() ** power
    scale = scale.T if transposed else scale
    scale = scale.repeat_interleave(128, 0).repeat_interleave(128, 1)
    return t["weight"].float() * scale[: t["weight"].shape[0], : t["weight"].shape[1]]


def nf4(t, shape, low_first=False):
    codes = nibbles(t["weight"].flatten(), low_first)
    return (t["weight.quant_map"][codes].reshape(-1, 64) * t["weight.absmax"][:, None]).reshape(shape)


def slice_bnb(t, shape):
    rows, cols = shape
    blocks = t["weight"].reshape(rows, cols // 64, 32)[:SIZE, 0]
    state = json.loads(bytes(t["weight.quant_state.bitsandbytes__nf4"].tolist()))
    state["shape"] = [SIZE, SIZE]
    text = torch.tensor(list(json.dumps(state).encode()), dtype=torch.uint8)
    absmax = t["weight.absmax"].reshape(rows, cols // 64)[:SIZE, 0]
    return {"weight": blocks.reshape(-1, 1), "weight.absmax": absmax, "weight.quant_map": t["weight.quant_map"], "weight.quant_state.bitsandbytes__nf4": text}


def cut(**sizes):
    return lambda t, shape: {key: t[key][tuple(slice(n) for n in size)] for key, size in sizes.items()}


def cut_gptq(bits):
    words = SIZE * bits // 32
    return cut(qweight=(words, SIZE), qzeros=(SIZE // 32, words), scales=(SIZE // 32, SIZE), g_idx=(SIZE,))


STORED, NIBBLES = "zero points as stored, as in v2", "the nibbles of a byte the other way around"
# The right rule, wrong ones by the crate's names, and how to slice.
CHECKPOINTS = {
    "qwen3-gptq-w4g32-autoround": (lambda t, s: gptq(t, 4), {STORED: lambda t, s: gptq(t, 4, 0)}, cut_gptq(4)),
    "qwen3-gptq-w2g32-autoround": (lambda t, s: gptq(t, 2), {STORED: lambda t, s: gptq(t, 2, 0)}, cut_gptq(2)),
    "qwen3moe-gptq-w4g32-autoround": (lambda t, s: gptq(t, 4), {STORED: lambda t, s: gptq(t, 4, 0)}, cut_gptq(4)),
    "qwen3-awq-w4g32-autoround": (
        lambda t, s: awq(t), {"the nibbles of a word in order": lambda t, s: awq(t, IN_ORDER), "zero points one more": lambda t, s: awq(t, less=1)},
        cut(qweight=(SIZE, SIZE // 8), qzeros=(SIZE // 32, SIZE // 8), scales=(SIZE // 32, SIZE)),
    ),
    "qwen3-ct-w4a16-asym-g32": (
        lambda t, s: packed(t),
        {"codes as two's complement, without an offset": lambda t, s: packed(t, 0), "zero points one more": lambda t, s: packed(t, more=1)},
        lambda t, s: cut(weight_packed=(SIZE, SIZE // 8), weight_scale=(SIZE, SIZE // 32), weight_zero_point=(SIZE // 8, SIZE // 32))(t, s)
        | {"weight_shape": torch.tensor([SIZE, SIZE])},
    ),
    "qwen3-ct-mxfp4a16": (
        lambda t, s: mxfp4(t), {NIBBLES: lambda t, s: mxfp4(t, False), "low nibbles the first half of a block, as in GGUF": lambda t, s: mxfp4(t, gguf=True)},
        cut(weight_packed=(SIZE, SIZE // 2), weight_scale=(SIZE, SIZE // 32)),
    ),
    "qwen3-ct-fp8-dynamic": (
        lambda t, s: fp8_rows(t), {"divided by the scale": lambda t, s: fp8_rows(t, -1), "without scales": lambda t, s: fp8_rows(t, 0)},
        cut(weight=(SIZE, SIZE), weight_scale=(SIZE, 1)),
    ),
    "qwen3-fp8block-autoround": (
        lambda t, s: fp8_blocks(t), {"divided by the scale": lambda t, s: fp8_blocks(t, -1)}, cut(weight=(SIZE, SIZE), weight_scale_inv=(1, 1)),
    ),
    "qwen3-bnb-nf4": (nf4, {NIBBLES: lambda t, s: nf4(t, s, True)}, slice_bnb),
}


def error(numbers, source):
    return ((numbers.double() - source.double()).abs().mean() / source.double().abs().mean()).item()


def main():
    root = pathlib.Path(sys.argv[1])
    figures, kept = {}, {}
    for name, (right, wrong, cut) in CHECKPOINTS.items():
        source_name = "tiny-qwen3moe-bf16" if "moe" in name else "tiny-qwen3-bf16"
        source, tensors = (load_file(root / n / "model.safetensors") for n in [source_name, name])
        modules = {}
        for key, weight in source.items():
            module = key.removesuffix(".weight")
            mine = {k.removeprefix(f"{module}."): v for k, v in tensors.items() if k.startswith(f"{module}.")}
            if len(mine) > 1 and weight.ndim == 2:
                modules[module] = {"as declared": error(right(mine, weight.shape), weight)}
                modules[module] |= {rule: error(f(mine, weight.shape), weight) for rule, f in wrong.items()}
        module = "model.layers.0.mlp.experts.0.down_proj" if "moe" in name else "model.layers.0.mlp.down_proj"
        mine = {k.removeprefix(f"{module}."): v for k, v in tensors.items() if k.startswith(f"{module}.")}
        part = {k: v.clone().contiguous() for k, v in cut(mine, source[f"{module}.weight"].shape).items()}
        save_file({f"{module}.{k}": v for k, v in part.items()}, HERE / f"{name}.safetensors")
        kept.setdefault(source_name, {})[f"{module}.weight"] = small = source[f"{module}.weight"][:SIZE, :SIZE].clone()
        rules = {"as declared": right} | wrong
        figures[name] = {
            "source": source_name,
            "slice": {rule: error(f(part, small.shape), small) for rule, f in rules.items()},
            "modules": modules,
        }
    for name, tensors in kept.items():
        save_file(tensors, HERE / f"{name}.safetensors")
    (HERE / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")


main()
