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
EXPERTS = dict(num_experts_per_tok=2, moe_intermediate_size=8)

# Gemma 4. The configs of its text model are as published; transformers 5.24.0 writes what the layers of full
# attention have otherwise as per_layer_config instead, as gemma4-sees has it.
GEMMA4 = dict(BASE, head_dim=6, global_head_dim=8, num_global_key_value_heads=1, sliding_window=16, tie_word_embeddings=True, layer_types=["sliding_attention", "full_attention"] * 2, num_hidden_layers=4, hidden_size_per_layer_input=0)
# What sees, of models that do; it is in a file of its own.
QWEN3VL_VISION = dict(depth=1, hidden_size=8, num_heads=2, intermediate_size=12, out_hidden_size=16, patch_size=2, deepstack_visual_indexes=[0], num_position_embeddings=16)
SIGLIP = dict(hidden_size=8, intermediate_size=12, num_hidden_layers=1, num_attention_heads=2, image_size=8, patch_size=4)
MROPE = dict(rope_type="default", rope_theta=1000000.0, mrope_section=[1, 1, 1])

# Name: class, config.
MODELS = {
    "gemma": ("GemmaForCausalLM", dict(BASE, head_dim=6, tie_word_embeddings=True)),
    "gemma3": ("Gemma3ForCausalLM", dict(BASE, head_dim=6, num_hidden_layers=7, sliding_window=16, tie_word_embeddings=True)),
    "qwen2moe": ("Qwen2MoeForCausalLM", dict(BASE, **EXPERTS, num_experts=3, shared_expert_intermediate_size=10)),
    "olmo2": ("Olmo2ForCausalLM", dict(BASE)),
    "olmoe": ("OlmoeForCausalLM", dict(BASE, num_experts=3, num_experts_per_tok=2)),
    "starcoder2": ("Starcoder2ForCausalLM", dict(BASE)),
    "stablelm": ("StableLmForCausalLM", dict(BASE, use_qkv_bias=True)),
    "nemotron": ("NemotronForCausalLM", dict(BASE, head_dim=4)),
    "gpt2": ("GPT2LMHeadModel", dict(vocab_size=24, n_positions=32, n_embd=16, n_layer=2, n_head=4, n_ctx=32)),
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
    "mixtral-small": ("MixtralForCausalLM", dict(BASE, head_dim=6, num_local_experts=3, num_experts_per_tok=2)),
    "gpt-oss-small": ("GptOssForCausalLM", dict(BASE, head_dim=6, num_local_experts=3, num_experts_per_tok=2)),
    "qwen2-small": ("Qwen2ForCausalLM", dict(BASE)),
    "qwen3-small": ("Qwen3ForCausalLM", dict(BASE, head_dim=6)),
    "qwen3moe-small": ("Qwen3MoeForCausalLM", dict(BASE, **EXPERTS, head_dim=6, num_local_experts=3)),
    "phi3-small": ("Phi3ForCausalLM", dict(BASE)),
    # Rows of whole blocks of 32.
    "gpt-oss-mxfp4": ("GptOssForCausalLM", dict(BASE, head_dim=6, hidden_size=64, intermediate_size=32, num_hidden_layers=1, num_local_experts=3, num_experts_per_tok=2)),
    "gemma4": ("Gemma4ForCausalLM", dict(GEMMA4, num_global_key_value_heads=None, hidden_size_per_layer_input=5, vocab_size_per_layer_input=24, num_kv_shared_layers=2, use_double_wide_mlp=True, final_logit_softcapping=30.0)),
    "gemma4-moe": ("Gemma4ForCausalLM", dict(GEMMA4, num_hidden_layers=2, layer_types=["sliding_attention", "full_attention"], attention_k_eq_v=True, enable_moe_block=True, num_experts=3, top_k_experts=2, moe_intermediate_size=10)),
    "gemma4-sees": ("Gemma4ForConditionalGeneration", dict(text_config=dict(GEMMA4, num_hidden_layers=2, layer_types=["sliding_attention", "full_attention"], attention_k_eq_v=True), vision_config=dict(hidden_size=8, intermediate_size=12, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2, head_dim=4, patch_size=2, position_embedding_size=4))),
    "qwen3vl": ("Qwen3VLForConditionalGeneration", dict(text_config=dict(BASE, head_dim=6, rope_parameters=MROPE), vision_config=QWEN3VL_VISION)),
    "qwen3vlmoe": ("Qwen3VLMoeForConditionalGeneration", dict(text_config=dict(BASE, head_dim=6, num_local_experts=3, num_experts_per_tok=2, moe_intermediate_size=10, rope_parameters=MROPE), vision_config=QWEN3VL_VISION)),
    "qwen2vl": ("Qwen2VLForConditionalGeneration", dict(text_config=dict(BASE, rope_parameters=dict(MROPE, mrope_section=[1, 1, 0])), vision_config=dict(depth=1, embed_dim=8, hidden_size=16, num_heads=2, mlp_ratio=2, patch_size=2))),
    "gemma3-sees": ("Gemma3ForConditionalGeneration", dict(text_config=dict(BASE, model_type="gemma3_text", head_dim=6, sliding_window=16, layer_types=["sliding_attention", "full_attention"], tie_word_embeddings=True), vision_config=dict(SIGLIP, model_type="siglip_vision_model"), mm_tokens_per_image=4)),
    "paddleocr": ("PaddleOCRVLForConditionalGeneration", dict(text_config=dict(BASE, head_dim=6, rope_parameters=MROPE), vision_config=SIGLIP, tie_word_embeddings=False)),
    "hunyuan_vl": ("HunYuanVLForConditionalGeneration", dict(text_config=dict(BASE, head_dim=8, rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, alpha=1000.0, factor=1.0, mrope_section=[1, 1, 1, 1])), vision_config=dict(SIGLIP, max_image_size=8, max_vit_seq_len=4), tie_word_embeddings=False)),
    "gemma3n": ("Gemma3nForCausalLM", dict(BASE, head_dim=6, sliding_window=16, num_hidden_layers=3, layer_types=["sliding_attention", "full_attention", "sliding_attention"], num_kv_shared_layers=1, hidden_size_per_layer_input=5, vocab_size_per_layer_input=24, laurel_rank=64, altup_num_inputs=4, activation_sparsity_pattern=[0.95, 0.0, 0.0], intermediate_size=[24] * 3, final_logit_softcapping=30.0, tie_word_embeddings=True)),
    "gemma4-assistant": ("Gemma4AssistantForCausalLM", dict(text_config=dict(GEMMA4, model_type="gemma4_text", num_hidden_layers=2, layer_types=["sliding_attention", "full_attention"], num_kv_shared_layers=2, vocab_size_per_layer_input=0), backbone_hidden_size=20)),
    "olmo3-yarn": ("Olmo3ForCausalLM", dict(BASE, sliding_window=16, num_hidden_layers=4, rope_parameters=dict(full_attention=dict(rope_type="yarn", rope_theta=500000.0, factor=8.0, original_max_position_embeddings=8, attention_factor=1.25, beta_fast=32.0, beta_slow=1.0), sliding_attention=dict(rope_type="default", rope_theta=500000.0)))),
    "glm4moe-mtp": ("Glm4MoeForCausalLM", dict(BASE, **EXPERTS, head_dim=6, n_routed_experts=4, n_shared_experts=1, first_k_dense_replace=1, use_qk_norm=True, attention_bias=True, num_nextn_predict_layers=1)),
    "step35": ("Step3p7ForConditionalGeneration", dict(text_config=dict(BASE, head_dim=6, num_hidden_layers=3, layer_types=["full_attention", "sliding_attention", "full_attention"], mlp_layer_types=["dense", "sparse", "sparse"], num_sliding_attention_heads=6, n_routed_experts=3, num_experts_per_tok=2, moe_intermediate_size=10, share_expert_dim=7, sliding_window=16, rope_theta=[5000000.0, 10000.0, 5000000.0], partial_rotary_factors=[0.5, 1.0, 0.5]), vision_config=SIGLIP)),
    "mamba2": ("Mamba2ForCausalLM", dict(vocab_size=24, hidden_size=16, num_hidden_layers=2, state_size=4, num_heads=8, head_dim=4, n_groups=2)),
}


def make_model(name, folder):
    kind, values = MODELS[name]
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
    if "lm_head.weight" not in saved:  # Tied.
        memory.pop("lm_head.weight", None)
    if not memory.keys() <= saved.keys():
        (folder / "memory.json").write_text(json.dumps(memory))
    if name == "gpt-oss-mxfp4":
        pack(folder)
    if name == "glm4moe-mtp":
        # transformers reads no block that predicts more; published checkpoints have one behind the last layer.
        tensors = load_file(folder / "model.safetensors")
        size, last = values["hidden_size"], values["num_hidden_layers"] - 1
        shapes = {key.replace(f"layers.{last}.", f"layers.{last + 1}."): tensor.shape for key, tensor in tensors.items() if f"layers.{last}." in key}
        for part, shape in [("eh_proj", (size, 2 * size)), ("enorm", (size,)), ("hnorm", (size,)), ("embed_tokens", (values["vocab_size"], size)), ("shared_head.head", (values["vocab_size"], size)), ("shared_head.norm", (size,))]:
            shapes[f"model.layers.{last + 1}.{part}.weight"] = shape
        tensors |= {key: torch.randn(*shape) for key, shape in shapes.items()}
        (folder / "memory.json").unlink()
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    if name == "step35":
        publish_step35(folder, MODELS[name][1]["text_config"])
    if name == "qwen3vlmoe":
        # As published. transformers 5.24.0 reads this and writes it transposed.
        tensors = load_file(folder / "model.safetensors")
        for key in [key for key in tensors if ".experts." in key]:
            tensors[key] = tensors[key].transpose(1, 2).contiguous()
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    if "global_head_dim" in values:
        config = json.loads((folder / "config.json").read_text())
        if config.pop("per_layer_config", None):
            for field in ["global_head_dim", "num_global_key_value_heads"]:
                config[field] = values[field]
            (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


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
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "mxfp4"}
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def publish_step35(folder, values):
    """The text model with a block that predicts more, and the config that is published with it: the converter asks for
    its fields, which transformers 5.24.0 has other names for."""
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


def convert(llama_cpp, folder, out):
    sys.path[:0] = [str(llama_cpp / "gguf-py"), str(llama_cpp)]
    import conversion
    import gguf

    hparams = json.loads((folder / "config.json").read_text())
    model_class = conversion.get_model_class(hparams["architectures"][0])

    size = hparams.get("text_config", hparams)["vocab_size"]

    def set_vocab(self):
        self.gguf_writer.add_tokenizer_model("gpt2")
        self.gguf_writer.add_token_list([f"t{number}" for number in range(size)])
        self.gguf_writer.add_token_types([gguf.TokenType.NORMAL] * size)

    model_class.set_vocab = set_vocab
    # Gemma 3 cuts its embedding to what a tokenizer has.
    tokenizer = {"model": {"vocab": {f"t{n}": n for n in range(size)}}, "added_tokens": []}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    # As if transformers had no class of Step 3.5, of whose config it makes another.
    published = json.loads((folder / "config.json").read_text()) if hparams["model_type"] == "step3p5" else None
    model = model_class(folder, gguf.LlamaFileType.ALL_F32, out, hparams=published)
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
