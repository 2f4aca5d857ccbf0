//! Whether a mapper says what the other side of a pair has.

use std::collections::{BTreeMap, BTreeSet};

use gguf_assay_cases::{ExpectedName, ExpectedNames, MappedName, NamesValue, PairNumbers, sha256};
use gguf_assay_format::printable;
use gguf_assay_names::config_field;
use serde_json::Value as Json;

/// The first thing in which a mapper is wrong, for a person; `None` if in nothing.
///
/// The order of names does not count, nor does what an answer leaves out. Numbers of a config are the
/// same if they are the same `f32`, which is what a file holds.
pub(crate) fn wrong_names(expected: &ExpectedNames, value: &NamesValue) -> Option<String> {
    let mut names = BTreeMap::new();
    for name in &value.names {
        if names.insert(name.name.as_str(), name).is_some() {
            return Some(format!("{} is there twice", shown(&name.name)));
        }
    }
    for (name, expected_name) in &expected.names {
        let Some(mapped) = names.remove(name.as_str()) else {
            if expected.optional.contains(name) {
                continue;
            }
            let others = names.keys().filter(|other| !expected.names.contains_key(**other));
            let others: Vec<String> = others.take(3).map(|name| shown(name)).collect();
            let others = match others.as_slice() {
                [] => String::new(),
                others => format!("; it has {}, which ought not to be there", others.join(", ")),
            };
            return Some(format!("{name} is not there{others}"));
        };
        if let Some(complaint) = wrong_name(name, expected_name, mapped) {
            return Some(complaint);
        }
    }
    if let Some(name) = names.keys().next() {
        return Some(format!("{} ought not to be there", shown(name)));
    }
    let config = value.config.as_ref()?;
    expected.config.iter().find_map(|(name, expected)| match config_field(config, name) {
        Some(found) if is_same(expected, found) => None,
        found => {
            let found =
                found.map_or("not there".into(), |found| printable(&found.to_string(), 120));
            Some(format!("the config's {name} is {expected}, the mapper has it {found}"))
        }
    })
}

/// What is wrong with one name.
fn wrong_name(name: &str, expected: &ExpectedName, mapped: &MappedName) -> Option<String> {
    if let (Some(expected), Some(from)) = (&expected.from, &mapped.from) {
        let found: BTreeSet<&str> = from.iter().map(String::as_str).collect();
        if !expected.iter().map(String::as_str).eq(found.iter().copied()) {
            let list = |names: &mut dyn Iterator<Item = &str>| {
                names.map(shown).collect::<Vec<_>>().join(", ")
            };
            let expected = list(&mut expected.iter().map(String::as_str));
            let found = list(&mut found.into_iter());
            return Some(format!("{name} comes from {expected}, the mapper says from {found}"));
        }
    }
    if let Some(shape) = &mapped.shape
        && *shape != expected.shape
    {
        let expected = &expected.shape;
        return Some(format!("{name} has the shape {expected:?}, the mapper says {shape:?}"));
    }
    let numbers = mapped.numbers.as_ref()?;
    let count: u64 = expected.shape.iter().product();
    if numbers.len() as u64 != count {
        return Some(format!("{name} has {count} numbers, the mapper has {}", numbers.len()));
    }
    match &expected.numbers {
        PairNumbers::Other => None,
        PairNumbers::Sha256(digest) => {
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            (sha256(&bytes) != *digest)
                .then(|| format!("{name} has other numbers, or another order"))
        }
        PairNumbers::Near(near) => {
            let mut pairs = near.iter().zip(numbers).enumerate();
            pairs.find(|(_, (near, number))| !is_near(**near, **number)).map(
                |(place, (near, number))| {
                    format!("number {place} of {name} is {near}, the mapper has {number}")
                },
            )
        }
    }
}

/// Whether a number is what comes back of one that was changed on the way into a file: `w + 1` and
/// `-exp(w)` are rounded to `f32` there, and what undoes them is, too.
fn is_near(expected: f32, found: f32) -> bool {
    (expected - found).abs() <= 2.0 * f32::EPSILON * expected.abs().max(1.0)
}

/// Whether two values of a config are the same.
fn is_same(expected: &Json, found: &Json) -> bool {
    match (expected, found) {
        (Json::Number(a), Json::Number(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => a as f32 == b as f32,
            _ => a == b,
        },
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Json::Object(a), Json::Object(b)) => {
            a.iter().all(|(name, a)| b.get(name).is_some_and(|b| is_same(a, b)))
        }
        _ => expected == found,
    }
}

fn shown(name: &str) -> String {
    printable(name, 120)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn expected() -> ExpectedNames {
        let name = |from: &str, numbers| ExpectedName {
            from: Some(BTreeSet::from([from.to_owned()])),
            shape: vec![1, 2],
            numbers,
        };
        ExpectedNames {
            names: BTreeMap::from([
                ("a.weight".to_owned(), name("x.weight", PairNumbers::Near(vec![1.0, 2.0]))),
                ("b.weight".to_owned(), name("y.weight", PairNumbers::Other)),
            ]),
            optional: BTreeSet::from(["b.weight".to_owned()]),
            config: vec![("rope.theta".to_owned(), json!(1e-6))],
        }
    }

    fn value() -> NamesValue {
        NamesValue {
            names: vec![MappedName {
                name: "a.weight".into(),
                from: Some(vec!["x.weight".into()]),
                shape: Some(vec![1, 2]),
                numbers: Some(vec![1.0, 2.0]),
            }],
            // What an f32 of 1e-6 widens to.
            config: Some(json!({ "rope": { "theta": 9.999999974752427e-7 } })),
        }
    }

    #[test]
    fn what_is_right() {
        assert_eq!(wrong_names(&expected(), &value()), None);
        let bare = MappedName { name: "a.weight".into(), ..MappedName::default() };
        let least = NamesValue { names: vec![bare], config: None };
        assert_eq!(wrong_names(&expected(), &least), None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        type Change = fn(&mut NamesValue);
        let changes: [(Change, &str); 8] = [
            (|v| v.names[0].name = "c.weight".into(), "a.weight is not there; it has c.weight"),
            (|v| v.names.push(v.names[0].clone()), "a.weight is there twice"),
            (
                |v| v.names.push(MappedName { name: "z".into(), ..MappedName::default() }),
                "z ought not to be there",
            ),
            (
                |v| v.names[0].from = Some(vec!["y.weight".into()]),
                "a.weight comes from x.weight, the mapper says from y.weight",
            ),
            (|v| v.names[0].shape = Some(vec![2, 1]), "a.weight has the shape [1, 2]"),
            (|v| v.names[0].numbers = Some(vec![1.0]), "a.weight has 2 numbers"),
            (|v| v.names[0].numbers = Some(vec![2.0, 1.0]), "number 0 of a.weight is 1"),
            (|v| v.config = Some(json!({})), "the config's rope.theta is 1e-6"),
        ];
        for (change, start) in changes {
            let mut wrong = value();
            change(&mut wrong);
            let complaint = wrong_names(&expected(), &wrong).unwrap();
            assert!(complaint.starts_with(start), "{complaint}");
        }
    }
}
