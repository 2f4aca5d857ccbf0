#!/usr/bin/env python3
"""Makes whole pairs for record.py: a tiny random model and the GGUF file that llama.cpp makes of it.

    make.py LLAMA_CPP OUT [NAME...]

LLAMA_CPP is a folder with the converter's packages `conversion` and `gguf-py`, such as
vendor/llama.cpp in the PyPI source package llama-cpp-python 0.3.36. Needs torch and transformers
5.24.0. Every number is random, so that a wrong order and a forgotten change show; the vocabulary is
made up, since names and shapes need no tokenizer. Run by hand; what record.py keeps is committed.
"""

import json
import logging
import pathlib
import re
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file

BASE = dict(
    vocab_size=24,
    hidden_size=16,
    intermediate_size=24,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    tie_word_embeddings=False,
)
LATENT = dict(hidden_size=8, intermediate_size=12, num_key_value_heads=4, q_lora_rank=9, kv_lora_rank=10, qk_nope_head_dim=3, qk_rope_head_dim=2, v_head_dim=6)
INDEXER = dict(index_topk=4, index_head_dim=7, index_n_heads=3)
SMALL_EXPERTS = dict(num_experts_per_tok=2, moe_intermediate_size=5)
EXPERTS = dict(num_experts_per_tok=2, moe_intermediate_size=8)
# Two key heads, each with three value heads; llama.cpp takes one size for both.
DELTA = dict(linear_num_key_heads=2, linear_num_value_heads=6, linear_key_head_dim=3, linear_value_head_dim=3, linear_conv_kernel_dim=3, layer_types=["linear_attention", "full_attention"])
SECTIONS = dict(rope_type="default", rope_theta=10000000.0, partial_rotary_factor=0.75, mrope_section=[2, 1, 0], mrope_interleaved=True)
QSA = dict(hc_count=2, hc_lowrank=5, indexer_n_heads=2, indexer_kv_heads=1, indexer_head_dim=6, indexer_budget=8, indexer_compress_ratio=4)
SCALES = dict(attention_multiplier=0.5, embedding_multiplier=12.0, residual_multiplier=0.25, logits_scaling=8.0)
MAMBA2 = dict(mamba_n_heads=8, mamba_n_groups=2, mamba_d_state=3, mamba_d_head=4, mamba_d_conv=3, mamba_expand=2)
FALCON_H1 = dict(hidden_size=12, intermediate_size=20, head_dim=6, mamba_d_ssm=24, mamba_n_heads=6, mamba_d_head=4, mamba_n_groups=2, mamba_d_state=3, mamba_d_conv=3)
NEMOTRON = dict(num_hidden_layers=3, ssm_state_size=3, mamba_num_heads=4, mamba_head_dim=16, n_groups=2, conv_kernel=3)

# Gemma 4. The configs of its text model are as published; transformers 5.24.0 writes what the layers of full
# attention have otherwise as per_layer_config instead, as gemma4-sees has it.
GEMMA4 = dict(BASE, head_dim=6, global_head_dim=8, num_global_key_value_heads=1, sliding_window=16, tie_word_embeddings=True, layer_types=["sliding_attention", "full_attention"] * 2, num_hidden_layers=4, hidden_size_per_layer_input=0)
# What sees, of models that do; it is in a file of its own.
QWEN3VL_VISION = dict(depth=1, hidden_size=8, num_heads=2, intermediate_size=12, out_hidden_size=16, patch_size=2, deepstack_visual_indexes=[0], num_position_embeddings=16)
SIGLIP = dict(hidden_size=8, intermediate_size=12, num_hidden_layers=1, num_attention_heads=2, image_size=8, patch_size=4)
MROPE = dict(rope_type="default", rope_theta=1000000.0, mrope_section=[1, 1, 1])


def add_next_token_of_qwen(folder):
    """The block that predicts one more token, which transformers neither loads nor saves: published
    checkpoints of Qwen have it as a layer of full attention under mtp."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    layer = next(name.split(".")[2] for name in tensors if "self_attn" in name)
    prefix = f"model.layers.{layer}."
    more = {name.replace(prefix, "mtp.layers.0."): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
    norm = tensors["model.norm.weight"]
    for name in ["norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden"]:
        more[f"mtp.{name}.weight"] = norm
    more["mtp.fc.weight"] = norm.new_empty(len(norm), 2 * len(norm))
    tensors.update((name, torch.empty_like(tensor).normal_(0.0, 0.3)) for name, tensor in more.items())
    save_file(tensors, path, {"format": "pt"})


def add_next_token_of_nemotron(folder):
    """As add_next_token_of_qwen, but in two layers under mtp: one of attention and one of experts."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    more = {}
    for place, part in enumerate(["q_proj", "gate.weight"]):
        layer = next(name.split(".")[2] for name in tensors if f"mixer.{part}" in name)
        prefix = f"backbone.layers.{layer}."
        more.update((name.replace(prefix, f"mtp.layers.{place}."), tensor) for name, tensor in tensors.items() if name.startswith(prefix))
    norm = tensors["backbone.norm_f.weight"]
    for name in ["0.enorm", "0.hnorm", "1.final_layernorm"]:
        more[f"mtp.layers.{name}.weight"] = norm
    more["mtp.layers.0.eh_proj.weight"] = norm.new_empty(len(norm), 2 * len(norm))
    tensors.update((name, torch.empty_like(tensor).normal_(0.0, 0.3)) for name, tensor in more.items())
    save_file(tensors, path, {"format": "pt"})


def edit_config(folder, edit):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    edit(config)
    path.write_text(json.dumps(config, indent=2) + "\n")


def rename_layers(folder):
    """Layers as published configs name them. transformers 5 has other names for them, with which the
    converter takes every layer for one of Mamba."""
    names = {"linear_attention": "mamba", "full_attention": "attention"}
    edit_config(folder, lambda config: config.update(layer_types=[names[name] for name in config["layer_types"]]))


def publish_kimi(folder):
    """Names and fields as published, without which the converter stops: transformers 5 saves the feed-forward
    parts without experts under block_sparse_moe, too, and has its own fields for linear_attn_config,
    first_k_dense_replace and the router's function, which the converter needs."""

    def edit(config):
        layers = list(enumerate(config["layer_types"], 1))
        config["linear_attn_config"] = {
            "full_attn_layers": [number for number, name in layers if name == "full_attention"],
            "kda_layers": [number for number, name in layers if name == "linear_attention"],
            "head_dim": config["linear_head_dim"],
            "num_heads": config["linear_num_heads"],
            "short_conv_kernel_size": config["linear_conv_kernel_dim"],
        }
        config["first_k_dense_replace"] = config["mlp_layer_types"].count("dense")
        config["moe_router_activation_func"] = "sigmoid"

    edit_config(folder, edit)
    path = folder / "model.safetensors"
    dense = [f"block_sparse_moe.{part}_proj" for part in ("gate", "up", "down")]
    tensors = load_file(path)
    names = {name: name.replace("block_sparse_moe", "mlp") if any(part in name for part in dense) else name for name in tensors}
    save_file({names[name]: tensor for name, tensor in tensors.items()}, path, {"format": "pt"})


def publish_qwen4exp(folder):
    """The name of layers that published configs have. transformers 5 makes indexed_attention of it, also
    when the converter asks it for the config, which then writes that nothing is compressed."""
    names = {"linear_attention": "linear_attention", "indexed_attention": "full_attention"}

    def edit(config):
        config = config.get("text_config", config)
        config["layer_types"] = [names[name] for name in config["layer_types"]]

    edit_config(folder, edit)


def publish_nemotron(folder):
    """The layers as published configs have them, and no experts. transformers 5 writes a list, in which
    the converter does not know the name mlp, and fields of experts, whatever the layers: the converter
    takes such a model for one of experts."""

    def edit(config):
        letters = {"linear_attention": "M", "mlp": "-", "full_attention": "*"}
        layers = config.pop("layers_block_type")
        config.update(hybrid_override_pattern="".join(letters[layer] for layer in layers), num_hidden_layers=len(layers))
        for name in [name for name in config if "moe" in name or "expert" in name or name in ("n_group", "topk_group", "norm_topk_prob", "routed_scaling_factor") or "mtp" in name or "nextn" in name]:
            del config[name]

    edit_config(folder, edit)


def pack(folder):
    """Experts as openai/gpt-oss-20b has them: MXFP4, of random bytes. dequantized.safetensors has what
    transformers makes of them."""
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    tensors = load_file(folder / "model.safetensors")
    dequantized = {}
    for key in [key for key in tensors if key.endswith(("gate_up_proj", "down_proj"))]:
        experts, columns, rows = tensors.pop(key).shape
        blocks = torch.randint(0, 256, (experts, rows, columns // 32, 16), dtype=torch.uint8)
        scales = torch.randint(118, 130, (experts, rows, columns // 32), dtype=torch.uint8)
        tensors[f"{key}_blocks"], tensors[f"{key}_scales"] = blocks, scales
        numbers = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
        # ggml's code 8 is 0, transformers' is -0.
        dequantized[key] = numbers.contiguous() + 0.0
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    save_file(dequantized, folder / "dequantized.safetensors")
    edit_config(folder, lambda config: config.update(quantization_config={"quant_method": "mxfp4"}))


def add_next_token_of_glm(folder):
    """As add_next_token, but behind the last layer, with its number."""
    tensors = load_file(folder / "model.safetensors")
    values = MODELS["glm4moe-mtp"][1]
    size, last = values["hidden_size"], values["num_hidden_layers"] - 1
    shapes = {key.replace(f"layers.{last}.", f"layers.{last + 1}."): tensor.shape for key, tensor in tensors.items() if f"layers.{last}." in key}
    for part, shape in [("eh_proj", (size, 2 * size)), ("enorm", (size,)), ("hnorm", (size,)), ("embed_tokens", (values["vocab_size"], size)), ("shared_head.head", (values["vocab_size"], size)), ("shared_head.norm", (size,))]:
        shapes[f"model.layers.{last + 1}.{part}.weight"] = shape
    tensors |= {key: torch.randn(*shape) for key, shape in shapes.items()}
    (folder / "memory.json").unlink()
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def transpose_experts(folder):
    """Qwen3-VL's experts as published. transformers 5.24.0 reads this and writes it transposed."""
    tensors = load_file(folder / "model.safetensors")
    for key in [key for key in tensors if ".experts." in key]:
        tensors[key] = tensors[key].transpose(1, 2).contiguous()
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def publish_gemma4(folder):
    """The fields of layers of full attention as published: transformers 5.24.0 writes them as per_layer_config."""

    def edit(config):
        layers = config.pop("per_layer_config").values()
        for field in ["head_dim", "num_key_value_heads"]:
            field_of_all = {"head_dim": "global_head_dim", "num_key_value_heads": "num_global_key_value_heads"}[field]
            config[field_of_all] = next((layer[field] for layer in layers if field in layer), None)

    edit_config(folder, edit)


def publish_step35(folder):
    """The text model with a block that predicts more, and the config that is published with it: the converter asks for
    its fields, which transformers 5.24.0 has other names for."""
    values = MODELS["step35"][1]["text_config"]
    size, last = values["hidden_size"], values["num_hidden_layers"]
    tensors = load_file(folder / "model.safetensors")
    tensors = {key: tensor for key, tensor in tensors.items() if key.startswith(("model.", "lm_head."))}
    # Like the first layer, dense and of full attention.
    shapes = {key.replace("layers.0.", f"layers.{last}."): tensor.shape for key, tensor in tensors.items() if "layers.0." in key}
    for part, shape in [("eh_proj", (size, 2 * size)), ("enorm", (size,)), ("hnorm", (size,)), ("transformer.shared_head.output", (values["vocab_size"], size)), ("transformer.shared_head.norm", (size,))]:
        shapes[f"model.layers.{last}.{part}.weight"] = shape
    tensors |= {key: torch.randn(*shape) for key, shape in shapes.items()}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    (folder / "memory.json").unlink()
    slides = [kind == "sliding_attention" for kind in values["layer_types"]] + [False]
    config = {field: values[field] for field in ["vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings", "head_dim", "sliding_window", "moe_intermediate_size", "share_expert_dim", "tie_word_embeddings"]}
    config |= dict(
        architectures=["Step3p5ForCausalLM"],
        model_type="step3p5",
        num_attention_groups=values["num_key_value_heads"],
        attention_other_setting=dict(num_attention_heads=values["num_sliding_attention_heads"], num_attention_groups=values["num_key_value_heads"]),
        num_nextn_predict_layers=1,
        layer_types=["sliding_attention" if each else "full_attention" for each in slides],
        partial_rotary_factors=[1.0 if each else 0.5 for each in slides],
        rope_theta=[10000.0 if each else 5000000.0 for each in slides],
        moe_layers_enum="1,2",
        moe_num_experts=values["n_routed_experts"],
        moe_top_k=values["num_experts_per_tok"],
        moe_every_n_layer=1,
        moe_router_activation="sigmoid",
        moe_router_scaling_factor=3.0,
        norm_expert_weight=True,
        rms_norm_eps=1e-5,
        swiglu_limits=[0.0, 0.0, 7.0, 0.0],
        swiglu_limits_shared=[0.0, 0.0, 16.0, 0.0],
    )
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def publish_dots3note(folder):
    """The config as published. transformers 5.24.0 reads it and writes other fields, without the router's function
    and the rescaling of latents (which its class always does): the converter stops at the one and leaves out the other."""

    def edit(config):
        slides = next(layer for layer in config.pop("per_layer_config").values())
        slides = {field: config[field] for field in ("q_lora_rank", "qk_rope_head_dim")} | slides
        config.update((f"swa_{field}", value) for field, value in slides.items())
        rope = config.pop("rope_parameters")
        names = {"indexed_attention": "full_attention", "sliding_attention": "sliding_attention"}
        config.update(
            apply_mla_qkv_lora_rescale=True,
            first_k_dense_replace=1,
            layer_types=[names[name] for name in config["layer_types"]],
            moe_layer_freq=1,
            moe_shared_expert_intermediate_size=config.pop("shared_experts_intermediate_size"),
            rope_theta=rope["indexed_attention"]["rope_theta"],
            scoring_func="sigmoid",
            sliding_window_size=config.pop("sliding_window"),
            swa_rope_theta=rope["sliding_attention"]["rope_theta"],
            topk_method="noaux_tc",
            use_dsa=True,
        )
        del config["mlp_layer_types"]

    edit_config(folder, edit)
    # The block that predicts one more token is not in it.
    (folder / "memory.json").unlink()


def publish_text_class(name):
    """The class of the text model, which published configs name and the converter goes by."""
    return lambda folder: edit_config(folder, lambda config: config["text_config"].update(architectures=[name]))


def publish_gemma4_unified(folder):
    """Fields of Gemma 4 that its unified models have no use for: the converter asks for them."""
    fields = dict(moe_intermediate_size=None, hidden_size_per_layer_input=0)
    edit_config(folder, lambda config: config["text_config"].update(fields))


def add_next_token_of_ocr(folder):
    """As add_next_token_of_glm, in a model that sees."""
    tensors = load_file(folder / "model.safetensors")
    shapes = {key.replace("layers.0.", "layers.1."): tensor.shape for key, tensor in tensors.items() if "language_model.layers.0." in key}
    norm = tensors["model.language_model.norm.weight"].shape
    embedding = tensors["lm_head.weight"].shape
    for part, shape in [("eh_proj", (norm[0], 2 * norm[0])), ("enorm", norm), ("hnorm", norm), ("embed_tokens", embedding), ("shared_head.head", embedding), ("shared_head.norm", norm)]:
        shapes[f"model.language_model.layers.1.{part}.weight"] = shape
    tensors |= {key: torch.randn(*shape) for key, shape in shapes.items()}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    edit_config(folder, lambda config: config["text_config"].update(num_nextn_predict_layers=1))


def publish_deepseek4(folder):
    """Names, fields and experts of MXFP4 as published, which is all that the converter takes. transformers 5.24.0 reads
    them and writes others: of names only some, and the layers of each kind and two rotary embeddings for
    compress_ratios, num_hash_layers, qk_rope_head_dim and one of them."""
    tensors = {}
    for key, tensor in load_file(folder / "model.safetensors").items():
        key = key.removeprefix("model.").replace("embed_tokens", "embed").replace("hc_head.hc_", "hc_head_").replace(".attn.norm.", ".attn.kv_norm.")
        if ".experts." in key:
            rows, columns = tensor.shape
            tensors[key.replace(".weight", ".scale")] = torch.randint(118, 130, (rows, columns // 32), dtype=torch.uint8)
            tensor = torch.randint(0, 256, (rows, columns // 2), dtype=torch.uint8)
        if "tid2eid" in key:
            tensor = torch.randint(0, 2, tensor.shape, dtype=torch.int32)
        tensors[key] = tensor
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})

    def edit(config):
        for field in ["layer_types", "mlp_layer_types", "compress_rates", "partial_rotary_factor"]:
            del config[field]
        config.update(compress_ratios=[4, 128], num_hash_layers=1, qk_rope_head_dim=2)
        config["rope_parameters"] = dict(rope_type="yarn", rope_theta=10000.0, factor=16.0, original_max_position_embeddings=16, beta_fast=32.0, beta_slow=1.0)

    edit_config(folder, edit)


def publish_minimax_m3(folder):
    """Fields as published, which the converter asks for: transformers 5.24.0 reads them and writes its own."""

    def edit(config):
        text = config["text_config"]
        names = dict(sparse_num_index_heads="index_n_heads", sparse_index_dim="index_head_dim", sparse_block_size="index_block_size", sparse_topk_blocks="index_topk_blocks", sparse_local_block="index_local_blocks")
        sparse = {name: text.pop(field) for name, field in names.items()}
        sparse["sparse_attention_freq"] = [int(kind != "full_attention") for kind in text.pop("layer_types")]
        text["sparse_attention_config"] = sparse
        text["moe_layer_freq"] = [int(kind == "sparse") for kind in text.pop("mlp_layer_types")]
        text.update(n_shared_experts=1, scoring_func="sigmoid")

    edit_config(folder, edit)


# Name: class, config, and what is done to the checkpoint where transformers saves another than is
# published.
MODELS = {
    "gemma": ("GemmaForCausalLM", dict(BASE, head_dim=6, tie_word_embeddings=True)),
    "gemma3": ("Gemma3ForCausalLM", dict(BASE, hidden_size=8, intermediate_size=10, head_dim=6, num_hidden_layers=7, sliding_window=16, tie_word_embeddings=True)),
    "qwen2moe": ("Qwen2MoeForCausalLM", dict(BASE, **EXPERTS, num_experts=3, shared_expert_intermediate_size=10)),
    "olmo2": ("Olmo2ForCausalLM", dict(BASE)),
    "olmoe": ("OlmoeForCausalLM", dict(BASE, num_experts=3, num_experts_per_tok=2)),
    "starcoder2": ("Starcoder2ForCausalLM", dict(BASE)),
    "stablelm": ("StableLmForCausalLM", dict(BASE, use_qkv_bias=True)),
    "nemotron": ("NemotronForCausalLM", dict(BASE, head_dim=4)),
    "gpt2": ("GPT2LMHeadModel", dict(vocab_size=24, n_positions=32, n_embd=16, n_layer=2, n_head=4, n_ctx=32)),
    # Second wave: Cohere 2, GPT-NeoX, Apertus, GPT-BigCode, BitNet, GLM, DeepSeek's kin, and others.
    "cohere2": ("Cohere2ForCausalLM", dict(BASE, intermediate_size=12, num_hidden_layers=4, sliding_window=16, tie_word_embeddings=True)),
    "cohere2moe": ("Cohere2MoeForCausalLM", dict(BASE | dict(hidden_size=10, intermediate_size=5), prefix_dense_intermediate_size=14, head_dim=6, sliding_window=16, num_experts=3, num_experts_per_tok=2, num_shared_experts=2, layer_types=["sliding_attention", "full_attention", "full_attention"], mlp_layer_types=["dense", "sparse", "sparse"], num_nextn_predict_layers=1, tie_word_embeddings=True)),
    "gptneox": ("GPTNeoXForCausalLM", dict(vocab_size=24, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64, rotary_pct=0.5)),
    "apertus": ("ApertusForCausalLM", dict(BASE)),
    "starcoder": ("GPTBigCodeForCausalLM", dict(vocab_size=24, n_positions=32, n_embd=16, n_layer=2, n_head=4)),
    "bitnet": ("BitNetForCausalLM", dict(BASE | dict(hidden_size=12, intermediate_size=14), tie_word_embeddings=True)),
    "chatglm": ("GlmForCausalLM", dict(BASE, head_dim=4)),
    "deepseek2-glm": ("Glm4MoeLiteForCausalLM", dict(BASE | LATENT, **SMALL_EXPERTS, n_routed_experts=3, n_shared_experts=1, n_group=1, topk_group=1, first_k_dense_replace=1, num_nextn_predict_layers=1, mlp_layer_types=["dense", "sparse", "sparse"])),
    "deepseek2-youtu": ("YoutuForCausalLM", dict(BASE | LATENT, tie_word_embeddings=True)),
    "glm-dsa": ("GlmMoeDsaForCausalLM", dict(BASE | LATENT, **SMALL_EXPERTS, **INDEXER, n_routed_experts=3, n_shared_experts=1, first_k_dense_replace=1, num_nextn_predict_layers=1, indexer_types=["full", "shared", "full"])),
    "deepseek32": ("DeepseekV32ForCausalLM", dict(BASE | LATENT, **SMALL_EXPERTS, **INDEXER, n_routed_experts=4, n_shared_experts=1, n_group=2, topk_group=1, first_k_dense_replace=1, num_nextn_predict_layers=1, scoring_func="sigmoid")),
    "glm4moe-solar": ("SolarOpenForCausalLM", dict(BASE | dict(hidden_size=10, intermediate_size=14), **SMALL_EXPERTS, head_dim=6, n_routed_experts=3, n_shared_experts=2, rope_parameters=dict(rope_type="default", rope_theta=1000000.0, partial_rotary_factor=1.0))),
    "granite_swa": ("GraniteSWAForCausalLM", dict(BASE, sliding_window=16, layer_rope_theta=[0.0, 10000.0], no_rope_layers=[0, 1], attention_multiplier=0.5, embedding_multiplier=12.0, residual_multiplier=0.25, logits_scaling=8.0)),
    "granite_swa-moe": ("GraniteMoeSWAForCausalLM", dict(BASE, intermediate_size=14, num_local_experts=3, num_experts_per_tok=2, shared_intermediate_size=10, sliding_window=16, no_rope_layers=[1, 1])),
    "exaone-moe": ("ExaoneMoeForCausalLM", dict(BASE | dict(hidden_size=10, intermediate_size=14), **SMALL_EXPERTS, head_dim=6, sliding_window=16, num_experts=3, num_shared_experts=2, layer_types=["sliding_attention", "full_attention", "full_attention"], mlp_layer_types=["dense", "sparse", "dense"], first_k_dense_replace=1, num_nextn_predict_layers=1, scoring_func="sigmoid")),
    "afmoe": ("AfmoeForCausalLM", dict(BASE, hidden_size=10, intermediate_size=14, num_hidden_layers=4, **SMALL_EXPERTS, head_dim=2, sliding_window=16, num_experts=3, num_shared_experts=2, num_dense_layers=3, mup_enabled=True, route_norm=True, score_func="sigmoid")),
    "hunyuan-moe": ("HunYuanMoEV1ForCausalLM", dict(BASE | dict(hidden_size=10, intermediate_size=14), head_dim=6, num_experts=3, moe_topk=2)),
    "hy_v3": ("HYV3ForCausalLM", dict(BASE | dict(hidden_size=10, intermediate_size=14), **SMALL_EXPERTS, head_dim=6, num_experts=3, num_shared_experts=2, mlp_layer_types=["dense", "sparse", "sparse"], num_nextn_predict_layers=1)),
    "hy_v4": ("HYV4ForCausalLM", dict(BASE | LATENT, **SMALL_EXPERTS, **INDEXER, n_routed_experts=3, n_shared_experts=1, mlp_layer_types=["dense", "sparse"], indexer_types=["full", "shared"], hc_mult=3)),
    "mistral3": ("Ministral3ForCausalLM", dict(BASE, head_dim=6, rope_parameters=dict(rope_type="yarn", rope_theta=1000000.0, factor=16.0, original_max_position_embeddings=16, beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.125))),
    "minicpm3": ("MiniCPM3ForCausalLM", dict(BASE, num_key_value_heads=4, q_lora_rank=9, kv_lora_rank=10, qk_nope_head_dim=3, qk_rope_head_dim=2, tie_word_embeddings=True)),
    "minicpm3-long": ("MiniCPM3ForCausalLM", dict(BASE | dict(intermediate_size=14), num_key_value_heads=4, q_lora_rank=9, kv_lora_rank=10, qk_nope_head_dim=3, qk_rope_head_dim=4, rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, long_factor=[2.0, 3.0], short_factor=[1.0, 1.5], original_max_position_embeddings=32), tie_word_embeddings=False)),
    "mimo2": ("MiMoV2FlashForCausalLM", dict(BASE | dict(hidden_size=10, intermediate_size=14), **SMALL_EXPERTS, head_dim=6, v_head_dim=4, n_routed_experts=3, layer_types=["full_attention"] + ["sliding_attention"] * 4, mlp_layer_types=["dense", "sparse", "dense", "dense", "dense"], sliding_window=16)),
    "dbrx": ("DbrxForCausalLM", dict(vocab_size=24, d_model=16, n_heads=4, n_layers=2, max_seq_len=64, attn_config=dict(kv_n_heads=2, clip_qkv=8.0, rope_theta=500000.0), ffn_config=dict(ffn_hidden_size=14, moe_num_experts=3, moe_top_k=2, hidden_size=16), rope_parameters=dict(rope_type="default", rope_theta=500000.0))),
    "mellum": ("MellumForCausalLM", dict(BASE | dict(hidden_size=10, intermediate_size=14), **SMALL_EXPERTS, head_dim=6, num_experts=3, sliding_window=16, layer_types=["full_attention", "sliding_attention"])),
    "laguna": ("LagunaForCausalLM", dict(BASE | dict(hidden_size=10, intermediate_size=14), **SMALL_EXPERTS, head_dim=6, num_experts=3, shared_expert_intermediate_size=7, sliding_window=16, layer_types=["full_attention", "sliding_attention"], mlp_layer_types=["dense", "sparse"], num_attention_heads_per_layer=[4, 6], rope_parameters=dict(full_attention=dict(rope_type="yarn", rope_theta=500000.0, partial_rotary_factor=0.5, factor=4.0, original_max_position_embeddings=16, attention_factor=1.0, beta_fast=64.0, beta_slow=1.0), sliding_attention=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=1.0)))),
    "hrm_text": ("HrmTextForCausalLM", dict(vocab_size=24, hidden_size=16, intermediate_size=12, num_hidden_layers=1, num_attention_heads=4, max_position_embeddings=64, head_dim=6, H_cycles=2, L_cycles=3, tie_word_embeddings=False)),
    # End of the second wave.
    "glm4": ("Glm4ForCausalLM", dict(BASE, head_dim=4, attention_bias=True)),
    "command-r": ("CohereForCausalLM", dict(BASE, tie_word_embeddings=True)),
    "minimax-m2": ("MiniMaxM2ForCausalLM", dict(BASE, head_dim=6, num_local_experts=3, num_experts_per_tok=2, rotary_dim=4)),
    "lfm2": ("Lfm2ForCausalLM", dict(BASE, layer_types=["conv", "full_attention"], block_auto_adjust_ff_dim=False, tie_word_embeddings=True)),
    "lfm2moe": ("Lfm2MoeForCausalLM", dict(BASE, **EXPERTS, num_experts=3, num_dense_layers=1, num_hidden_layers=3, layer_types=["conv", "full_attention", "conv"], tie_word_embeddings=True)),
    "seed_oss": ("SeedOssForCausalLM", dict(BASE, head_dim=6)),
    "smollm3": ("SmolLM3ForCausalLM", dict(BASE)),
    "granite": ("GraniteForCausalLM", dict(BASE, attention_multiplier=0.5, embedding_multiplier=12.0, residual_multiplier=0.25, logits_scaling=8.0)),
    "granitemoe": ("GraniteMoeForCausalLM", dict(BASE, num_local_experts=3, num_experts_per_tok=2)),
    "exaone4": ("Exaone4ForCausalLM", dict(BASE, head_dim=4)),
    "ernie4_5": ("Ernie4_5ForCausalLM", dict(BASE, head_dim=4)),
    "arcee": ("ArceeForCausalLM", dict(BASE, head_dim=4)),
    "dots1": ("Dots1ForCausalLM", dict(BASE, **EXPERTS, head_dim=4, n_routed_experts=4, n_shared_experts=1, first_k_dense_replace=1)),
    "olmo": ("OlmoForCausalLM", dict(BASE)),
    "phi2": ("PhiForCausalLM", dict(BASE, num_key_value_heads=4, intermediate_size=64)),
    "deepseek2-v3": ("DeepseekV3ForCausalLM", dict(BASE, **EXPERTS, num_key_value_heads=4, n_routed_experts=4, n_shared_experts=1, first_k_dense_replace=1, n_group=2, topk_group=1, q_lora_rank=None, kv_lora_rank=8, qk_nope_head_dim=4, qk_rope_head_dim=2, v_head_dim=6)),
    "deepseek2-yarn": ("DeepseekV3ForCausalLM", dict(BASE, **EXPERTS, num_key_value_heads=4, n_routed_experts=4, n_shared_experts=1, first_k_dense_replace=1, n_group=2, topk_group=1, q_lora_rank=8, kv_lora_rank=8, qk_nope_head_dim=4, qk_rope_head_dim=2, v_head_dim=6, rope_parameters=dict(rope_type="yarn", rope_theta=10000.0, factor=40.0, original_max_position_embeddings=16, beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0))),
    "hunyuan-dense": ("HunYuanDenseV1ForCausalLM", dict(BASE, head_dim=4)),
    "llama-mistral": ("MistralForCausalLM", dict(BASE, head_dim=6)),
    "llama-3": ("LlamaForCausalLM", dict(BASE, head_dim=4, attention_bias=True, rope_parameters=dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32))),
    "falcon-7b": ("FalconForCausalLM", dict(vocab_size=24, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, new_decoder_architecture=False, multi_query=True, parallel_attn=True, bias=False, alibi=False, num_kv_heads=1)),
    "qwen3-yarn": ("Qwen3ForCausalLM", dict(BASE, head_dim=6, rope_parameters=dict(rope_type="yarn", rope_theta=1000000.0, factor=4.0, original_max_position_embeddings=16, attention_factor=1.5, beta_fast=16.0, beta_slow=2.0))),
    "glm4moe-nextn": ("Glm4MoeForCausalLM", dict(BASE, **EXPERTS, head_dim=6, n_routed_experts=4, n_shared_experts=2, first_k_dense_replace=1, use_qk_norm=False, attention_bias=False, num_nextn_predict_layers=1)),
    "olmo3": ("Olmo3ForCausalLM", dict(BASE, sliding_window=16)),
    "llama4": ("Llama4ForCausalLM", dict(BASE, head_dim=4, num_local_experts=3, num_experts_per_tok=1, intermediate_size_mlp=20, interleave_moe_layer_step=2)),
    "t5": ("T5ForConditionalGeneration", dict(vocab_size=24, d_model=16, d_kv=4, d_ff=24, num_layers=2, num_decoder_layers=2, num_heads=4, feed_forward_proj="gated-gelu", decoder_start_token_id=0, n_positions=64)),
    "ernie4_5-moe": ("Ernie4_5_MoeForCausalLM", dict(BASE, **EXPERTS, moe_num_experts=3, moe_k=2, moe_layer_start_index=1, moe_num_shared_experts=1)),
    "llama-mixtral": ("MixtralForCausalLM", dict(BASE, head_dim=6, num_local_experts=3, num_experts_per_tok=2)),
    "gpt-oss": ("GptOssForCausalLM", dict(BASE, head_dim=6, num_local_experts=3, num_experts_per_tok=2)),
    "qwen2": ("Qwen2ForCausalLM", dict(BASE)),
    "qwen3": ("Qwen3ForCausalLM", dict(BASE, head_dim=6)),
    "qwen3moe": ("Qwen3MoeForCausalLM", dict(BASE, **EXPERTS, head_dim=6, num_local_experts=3)),
    "phi3": ("Phi3ForCausalLM", dict(BASE)),
    "llama": ("LlamaForCausalLM", dict(BASE, head_dim=6)),
    "bloom": ("BloomForCausalLM", dict(vocab_size=24, hidden_size=16, n_layer=2, n_head=4)),
    "falcon": ("FalconForCausalLM", dict(vocab_size=24, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, new_decoder_architecture=True, parallel_attn=True, bias=False, alibi=False, num_kv_heads=2)),
    "gemma2": ("Gemma2ForCausalLM", dict(BASE, head_dim=6, sliding_window=16)),
    "glm4moe": ("Glm4MoeForCausalLM", dict(BASE, **EXPERTS, head_dim=6, n_routed_experts=4, n_shared_experts=1, first_k_dense_replace=1, use_qk_norm=True, attention_bias=True)),
    "deepseek2-v2": ("DeepseekV2ForCausalLM", dict(BASE, **EXPERTS, num_key_value_heads=4, n_routed_experts=4, n_shared_experts=1, first_k_dense_replace=1, q_lora_rank=10, kv_lora_rank=8, qk_nope_head_dim=4, qk_rope_head_dim=2, v_head_dim=6)),
    "mamba": ("MambaForCausalLM", dict(vocab_size=24, hidden_size=16, num_hidden_layers=2, state_size=4, time_step_rank=3)),
    # Rows of whole blocks of 32.
    "gpt-oss-mxfp4": ("GptOssForCausalLM", dict(BASE, head_dim=6, hidden_size=64, intermediate_size=32, num_hidden_layers=1, num_local_experts=3, num_experts_per_tok=2), pack),
    "gemma4": ("Gemma4ForCausalLM", dict(GEMMA4, num_global_key_value_heads=None, hidden_size_per_layer_input=5, vocab_size_per_layer_input=24, num_kv_shared_layers=2, use_double_wide_mlp=True, final_logit_softcapping=30.0), publish_gemma4),
    "gemma4-moe": ("Gemma4ForCausalLM", dict(GEMMA4, num_hidden_layers=2, layer_types=["sliding_attention", "full_attention"], attention_k_eq_v=True, enable_moe_block=True, num_experts=3, top_k_experts=2, moe_intermediate_size=10), publish_gemma4),
    "gemma4-sees": ("Gemma4ForConditionalGeneration", dict(text_config=dict(GEMMA4, num_hidden_layers=2, layer_types=["sliding_attention", "full_attention"], attention_k_eq_v=True), vision_config=dict(hidden_size=8, intermediate_size=12, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2, head_dim=4, patch_size=2, position_embedding_size=4))),
    "qwen3vl": ("Qwen3VLForConditionalGeneration", dict(text_config=dict(BASE, head_dim=6, rope_parameters=MROPE), vision_config=QWEN3VL_VISION)),
    "qwen3vlmoe": ("Qwen3VLMoeForConditionalGeneration", dict(text_config=dict(BASE, head_dim=6, num_local_experts=3, num_experts_per_tok=2, moe_intermediate_size=10, rope_parameters=MROPE), vision_config=QWEN3VL_VISION), transpose_experts),
    "qwen2vl": ("Qwen2VLForConditionalGeneration", dict(text_config=dict(BASE, rope_parameters=dict(MROPE, mrope_section=[1, 1, 0])), vision_config=dict(depth=1, embed_dim=8, hidden_size=16, num_heads=2, mlp_ratio=2, patch_size=2))),
    "gemma3-sees": ("Gemma3ForConditionalGeneration", dict(text_config=dict(BASE, model_type="gemma3_text", head_dim=6, sliding_window=16, layer_types=["sliding_attention", "full_attention"], tie_word_embeddings=True), vision_config=dict(SIGLIP, model_type="siglip_vision_model"), mm_tokens_per_image=4)),
    "paddleocr": ("PaddleOCRVLForConditionalGeneration", dict(text_config=dict(BASE, head_dim=6, rope_parameters=MROPE), vision_config=SIGLIP, tie_word_embeddings=False)),
    "hunyuan_vl": ("HunYuanVLForConditionalGeneration", dict(text_config=dict(BASE, head_dim=8, rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, alpha=1000.0, factor=1.0, mrope_section=[1, 1, 1, 1])), vision_config=dict(SIGLIP, max_image_size=8, max_vit_seq_len=4), tie_word_embeddings=False)),
    "gemma3n": ("Gemma3nForCausalLM", dict(BASE, head_dim=6, sliding_window=16, num_hidden_layers=3, layer_types=["sliding_attention", "full_attention", "sliding_attention"], num_kv_shared_layers=1, hidden_size_per_layer_input=5, vocab_size_per_layer_input=24, laurel_rank=64, altup_num_inputs=4, activation_sparsity_pattern=[0.95, 0.0, 0.0], intermediate_size=[24] * 3, final_logit_softcapping=30.0, tie_word_embeddings=True)),
    "gemma4-assistant": ("Gemma4AssistantForCausalLM", dict(text_config=dict(GEMMA4, model_type="gemma4_text", num_hidden_layers=2, layer_types=["sliding_attention", "full_attention"], num_kv_shared_layers=2, vocab_size_per_layer_input=0), backbone_hidden_size=20)),
    "olmo3-yarn": ("Olmo3ForCausalLM", dict(BASE, sliding_window=16, num_hidden_layers=4, rope_parameters=dict(full_attention=dict(rope_type="yarn", rope_theta=500000.0, factor=8.0, original_max_position_embeddings=8, attention_factor=1.25, beta_fast=32.0, beta_slow=1.0), sliding_attention=dict(rope_type="default", rope_theta=500000.0)))),
    "glm4moe-mtp": ("Glm4MoeForCausalLM", dict(BASE, **EXPERTS, head_dim=6, n_routed_experts=4, n_shared_experts=1, first_k_dense_replace=1, use_qk_norm=True, attention_bias=True, num_nextn_predict_layers=1), add_next_token_of_glm),
    "step35": ("Step3p7ForConditionalGeneration", dict(text_config=dict(BASE, head_dim=6, num_hidden_layers=3, layer_types=["full_attention", "sliding_attention", "full_attention"], mlp_layer_types=["dense", "sparse", "sparse"], num_sliding_attention_heads=6, n_routed_experts=3, num_experts_per_tok=2, moe_intermediate_size=10, share_expert_dim=7, sliding_window=16, rope_theta=[5000000.0, 10000.0, 5000000.0], partial_rotary_factors=[0.5, 1.0, 0.5]), vision_config=SIGLIP), publish_step35),
    "mamba2": ("Mamba2ForCausalLM", dict(vocab_size=24, hidden_size=16, num_hidden_layers=2, state_size=4, num_heads=8, head_dim=4, n_groups=2)),
    # Hybrids of attention and state spaces.
    "qwen3next": ("Qwen3NextForCausalLM", dict(BASE, hidden_size=12, **EXPERTS, head_dim=8, num_experts=3, shared_expert_intermediate_size=10, **DELTA), add_next_token_of_qwen),
    "qwen3next-trunk": ("Qwen3NextForCausalLM", dict(BASE, hidden_size=12, **EXPERTS, head_dim=8, num_experts=3, shared_expert_intermediate_size=10, **DELTA)),
    "qwen35": ("Qwen3_5ForCausalLM", dict(BASE, hidden_size=12, head_dim=8, mtp_num_hidden_layers=1, **DELTA, rope_parameters=SECTIONS), add_next_token_of_qwen),
    "qwen35-trunk": ("Qwen3_5ForCausalLM", dict(BASE, hidden_size=12, head_dim=8, **dict(DELTA, linear_num_value_heads=2), rope_parameters=SECTIONS)),
    "qwen35moe": ("Qwen3_5MoeForCausalLM", dict(BASE, hidden_size=12, **EXPERTS, head_dim=8, num_experts=3, shared_expert_intermediate_size=10, mtp_num_hidden_layers=1, **DELTA, rope_parameters=SECTIONS), add_next_token_of_qwen),
    "qwen4exp-plain": ("Qwen4ExpForCausalLM", dict(BASE, hidden_size=12, **EXPERTS, head_dim=8, num_experts=3, shared_expert_intermediate_size=10, **dict(DELTA, layer_types=["linear_attention", "indexed_attention"]), rope_parameters=SECTIONS, **QSA)),
    "qwen4exp": ("Qwen4ExpForCausalLM", dict(BASE, hidden_size=12, **EXPERTS, head_dim=8, num_experts=3, shared_expert_intermediate_size=10, **dict(DELTA, layer_types=["linear_attention", "indexed_attention"]), rope_parameters=SECTIONS, output_gate_type="sigmoid", hc_count=2, hc_lowrank=5, indexer_n_heads=2, indexer_kv_heads=1, indexer_head_dim=6, indexer_budget=8, indexer_compress_ratio=4, ple_layer_ids=[1], ple_embed_dim=12, ple_conv_kernel_size=2, ngram_size=3, heads_per_ngram=2, ngram_vocab_size_base=5, make_ngram_vocab_size_divisible_by=4, split_ngram_parts=1), publish_qwen4exp),
    "granitehybrid": ("GraniteMoeHybridForCausalLM", dict(BASE, **SCALES, intermediate_size=6, num_local_experts=3, num_experts_per_tok=2, shared_intermediate_size=10, layer_types=["mamba", "attention"], **MAMBA2), rename_layers),
    "granitehybrid-dense": ("GraniteMoeHybridForCausalLM", dict(BASE, **SCALES, intermediate_size=10, num_local_experts=0, num_experts_per_tok=0, shared_intermediate_size=10, layer_types=["mamba", "attention"], **MAMBA2), rename_layers),
    "granitehybrid-bamba": ("BambaForCausalLM", dict(BASE, attn_layer_indices=[1], attn_rotary_emb=2, **MAMBA2)),
    "granite-hybrid": ("GraniteMoeHybridForCausalLM", dict(BASE, **SCALES, intermediate_size=10, num_local_experts=0, num_experts_per_tok=0, shared_intermediate_size=10, layer_types=["attention"] * 2, position_embedding_type="rope", **MAMBA2), rename_layers),
    "granitemoe-hybrid": ("GraniteMoeHybridForCausalLM", dict(BASE, **SCALES, intermediate_size=6, num_local_experts=3, num_experts_per_tok=2, shared_intermediate_size=10, layer_types=["attention"] * 2, position_embedding_type="rope", **MAMBA2), rename_layers),
    "granitemoe-shared": ("GraniteMoeSharedForCausalLM", dict(BASE, **SCALES, intermediate_size=6, num_local_experts=3, num_experts_per_tok=2, shared_intermediate_size=10)),
    "nemotron_h": ("NemotronHForCausalLM", dict(BASE, hidden_size=12, head_dim=6, layers_block_type=["mamba", "mlp", "attention"], **NEMOTRON), publish_nemotron),
    "nemotron_h_moe": ("NemotronHForCausalLM", dict(BASE, **EXPERTS, hidden_size=12, head_dim=6, n_routed_experts=4, n_shared_experts=1, moe_shared_expert_intermediate_size=10, routed_scaling_factor=2.5, n_group=2, layers_block_type=["mamba", "moe", "attention"], **NEMOTRON)),
    "nemotron_h_moe-nextn": ("NemotronHForCausalLM", dict(BASE, **EXPERTS, hidden_size=12, head_dim=6, n_routed_experts=3, n_shared_experts=1, moe_shared_expert_intermediate_size=10, moe_latent_size=6, num_nextn_predict_layers=1, layers_block_type=["mamba", "moe", "attention"], **NEMOTRON), add_next_token_of_nemotron),
    "falcon-h1": ("FalconH1ForCausalLM", dict(BASE | FALCON_H1, mamba_rms_norm=True, mamba_norm_before_gate=False, embedding_multiplier=5.65, lm_head_multiplier=0.039, attention_in_multiplier=0.9, attention_out_multiplier=0.93, key_multiplier=0.39, ssm_in_multiplier=1.25, ssm_out_multiplier=0.23, mlp_multipliers=[0.88, 0.31], ssm_multipliers=[0.35, 0.25, 0.17, 0.5, 0.41])),
    "falcon-h1-plain": ("FalconH1ForCausalLM", dict(BASE | FALCON_H1, tie_word_embeddings=True)),
    "jamba": ("JambaForCausalLM", dict(BASE, hidden_size=12, intermediate_size=10, num_hidden_layers=4, num_experts=3, num_experts_per_tok=2, expert_layer_period=3, expert_layer_offset=0, attn_layer_period=2, attn_layer_offset=1, mamba_d_state=4, mamba_d_conv=3, mamba_dt_rank=5)),
    "mamba-falcon": ("FalconMambaForCausalLM", dict(vocab_size=24, hidden_size=16, num_hidden_layers=2, state_size=4, time_step_rank=5)),
    "kimi-linear": ("KimiLinearForCausalLM", dict(BASE, hidden_size=12, intermediate_size=20, num_key_value_heads=4, moe_intermediate_size=8, num_local_experts=3, num_experts_per_tok=2, n_shared_experts=1, kv_lora_rank=10, qk_nope_head_dim=3, qk_rope_head_dim=2, v_head_dim=6, layer_types=["linear_attention", "full_attention"], mlp_layer_types=["dense", "sparse"], linear_head_dim=7, linear_num_heads=4, linear_conv_kernel_dim=3), publish_kimi),
    "t5-mt5": ("MT5ForConditionalGeneration", dict(vocab_size=24, d_model=12, d_kv=6, d_ff=20, num_layers=2, num_decoder_layers=1, relative_attention_num_buckets=10, num_heads=4, feed_forward_proj="gated-gelu", decoder_start_token_id=0)),
    "t5-umt5": ("UMT5ForConditionalGeneration", dict(vocab_size=24, d_model=12, d_kv=6, d_ff=20, num_layers=2, num_decoder_layers=1, relative_attention_num_buckets=10, num_heads=4, feed_forward_proj="gated-gelu", decoder_start_token_id=0)),
}

# Text models within checkpoints that see, of architectures that are above without. As small as they can be: one
# layer of each kind, and none of what sees. Where another proves the same (mistral3-sees, qwen35moe-sees, qwen4exp-sees,
# glm4moe-sees, llama-idefics3), the pair is not kept.
TINY = dict(BASE, hidden_size=8, intermediate_size=10, num_hidden_layers=1)
TINY_SIGHT = dict(depth=0, hidden_size=4, num_heads=2, intermediate_size=6, out_hidden_size=8, patch_size=2, temporal_patch_size=1, spatial_merge_size=1)
TINY_VIT = dict(hidden_size=4, intermediate_size=6, num_hidden_layers=0, num_attention_heads=2, image_size=4, patch_size=2)
TINY_DELTA = dict(DELTA, linear_key_head_dim=2, linear_value_head_dim=2)
TINY_QWEN = dict(TINY, num_hidden_layers=2, head_dim=8, **TINY_DELTA, rope_parameters=SECTIONS)
GLM_ROPE = dict(rope_type="default", rope_theta=10000.0, mrope_section=[1, 1, 0])
MODELS |= {
    "gemma4-unified": ("Gemma4UnifiedForConditionalGeneration", dict(text_config=dict(TINY, num_hidden_layers=2, head_dim=4, global_head_dim=6, num_global_key_value_heads=1, sliding_window=16, tie_word_embeddings=True, layer_types=["sliding_attention", "full_attention"], attention_k_eq_v=True), vision_config=dict(patch_size=1, pooling_kernel_size=1, mm_embed_dim=4, mm_posemb_size=4, output_proj_dims=4), audio_config=dict(audio_embed_dim=4)), publish_gemma4_unified),
    "gemma4-assistant-unified": ("Gemma4UnifiedAssistantForCausalLM", dict(text_config=dict(TINY, model_type="gemma4_unified_text", num_hidden_layers=2, head_dim=4, global_head_dim=6, num_global_key_value_heads=1, sliding_window=16, tie_word_embeddings=True, layer_types=["sliding_attention", "full_attention"], num_kv_shared_layers=2), backbone_hidden_size=12), publish_gemma4_unified),
    "mistral3-sees": ("Mistral3ForConditionalGeneration", dict(text_config=dict(TINY, model_type="ministral3", head_dim=6, rope_parameters=dict(rope_type="yarn", rope_theta=1000000.0, factor=16.0, original_max_position_embeddings=16, beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.125)), vision_config=dict(TINY_VIT, model_type="pixtral"), tie_word_embeddings=False)),
    "mistral3-small": ("Mistral3ForConditionalGeneration", dict(text_config=dict(TINY, model_type="mistral", head_dim=6, sliding_window=None), vision_config=dict(TINY_VIT, model_type="pixtral"), tie_word_embeddings=False)),
    "qwen35-sees": ("Qwen3_5ForConditionalGeneration", dict(text_config=TINY_QWEN, vision_config=dict(TINY_SIGHT, num_position_embeddings=4))),
    "qwen35moe-sees": ("Qwen3_5MoeForConditionalGeneration", dict(text_config=dict(TINY_QWEN, **SMALL_EXPERTS, num_experts=3, shared_expert_intermediate_size=6), vision_config=dict(TINY_SIGHT, num_position_embeddings=4))),
    "qwen4exp-sees": ("Qwen4ExpForConditionalGeneration", dict(text_config=dict(TINY_QWEN, **SMALL_EXPERTS, num_experts=3, shared_expert_intermediate_size=6, **QSA, layer_types=["linear_attention", "indexed_attention"]) | dict(output_gate_type="sigmoid"), vision_config=dict(TINY_SIGHT, num_position_embeddings=4)), publish_qwen4exp),
    "exaone4-sees": ("Exaone4_5_ForConditionalGeneration", dict(text_config=dict(TINY, model_type="exaone4", head_dim=4, sliding_window=16, layer_types=["sliding_attention"]), vision_config=dict(TINY_SIGHT, num_key_value_heads=1, window_size=4, fullatt_block_indexes=[]))),
    "lfm2-sees": ("Lfm2VlForConditionalGeneration", dict(text_config=dict(TINY, model_type="lfm2", num_hidden_layers=2, layer_types=["conv", "full_attention"], block_auto_adjust_ff_dim=False, tie_word_embeddings=True), vision_config=dict(model_type="siglip2_vision_model", hidden_size=4, intermediate_size=6, num_hidden_layers=0, num_attention_heads=2, patch_size=2, num_patches=4, vision_use_head=False), projector_hidden_size=6, downsample_factor=1), publish_text_class("Lfm2ForCausalLM")),
    "glm4-sees": ("Glm4vForConditionalGeneration", dict(text_config=dict(TINY, hidden_size=16, num_attention_heads=2, num_key_value_heads=1, rope_parameters=dict(GLM_ROPE, mrope_section=[1, 1, 1], partial_rotary_factor=0.75)), vision_config=dict(TINY_SIGHT, out_hidden_size=16, image_size=4))),
    "glm4moe-sees": ("Glm4vMoeForConditionalGeneration", dict(text_config=dict(TINY, num_hidden_layers=2, head_dim=6, **SMALL_EXPERTS, n_routed_experts=3, n_shared_experts=1, first_k_dense_replace=1, rope_parameters=dict(GLM_ROPE, partial_rotary_factor=0.5)), vision_config=dict(TINY_SIGHT, image_size=4))),
    "glm4-ocr": ("GlmOcrForConditionalGeneration", dict(text_config=dict(TINY, head_dim=6, rope_parameters=dict(GLM_ROPE, partial_rotary_factor=1.0, mrope_section=[1, 1, 1])), vision_config=dict(TINY_SIGHT, image_size=4)), add_next_token_of_ocr),
    "llama-llava": ("LlavaForConditionalGeneration", dict(text_config=dict(TINY, model_type="llama", head_dim=6), vision_config=dict(TINY_VIT, model_type="clip_vision_model", projection_dim=4))),
    "llama-smolvlm": ("SmolVLMForConditionalGeneration", dict(text_config=dict(TINY, model_type="llama", head_dim=6), vision_config=dict(TINY_VIT, model_type="smolvlm_vision"), scale_factor=1), publish_text_class("VLlama3ForCausalLM")),
    "llama-idefics3": ("Idefics3ForConditionalGeneration", dict(text_config=dict(TINY, model_type="llama", head_dim=6), vision_config=dict(TINY_VIT, model_type="idefics3_vision"), scale_factor=1), publish_text_class("VLlama3ForCausalLM")),
}
# End of those that see.
# DeepSeek V4 and MiniMax M3. Experts of DeepSeek V4 are blocks of 32.
MODELS |= {
    "deepseek4": ("DeepseekV4ForCausalLM", dict(BASE | dict(vocab_size=8), hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, head_dim=4, q_lora_rank=5, n_routed_experts=2, num_experts_per_tok=2, n_shared_experts=1, layer_types=["compressed_sparse_attention", "heavily_compressed_attention"], mlp_layer_types=["hash_moe", "moe"], hc_mult=2, sliding_window=16, o_groups=2, o_lora_rank=3, index_n_heads=2, index_head_dim=3, index_topk=4, num_nextn_predict_layers=0, partial_rotary_factor=0.5), publish_deepseek4),
    "minimax-m3": ("MiniMaxM3SparseForConditionalGeneration", dict(text_config=dict(TINY, num_hidden_layers=2, head_dim=6, num_local_experts=3, num_experts_per_tok=2, dense_intermediate_size=12, intermediate_size=7, shared_intermediate_size=7, rotary_dim=4, mlp_layer_types=["dense", "sparse"], index_n_heads=2, index_head_dim=5, layer_types=["full_attention", "minimax_m3_sparse"]), vision_config=TINY_VIT, projector_hidden_size=4), publish_minimax_m3),
}
# Dots 3 Note: the last layer is that which add_next_token makes the block that predicts one more token.
SLIDES = dict(swa_num_attention_heads=3, swa_num_key_value_heads=3, swa_q_lora_rank=9, swa_kv_lora_rank=11, swa_head_dim=7, swa_qk_nope_head_dim=5, swa_v_head_dim=4)
MODELS["dots3note"] = ("Dots3NoteForCausalLM", dict(BASE | LATENT, **SMALL_EXPERTS, **INDEXER, **SLIDES, head_dim=5, n_routed_experts=3, n_shared_experts=1, shared_experts_intermediate_size=5, routed_scaling_factor=2.5, layer_types=["indexed_attention", "sliding_attention", "sliding_attention"], mlp_layer_types=["dense", "sparse", "dense"], sliding_window=16, rope_theta=80000000.0, swa_rope_theta=50000.0), publish_dots3note)

# Fields that only the published configs have. The converter fails without them, and transformers 5
# takes them away when it reads a config, so that these are converted with config.json as it is.
PUBLISHED = {
    "cohere2": dict(rotary_pct=1.0),
    "gptneox": dict(rotary_pct=0.5),
    # 1bitLLM's, with code of its own: the converter does not map the norms of transformers' class.
    "bitnet": dict(
        architectures=["BitnetForCausalLM"],
        model_type="llama",
        hidden_act="silu",
        input_bits=8,
        weight_bits=1,
    ),
    "mimo2": dict(
        rope_parameters=None,
        rope_theta=5000000.0,
        partial_rotary_factor=0.5,
        swa_rope_theta=10000.0,
        swa_head_dim=6,
        swa_v_head_dim=4,
        swa_num_attention_heads=4,
        swa_num_key_value_heads=4,
        hybrid_layer_pattern=[0, 1],
        topk_method="noaux_tc",
        scoring_func="sigmoid",
        layernorm_epsilon=0.00001,
    ),
    "hunyuan-moe": dict(moe_topk=[2, 2], moe_intermediate_size=[14, 14], num_shared_expert=[1, 1]),
}

# What transformers 5.24.0 calls otherwise than the published checkpoints. Of hy_v4 it reads their names,
# too: when it writes, it puts a prefix in the wrong place and renames more gates than it read.
RENAMED = {
    "bitnet": {r"\.attn_sub_norm\.": ".inner_attn_ln.", r"\.ffn_sub_norm\.": ".ffn_layernorm."},
    "hy_v4": {
        r"\.hc_pre\.hc_(attn|mlp)_layer\.hc_": r".hc_\1_layer.hc_pre.hc_",
        r"\.hc_pre\.hc_head\.": r".hc_head.",
        r"\.mlp\.(shared_experts\.)?linear_gate\.": r".mlp.\1gate_proj.",
    },
    "mimo2": {r"\.mtp\.layers\.(\d)\.post_attention_layernorm\.": r".mtp.layers.\1.pre_mlp_layernorm."},
}

# Published checkpoints have blocks behind the last layer that predict more tokens, which transformers'
# own classes do not load. To make one, a model of more layers is saved: what the last are called, and the
# shapes of what each has beside. `{0}` is the block's number behind all layers, `{1}` among its own kind.
W, V = "width", "vocabulary"
NEXT_TOKEN_OF_DEEPSEEK = ("model.layers.{0}", {
    "model.layers.{0}.eh_proj": (W, 2),
    "model.layers.{0}.enorm": (W,),
    "model.layers.{0}.hnorm": (W,),
    "model.layers.{0}.embed_tokens": (V, W),
    "model.layers.{0}.shared_head.norm": (W,),
    "model.layers.{0}.shared_head.head": (V, W),
})
NEXT_TOKEN = {
    "dots3note": ("model.layers.{0}", {
        "model.layers.{0}.eh_proj": (W, 2),
        "model.layers.{0}.enorm": (W,),
        "model.layers.{0}.hnorm": (W,),
        "model.layers.{0}.shared_head.norm": (W,),
        "model.mtp.embed_tokens": (V, W),
    }),
    "deepseek2-glm": NEXT_TOKEN_OF_DEEPSEEK,
    "glm-dsa": NEXT_TOKEN_OF_DEEPSEEK,
    "deepseek32": NEXT_TOKEN_OF_DEEPSEEK,
    "cohere2moe": NEXT_TOKEN_OF_DEEPSEEK,
    "exaone-moe": ("mtp.layers.{1}", {
        "mtp.fc": (W, 2),
        "mtp.pre_fc_norm_embedding": (W,),
        "mtp.pre_fc_norm_hidden": (W,),
        "mtp.norm": (W,),
    }),
    "hy_v3": ("model.layers.{0}", {
        "model.layers.{0}.eh_proj": (W, 2),
        "model.layers.{0}.enorm": (W,),
        "model.layers.{0}.hnorm": (W,),
        "model.layers.{0}.final_layernorm": (W,),
    }),
    "mimo2": ("model.mtp.layers.{1}", {
        "model.mtp.layers.{1}.eh_proj": (W, 2),
        "model.mtp.layers.{1}.enorm": (W,),
        "model.mtp.layers.{1}.hnorm": (W,),
        "model.mtp.layers.{1}.final_layernorm": (W,),
    }),
}
# How many there are where no field says so.
NEXT_TOKEN_BLOCKS = {"dots3note": 1, "mimo2": 3}


def next_token_blocks(name, values):
    if name not in NEXT_TOKEN:
        return 0
    return values.get("num_nextn_predict_layers") or NEXT_TOKEN_BLOCKS[name]


def add_next_token(name, fields, layers, path):
    """Makes the last layers of a saved model the blocks that predict more tokens."""
    prefix, shapes = NEXT_TOKEN[name]
    tensors = load_file(path)
    sizes = {W: fields["hidden_size"], V: fields["vocab_size"], 2: 2 * fields["hidden_size"]}
    for block in range(fields["num_hidden_layers"] - layers):
        numbers = layers + block, block
        old, new = f"model.layers.{numbers[0]}.", prefix.format(*numbers) + "."
        tensors = {key.replace(old, new): tensor for key, tensor in tensors.items()}
        for key, shape in shapes.items():
            shape = [sizes[size] for size in shape]
            tensors[f"{key.format(*numbers)}.weight"] = torch.randn(shape) * 0.3
    save_file(tensors, path, {"format": "pt"})
    for field, value in fields.items():
        if isinstance(value, list) and len(value) == fields["num_hidden_layers"]:
            fields[field] = value[:layers]
    fields["num_hidden_layers"] = layers


def make_model(name, folder):
    kind, values, *publish = MODELS[name]
    layers = values.get("num_hidden_layers")
    if more := next_token_blocks(name, values):
        values = dict(values, num_hidden_layers=layers + more)
    model_class = getattr(transformers, kind)
    torch.manual_seed(len(name))
    config_class = model_class.config_class
    if "text_config" in values:
        # Nested configs are given as their classes, or name those themselves.
        parts = config_class.sub_configs
        nested = lambda key, value: key in parts and "model_type" not in value
        values = {key: parts[key](**value) if nested(key, value) else value for key, value in values.items()}
    model = model_class(config_class(**values))
    with torch.no_grad():
        for key, tensor in model.state_dict().items():
            if tensor.is_floating_point():
                tensor.normal_(0.0, 0.3)
                if "A_log" in key:
                    tensor.abs_()
    model.save_pretrained(folder)
    saved = load_file(folder / "model.safetensors")
    memory = {key: list(tensor.shape) for key, tensor in model.state_dict().items()}
    if not any(key.endswith("head.weight") for key in saved):  # Tied.
        memory.pop("lm_head.weight", None)
    if not memory.keys() <= saved.keys():
        (folder / "memory.json").write_text(json.dumps(memory))
    for edit in publish:
        edit(folder)
    config = folder / "config.json"
    fields = json.loads(config.read_text()) | PUBLISHED.get(name, {})
    if name in NEXT_TOKEN:
        add_next_token(name, fields, layers, folder / "model.safetensors")
    for old, new in RENAMED.get(name, {}).items():
        path = folder / "model.safetensors"
        tensors = load_file(path)
        save_file({re.sub(old, new, key): tensor for key, tensor in tensors.items()}, path, {"format": "pt"})
    config.write_text(json.dumps(fields, indent=2, sort_keys=True) + "\n")


def convert(llama_cpp, folder, out):
    sys.path[:0] = [str(llama_cpp / "gguf-py"), str(llama_cpp)]
    import conversion
    import gguf

    hparams = json.loads((folder / "config.json").read_text())
    architecture = conversion.base.get_model_architecture(hparams, conversion.ModelType.TEXT)
    model_class = conversion.get_model_class(architecture)

    size = hparams.get("text_config", hparams)["vocab_size"]

    def set_vocab(self):
        self.gguf_writer.add_tokenizer_model("gpt2")
        self.gguf_writer.add_token_list([f"t{number}" for number in range(size)])
        self.gguf_writer.add_token_types([gguf.TokenType.NORMAL] * size)

    # The converter's option --no-mtp, for models whose config counts blocks that the checkpoint lacks.
    saved = load_file(folder / "model.safetensors")
    model_class.no_mtp = out.stem not in NEXT_TOKEN and not any(name.startswith("mtp.") or ".eh_proj." in name for name in saved)
    # Gemma 3 cuts its embedding to what a tokenizer has.
    tokenizer = {"model": {"vocab": {f"t{n}": n for n in range(size)}}, "added_tokens": []}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    # The converter asks transformers for the config, and only takes config.json where transformers does
    # not know the class: transformers 5 gives every Nemotron-H experts, and the layers of Qwen4-Exp another
    # name, and Step 3.5 other fields.
    as_it_is = out.stem in PUBLISHED or out.stem in ("nemotron_h", "qwen4exp", "qwen4exp-sees", "step35", "deepseek4", "minimax-m3", "dots3note")
    model = model_class(folder, gguf.LlamaFileType.ALL_F32, out, hparams=hparams if as_it_is else None)
    type(getattr(model, "impl", model)).set_vocab = set_vocab
    # Of DeepSeek V4 the converter has one of its own, which is long.
    model.gguf_writer.kv_data[0].pop("tokenizer.chat_template", None)
    model.write()
    (folder / "tokenizer.json").unlink()


def main():
    logging.disable(logging.INFO)
    llama_cpp, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    for name in sys.argv[3:] or MODELS:
        try:
            make_model(name, out / name)
            convert(llama_cpp, out / name, out / f"{name}.gguf")
            print(name, "made", flush=True)
        except Exception as error:  # One that fails is no reason to leave out the others.
            print(name, "failed:", type(error).__name__, str(error)[:300], flush=True)


if __name__ == "__main__":
    main()
