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

import safetensors.torch
import torch
import transformers

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
    "granitemoe-shared": ("GraniteMoeSharedForCausalLM", dict(BASE, hidden_size=16, intermediate_size=14, num_local_experts=3, num_experts_per_tok=2, shared_intermediate_size=10, attention_multiplier=0.5, embedding_multiplier=12.0, residual_multiplier=0.25, logits_scaling=8.0)),
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
    "mixtral-small": ("MixtralForCausalLM", dict(BASE, head_dim=6, num_local_experts=3, num_experts_per_tok=2)),
    "gpt-oss-small": ("GptOssForCausalLM", dict(BASE, head_dim=6, num_local_experts=3, num_experts_per_tok=2)),
    "qwen2-small": ("Qwen2ForCausalLM", dict(BASE)),
    "qwen3-small": ("Qwen3ForCausalLM", dict(BASE, head_dim=6)),
    "qwen3moe-small": ("Qwen3MoeForCausalLM", dict(BASE, **EXPERTS, head_dim=6, num_local_experts=3)),
    "phi3-small": ("Phi3ForCausalLM", dict(BASE)),
    "mamba2": ("Mamba2ForCausalLM", dict(vocab_size=24, hidden_size=16, num_hidden_layers=2, state_size=4, num_heads=8, head_dim=4, n_groups=2)),
}

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
NEXT_TOKEN_BLOCKS = {"mimo2": 3}


def next_token_blocks(name, values):
    if name not in NEXT_TOKEN:
        return 0
    return values.get("num_nextn_predict_layers") or NEXT_TOKEN_BLOCKS[name]


def add_next_token(name, fields, layers, path):
    """Makes the last layers of a saved model the blocks that predict more tokens."""
    prefix, shapes = NEXT_TOKEN[name]
    tensors = safetensors.torch.load_file(path)
    sizes = {W: fields["hidden_size"], V: fields["vocab_size"], 2: 2 * fields["hidden_size"]}
    for block in range(fields["num_hidden_layers"] - layers):
        numbers = layers + block, block
        old, new = f"model.layers.{numbers[0]}.", prefix.format(*numbers) + "."
        tensors = {key.replace(old, new): tensor for key, tensor in tensors.items()}
        for key, shape in shapes.items():
            shape = [sizes[size] for size in shape]
            tensors[f"{key.format(*numbers)}.weight"] = torch.randn(shape) * 0.3
    safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})
    for field, value in fields.items():
        if isinstance(value, list) and len(value) == fields["num_hidden_layers"]:
            fields[field] = value[:layers]
    fields["num_hidden_layers"] = layers


def make_model(name, folder):
    kind, values = MODELS[name]
    layers = values.get("num_hidden_layers")
    if more := next_token_blocks(name, values):
        values = dict(values, num_hidden_layers=layers + more)
    model_class = getattr(transformers, kind)
    torch.manual_seed(len(name))
    model = model_class(model_class.config_class(**values))
    with torch.no_grad():
        for key, tensor in model.state_dict().items():
            if tensor.is_floating_point():
                tensor.normal_(0.0, 0.3)
                if "A_log" in key:
                    tensor.abs_()
    model.save_pretrained(folder)
    config = folder / "config.json"
    fields = json.loads(config.read_text()) | PUBLISHED.get(name, {})
    if name in NEXT_TOKEN:
        add_next_token(name, fields, layers, folder / "model.safetensors")
    for old, new in RENAMED.get(name, {}).items():
        path = folder / "model.safetensors"
        tensors = safetensors.torch.load_file(path)
        tensors = {re.sub(old, new, key): tensor for key, tensor in tensors.items()}
        safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})
    config.write_text(json.dumps(fields, indent=2, sort_keys=True) + "\n")


def convert(llama_cpp, folder, out):
    sys.path[:0] = [str(llama_cpp / "gguf-py"), str(llama_cpp)]
    import conversion
    import gguf

    hparams = json.loads((folder / "config.json").read_text())
    model_class = conversion.get_model_class(hparams["architectures"][0])

    def set_vocab(self):
        size = hparams["vocab_size"]
        self.gguf_writer.add_tokenizer_model("gpt2")
        self.gguf_writer.add_token_list([f"t{number}" for number in range(size)])
        self.gguf_writer.add_token_types([gguf.TokenType.NORMAL] * size)

    # Gemma 3 cuts its embedding to what a tokenizer has.
    tokenizer = {"model": {"vocab": {f"t{n}": n for n in range(hparams["vocab_size"])}}, "added_tokens": []}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    as_it_is = hparams if folder.name in PUBLISHED else None
    model = model_class(folder, gguf.LlamaFileType.ALL_F32, out, hparams=as_it_is)
    type(getattr(model, "impl", model)).set_vocab = set_vocab
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
