//! What a config declares of quantization, and the tensors that stand for a weight.

use gguf_assay_format::Requirement::{Must, Should, Silent};
use gguf_assay_format::Rule;

rules! {
    METHOD_001 = "METHOD-001" "quant_method names a method that is known",
        Silent, Must("transformers auto.py: Unknown quantization type"),
        "a loader takes the tensors for another method's, or for plain weights",
        "correct quant_method; `gguf-assay checkpoint --help` lists those that are known";
    METHOD_002 = "METHOD-002" "the fields that a method cannot do without are there",
        Silent, Must("vllm: Cannot find any of … in the model's quantization config"),
        "a loader takes a default, and other numbers come out",
        "add the field: the finding says what it holds";
    METHOD_003 = "METHOD-003" "fields hold what their method allows",
        Silent, Must("transformers quantization_config.py: post_init of each class"),
        "a loader dies late, or ignores the field",
        "correct the field: the finding lists what may stand there";
    METHOD_004 = "METHOD-004" "fields are ones that the method has",
        Silent, Should("tools add fields of their own, which loaders do not look at"),
        "a field with a typing error has no effect",
        "look whether another field was meant";
    METHOD_005 = "METHOD-005" "all configs of a checkpoint say the same",
        Silent, Must("a loader reads one of them, and loaders differ in which"),
        "the checkpoint loads in one program and not in the other",
        "keep quantization_config in config.json, and drop or correct the other file";
    METHOD_006 = "METHOD-006" "the fields of a config go together",
        Silent, Must("compressed-tensors quant_args.py: validate_model_after"),
        "a loader accepts the config and fails in a kernel",
        "correct the field: the finding says which others it goes with";
    METHOD_007 = "METHOD-007" "every tensor of a quantized module is there",
        Silent, Must("a weight is made of all of them"),
        "a loader dies with a KeyError, or takes what was in memory for scales",
        "look whether a shard is missing, or quantize the module again";
    METHOD_008 = "METHOD-008" "tensors have the type that their method stores",
        Silent, Must("the packing of the method"),
        "bytes are taken for other numbers",
        "the file was converted by a tool that does not know the method: start from the original";
    METHOD_009 = "METHOD-009" "tensors have the shapes that their method gives them",
        Silent, Must("vllm: the size of tensor must match …; the shape formulas of the method"),
        "a loader reads beyond a tensor, or stops with a shape mismatch that names neither field nor fault",
        "the finding has the formula and the numbers: correct the config, or quantize the module again";
    METHOD_010 = "METHOD-010" "bits is the width of the codes that are there",
        Silent, Must("the shape formulas of the method"),
        "the weights are noise, or a loader stops with a shape mismatch",
        "correct bits: the finding has the width that fits all tensors";
    METHOD_011 = "METHOD-011" "the group or block size is that of the scales that are there",
        Silent, Must("the shape formulas of the method"),
        "scales are applied to other columns",
        "correct group_size (or the block): the finding has the size that fits all tensors";
    METHOD_012 = "METHOD-012" "the tensors are laid down as the declared method or version does",
        Silent, Must("each method packs along another axis, in another order"),
        "the weights are noise",
        "correct quant_method or version: the finding names the layout that fits all tensors";
    METHOD_013 = "METHOD-013" "no tensor is transposed",
        Silent, Must("the shape formulas of the method"),
        "scales or codes are applied to other rows",
        "transpose the tensor, or quantize the module again";
    METHOD_014 = "METHOD-014" "groups divide the input",
        Silent, Must("vllm: input size is not aligned with the quantized weight shape"),
        "the last group is partial, and loaders differ in what they do with it",
        "quantize with a group size that divides the input";
    METHOD_015 = "METHOD-015" "codes fill whole words",
        Silent, Must("gptqmodel qlinear: in_features and out_features divisible by the pack factor"),
        "a kernel reads beyond a row",
        "leave the module out of quantization";
    METHOD_016 = "METHOD-016" "zero points are stored as the declared version stores them",
        Silent, Must("GPTQ v1 stores the zero point less one, v2 as it is"),
        "every weight is off by one scale: the model runs and talks nonsense",
        "correct checkpoint_format: the finding says which version the zero points are of";
    METHOD_017 = "METHOD-017" "g_idx names groups that there are",
        Silent, Must("the group of each input is an index into scales"),
        "a kernel reads beyond scales, or applies those of another group",
        "quantize the module again, or set desc_act as g_idx has it";
    METHOD_018 = "METHOD-018" "a shape that the file states is that of its tensors",
        Silent, Must("weight_shape of compressed-tensors, quant_state of bitsandbytes"),
        "a loader makes a weight of another shape",
        "quantize the module again";
    METHOD_019 = "METHOD-019" "modules that the config leaves out are not quantized",
        Silent, Must("vllm, transformers: a plain layer is made for them"),
        "a loader looks for a weight that is not there",
        "remove the entry, or ship the plain weight";
    METHOD_020 = "METHOD-020" "modules that the config includes are quantized",
        Silent, Must("compressed-tensors: targets without ignore"),
        "a loader looks for scales that are not there",
        "add the module to the list of those that are left out";
    METHOD_021 = "METHOD-021" "each entry of a list of modules is about one that there is",
        Silent, Must("an entry that matches nothing has no effect"),
        "a module is quantized that was not meant to be, or a loader looks for it so",
        "correct the name: the finding has the nearest module";
    METHOD_022 = "METHOD-022" "modules of one kind are quantized alike in each layer",
        Silent, Should("a mixture is legal where the config says so"),
        "one layer was forgotten",
        "look whether the list of modules that are left out was meant so";
    METHOD_023 = "METHOD-023" "quantization_config stands at the top of config.json",
        Silent, Should("vllm issue 11122: one within text_config was not seen"),
        "a loader that does not look there takes packed tensors for weights",
        "move it to the top, or use a loader that looks into text_config";
    METHOD_024 = "METHOD-024" "a checkpoint with packed tensors declares its method",
        Silent, Must("without quantization_config a loader makes plain layers"),
        "missing and unexpected keys, or random weights",
        "add quantization_config: the finding says what the tensors look like";
    METHOD_025 = "METHOD-025" "scales are finite",
        Silent, Must("a number times a scale that is none"),
        "the model's output is NaN",
        "quantize the module again";
    METHOD_026 = "METHOD-026" "expressions can be read",
        Silent, Must("gptqmodel: dynamic; compressed-tensors: targets and ignore, after re:"),
        "the loader dies, or the entry has no effect",
        "correct the expression";
    METHOD_029 = "METHOD-029" "the layout is one that this program looks into",
        Silent, Should("nothing is wrong with it"),
        "none: the tensors were not judged",
        "try the checkpoint in its loader";
    METHOD_030 = "METHOD-030" "a quantized module has no tensors that its method does not know",
        Silent, Must("g_idx is GPTQ's alone; a layout has the tensors of its table"),
        "a loader stops at an unexpected key, or another method is meant",
        "look whether quant_method is right";
    METHOD_031 = "METHOD-031" "widely used loaders take what is declared",
        Silent, Should("the finding names loader and version"),
        "the checkpoint is in order, and that loader refuses it",
        "use another loader, or quantize as the finding says";
    METHOD_032 = "METHOD-032" "the numbers are the source's, as near as the method gets",
        Silent, Must("what quantizing is for"),
        "the model runs and talks nonsense",
        "the finding names the rule that fits: correct the config, or quantize again";
}
