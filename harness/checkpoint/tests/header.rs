//! Damaged headers: the rule, and where it is broken. What is refused is what safetensors 0.8
//! refuses, but for what is named in `rule::ACCEPTED_BY_SAFETENSORS`.

use gguf_assay_checkpoint::{Dtype, Finding, Header, MemoryFiles, rule};
use proptest::prelude::*;
use safetensors::SafeTensors;

const NAME: &str = "model.safetensors";

fn read(file: &[u8]) -> (Option<Header>, Vec<Finding>) {
    Header::read(&MemoryFiles([(NAME.into(), file.to_vec())].into()), NAME)
}

/// A file of this header, with zeros for data.
fn file(header: &[u8], data: usize) -> Vec<u8> {
    let length = u64::try_from(header.len()).unwrap().to_le_bytes();
    [&length[..], header, &vec![0; data]].concat()
}

/// Holds our verdict against that of safetensors, and the tensors where both accept.
fn agrees(file: &[u8]) -> Result<(), TestCaseError> {
    let (header, findings) = read(file);
    let faults: Vec<&Finding> = findings.iter().filter(|finding| finding.is_fault()).collect();
    let theirs = SafeTensors::read_metadata(file);
    let Ok((length, theirs)) = theirs else {
        prop_assert!(!faults.is_empty(), "only safetensors refuses it: {:?}", theirs.unwrap_err());
        return Ok(());
    };
    let refused = faults.iter().find(|fault| !rule::ACCEPTED_BY_SAFETENSORS.contains(&fault.rule));
    prop_assert!(refused.is_none(), "safetensors accepts it: {}", refused.unwrap());
    let header = header.expect("a header");
    if !header.illegible.is_empty() {
        return Ok(());
    }
    prop_assert_eq!(header.tensors.len(), theirs.tensors().len());
    for tensor in &header.tensors {
        let info = theirs.info(&tensor.name).expect("a tensor");
        let shape: Vec<u64> = info.shape.iter().map(|dim| *dim as u64).collect();
        let start = info.data_offsets.0 + 8 + length;
        prop_assert_eq!(info.dtype.to_string(), tensor.dtype.name);
        prop_assert_eq!((&shape, start as u64), (&tensor.shape, tensor.offset));
        prop_assert_eq!((info.data_offsets.1 - info.data_offsets.0) as u64, tensor.len);
    }
    Ok(())
}

/// Rule, tensor and field of each finding.
type Found<'a> = (&'a str, Option<&'a str>, Option<&'a str>);

fn found(findings: &[Finding]) -> Vec<Found<'_>> {
    let each = findings.iter();
    each.map(|found| (found.rule.id, found.tensor.as_deref(), found.field.as_deref())).collect()
}

/// Each header, with ^ where the first finding is; the bytes of its data, and the findings.
const DAMAGED: &[(&str, usize, &[Found<'_>])] = &[
    // Valid, all of them: the README's Notes, and the order of tensors that is free.
    ("{}", 0, &[]),
    (r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}   "#, 8, &[]),
    (r#"{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}"#, 4, &[]),
    (r#"{"a":{"dtype":"F32","shape":[0,7],"data_offsets":[0,0]}}"#, 0, &[]),
    (
        r#"{"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#,
        2,
        &[],
    ),
    (r#"{"__metadata__":{"format":"pt"}}"#, 0, &[]),
    // The types of QC-42: 3 bytes, 8 and 4.
    (
        r#"{"a":{"dtype":"F8_E8M0","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"F4","shape":[2,8],"data_offsets":[3,11]},"c":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[11,15]}}"#,
        15,
        &[],
    ),
    // The text.
    ("^", 0, &[("ST-003", None, None)]),
    ("^[]", 0, &[("ST-003", None, None)]),
    ("^ {}", 0, &[("ST-003", None, None)]),
    ("^ ", 0, &[("ST-003", None, None)]),
    ("^\u{feff}{}", 0, &[("ST-003", None, None)]),
    (r#"{"a":^}"#, 0, &[("ST-005", None, None)]),
    (r#"{"a":{^"#, 0, &[("ST-005", None, None)]),
    ("{\n\"a\": ^x}", 0, &[("ST-005", None, None)]),
    (r#"{"\ud800^"}"#, 0, &[("ST-005", None, None)]),
    ("{}^\0\0", 0, &[("ST-006", None, None)]),
    ("{} ^{}", 0, &[("ST-006", None, None)]),
    ("{} ^\n", 0, &[("ST-007", None, None)]),
    // Keys again: of a tensor, of a field that is known, of one that is not, of the metadata.
    (
        r#"{"a":^{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#,
        1,
        &[("ST-008", Some("a"), None)],
    ),
    (
        r#"{"a":{"dtype":"U8","dtype":^"I8","shape":[1],"data_offsets":[0,1]}}"#,
        1,
        &[("ST-008", Some("a"), Some("dtype"))],
    ),
    (
        r#"{"a":{"dtype":"U8","x":1,"shape":[1],"data_offsets":[0,1],"x":^2}}"#,
        1,
        &[
            ("ST-008", Some("a"), Some("x")),
            ("ST-019", Some("a"), Some("x")),
            ("ST-019", Some("a"), Some("x")),
        ],
    ),
    (r#"{"__metadata__":{"a":"","a":^""}}"#, 0, &[("ST-008", None, Some("__metadata__.a"))]),
    (r#"{"__metadata__":^{},"__metadata__":{}}"#, 0, &[("ST-008", None, Some("__metadata__"))]),
    // The metadata.
    (r#"{"__metadata__":^null}"#, 0, &[("ST-009", None, Some("__metadata__"))]),
    (r#"{"__metadata__":^[]}"#, 0, &[("ST-009", None, Some("__metadata__"))]),
    (
        r#"{"__metadata__":{"a":"b","c":^1,"d":{}}}"#,
        0,
        &[("ST-009", None, Some("__metadata__.c")), ("ST-009", None, Some("__metadata__.d"))],
    ),
    // Entries.
    (r#"{"a":^["U8",[1],[0,1]]}"#, 1, &[("ST-010", Some("a"), None)]),
    (r#"{"a":^null}"#, 0, &[("ST-010", Some("a"), None)]),
    (
        r#"{"a":^{"dtype":"U8"}}"#,
        0,
        &[("ST-010", Some("a"), Some("shape")), ("ST-010", Some("a"), Some("data_offsets"))],
    ),
    (
        r#"{"a":{"dtype":^"F8_E4M3FN","shape":[1],"data_offsets":[0,1]}}"#,
        1,
        &[("ST-011", Some("a"), Some("dtype"))],
    ),
    (
        r#"{"a":{"dtype":^{"U8":null},"shape":[1],"data_offsets":[0,1]}}"#,
        1,
        &[("ST-011", Some("a"), Some("dtype"))],
    ),
    (
        r#"{"a":{"dtype":"U8","shape":[1,^-1],"data_offsets":[0,1]}}"#,
        1,
        &[("ST-012", Some("a"), Some("shape[1]"))],
    ),
    (
        r#"{"a":{"dtype":"U8","shape":[^1.0],"data_offsets":[0,1]}}"#,
        1,
        &[("ST-012", Some("a"), Some("shape[0]"))],
    ),
    (
        r#"{"a":{"dtype":"U8","shape":^"1","data_offsets":[0,1]}}"#,
        1,
        &[("ST-012", Some("a"), Some("shape"))],
    ),
    (
        r#"{"a":{"dtype":"U8","shape":[0],"data_offsets":[^18446744073709551616,1]}}"#,
        0,
        &[("ST-013", Some("a"), Some("data_offsets[0]"))],
    ),
    (
        r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":^[0]}}"#,
        1,
        &[("ST-013", Some("a"), Some("data_offsets"))],
    ),
    (
        r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":^[1,0]}}"#,
        1,
        &[("ST-013", Some("a"), Some("data_offsets"))],
    ),
    (
        r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}^"#,
        1,
        &[("ST-014", Some("a"), Some("data_offsets"))],
    ),
    (
        r#"{"a":{"dtype":"F32","shape":^[2],"data_offsets":[0,4]}}"#,
        4,
        &[("ST-015", Some("a"), Some("shape"))],
    ),
    // 2^62 * 4 bytes, and 3 * 4 bits.
    (
        r#"{"a":{"dtype":"F32","shape":^[4611686018427387904],"data_offsets":[0,0]}}"#,
        0,
        &[("ST-015", Some("a"), Some("shape"))],
    ),
    (
        r#"{"a":{"dtype":"F4","shape":^[3],"data_offsets":[0,1]}}"#,
        1,
        &[("ST-015", Some("a"), Some("shape"))],
    ),
    (
        r#"{"a":{"dtype":"F6_E2M3","shape":^[1],"data_offsets":[0,1]}}"#,
        1,
        &[("ST-015", Some("a"), Some("shape"))],
    ),
    (
        r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}_^"#,
        3,
        &[("ST-016", Some("b"), Some("data_offsets"))],
    ),
    (
        r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}_^"#,
        3,
        &[("ST-017", Some("b"), Some("data_offsets"))],
    ),
    (
        r#"{"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}^"#,
        3,
        &[("ST-017", Some("b"), Some("data_offsets"))],
    ),
    (r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}_^"#, 2, &[("ST-018", None, None)]),
    ("{}^", 1, &[("ST-018", None, None)]),
    (
        r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"stride":^[1]}}"#,
        1,
        &[("ST-019", Some("a"), Some("stride"))],
    ),
    (r#"{"":^{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#, 1, &[("ST-020", Some(""), None)]),
    (
        r#"{"a\u001b[2J":^{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#,
        1,
        &[("ST-020", Some("a\x1b[2J"), None)],
    ),
    (
        r#"{"a":{"dtype":"F4","shape":^[2,3],"data_offsets":[0,3]}}"#,
        3,
        &[("ST-021", Some("a"), Some("shape"))],
    ),
];

#[test]
fn damage_has_a_rule_and_a_place() {
    for (marked, data, expected) in DAMAGED {
        // A _ in front of the mark, behind the header, stands for a byte of data.
        let text = marked.trim_end_matches("_^").replace('^', "");
        let bytes = file(text.as_bytes(), *data);
        let (_, findings) = read(&bytes);
        assert_eq!(&found(&findings), expected, "{marked}");
        let place = marked.find('^').map(|place| place as u64 + 8);
        assert_eq!(findings.first().and_then(|finding| finding.offset), place, "{marked}");
        for finding in &findings {
            assert_eq!(finding.file.as_deref(), Some(NAME));
        }
        agrees(&bytes).unwrap_or_else(|error| panic!("{marked}: {error}"));
    }
}

/// Each exception is one: safetensors accepts a case of each, and with no other fault.
#[test]
fn what_safetensors_accepts_all_the_same() {
    for exception in rule::ACCEPTED_BY_SAFETENSORS {
        let accepted = DAMAGED.iter().any(|(marked, data, expected)| {
            let bytes = file(marked.replace('^', "").as_bytes(), *data);
            expected.iter().any(|(id, ..)| *id == exception.id)
                && SafeTensors::read_metadata(&bytes).is_ok()
        });
        assert!(accepted, "{exception}");
    }
}

#[test]
fn the_length_has_to_fit() {
    for (bytes, id) in [
        (&b""[..], "ST-001"),
        (b"\x02\0\0\0\0\0\0", "ST-001"),
        (b"\x03\0\0\0\0\0\0\0{}", "ST-001"),
        (&[0xff; 10], "ST-001"),
    ] {
        let (header, findings) = read(bytes);
        assert_eq!((header, found(&findings)), (None, vec![(id, None, None)]));
        assert_eq!(findings[0].offset, Some(0));
        agrees(bytes).unwrap();
    }
    let mut long = file(&vec![b' '; 100_000_001], 0);
    assert_eq!(found(&read(&long).1), [("ST-002", None, None)]);
    agrees(&long).unwrap();
    // The longest that is allowed.
    long.pop();
    long[..10].copy_from_slice(b"\x00\xe1\xf5\x05\0\0\0\0{}");
    assert_eq!(found(&read(&long).1), []);
    agrees(&long).unwrap();
}

#[test]
fn other_files_are_known_by_their_start() {
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4\n";
    for (bytes, said) in [
        (&pointer[..], "Git LFS"),
        (b"<!DOCTYPE html><html>", "web page"),
        (b"PK\x03\x04\0\0\x08\x08\0\0", "ZIP"),
        (b"GGUF\x03\0\0\0\0\0\0\0", "GGUF"),
    ] {
        let (_, findings) = read(bytes);
        assert_eq!(found(&findings), [("ST-001", None, None)]);
        assert!(findings[0].found.contains(said), "{}", findings[0]);
    }
}

/// The offset is that of the first byte: 8, `{`, the quote, `a`.
#[test]
fn text_that_is_no_utf_8() {
    for bytes in [&b"{\"a\xff\":1}"[..], b"{\"a\xc3"] {
        let (header, findings) = read(&file(bytes, 0));
        assert_eq!((header, found(&findings)), (None, vec![("ST-004", None, None)]));
        assert_eq!(findings[0].offset, Some(11));
        agrees(&file(bytes, 0)).unwrap();
    }
}

/// A type that is not known hides neither its own tensor nor others; holes are not told of, where
/// they may be those of a tensor that cannot be read.
#[test]
fn nothing_is_lost() {
    let text = r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
        "b":{"dtype":"F2","shape":[4],"data_offsets":[1,2]},"c":7,
        "d":{"dtype":"U8","shape":[3],"data_offsets":[2,4]},"b":{"dtype":"F3"}}"#;
    let (header, findings) = read(&file(text.as_bytes(), 9));
    let header = header.unwrap();
    let names: Vec<&str> = header.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
    assert_eq!(names, ["a", "d"]);
    assert_eq!(header.illegible, ["b", "c"]);
    let ids: Vec<&str> = findings.iter().map(|finding| finding.rule.id).collect();
    assert_eq!(ids, ["ST-008", "ST-010", "ST-015", "ST-010", "ST-010", "ST-011"]);
    assert_eq!((header.tensors[1].offset, header.tensors[1].len), (8 + text.len() as u64 + 2, 2));
}

/// 8 tensors of 2^61 - 1 bytes each end at 2^64 - 8. safetensors 0.8 adds the 8 bytes of the length
/// and the header to that: a panic with overflow checks, and a refusal without.
#[test]
fn ends_near_2_to_the_64() {
    let most = (1u64 << 61) - 1;
    let entries = (0..8).map(|place| {
        let (start, end) = (most * place, most * (place + 1));
        format!(r#""{place}":{{"dtype":"U8","shape":[{most}],"data_offsets":[{start},{end}]}}"#)
    });
    let text = format!("{{{}}}", entries.collect::<Vec<_>>().join(","));
    let (_, findings) = read(&file(text.as_bytes(), 3));
    assert!(findings.iter().all(|finding| finding.rule == &rule::ST_014), "{findings:?}");
    assert!(!findings.is_empty());
    let bytes = file(text.as_bytes(), 3);
    let theirs = std::panic::catch_unwind(|| SafeTensors::read_metadata(&bytes).is_ok());
    println!("safetensors: {theirs:?}");
    assert!(!matches!(theirs, Ok(true)));
}

/// Depth: serde_json's limit is 128, in safetensors as here; nothing overflows the stack.
#[test]
fn nesting() {
    for (depth, is_refused) in [(100, false), (1_000_000, true)] {
        let nested = [vec![b'['; depth], vec![b']'; depth]].concat();
        let nested = String::from_utf8(nested).unwrap();
        let text =
            format!(r#"{{"a":{{"dtype":"U8","shape":[],"data_offsets":[0,1],"x":{nested}}}}}"#);
        let bytes = file(text.as_bytes(), 1);
        let (_, findings) = read(&bytes);
        assert_eq!(findings[0].rule.id, if is_refused { "ST-005" } else { "ST-019" });
        agrees(&bytes).unwrap();
    }
}

/// Whoever breaks a million entries gets a count.
#[test]
fn findings_are_counted_beyond_a_hundred() {
    let text =
        format!("{{{}}}", (0..1_000).map(|n| format!("\"{n}\":1")).collect::<Vec<_>>().join(","));
    let (header, findings) = read(&file(text.as_bytes(), 0));
    assert_eq!((header.unwrap().illegible.len(), findings.len()), (1_000, 100));
    assert!(
        findings[99].found.ends_with("; 900 more are like it in this file"),
        "{}",
        findings[99]
    );
}

#[test]
fn types_are_those_of_safetensors() {
    for dtype in Dtype::ALL {
        let theirs: safetensors::Dtype =
            serde_json::from_value(dtype.name.into()).expect("a type of safetensors");
        assert_eq!(theirs.bitsize() as u64, dtype.bits);
    }
    // What serde says of a name that is none lists all that are.
    let error = serde_json::from_str::<safetensors::Dtype>("\"?\"").unwrap_err().to_string();
    assert_eq!(error.matches('`').count() / 2 - 1, Dtype::ALL.len(), "{error}");
}

/// The pieces that headers are mutated by.
const PIECES: [&str; 26] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    " ",
    "\n",
    "\0",
    "0",
    "1",
    "8",
    "-",
    ".",
    "e",
    "null",
    "18446744073709551615",
    "4611686018427387904",
    "\"dtype\":",
    "\"F4\"",
    "\"shape\":",
    "[0,0]",
    "\"__metadata__\":",
    "\"a\":",
];

/// A valid header, in any order and with white space, and the bytes of its data.
fn header() -> impl Strategy<Value = (String, usize)> {
    let shape = prop::collection::vec(0u64..5, 0..4);
    let tensor = ("[a-c.]{0,3}", prop::sample::select(Dtype::ALL), shape);
    let metadata = prop::option::of(prop::collection::btree_map("[a-c]{0,2}", "[ -~]{0,4}", 0..3));
    (prop::collection::vec(tensor, 0..5), metadata, any::<bool>()).prop_perturb(
        |(tensors, metadata, is_spaced), mut random| {
            let mut seen = std::collections::BTreeSet::new();
            let (mut entries, mut end) = (Vec::new(), 0);
            for (name, dtype, mut shape) in tensors {
                // Whole bytes in each row.
                if dtype.bits < 8 {
                    shape.push(4);
                }
                let bytes = shape.iter().product::<u64>() * dtype.bits / 8;
                if seen.insert(name.clone()) {
                    entries.push(serde_json::json!({ name: {
                        "dtype": dtype.name, "shape": shape, "data_offsets": [end, end + bytes],
                    }}));
                    end += bytes;
                }
            }
            entries.extend(metadata.map(|map| serde_json::json!({ "__metadata__": map })));
            for place in (1..entries.len()).rev() {
                entries.swap(place, random.random_range(0..=place));
            }
            let entries: Vec<String> = entries
                .iter()
                .map(|entry| if is_spaced { format!("{entry:#}") } else { entry.to_string() })
                .map(|entry| entry[1..entry.len() - 1].to_owned())
                .collect();
            (format!("{{{}}}", entries.join(",")), usize::try_from(end).unwrap())
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn valid_headers_are_accepted((text, data) in header()) {
        let bytes = file(text.as_bytes(), data);
        let findings = read(&bytes).1;
        prop_assert!(findings.iter().all(|found| found.rule == &rule::ST_020), "{:?}", findings);
        prop_assert!(SafeTensors::read_metadata(&bytes).is_ok());
        agrees(&bytes)?;
    }

    #[test]
    fn mutated_headers_are_refused_alike(
        (text, data) in header(),
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), 0usize..6, prop::sample::select(&PIECES[..])), 1..4),
        shift in -2isize..3,
    ) {
        let mut text = text.into_bytes();
        for (place, removed, piece) in edits {
            let start = place.index(text.len() + 1);
            let end = (start + removed).min(text.len());
            text.splice(start..end, piece.bytes());
        }
        agrees(&file(&text, data.saturating_add_signed(shift)))?;
    }

    #[test]
    fn mutated_bytes_are_refused_alike(
        (text, data) in header(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..3),
    ) {
        let mut bytes = file(text.as_bytes(), data);
        for (place, byte) in edits {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        agrees(&bytes)?;
    }
}
