//! Whether a reader read what the file holds.

use gguf_assay_cases::{FileValue, TensorValue};
use gguf_assay_format::{OwnedArray, OwnedValue, escape, printable};

use crate::protocol;

/// The first thing in which `actual` differs from `expected`, for a person; `None` if nothing does.
///
/// What `actual` leaves out is not compared. The order of keys and of tensors does not count. All
/// NaNs are one value; 0.0 and -0.0 are two. Dimensions of 1 at the end do not count, and neither does
/// the element type of an empty array, which few readers keep.
pub fn difference(expected: &FileValue, actual: &FileValue) -> Option<String> {
    if let (Some(want), Some(got)) = (expected.version, actual.version)
        && want != got
    {
        return Some(format!("version is {want}, the reader says {got}"));
    }
    if let (Some(want), Some(got)) = (&expected.metadata, &actual.metadata)
        && let Some(difference) = metadata(want, got)
    {
        return Some(difference);
    }
    match (&expected.tensors, &actual.tensors) {
        (Some(want), Some(got)) => tensors(want, got),
        _ => None,
    }
}

fn name(bytes: &[u8]) -> String {
    format!("\"{}\"", escape(bytes, 80))
}

/// What is in one of two sorted lists of names but not in the other.
fn missing(what: &str, want: &[&[u8]], got: &[&[u8]]) -> Option<String> {
    let count = |list: &[&[u8]], name: &[u8]| list.iter().filter(|other| **other == name).count();
    for &key in want.iter().chain(got) {
        let (w, g) = (count(want, key), count(got, key));
        if w != g {
            let times = |n| match n {
                0 => "not at all".to_owned(),
                1 => "once".to_owned(),
                n => format!("{n} times"),
            };
            let (w, g) = (times(w), times(g));
            return Some(format!("the {what} {} is there {w}, the reader has it {g}", name(key)));
        }
    }
    None
}

type Entries = [(Vec<u8>, OwnedValue)];

fn metadata(want: &Entries, got: &Entries) -> Option<String> {
    let sorted = |entries: &'_ Entries| {
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by(|&a, &b| entries[a].0.cmp(&entries[b].0));
        order
    };
    let (want_order, got_order) = (sorted(want), sorted(got));
    let keys = |entries, order: &[usize]| -> Vec<&[u8]> {
        let entries: &Entries = entries;
        order.iter().map(|&i| entries[i].0.as_slice()).collect()
    };
    let (want_keys, got_keys) = (keys(want, &want_order), keys(got, &got_order));
    if want_keys != got_keys {
        return missing("key", &want_keys, &got_keys);
    }
    for (w, g) in want_order.into_iter().zip(got_order) {
        let ((key, want), (_, got)) = (&want[w], &got[g]);
        if !same(want, got) {
            let shown = |value| {
                let json = protocol::value_to_json(value).to_string();
                printable(&json, 120)
            };
            let (want, got) = (shown(want), shown(got));
            return Some(format!("the value of {} is {want}, the reader has {got}", name(key)));
        }
    }
    None
}

fn same(a: &OwnedValue, b: &OwnedValue) -> bool {
    match (a, b) {
        (OwnedValue::F32(a), OwnedValue::F32(b)) => {
            a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
        }
        (OwnedValue::F64(a), OwnedValue::F64(b)) => {
            a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
        }
        (OwnedValue::Array(a), OwnedValue::Array(b)) => same_array(a, b),
        _ => a == b,
    }
}

fn same_array(a: &OwnedArray, b: &OwnedArray) -> bool {
    a.len() == b.len()
        && (a.element_type == b.element_type || a.is_empty())
        && a.iter().zip(b.iter()).all(|(a, b)| same(a, b))
}

fn tensors(want: &[TensorValue], got: &[TensorValue]) -> Option<String> {
    let sorted = |tensors: &'_ [TensorValue]| {
        let mut tensors = tensors.to_vec();
        tensors.sort_by(|a, b| (&a.name, a.offset).cmp(&(&b.name, b.offset)));
        tensors
    };
    let (want, got) = (sorted(want), sorted(got));
    let (want_names, got_names) = (names(&want), names(&got));
    if want_names != got_names {
        return missing("tensor", &want_names, &got_names);
    }
    want.iter().zip(&got).find_map(|(want, got)| tensor(want, got))
}

fn names(tensors: &[TensorValue]) -> Vec<&[u8]> {
    tensors.iter().map(|tensor| tensor.name.as_slice()).collect()
}

fn tensor(want: &TensorValue, got: &TensorValue) -> Option<String> {
    let name = name(&want.name);
    let differs = |what: &str, want: String, got: String| {
        Some(format!("the {what} of tensor {name} is {want}, the reader has {got}"))
    };
    if let (Some(w), Some(g)) = (&want.type_name, &got.type_name)
        && w != g
    {
        return differs("type", w.clone(), escape(g.as_bytes(), 40));
    }
    let significant = |dims: &[u64]| {
        let len = dims.iter().rposition(|&dim| dim != 1).map_or(0, |last| last + 1);
        dims[..len].to_vec()
    };
    if let (Some(w), Some(g)) = (&want.dims, &got.dims)
        && significant(w) != significant(g)
    {
        return differs("shape", format!("{w:?}"), format!("{g:?}"));
    }
    if let (Some(w), Some(g)) = (want.offset, got.offset)
        && w != g
    {
        return differs("offset", w.to_string(), g.to_string());
    }
    if let (Some(w), Some(g)) = (&want.sha256, &got.sha256)
        && w != g
    {
        return differs("data's SHA-256", w.clone(), escape(g.as_bytes(), 64));
    }
    None
}

#[cfg(test)]
mod tests {
    use gguf_assay_format::ValueType;

    use super::*;

    fn file(value: OwnedValue, dims: &[u64]) -> FileValue {
        FileValue {
            version: Some(3),
            metadata: Some(vec![(b"a".into(), value)]),
            tensors: Some(vec![TensorValue {
                name: b"t".into(),
                type_name: Some("F32".into()),
                dims: Some(dims.into()),
                offset: Some(0),
                sha256: None,
            }]),
        }
    }

    #[test]
    fn what_is_the_same() {
        let nan = |bits| OwnedValue::F32(f32::from_bits(bits));
        let (a, b) = (file(nan(0x7fc0_0000), &[8]), file(nan(0xffc0_0001), &[8, 1, 1]));
        assert_eq!(difference(&a, &b), None);
        assert_eq!(difference(&a, &FileValue::default()), None);
        let empty = |t| file(OwnedValue::Array(OwnedArray::new(t, Vec::new())), &[8]);
        assert_eq!(difference(&empty(ValueType::U8), &empty(ValueType::String)), None);
    }

    #[test]
    fn what_differs_is_named() {
        let zero = file(OwnedValue::F32(0.0), &[8]);
        let cases = [
            (file(OwnedValue::F32(-0.0), &[8]), "the value of \"a\""),
            (file(OwnedValue::U32(0), &[8]), "the value of \"a\""),
            (file(OwnedValue::F32(0.0), &[8, 1, 2]), "the shape of tensor \"t\""),
            (FileValue { version: Some(2), ..FileValue::default() }, "version is 3"),
            (FileValue { metadata: Some(vec![]), ..FileValue::default() }, "the key \"a\""),
            (FileValue { tensors: Some(vec![]), ..FileValue::default() }, "the tensor \"t\""),
        ];
        for (other, start) in cases {
            let difference = difference(&zero, &other).unwrap();
            assert!(difference.starts_with(start), "{difference}");
        }
    }
}
