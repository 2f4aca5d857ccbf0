//! What a model needs beyond single modules: its architecture's weights, layers, experts, fused
//! shards, and the ranks that it is to be split over.

use gguf_assay_format::Requirement::{Must, Should, Silent};
use gguf_assay_format::Rule;

rules! {
    MODEL_001 = "MODEL-001" "every weight that the architecture has is there",
        Silent, Must("a class of transformers has the parameters that its config gives it"),
        "a loader starts the weight from random numbers, or stops at a missing key",
        "look whether a shard is missing, or export the checkpoint again";
    MODEL_002 = "MODEL-002" "tensors are ones that the architecture has",
        Silent, Should("loaders skip what they do not know, or stop at an unexpected key"),
        "the tensor is not used",
        "look whether the name is misspelt, or the config of another model";
    MODEL_003 = "MODEL-003" "weights have the shapes that the architecture gives them",
        Silent, Must("the shapes follow from config.json: size mismatch"),
        "a loader stops with a size mismatch, or reads other rows",
        "correct the field of config.json: the finding has the product that the shape is of";
    MODEL_004 = "MODEL-004" "the config has the fields that shapes follow from",
        Silent, Should("without them the class's defaults count"),
        "a loader takes a default that may be another model's",
        "write the field into config.json";
    MODEL_005 = "MODEL-005" "each weight is there once",
        Silent, Must("two tensors for one weight need not say the same"),
        "the one that is loaded last wins",
        "drop one of them";
    MODEL_006 = "MODEL-006" "every layer that the config counts is there",
        Silent, Must("num_hidden_layers layers are made and have to be filled"),
        "a layer of random numbers, or a missing key",
        "look whether a shard is missing, or correct num_hidden_layers";
    MODEL_007 = "MODEL-007" "there are no layers beyond those that the config counts",
        Silent, Should("layers of next-token prediction are counted by num_nextn_predict_layers"),
        "the layer is not loaded, or a loader stops at an unexpected key",
        "correct num_hidden_layers or num_nextn_predict_layers";
    MODEL_008 = "MODEL-008" "parts that loaders fuse are all quantized, or all plain",
        Silent, Must("vllm: Detected some but not all shards of … are quantized"),
        "a loader makes one layer of them, and looks for tensors that some do not have",
        "quantize all of the parts, or leave all of them out: q_proj with k_proj and v_proj, gate_proj with up_proj, all experts of a layer";
    MODEL_009 = "MODEL-009" "parts that loaders fuse are quantized alike",
        Silent, Must("vllm: all shards of fused layers have the same precision"),
        "a loader makes one layer of them, and reads some with the wrong width",
        "quantize all of the parts with the same width and groups";
    MODEL_010 = "MODEL-010" "the output layer is plain",
        Silent, Should("some loaders make a plain output layer whatever is declared"),
        "a loader may not find lm_head.weight",
        "leave lm_head out of quantization unless the loaders that you mean take it";
    MODEL_011 = "MODEL-011" "an output layer that is the embedding is not quantized",
        Silent, Must("with tie_word_embeddings the weight of the embedding is taken for it"),
        "the quantized tensors are not loaded",
        "set tie_word_embeddings to false, or remove the tensors of lm_head";
    MODEL_012 = "MODEL-012" "an output layer that is not the embedding is there",
        Silent, Must("tie_word_embeddings false: lm_head.weight is a parameter of its own"),
        "the output layer starts from random numbers",
        "set tie_word_embeddings to true if it is the embedding, or ship lm_head.weight";
    MODEL_013 = "MODEL-013" "an output layer that is declared to be the embedding is the same",
        Silent, Should("with tie_word_embeddings loaders take one of both"),
        "programs give different outputs, according to which they take",
        "set tie_word_embeddings to false if both are meant";
    MODEL_014 = "MODEL-014" "the vocabulary of a quantized output layer comes in steps of 64",
        Silent, Should("vllm pads the vocabulary to a multiple of 64"),
        "a loader that pads plain rows cannot pad packed ones",
        "pad the vocabulary before quantization, or leave lm_head plain";
    MODEL_015 = "MODEL-015" "numbers are computed in a type that kernels of the method take",
        Silent, Should("MXFP4 kernels of vllm want bfloat16"),
        "a loader refuses float16",
        "write bfloat16 into the config's dtype";
    MODEL_016 = "MODEL-016" "scales of cached keys and values come together, in each layer",
        Silent, Must("vllm: k_scale and v_scale are both taken from the checkpoint"),
        "one of both is 1.0, and the cache holds other numbers",
        "export the scales again";
    MODEL_017 = "MODEL-017" "scales of the cache have names that loaders know",
        Silent, Should("vllm: kv_scale is deprecated in favor of k_scale and v_scale"),
        "loaders take one number for both, or skip it",
        "write k_scale and v_scale";
    MODEL_018 = "MODEL-018" "scales of the cache are there if its scheme is declared static",
        Silent, Should("vllm: without them 1.0 is taken"),
        "keys and values beyond the type's range are cut",
        "calibrate the cache, or remove kv_cache_scheme";
    MODEL_019 = "MODEL-019" "there are as many experts as the config says",
        Silent, Must("the router chooses among the number that the config has"),
        "a loader stops at a size mismatch, or experts are never chosen",
        "correct the field: the finding has the number that is there";
    MODEL_020 = "MODEL-020" "every layer has all of its experts",
        Silent, Must("the router may choose any of them"),
        "an expert of random numbers",
        "look whether a shard is missing";
    MODEL_021 = "MODEL-021" "an expert has all of its matrices",
        Silent, Must("down of the product of gate and up"),
        "a loader stops at a missing key, or computes with what was in memory",
        "look whether a shard is missing";
    MODEL_022 = "MODEL-022" "experts of all layers are laid down alike",
        Silent, Must("a loader looks for one set of names"),
        "the experts of some layers are not found",
        "export the checkpoint again with one version of the library";
    MODEL_023 = "MODEL-023" "the shapes of fused experts go together",
        Silent, Must("gate_up_proj has twice the width that down_proj takes"),
        "a loader stops with a size mismatch",
        "look which of both is another model's, or transposed";
    MODEL_025 = "MODEL-025" "experts are laid down as the declared model has them",
        Silent, Must("transformers 5.24.0: the parameters of the class that model_type names"),
        "gate and up, or rows and columns, are taken for one another",
        "correct model_type, or export the checkpoint with the library that is named there";
    MODEL_026 = "MODEL-026" "routers are plain",
        Silent, Should("vllm issue 25029: KeyError layers.35.mlp.gate.g_idx"),
        "loaders make a plain router, and stop at tensors that it does not have",
        "leave the router out of quantization";
    MODEL_027 = "MODEL-027" "attention heads divide among the ranks",
        Silent, Must("vllm: total number of attention heads must be divisible by tensor parallel size"),
        "a loader stops before it loads anything",
        "choose a number of ranks that divides the heads";
    MODEL_028 = "MODEL-028" "features divide among the ranks",
        Silent, Must("vllm distributed/utils.py: divide"),
        "a loader stops before it loads anything",
        "choose a number of ranks that divides them";
    MODEL_029 = "MODEL-029" "groups do not cross ranks",
        Silent, Must("vllm: input size is not aligned with the quantized weight shape"),
        "a loader stops, or applies scales to columns of another group",
        "use fewer ranks, or quantize with a smaller group";
    MODEL_030 = "MODEL-030" "blocks do not cross ranks",
        Silent, Must("vllm: … is not divisible by weight quantization block_k / block_n"),
        "a loader stops, or applies scales to another block",
        "use fewer ranks, or experts in parallel instead";
    MODEL_031 = "MODEL-031" "packed words do not cross ranks",
        Silent, Must("a word is loaded whole"),
        "a loader stops, or reads codes of another rank's columns",
        "use fewer ranks";
}
