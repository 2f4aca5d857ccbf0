//! Whether what a judge says of a checkpoint is what it is, and whether a module's numbers are right.

use std::collections::HashMap;
use std::fmt::Display;

use gguf_assay_cases::{CheckpointValue, ExpectedCheckpoint, ModuleValue, WeightValue};
use gguf_assay_format::printable;

use crate::Answer;

/// The first thing in which an answer that accepts is wrong, for a person; `None` if in nothing.
pub(crate) fn wrong_checkpoint(expected: &ExpectedCheckpoint, answer: &Answer) -> Option<String> {
    match (expected, answer) {
        (ExpectedCheckpoint::Judged { value, method, plain }, Answer::Judged(judged)) => {
            wrong_judgement(value, *method, plain, judged)
        }
        (ExpectedCheckpoint::Unpacked { value, tolerance }, Answer::Weight(weight)) => {
            wrong_weight(value, *tolerance, weight)
        }
        _ => None,
    }
}

/// What is said otherwise than expected, if both say something.
fn differs<T: PartialEq + Display>(
    what: &str,
    expected: &Option<T>,
    found: &Option<T>,
) -> Option<String> {
    let (Some(expected), Some(found)) = (expected, found) else { return None };
    let said = || format!("{what} is {expected}, the judge says {}", shown(&found.to_string()));
    (expected != found).then(said)
}

fn wrong_judgement(
    expected: &CheckpointValue,
    method: bool,
    plain: &[String],
    judged: &CheckpointValue,
) -> Option<String> {
    if method && expected.method != judged.method {
        let word = |method: &Option<String>| method.clone().unwrap_or("none".into());
        let found = shown(&word(&judged.method));
        return Some(format!("the method is {}, the judge says {found}", word(&expected.method)));
    }
    differs("the width of codes", &expected.bits, &judged.bits)
        .or_else(|| differs("the group size", &expected.group_size, &judged.group_size))
        .or_else(|| differs("symmetric", &expected.symmetric, &judged.symmetric))
        .or_else(|| differs("the layout of experts", &expected.experts, &judged.experts))
        .or_else(|| {
            let modules = judged.modules.as_ref()?;
            wrong_modules(expected.modules.as_deref().unwrap_or_default(), plain, modules)
        })
}

fn wrong_modules(
    expected: &[ModuleValue],
    plain: &[String],
    judged: &[ModuleValue],
) -> Option<String> {
    let mut by_name = HashMap::new();
    for module in judged {
        if by_name.insert(module.name.as_str(), module).is_some() {
            return Some(format!("the module {} is there twice", shown(&module.name)));
        }
    }
    if let Some(name) = plain.iter().find(|name| by_name.contains_key(name.as_str())) {
        return Some(format!("{name} is not quantized, the judge says that it is"));
    }
    expected.iter().find_map(|module| {
        let ModuleValue { name, .. } = module;
        let Some(found) = by_name.get(name.as_str()) else {
            return Some(format!("{name} is quantized, the judge says that it is not"));
        };
        let what = |part: &str| format!("{part} of {name}");
        differs(&what("in_features"), &module.in_features, &found.in_features)
            .or_else(|| differs(&what("out_features"), &module.out_features, &found.out_features))
            .or_else(|| differs(&what("bits"), &module.bits, &found.bits))
            .or_else(|| differs(&what("group_size"), &module.group_size, &found.group_size))
            .or_else(|| differs(&what("the layout"), &module.layout, &found.layout))
    })
}

fn wrong_weight(
    expected: &WeightValue,
    tolerance: Option<f32>,
    weight: &WeightValue,
) -> Option<String> {
    if !expected.shape.is_empty() && expected.shape != weight.shape {
        let (expected, found) = (&expected.shape, &weight.shape);
        return Some(format!("the shape is {expected:?}, the subject says {found:?}"));
    }
    if expected.numbers.is_empty() {
        return None;
    }
    let (count, found) = (expected.numbers.len(), weight.numbers.len());
    if count != found {
        return Some(format!("the module has {count} numbers, the subject has {found}"));
    }
    let same = |a: f32, b: f32| {
        a.to_bits() == b.to_bits()
            || (a.is_nan() && b.is_nan())
            || tolerance.is_some_and(|tolerance| (a - b).abs() <= tolerance)
    };
    let mut pairs = expected.numbers.iter().zip(&weight.numbers).enumerate();
    let (place, (expected, found)) = pairs.find(|(_, (a, b))| !same(**a, **b))?;
    let columns = weight.shape.last().copied().unwrap_or(1).max(1) as usize;
    let (row, column) = (place / columns, place % columns);
    Some(format!("row {row}, column {column} is {expected:?}, the subject has {found:?}"))
}

fn shown(text: &str) -> String {
    printable(text, 120)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(name: &str) -> ModuleValue {
        ModuleValue { name: name.into(), bits: Some(4), ..ModuleValue::default() }
    }

    fn expected() -> ExpectedCheckpoint {
        let value = CheckpointValue {
            method: Some("gptq".into()),
            bits: Some(4),
            group_size: Some(-1),
            symmetric: None,
            experts: Some("per-expert".into()),
            modules: Some(vec![module("a"), ModuleValue { bits: None, ..module("b") }]),
        };
        ExpectedCheckpoint::Judged { value, method: true, plain: vec!["c".into()] }
    }

    fn judged() -> CheckpointValue {
        let ExpectedCheckpoint::Judged { mut value, .. } = expected() else { unreachable!() };
        value.modules.get_or_insert_default().push(module("d"));
        value.symmetric = Some(true);
        value
    }

    fn complaint(change: fn(&mut CheckpointValue)) -> String {
        let mut value = judged();
        change(&mut value);
        wrong_checkpoint(&expected(), &Answer::Judged(Box::new(value))).unwrap_or_default()
    }

    #[test]
    fn what_is_left_out_is_not_compared() {
        assert_eq!(complaint(|_| {}), "");
        assert_eq!(complaint(|v| (v.bits, v.experts, v.modules) = (None, None, None)), "");
        assert_eq!(complaint(|v| v.modules.as_mut().unwrap()[0].bits = None), "");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (change, part) in [
            ((|v| v.method = None) as fn(&mut CheckpointValue), "gptq, the judge says none"),
            (|v| v.bits = Some(8), "codes is 4, the judge says 8"),
            (|v| v.group_size = Some(32), "group size is -1"),
            (|v| v.experts = Some("fused".into()), "per-expert, the judge says fused"),
            (|v| v.modules.as_mut().unwrap().push(module("a")), "a is there twice"),
            (|v| v.modules.as_mut().unwrap().push(module("c")), "c is not quantized"),
            (|v| drop(v.modules.as_mut().unwrap().remove(1)), "b is quantized"),
            (|v| v.modules.as_mut().unwrap()[0].bits = Some(3), "bits of a is 4"),
        ] {
            let complaint = complaint(change);
            assert!(complaint.contains(part), "{part}: {complaint}");
        }
    }

    #[test]
    fn numbers_are_compared_bit_for_bit_or_within_what_is_said() {
        let weight = |numbers: &[f32]| WeightValue { shape: vec![1, 2], numbers: numbers.into() };
        let complaint = |tolerance, numbers: &[f32]| {
            let expected =
                ExpectedCheckpoint::Unpacked { value: weight(&[f32::NAN, 0.0]), tolerance };
            wrong_checkpoint(&expected, &Answer::Weight(Box::new(weight(numbers))))
        };
        assert_eq!(complaint(None, &[-f32::NAN, 0.0]), None);
        let minus = complaint(None, &[f32::NAN, -0.0]).unwrap();
        assert_eq!(minus, "row 0, column 1 is 0.0, the subject has -0.0");
        assert_eq!(complaint(Some(0.5), &[f32::NAN, 0.25]), None);
        assert!(complaint(Some(0.5), &[f32::NAN, 0.75]).is_some());
        assert!(complaint(Some(0.5), &[0.0, 0.0]).is_some());
        assert!(complaint(None, &[0.0]).unwrap().contains("has 2 numbers"));
    }
}
