//! compressed-tensors, as llm-compressor writes it.

use serde_json::Value as Json;

use super::{ANY, BIAS, Dim, FLOATS, Field, GROUPS, IN, Kind, Layout, Method, ONE, OUT, Presence};
use super::{TensorRule, Term, vllm};
use crate::config::{Fields, quote};
use crate::dtype::Dtype;
use crate::finding::{Finding, Refusal};
use crate::packing::PackedLayout;
use crate::rule;
use crate::scheme::{Declaration, Entry, Group, Pattern, Scheme};

pub(super) static METHOD: Method = Method {
    name: "compressed-tensors",
    title: "compressed-tensors: a scheme for each group of modules",
    source: "compressed-tensors 0.20.1 quantization/quant_args.py, quant_config.py and compressors; \
             vllm 0.33.0 compressed_tensors",
    fields: &[
        Field::new("config_groups", Kind::Object, "schemes, and what they are for").required(),
        Field::new("format", Kind::Word(FORMATS), "how weights are packed"),
        Field::new("ignore", Kind::Texts, "modules that are not quantized"),
        Field::new("kv_cache_scheme", Kind::Object, "of the cache"),
        Field::new("global_compression_ratio", Kind::Any, "a figure"),
        Field::new("sparsity_config", Kind::Object, "of sparse weights"),
        Field::new("transform_config", Kind::Object, "transforms of inputs"),
        Field::new("version", Kind::Text, "of the tool"),
    ],
    layouts: &[
        &PACK,
        &INT,
        &INT_TENSOR,
        &FLOAT_CHANNEL,
        &FLOAT_BLOCK,
        &FLOAT_TENSOR,
        &NVFP4,
        &MXFP4,
    ],
    declare,
};

const FORMATS: &[&str] = &[
    "dense",
    "int-quantized",
    "float-quantized",
    "naive-quantized",
    "pack-quantized",
    "mixed-precision",
    "nvfp4-pack-quantized",
    "mxfp4-pack-quantized",
    "mxfp6-pack-quantized",
    "mxfp8-quantized",
    "sparse-bitmask",
    "sparse-24-bitmask",
    "marlin-24",
];

const GROUP: &[Field] = &[
    Field::new("targets", Kind::Texts, "names, expressions after re:, or classes").required(),
    Field::new("weights", Kind::Object, "of weights"),
    Field::new("input_activations", Kind::Object, "of what goes in"),
    Field::new("output_activations", Kind::Object, "of what comes out"),
    Field::new("format", Kind::Word(FORMATS), "how weights are packed"),
];

const ARGS: &[Field] = &[
    Field::new("num_bits", Kind::Integer(1, 16), "the width of a code"),
    Field::new("type", Kind::Word(&["int", "float"]), "what a code is"),
    Field::new("symmetric", Kind::Bool, "whether there are no zero points"),
    Field::new("strategy", Kind::Word(STRATEGIES), "what shares a scale"),
    Field::new("group_size", Kind::GroupSize, "how many share a scale"),
    Field::new("block_structure", Kind::Block, "rows and columns of a block"),
    Field::new("dynamic", Kind::Any, "when scales are found"),
    Field::new("actorder", Kind::Any, "the order of columns"),
    Field::new("observer", Kind::Any, "of the quantizer"),
    Field::new("observer_kwargs", Kind::Any, "of the quantizer"),
    Field::new("scale_dtype", Kind::Any, "the type of scales"),
    Field::new("zp_dtype", Kind::Any, "the type of zero points"),
];

const STRATEGIES: &[&str] =
    &["tensor", "channel", "group", "block", "token", "tensor_group", "attn_head"];

const NO_ZERO: &str = "none";
const INPUT_SCALE: TensorRule =
    TensorRule::new(".input_scale", FLOATS, &[ANY], "that of inputs, if static")
        .when(Presence::Optional);
const INPUT_ZERO: TensorRule =
    TensorRule::new(".input_zero_point", &[Dtype::I8], &[ANY], "that of inputs, if static")
        .when(Presence::Optional);
const FP8: TensorRule =
    TensorRule::new(".weight", &[Dtype::F8_E4M3, Dtype::F8_E5M2], &[OUT, IN], "numbers");
const BYTES: &str = "a byte for each number, row by row";
const NIBBLES: &str = "two codes in a byte, the even one in the low nibble";

pub(super) static PACK: Layout = Layout {
    name: "pack-quantized",
    packed: PackedLayout::CompressedPack,
    tensors: &[
        TensorRule::new(
            ".weight_packed",
            &[Dtype::I32],
            &[OUT, Dim::ceil(&[Term::In, Term::Bits], &[Term::Num(32)])],
            "codes plus 2^(bits - 1), packed along the input",
        ),
        TensorRule::new(".weight_scale", FLOATS, &[OUT, GROUPS], "scales"),
        TensorRule::new(
            ".weight_shape",
            &[Dtype::I64, Dtype::I32],
            &[Dim::of(&[Term::Num(2)])],
            "out and in",
        ),
        TensorRule::new(
            ".weight_zero_point",
            &[Dtype::I32],
            &[Dim::ceil(&[Term::Out, Term::Bits], &[Term::Num(32)]), GROUPS],
            "zero points plus 2^(bits - 1), packed along the output",
        )
        .when(Presence::Asymmetric),
        TensorRule::new(".weight_g_idx", &[Dtype::I32], &[IN], "the group of each input")
            .when(Presence::Optional),
        INPUT_SCALE,
        BIAS,
    ],
    packing: "32-bit words, little end first, a dense stream of codes along the input",
    zero_point: "stored with 2^(bits - 1) added, as codes are",
    value: "(code[o, i] - zero[o, i / group]) * weight_scale[o, i / group]",
    bits: &[4, 8, 2, 3, 5, 6, 7, 1],
    groups: &[],
};

static INT: Layout = Layout {
    name: "int-quantized",
    packed: PackedLayout::CompressedInt,
    tensors: &[
        TensorRule::new(".weight", &[Dtype::I8], &[OUT, IN], "integers"),
        TensorRule::new(".weight_scale", FLOATS, &[OUT, GROUPS], "scales"),
        TensorRule::new(".weight_zero_point", &[Dtype::I8], &[OUT, GROUPS], "zero points")
            .when(Presence::Asymmetric),
        INPUT_SCALE,
        INPUT_ZERO,
        BIAS,
    ],
    packing: BYTES,
    zero_point: "stored as it is",
    value: "(weight[o, i] - zero[o, i / group]) * weight_scale[o, i / group]",
    bits: &[8],
    groups: &[],
};

static INT_TENSOR: Layout = Layout {
    name: "int-quantized-tensor",
    packed: PackedLayout::CompressedInt,
    tensors: &[
        TensorRule::new(".weight", &[Dtype::I8], &[OUT, IN], "integers"),
        TensorRule::new(".weight_scale", FLOATS, &[ONE], "the scale"),
        TensorRule::new(".weight_zero_point", &[Dtype::I8], &[ONE], "the zero point")
            .when(Presence::Asymmetric),
        INPUT_SCALE,
        INPUT_ZERO,
        BIAS,
    ],
    packing: BYTES,
    zero_point: "stored as it is",
    value: "(weight[o, i] - zero) * weight_scale",
    bits: &[8],
    groups: &[],
};

static FLOAT_CHANNEL: Layout = Layout {
    name: "float-quantized-channel",
    packed: PackedLayout::Float8,
    tensors: &[
        FP8,
        TensorRule::new(".weight_scale", FLOATS, &[OUT, ONE], "scales"),
        INPUT_SCALE,
        BIAS,
    ],
    packing: BYTES,
    zero_point: NO_ZERO,
    value: "weight[o, i] * weight_scale[o]",
    bits: &[8],
    groups: &[],
};

static FLOAT_TENSOR: Layout = Layout {
    name: "float-quantized-tensor",
    packed: PackedLayout::Float8,
    tensors: &[
        FP8,
        TensorRule::new(".weight_scale", FLOATS, &[ONE], "the scale"),
        INPUT_SCALE,
        BIAS,
    ],
    packing: BYTES,
    zero_point: NO_ZERO,
    value: "weight[o, i] * weight_scale",
    bits: &[8],
    groups: &[],
};

static FLOAT_BLOCK: Layout = Layout {
    name: "float-quantized-block",
    packed: PackedLayout::Float8,
    tensors: &[
        FP8,
        TensorRule::new(
            ".weight_scale",
            FLOATS,
            &[Dim::ceil(&[Term::Out], &[Term::Rows]), Dim::ceil(&[Term::In], &[Term::Cols])],
            "scales; blocks at the edges are partial",
        ),
        INPUT_SCALE,
        BIAS,
    ],
    packing: BYTES,
    zero_point: NO_ZERO,
    value: "weight[o, i] * weight_scale[o / rows, i / cols]",
    bits: &[8],
    groups: &[],
};

static NVFP4: Layout = Layout {
    name: "nvfp4-pack-quantized",
    packed: PackedLayout::Nvfp4 { divide: true },
    tensors: &[
        TensorRule::new(
            ".weight_packed",
            &[Dtype::U8],
            &[OUT, Dim::ceil(&[Term::In], &[Term::Num(2)])],
            "codes",
        ),
        TensorRule::new(".weight_scale", &[Dtype::F8_E4M3], &[OUT, GROUPS], "scales"),
        TensorRule::new(
            ".weight_global_scale",
            &[Dtype::F32],
            &[ONE],
            "what scales are divided by",
        ),
        TensorRule::new(".input_global_scale", &[Dtype::F32], &[ONE], "that of inputs")
            .when(Presence::Optional),
        BIAS,
    ],
    packing: NIBBLES,
    zero_point: NO_ZERO,
    value: "e2m1(code) * (weight_scale[o, i / 16] / weight_global_scale)",
    bits: &[4],
    groups: &[16],
};

static MXFP4: Layout = Layout {
    name: "mxfp4-pack-quantized",
    packed: PackedLayout::Mxfp4,
    tensors: &[
        TensorRule::new(
            ".weight_packed",
            &[Dtype::U8],
            &[OUT, Dim::ceil(&[Term::In], &[Term::Num(2)])],
            "codes",
        ),
        TensorRule::new(
            ".weight_scale",
            &[Dtype::U8, Dtype::F8_E8M0],
            &[OUT, GROUPS],
            "exponents, with a bias of 127",
        ),
        BIAS,
    ],
    packing: NIBBLES,
    zero_point: NO_ZERO,
    value: "e2m1(code) * 2^(weight_scale[o, i / 32] - 127)",
    bits: &[4],
    groups: &[32],
};

/// What compressed-tensors 0.20.1 refuses.
const fn package(says: &'static str) -> Refusal {
    Refusal { loader: "compressed-tensors 0.20.1", says }
}

/// The scheme of weights that an object describes.
fn weights(args: &mut Fields<'_>, format: Option<&str>) -> Scheme {
    let bits = args.positive("num_bits").unwrap_or(8);
    let kind = args.word("type").unwrap_or_else(|| "int".into());
    let size = args.integer("group_size");
    let strategy = args.word("strategy").unwrap_or_else(|| {
        match size {
            Some(-1) => "channel",
            Some(_) => "group",
            None => "tensor",
        }
        .into()
    });
    let grouped = ["group", "tensor_group"].contains(&strategy.as_str());
    if grouped && size.is_none_or(|size| size <= 0) {
        let found = size.map_or("no group_size".into(), |size| format!("group_size {size}"));
        let finding = Finding::new(
            &rule::METHOD_006,
            format!("strategy {strategy} with {found}"),
            "a group_size above 0",
        )
        .refused_by(&[package("strategy group requires group_size to be set to a positive value")]);
        args.report("group_size", finding);
    }
    if !grouped && size.is_some_and(|size| size > 0) {
        let finding = Finding::new(
            &rule::METHOD_006,
            format!("strategy {strategy} with group_size {}", size.unwrap_or_default()),
            "no group_size, or strategy group",
        )
        .refused_by(&[package("group_size requires strategy to be set to 'group'")]);
        args.report("group_size", finding);
    }
    let block = args.block("block_structure");
    if (strategy == "block") != block.is_some() {
        let found = if block.is_some() { "is there" } else { "is missing" };
        let finding = Finding::new(
            &rule::METHOD_006,
            format!("strategy {strategy}, and block_structure {found}"),
            "both or none",
        );
        args.report("block_structure", finding);
    }
    match args.get("actorder") {
        Some(Json::Bool(false)) | None => {}
        Some(order) => {
            let word = order.as_str().unwrap_or_default().to_ascii_lowercase();
            if !grouped {
                let finding = Finding::new(
                    &rule::METHOD_006,
                    format!("actorder {} with strategy {strategy}", quote(order)),
                    "strategy group",
                );
                args.report("actorder", finding);
            } else if !["weight", "static"].contains(&word.as_str()) {
                let finding =
                    Finding::new(&rule::METHOD_006, quote(order), "weight, static or null")
                        .refused_by(&[package(
                            "actorder group, dynamic and true have been removed",
                        )]);
                args.report("actorder", finding);
            }
        }
    }
    activations(args, &strategy);
    let layout = layout(args, format, &kind, bits, &strategy);
    let mut scheme = Scheme::of(layout.unwrap_or(&PACK));
    if layout.is_none() {
        scheme.layouts.clear();
        let finding = Finding::new(
            &rule::METHOD_029,
            format!("{} with {bits} bits, {kind}", format.unwrap_or("no format")),
            "a format whose tensors are known",
        );
        args.report("num_bits", finding);
    }
    scheme.bits = bits;
    scheme.block = block;
    scheme.group = match size {
        Some(size) if grouped => u64::try_from(size).map_or(Group::Row, Group::Size),
        _ => Group::Row,
    };
    scheme.symmetric = Some(args.bool("symmetric").unwrap_or(true));
    scheme
}

/// Whether scales that are found at run time go with the strategy.
fn activations(args: &mut Fields<'_>, strategy: &str) {
    let local = args.word("dynamic").as_deref() == Some("local");
    let dynamic = local || args.bool("dynamic") == Some(true);
    let complaint = match strategy {
        "token" if !dynamic => Some(("false", "true", "Cannot perform static token quantization")),
        "token" | "tensor" | "tensor_group" | "group" if !local => None,
        "tensor_group" => None,
        _ if local => Some((
            "local",
            "strategy tensor_group",
            "local is only supported for strategy tensor_group",
        )),
        _ if dynamic => Some((
            "true",
            "strategy token, tensor, tensor_group or group",
            "must be used for dynamic quant",
        )),
        _ => None,
    };
    if let Some((found, expected, says)) = complaint {
        let finding = Finding::new(
            &rule::METHOD_006,
            format!("dynamic {found} with strategy {strategy}"),
            expected,
        );
        args.report("dynamic", finding.refused_by(&[package(says)]));
    }
}

/// The layout that a format and a scheme come to.
fn layout(
    args: &mut Fields<'_>,
    format: Option<&str>,
    kind: &str,
    bits: u64,
    strategy: &str,
) -> Option<&'static Layout> {
    let float = match strategy {
        "block" => &FLOAT_BLOCK,
        "tensor" => &FLOAT_TENSOR,
        _ => &FLOAT_CHANNEL,
    };
    let int = if strategy == "tensor" { &INT_TENSOR } else { &INT };
    let size = args.positive("group_size");
    let mut refuse = |expected: &str| {
        let finding = Finding::new(
            &rule::METHOD_006,
            format!("{bits} bits, {kind}, in the format {}", format.unwrap_or_default()),
            expected,
        );
        args.report("num_bits", finding);
    };
    match format {
        Some("pack-quantized" | "marlin-24") => {
            if kind != "int" || bits > 8 {
                refuse("integers of 1 to 8 bits");
            }
            (format != Some("marlin-24")).then_some(&PACK)
        }
        Some("int-quantized") => {
            if kind != "int" || bits > 8 {
                refuse("integers of at most 8 bits");
            }
            Some(int)
        }
        Some("float-quantized") => {
            if kind != "float" || bits != 8 {
                refuse("floats of 8 bits");
            }
            Some(float)
        }
        Some("nvfp4-pack-quantized") => {
            if kind != "float" || bits != 4 || size != Some(16) {
                refuse("floats of 4 bits in groups of 16");
            }
            Some(&NVFP4)
        }
        Some("mxfp4-pack-quantized") => {
            if kind != "float" || bits != 4 || size != Some(32) {
                refuse("floats of 4 bits in groups of 32");
            }
            Some(&MXFP4)
        }
        Some("naive-quantized") if kind == "int" => Some(int),
        Some("naive-quantized") => Some(float),
        Some("mixed-precision") | None => match (kind, bits) {
            ("float", 8) => Some(float),
            ("float", 4) if size == Some(16) => Some(&NVFP4),
            ("float", 4) if size == Some(32) => Some(&MXFP4),
            ("int", 8) if format.is_none() => Some(int),
            ("int", _) => Some(&PACK),
            _ => None,
        },
        Some(_) => None,
    }
}

/// The pattern of a target or of an entry to ignore.
fn pattern(text: &str) -> Result<Pattern, String> {
    match text.strip_prefix("re:") {
        Some(expression) => Pattern::expression(expression),
        None if text == "Linear" => Ok(Pattern::Linear),
        // Classes are written in capitals, modules never.
        None if text.starts_with(|c: char| c.is_ascii_uppercase()) && !text.contains('.') => {
            Ok(Pattern::Class(text.into()))
        }
        None => Ok(Pattern::Name(text.into())),
    }
}

fn entry(
    fields: &mut Fields<'_>,
    field: String,
    text: &str,
    scheme: Option<Scheme>,
) -> Option<Entry> {
    match pattern(text) {
        Ok(pattern) => Some(Entry { field, text: text.into(), pattern, scheme }),
        Err(error) => {
            let expected = "a regular expression after re:";
            fields.report(&field, Finding::new(&rule::METHOD_026, error, expected));
            None
        }
    }
}

fn declare(fields: &mut Fields<'_>) -> Declaration {
    let mut declaration = Declaration { is_complete: true, ..Declaration::default() };
    for (place, text) in fields.texts("ignore").into_iter().enumerate() {
        declaration.entries.extend(entry(fields, format!("ignore[{place}]"), text, None));
    }
    let format = fields.word("format");
    // The package prefers names to classes.
    let (mut named, mut of_class) = (Vec::new(), Vec::new());
    for (name, group) in fields.object("config_groups").into_iter().flatten() {
        let path = format!("config_groups.{name}");
        let Some(group) = group.as_object() else {
            let finding = Finding::new(&rule::METHOD_003, quote(group), "an object");
            fields.report(&path, finding);
            continue;
        };
        let mut scheme = None;
        let mut fields = fields.nested(path.clone(), group, GROUP);
        let own = fields.word("format").or_else(|| format.clone());
        if let Some(weights_of) = fields.object("weights") {
            let mut args = fields.nested("weights".into(), weights_of, ARGS);
            scheme = Some(weights(&mut args, own.as_deref()));
        }
        for part in ["input_activations", "output_activations"] {
            if let Some(object) = fields.object(part) {
                let mut args = fields.nested(part.into(), object, ARGS);
                let strategy = args.word("strategy").unwrap_or_else(|| "tensor".into());
                activations(&mut args, &strategy);
            }
        }
        for (place, text) in fields.texts("targets").into_iter().enumerate() {
            let field = format!("targets[{place}]");
            if let Some(mut entry) = entry(&mut fields, field, text, scheme.clone()) {
                entry.field = format!("{path}.{}", entry.field);
                let list = match entry.pattern {
                    Pattern::Linear | Pattern::Class(_) => &mut of_class,
                    _ => &mut named,
                };
                list.push(entry);
            }
        }
    }
    declaration.entries.extend(named);
    declaration.entries.extend(of_class);
    if let Some(scheme) = fields.object("kv_cache_scheme") {
        let args = fields.nested("kv_cache_scheme".into(), scheme, ARGS);
        let bits = args.positive("num_bits").unwrap_or(8);
        let kind = args.word("type").unwrap_or_else(|| "int".into());
        let symmetric = args.bool("symmetric").unwrap_or(true);
        if (bits, kind.as_str(), symmetric) != (8, "float", true) {
            let finding = Finding::new(
                &rule::METHOD_031,
                format!("{bits} bits, {kind}, symmetric {symmetric}"),
                "8 bits, float, symmetric",
            )
            .refused_by(&[vllm("the cache is 8-bit float, symmetric, only")]);
            fields.report("kv_cache_scheme", finding);
        }
    }
    declaration
}
