#!/usr/bin/env python3
"""Makes vectors.json: weights that the real tools packed, and the numbers that they unpack.

    make.py AUTOAWQ GPTQMODEL > vectors.json

AUTOAWQ and GPTQMODEL are the unpacked PyPI source packages autoawq 0.2.9 and gptqmodel 7.7.0. Needs
torch, transformers 5.24.0, compressed-tensors 0.20.1 and bitsandbytes 0.50.2; no GPU. The functions of
the two source packages are taken out of their files, since the packages want much that packing does
not. Every number is random. Run by hand; what it writes is committed.
"""

import ast
import hashlib
import importlib.metadata
import json
import math
import pathlib
import sys
import types

import numpy as np
import torch

AUTOAWQ, GPTQMODEL = map(pathlib.Path, sys.argv[1:3])
DTYPES = {
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8",
    torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2", torch.float8_e8m0fnu: "F8_E8M0",
}
vectors = []


def raw(tensor):
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes().hex()


def add(name, tool, packing, shape, tensors, numbers, **more):
    """`numbers` are those of the tool, in the type that it gives: the first row, and a digest of all."""
    numbers = torch.where(numbers.isnan(), torch.nan, numbers).contiguous()
    digest = hashlib.sha256(bytes.fromhex(raw(numbers))).hexdigest()
    vectors.append({
        "name": name,
        "tool": tool,
        "packing": packing,
        "shape": list(shape),
        "tensors": {key: {"dtype": DTYPES[t.dtype], "shape": list(t.shape), "bytes": raw(t)} for key, t in tensors.items()},
        "numbers": {"dtype": DTYPES[numbers.dtype], "first_row": raw(numbers.reshape(-1, shape[-1])[0]), "sha256": digest} | more,
    })


def take(path, names, **scope):
    """Definitions of these names, also of methods, out of a file and into `scope`."""
    wanted = set(names)
    found = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in wanted]
    for node in found:
        node.decorator_list = []
    exec(compile(ast.Module(found, []), str(path), "exec"), scope)
    return types.SimpleNamespace(**{name: scope[name] for name in names})


def version(package):
    return f"{package} {importlib.metadata.version(package)}"


def codes(bits, out, into, group, low=0):
    """Codes [out, in], zero points and scales [out, groups], half precision; and the weight."""
    q = torch.randint(0, 2**bits, (out, into))
    z = torch.randint(low, 2**bits, (out, into // group))
    s = (torch.rand(out, into // group) * 0.02 + 0.001).half()
    return q, z, s, (q - z.repeat_interleave(group, 1)).float() * s.float().repeat_interleave(group, 1)


def gptq():
    tool = "gptqmodel 7.7.0"
    quant = GPTQMODEL / "gptqmodel"
    log = types.SimpleNamespace(info=types.SimpleNamespace(once=lambda text: None))
    limits = types.SimpleNamespace(threadpool_limits=lambda n: open("/dev/null"))
    import torch.nn as nn
    import transformers

    linear = take(
        quant / "nn_modules/qlinear/__init__.py", ["pack_original", "dequantize_weight", "_dequantize_from_codes", "_torch_right_shift", "_torch_left_shift"],
        t=torch, np=np, nn=nn, math=math, transformers=transformers, _ConvNd=nn.modules.conv._ConvNd, THREADPOOLCTL=limits,
    )
    three = take(quant / "utils/model_dequant.py", ["_shift_gptq_qzeros", "_revert_gptq_v1_qzeros_correction", "unpack_cols", "pack_cols", "_unpack_cols_3bit", "_pack_cols_3bit", "_require_int32_words_for_3bit"], torch=torch, PLANAR_BITS=())
    to_v1 = take(
        quant / "utils/model.py", ["convert_gptq_v2_to_v1_format_module"],
        torch=torch, log=log, BaseQuantLinear=object, QuantizeConfig=object, _revert_gptq_v1_qzeros_correction=three._revert_gptq_v1_qzeros_correction,
    ).convert_gptq_v2_to_v1_format_module
    for name, bits, into, out, group, act, low in [
        ("2 bits", 2, 64, 32, 32, False, 1), ("3 bits", 3, 64, 32, 32, False, 1), ("4 bits", 4, 64, 32, 32, False, 1),
        ("8 bits", 8, 32, 16, 32, False, 1), ("act-order", 4, 64, 16, 16, True, 1), ("3 bits, a zero point of 0", 3, 32, 32, 32, False, 0),
        ("4 bits, a zero point of 0", 4, 32, 64, 32, False, 0),
    ]:
        q, z, s, _ = codes(bits, out, into, group, low)
        if low == 0:
            z[0::5] = 0
        g_idx = torch.arange(into, dtype=torch.int32) // group
        if act:
            g_idx = g_idx[torch.randperm(into)]
        weight = (q - z[:, g_idx.long()]).float() * s.float()[:, g_idx.long()]
        module = types.SimpleNamespace(
            bits=bits, pack_dtype=torch.int32, pack_dtype_bits=32, pack_np_math_dtype=np.uint32, pack_np_dtype=np.int32, pack_factor=32 // bits,
            maxq=2**bits - 1, planar=False, g_idx=g_idx, in_features=into, out_features=out, dequant_dtype=torch.int16 if bits == 8 else torch.int8,
        )
        module.register_buffer = lambda key, value: setattr(module, key, value)
        module._init_wf_unsqueeze_buffers = lambda: None
        module.qzero_format = lambda format: None
        module._dequantize_from_codes = lambda *args, **more: linear._dequantize_from_codes(module, *args, **more)
        source = nn.Linear(into, out, bias=False)
        source.weight.data = weight
        linear.pack_original(module, source, s.float(), z.float(), g_idx)
        places = [list(range(0, 32, bits))]
        if bits == 3:
            places = [[*range(0, 31, 3), 0], [0, *range(1, 32, 3)], [0, *range(2, 30, 3), 0]]
        wf = torch.tensor(places, dtype=torch.int32).reshape(1, *((3, 12) if bits == 3 else (-1,)))
        module.wf_unsqueeze_zero, module.wf_unsqueeze_neg_one = wf.unsqueeze(0), wf.unsqueeze(-1)
        half = module.scales
        module.scales = half.float()
        numbers = linear.dequantize_weight(module).T
        assert torch.equal(numbers, weight), name
        tensors = {"qweight": module.qweight, "qzeros": module.qzeros, "scales": half, "g_idx": g_idx}
        packing = {"layout": "gptq_v2", "bits": bits, "group_size": group, "symmetric": False}
        if low:
            add(f"gptq_v2 {name}", tool, packing, (out, into), tensors, numbers)
        to_v1(module, module)
        # It takes one from whole words but for 3 bits, so that a zero point of 0 borrows from the next.
        known = {"rule": "zero points less one in whole words, with carries"} if low == 0 and bits != 3 else {}
        add(f"gptq {name}", tool, packing | {"layout": "gptq"}, (out, into), tensors | {"qzeros": module.qzeros}, numbers, **known)


def awq():
    tool = "autoawq 0.2.9"
    import torch.nn as nn

    folder = AUTOAWQ / "awq/modules/linear"
    shared = dict(torch=torch, nn=nn, np=np)
    width = take(folder / "gemv.py", ["calculate_zeros_width", "make_divisible"], **shared)
    shared |= vars(width)
    shared["get_best_device"] = lambda: "cpu"
    perms = take(folder / "marlin.py", ["_get_perms"], **shared)._get_perms()
    shared |= dict(zip(["_perm", "_scale_perm", "_scale_perm_single"], perms))
    packing_utils = AUTOAWQ / "awq/utils/packing_utils.py"
    dequantize = take(packing_utils, ["dequantize_gemm", "unpack_awq", "reverse_awq_order"], torch=torch, AWQ_REVERSE_ORDER=[0, 4, 1, 5, 2, 6, 3, 7]).dequantize_gemm
    from_linear = lambda file, name: classmethod_of(take(folder / file, [name], **shared), name)
    for name, into, out, group in [("groups of 32", 64, 64, 32), ("one group", 128, 32, 128)]:
        q, z, s, weight = codes(4, out, into, group)
        source = nn.Linear(into, out, bias=False)
        source.weight.data = weight
        module = from_linear("gemm.py", "WQLinear_GEMM")(source, 4, group, False, s.T.contiguous().float(), z.T.contiguous())
        numbers = dequantize(module.qweight, module.qzeros, module.scales.float(), 4, group).T
        packing = {"layout": "awq gemm", "bits": 4, "group_size": group, "symmetric": False}
        assert torch.equal(numbers, weight)
        tensors = {"qweight": module.qweight, "qzeros": module.qzeros, "scales": module.scales}
        add(f"awq gemm {name}", tool, packing, (out, into), tensors, numbers)
    for group, into in [(32, 64), (64, 192), (128, 256)]:
        # There is no unpacking code but a kernel's: the numbers are those that were packed.
        q, z, s, weight = codes(4, 8, into, group)
        source = nn.Linear(into, 8, bias=False)
        source.weight.data = weight
        module = from_linear("gemv.py", "WQLinear_GEMV")(source, 4, group, False, s.float(), z)
        packing = {"layout": "awq gemv", "bits": 4, "group_size": group, "symmetric": False}
        tensors = {"qweight": module.qweight, "qzeros": module.qzeros, "scales": module.scales}
        add(f"awq gemv groups of {group}", tool, packing, (8, into), tensors, weight)
    pack_fast = take(folder / "gemv_fast.py", ["pack_intweight"], **shared).pack_intweight
    gemv_fast = take(GPTQMODEL / "gptqmodel/nn_modules/qlinear/gemv_fast_awq.py", ["pack"], pack_intweight=pack_fast, **shared)
    for group, into in [(32, 64), (128, 256)]:
        q, z, s, weight = codes(4, 8, into, group)
        source = nn.Linear(into, 8, bias=False)
        source.weight.data = weight
        module = types.SimpleNamespace(bits=4, group_size=group, in_features=into, zeros_name="qzeros")
        module.register_buffer = lambda key, value: setattr(module, key, value)
        gemv_fast.pack(module, source, s, z)
        packing = {"layout": "awq gemv_fast", "bits": 4, "group_size": group, "symmetric": False}
        there = into // group
        numbers = q.float() * s.float().repeat_interleave(group, 1) + module.qzeros[:there].T.float().repeat_interleave(group, 1)
        tensors = {"qweight": module.qweight, "qzeros": module.qzeros, "scales": module.scales}
        add(f"awq gemv_fast groups of {group}", f"{tool} pack_intweight, gptqmodel 7.7.0 pack", packing, (8, into), tensors, numbers)
    for name, group in [("groups", 32), ("one group", 64)]:
        q, _, s, _ = codes(4, 64, 64, group)
        weight = (q - 8).float() * s.float().repeat_interleave(group, 1)
        source = nn.Linear(64, 64, bias=False)
        source.weight.data = weight
        module = from_linear("marlin.py", "WQLinear_Marlin")(source, 4, group, False, s.T.contiguous().float().T, None)
        packing = {"layout": "awq marlin", "bits": 4, "group_size": group, "symmetric": True}
        add(f"awq marlin {name}", tool, packing, (64, 64), {"qweight": module.qweight, "scales": module.scales}, weight)


def classmethod_of(space, name):
    cls = getattr(space, name)
    function = cls.__dict__["from_linear"]
    return lambda *args: (function.__func__ if isinstance(function, classmethod) else function)(cls, *args)


def compressed_tensors():
    from compressed_tensors.compressors.naive_quantized import IntQuantizationCompressor, FloatQuantizationCompressor
    from compressed_tensors.compressors.pack_quantized import PackedQuantizationCompressor
    from compressed_tensors.compressors.nvfp4 import NVFP4PackedCompressor
    from compressed_tensors.compressors.mxfp4 import MXFP4PackedCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme

    tool = version("compressed-tensors")

    def run(name, layout, compressor, args, shape, scale, zero=None, block=None, **more):
        args = QuantizationArgs(**args)
        scheme = QuantizationScheme(targets=["Linear"], weights=args)
        state = {"weight": torch.randn(shape) * 0.05, "weight_scale": scale} | more
        if zero is not None:
            state["weight_zero_point"] = zero
        state = compressor.compress(state, scheme)
        tensors = dict(state)
        numbers = compressor.decompress(state, scheme)["weight"]
        packing = {"layout": layout, "bits": args.num_bits, "symmetric": args.symmetric, "block": block}
        packing["group_size"] = args.group_size if args.strategy == "group" or layout != "float8" else None
        add(name, tool, packing, shape, tensors, numbers)

    for bits in range(1, 9):
        # The last words are not full. With at most 8 rows decompress fails for 4 bits.
        rows, cols, group = 12, 72, 24
        rand = lambda *shape: torch.rand(*shape) * 0.02 + 0.01
        zero = lambda *shape: torch.randint(-(2 ** (bits - 1)), 2 ** (bits - 1), shape, dtype=torch.int8)
        args = dict(num_bits=bits, type="int", symmetric=False, strategy="group", group_size=group)
        run(f"pack-quantized {bits} bits, groups", "pack-quantized", PackedQuantizationCompressor, args, (rows, cols), rand(rows, 3), zero(rows, 3))
        args = dict(num_bits=bits, type="int", symmetric=True, strategy="channel")
        run(f"pack-quantized {bits} bits, rows", "pack-quantized", PackedQuantizationCompressor, args, (rows, cols), rand(rows, 1).bfloat16().float())
    args = dict(num_bits=4, type="int", symmetric=True, strategy="tensor")
    run("pack-quantized tensor", "pack-quantized", PackedQuantizationCompressor, args, (rows, cols), rand(1))
    args = dict(num_bits=4, type="int", symmetric=False, strategy="group", group_size=24)
    bits = 4
    run("pack-quantized, scales BF16", "pack-quantized", PackedQuantizationCompressor, args, (rows, cols), rand(rows, 3).bfloat16(), zero(rows, 3))
    args = dict(num_bits=4, type="int", symmetric=False, strategy="tensor")
    run("pack-quantized tensor, asymmetric", "pack-quantized", PackedQuantizationCompressor, args, (rows, cols), rand(1), zero(1))
    args = dict(num_bits=4, type="int", symmetric=False, strategy="group", group_size=12)
    run("int-quantized 4 bits, groups", "int-quantized", IntQuantizationCompressor, args, (5, 24), rand(5, 2), zero(5, 2))
    bits = 8
    args = dict(num_bits=8, type="int", symmetric=False, strategy="tensor")
    run("int-quantized tensor, asymmetric", "int-quantized", IntQuantizationCompressor, args, (5, 24), rand(1) / 100, zero(1))
    for symmetric in [True, False]:
        args = dict(num_bits=8, type="int", symmetric=symmetric, strategy="channel")
        run(f"int-quantized rows, symmetric {symmetric}", "int-quantized", IntQuantizationCompressor, args, (5, 24), rand(5, 1) / 100, None if symmetric else zero(5, 1))
    args = dict(num_bits=8, type="int", symmetric=True, strategy="tensor")
    run("int-quantized tensor", "int-quantized", IntQuantizationCompressor, args, (5, 24), rand(1) / 100)
    args = dict(num_bits=8, type="float", symmetric=True, strategy="channel")
    run("float8 rows", "float8", FloatQuantizationCompressor, args, (5, 24), rand(5, 1) / 100)
    args = dict(num_bits=8, type="float", symmetric=True, strategy="tensor")
    run("float8 tensor", "float8", FloatQuantizationCompressor, args, (5, 24), rand(1) / 100)
    args = dict(num_bits=8, type="float", symmetric=True, strategy="block", block_structure=[8, 16])
    run("float8 blocks, the last partial", "float8", FloatQuantizationCompressor, args, (12, 40), rand(2, 3) / 100, block=[8, 16])
    args = dict(num_bits=4, type="float", symmetric=True, strategy="tensor_group", group_size=16, scale_dtype=torch.float8_e4m3fn)
    scale = (rand(4, 3) * 10000).to(torch.float8_e4m3fn).float()
    run("nvfp4", "nvfp4-pack-quantized", NVFP4PackedCompressor, args, (4, 48), scale, weight_global_scale=torch.tensor([9432.7]))
    args = dict(num_bits=4, type="float", symmetric=True, strategy="group", group_size=32, scale_dtype=torch.uint8)
    from compressed_tensors.compressors.mxfp8 import MXFP8QuantizationCompressor
    eight = dict(args, num_bits=8)
    run("float8 groups, E8M0", "float8", MXFP8QuantizationCompressor, eight, (4, 64), 2.0 ** torch.randint(-16, -8, (4, 2)))
    run("mxfp4", "mxfp4-pack-quantized", MXFP4PackedCompressor, args, (4, 64), 2.0 ** torch.randint(-10, 3, (4, 2)))


def bitsandbytes():
    import bitsandbytes.functional as F

    tool = version("bitsandbytes")
    for kind in ["nf4", "fp4"]:
        # More than 256 blocks, so that there is more than one of absmax.
        for double, shape in [(False, (6, 64)), (True, (6, 64)), (True, (130, 128))]:
            if double and kind == "fp4" and shape[0] > 6:
                continue
            packed, state = F.quantize_4bit(torch.randn(shape), blocksize=64, compress_statistics=double, quant_type=kind)
            tensors = {"weight": packed} | {f"weight.{key}": value for key, value in state.as_dict(packed=True).items()}
            numbers = F.dequantize_4bit(packed, state)
            packing = {"layout": "bitsandbytes 4-bit", "bits": 4, "symmetric": True}
            add(f"bitsandbytes {kind}, double {double}, {shape[0]} rows", tool, packing, shape, tensors, numbers)
    packed, stats, _ = F.int8_vectorwise_quant(torch.randn(5, 24).half())
    packing = {"layout": "bitsandbytes int8", "bits": 8, "symmetric": True}
    tensors = {"weight": packed, "SCB": stats}
    add("bitsandbytes int8", tool, packing, (5, 24), tensors, F.int8_vectorwise_dequant(packed, stats))


def floats():
    tool = version("torch")
    every = torch.arange(256, dtype=torch.uint8).reshape(16, 16)
    packing = {"layout": "float8", "bits": 8, "symmetric": True}
    for dtype in [torch.float8_e4m3fn, torch.float8_e5m2]:
        tensors = {"weight": every.view(dtype), "weight_scale": torch.ones(1)}
        add(f"every number of {DTYPES[dtype]}", tool, packing, (16, 16), tensors, every.view(dtype).float())
    ones = torch.full((16, 16), 0x38, dtype=torch.uint8).view(torch.float8_e4m3fn)
    tensors = {"weight": ones, "weight_scale_inv": every.view(torch.float8_e8m0fnu)}
    add("every number of F8_E8M0", tool, packing | {"block": [1, 1]}, (16, 16), tensors, every.view(torch.float8_e8m0fnu).float())


def gpt_oss():
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    experts, rows, blocks = 2, 6, 3
    data = torch.randint(0, 256, (experts, rows, blocks, 16), dtype=torch.uint8)
    # 0 and 1 would be subnormal, and powf of the CPU may flush those; 255 is not defined.
    scales = torch.randint(2, 254, (experts, rows, blocks), dtype=torch.uint8)
    numbers = convert_moe_packed_tensors(data, scales, dtype=torch.float32).transpose(1, 2).contiguous()
    packing = {"layout": "gpt-oss mxfp4", "bits": 4, "symmetric": True}
    add("gpt-oss", version("transformers"), packing, (rows, blocks * 32), {"blocks": data, "scales": scales}, numbers)


torch.manual_seed(7)
for make in [gptq, awq, compressed_tensors, bitsandbytes, floats, gpt_oss]:
    make()
print("[\n" + ",\n".join(json.dumps(vector) for vector in vectors) + "\n]")
