//! Whether weights can be split over ranks: columns of the output in the first layer of a pair, rows
//! of the input in the second, as Megatron-LM does and vllm after it.

use crate::experts;
use crate::finding::{Finding, Refusal};
use crate::judge::QuantizedModule;
use crate::method::Term;
use crate::model::Model;
use crate::rule;
use crate::scheme::Group;

/// Modules whose output is split (vllm 0.33.0: ColumnParallelLinear and the like in its models).
const COLUMN: [&str; 21] = [
    "q_proj",
    "k_proj",
    "v_proj",
    "qkv_proj",
    "query_key_value",
    "W_pack",
    "c_attn",
    "Wqkv",
    "q_b_proj",
    "kv_b_proj",
    "gate_proj",
    "up_proj",
    "gate_up_proj",
    "w1",
    "w3",
    "dense_h_to_4h",
    "fc1",
    "c_fc",
    "fc_in",
    "in_proj_qkvz",
    "in_proj_qkv",
];

/// Modules whose input is split (RowParallelLinear).
const ROW: [&str; 10] = [
    "o_proj",
    "out_proj",
    "down_proj",
    "w2",
    "dense_4h_to_h",
    "dense",
    "wo",
    "fc2",
    "fc_out",
    "c_proj",
];

/// Modules of keys and values, which are copied where there are more ranks than heads.
const OF_KEYS: [&str; 2] = ["k_proj", "v_proj"];

/// How a module is split.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Split {
    Output,
    Input,
}

/// Judges each quantized module, and the heads.
pub(crate) fn judge(model: &Model<'_, '_>, ranks: u64, push: &mut dyn FnMut(Finding)) {
    let key_heads = heads(model, ranks, push);
    for module in model.modules {
        let Some(quantized) = model.quantized(module.name) else { continue };
        // Loaders pad the packed experts of gpt-oss.
        if model.is_faulty(module.name) || quantized.layout.name == "gpt-oss-mxfp4" {
            continue;
        }
        let part = module.name.rsplit('.').next().unwrap_or(module.name);
        let of_keys = OF_KEYS.contains(&part) && !experts::is_matrix(module.name);
        let ranks = match key_heads {
            Some(heads) if of_keys => ranks.min(heads),
            _ => ranks,
        };
        if ranks < 2 {
            continue;
        }
        let split = match (COLUMN.contains(&part), ROW.contains(&part)) {
            (true, _) => Split::Output,
            (_, true) => Split::Input,
            _ => continue,
        };
        if let Some(finding) = judge_module(quantized, split, ranks) {
            push(finding.of_module(module.name));
        }
    }
}

/// Judges the heads; returns how many of keys there are.
fn heads(model: &Model<'_, '_>, ranks: u64, push: &mut dyn FnMut(Finding)) -> Option<u64> {
    let queries = model.integer(&["num_attention_heads", "n_head", "n_heads"]);
    let keys = model.integer(&["num_key_value_heads", "num_kv_heads", "n_head_kv"]);
    let finding = |found: String, expected: &str, field: &str| {
        let finding = Finding::new(&rule::MODEL_027, found, expected);
        finding.in_file("config.json").of_field(field)
    };
    if let Some((field, heads)) = &queries
        && !heads.is_multiple_of(ranks)
    {
        let found = format!("{heads} heads / tp {ranks} = {}", quotient(*heads, ranks));
        push(finding(found, "whole heads in each rank", field).refused_by(&[vllm(
            "Total number of attention heads must be divisible by tensor parallel size",
        )]));
    }
    if let Some((field, heads)) = &keys
        && *heads > 0
        && !heads.is_multiple_of(ranks)
        && !ranks.is_multiple_of(*heads)
    {
        let found = format!("{heads} heads / tp {ranks} = {}", quotient(*heads, ranks));
        push(finding(found, "whole heads in each rank, or as many ranks for each head", field));
    }
    keys.map(|(_, heads)| heads)
}

const fn vllm(says: &'static str) -> Refusal {
    Refusal { loader: "vLLM 0.33.0", says }
}

/// The first thing that does not come out even.
fn judge_module(module: &QuantizedModule, split: Split, ranks: u64) -> Option<Finding> {
    let (name, term, length) = match split {
        Split::Output => ("out_features", Term::Out, module.out_features?),
        Split::Input => ("in_features", Term::In, module.in_features?),
    };
    if !length.is_multiple_of(ranks) {
        let found = format!("{name} {length} / tp {ranks} = {}", quotient(length, ranks));
        return Some(Finding::new(&rule::MODEL_028, found, "a whole number"));
    }
    let part = length.checked_div(ranks)?;
    let uneven = |rule, size: u64, what: &str, expected: &str| {
        let found = format!(
            "{name} {length} / tp {ranks} = {part}, in {what} of {size}: {}",
            quotient(part, size)
        );
        Finding::new(rule, found, expected)
    };
    if let Some((rows, cols)) = module.block {
        let (size, says) = match split {
            Split::Output => (rows, "… is not divisible by weight quantization block_n"),
            Split::Input => (cols, "… is not divisible by weight quantization block_k"),
        };
        if size > 0 && !part.is_multiple_of(size) {
            let finding = uneven(&rule::MODEL_030, size, "blocks", "whole blocks in each rank");
            return Some(finding.refused_by(&[vllm(says)]));
        }
    } else if let (Group::Size(size), Split::Input) = (module.group, split)
        && size > 0
        && !module.layout.name.starts_with("bnb-")
        && !part.is_multiple_of(size)
    {
        let finding = uneven(&rule::MODEL_029, size, "groups", "whole groups in each rank");
        let says = "The input size is not aligned with the quantized weight shape. This can be \
                    caused by too large tensor parallel size.";
        return Some(finding.refused_by(&[vllm(says)]));
    }
    let bits = part.checked_mul(module.bits)?;
    if module.has_words(term) && !bits.is_multiple_of(32) {
        let found = format!(
            "{name} {length} / tp {ranks} = {part}, of {} bits in words of 32: {}",
            module.bits,
            quotient(bits, 32)
        );
        return Some(Finding::new(&rule::MODEL_031, found, "whole words in each rank"));
    }
    None
}

/// A quotient with at most three decimals.
fn quotient(number: u64, by: u64) -> String {
    let (number, by) = (u128::from(number), u128::from(by.max(1)));
    let thousandths = number.saturating_mul(1000).checked_div(by).unwrap_or(0);
    let (whole, rest) = (thousandths.div_euclid(1000), thousandths.rem_euclid(1000));
    let text = format!("{whole}.{rest:03}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_short() {
        // By hand: 6848 / 128 = 53.5, 10 / 3 = 3.333…
        for (number, by, expected) in
            [(6848, 128, "53.5"), (10, 3, "3.333"), (128, 64, "2"), (1, 8, "0.125"), (0, 7, "0")]
        {
            assert_eq!(quotient(number, by), expected);
        }
    }
}
