//! Properties of reader and writer together, over generated files.

mod support;

use gguf_assay_format::{
    Description, Field, Limits, OwnedArray, OwnedValue, Profile, ValueType, Violation, diagnose,
    diagnose_within, lay_out, read,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestCaseResult;
use support::{Reach, anything, cases, data_bytes, look_at_all_of, same, text, up_to_hole, valid};

/// No violation is left out.
const ALL: Limits = Limits { array_depth: 64, violations: usize::MAX };

fn reads_back(description: &Description, profile: Profile) -> TestCaseResult {
    let layout = lay_out(description);
    let bytes = layout.to_bytes();
    prop_assert_eq!(layout.len(), bytes.len() as u64);
    let gguf = match read(&bytes, profile) {
        Ok(gguf) => gguf,
        Err(violation) => return Err(TestCaseError::fail(format!("{profile}: {violation}"))),
    };

    prop_assert_eq!(gguf.version, description.version);
    prop_assert_eq!(gguf.byte_order, description.byte_order);
    prop_assert_eq!(gguf.data_offset, layout.data_offset);
    prop_assert_eq!(gguf.metadata.len(), description.metadata.len());
    let place = |path: String| layout.field(&path).map(|field| field.range.start);
    for (i, (entry, (key, value))) in gguf.metadata.iter().zip(&description.metadata).enumerate() {
        prop_assert_eq!(entry.key.0, key.as_slice());
        prop_assert!(same(value, &entry.value), "{:?} read as {:?}", value, entry.value);
        prop_assert_eq!(Some(entry.offset), place(format!("metadata[{i}].key.length")));
        let after_type = layout.field(&format!("metadata[{i}].type")).map(|f| f.range.end);
        prop_assert_eq!(Some(entry.value_offset), after_type);
    }
    prop_assert_eq!(gguf.tensors.len(), description.tensors.len());
    for (i, (tensor, wanted)) in gguf.tensors.iter().zip(&description.tensors).enumerate() {
        prop_assert_eq!(tensor.name.0, wanted.name.as_slice());
        prop_assert_eq!(tensor.type_id, wanted.type_id);
        prop_assert_eq!(tensor.dims.iter().collect::<Vec<_>>(), wanted.dims.clone());
        prop_assert_eq!(tensor.dims.len(), wanted.dims.len());
        prop_assert_eq!(Some(tensor.record_offset), place(format!("tensors[{i}].name.length")));
        let start = place(format!("tensors[{i}].data"));
        prop_assert_eq!(Some(gguf.data_offset + tensor.offset), start);
        let data = data_bytes(&wanted.data);
        prop_assert_eq!(gguf.tensor_bytes(tensor), Some(data.as_slice()));
    }

    let again = gguf.describe().map(|description| lay_out(&description).to_bytes());
    prop_assert_eq!(again, Some(bytes));
    Ok(())
}

/// Whether a violation names `field`, or the array whose payload the field is part of.
fn names(violation: &Violation, field: &Field) -> bool {
    match field.path.strip_prefix(violation.field()) {
        Some("") => violation.offset() == field.range.start,
        Some(rest) => rest.starts_with('[') || rest == ".elements",
        None => false,
    }
}

/// The strict readings end at the first violation of the diagnosis that binds their profile.
fn strict_is_diagnosis(bytes: &[u8]) -> TestCaseResult {
    let diagnosis = diagnose_within(bytes, &ALL);
    prop_assert_eq!(diagnosis.omitted, 0);
    for profile in Profile::ALL {
        let first = diagnosis.violations.iter().find(|violation| violation.binds(profile));
        let strict = read(bytes, profile);
        prop_assert_eq!(diagnosis.accepted_by(profile), strict.is_ok());
        prop_assert_eq!(strict.as_ref().err(), first);
        if let Ok(gguf) = &strict {
            prop_assert!(diagnosis.complete);
            look_at_all_of(gguf);
        }
    }
    if let Some(gguf) = &diagnosis.gguf {
        look_at_all_of(gguf);
    }

    // With fewer kept, the same ones are kept and the rest are counted.
    let few = diagnose_within(bytes, &Limits { violations: 2, ..ALL });
    let kept = diagnosis.violations.len().min(2);
    prop_assert_eq!(few.violations.as_slice(), &diagnosis.violations[..kept]);
    prop_assert_eq!(few.omitted, (diagnosis.violations.len() - kept) as u64);
    for profile in Profile::ALL {
        prop_assert_eq!(few.accepted_by(profile), diagnosis.accepted_by(profile));
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn what_the_specification_allows_reads_back(description in valid(Reach::Spec)) {
        reads_back(&description, Profile::Spec)?;
    }

    #[test]
    fn what_both_allow_reads_back(description in valid(Reach::Both)) {
        for profile in Profile::ALL {
            reads_back(&description, profile)?;
        }
        let bytes = lay_out(&description).to_bytes();
        let diagnosis = diagnose(&bytes);
        prop_assert!(diagnosis.complete);
        // Types that the text does not list yet are all there is to note.
        for violation in diagnosis.violations {
            prop_assert_eq!(violation.rule().id, "TENSOR-012");
        }
    }

    #[test]
    fn fields_cover_the_file_in_order(description in valid(Reach::Spec)) {
        let layout = lay_out(&description);
        let mut position = 0;
        for field in layout.fields.iter().filter(|field| field.path != "data") {
            prop_assert_eq!(field.range.start, position, "{}", field.path);
            prop_assert!(field.range.end >= position, "{}", field.path);
            position = field.range.end;
        }
        prop_assert_eq!(position, layout.len());
        let mut paths: Vec<_> = layout.fields.iter().map(|field| &field.path).collect();
        paths.sort_unstable();
        paths.dedup();
        prop_assert_eq!(paths.len(), layout.fields.len());
        if let Some(data) = layout.field("data") {
            prop_assert_eq!(data.range.clone(), layout.data_offset..layout.len());
        }
    }

    #[test]
    fn a_cut_is_reported_where_it_is(
        description in valid(Reach::Spec),
        anywhere in vec(any::<Index>(), 24),
    ) {
        let layout = lay_out(&description);
        let bytes = layout.to_bytes();
        let edges = layout.fields.iter().flat_map(|field| {
            let range = &field.range;
            [range.start as usize, range.end.saturating_sub(1) as usize]
        });
        for cut in edges.chain(anywhere.iter().map(|index| index.index(bytes.len()))) {
            if cut >= bytes.len() {
                continue;
            }
            let cut_off = read(&bytes[..cut], Profile::Spec);
            let field = layout.field_at(cut as u64).expect("fields cover the file");
            // Behind the table, a tensor that ends later is the first thing missed.
            let missed = layout.fields.iter().find(|field| {
                field.path.ends_with("].data") && field.range.end > cut as u64
            });
            let (rule, expected) = if cut == 0 {
                prop_assert_eq!(cut_off.unwrap_err().rule().id, "FILE-001");
                continue;
            } else if field.range.start < layout.data_offset {
                (if field.path == "padding" { "DATA-005" } else { "FILE-002" }, Some(field))
            } else {
                ("DATA-004", missed)
            };
            let Some(expected) = expected else {
                // Only padding is missing.
                prop_assert!(cut_off.is_ok(), "{:?}", cut_off);
                continue;
            };
            let violation = cut_off.unwrap_err();
            prop_assert_eq!(violation.rule().id, rule, "{:?}", violation);
            prop_assert!(names(&violation, expected), "{:?} for {:?}", violation, expected);
            prop_assert!(violation.is_truncation());
        }
    }

    #[test]
    fn arrays_of_strings_are_utf8_where_each_string_is(
        texts in vec((text(), prop::option::weighted(0.1, (any::<Index>(), 0x80u8..))), 1..8),
    ) {
        let damaged = texts.into_iter().map(|(mut text, damage)| {
            if let (Some((place, byte)), false) = (damage, text.is_empty()) {
                let place = place.index(text.len());
                text[place] = byte;
            }
            text
        });
        let texts: Vec<Vec<u8>> = damaged.collect();
        let bad = texts.iter().position(|text| std::str::from_utf8(text).is_err());
        let strings = texts.into_iter().map(OwnedValue::String).collect();
        let array = OwnedValue::Array(OwnedArray::new(ValueType::String, strings));
        let bytes = lay_out(&Description {
            metadata: vec![
                (b"general.architecture".into(), "llama".into()),
                (b"a".into(), array),
            ],
            ..Description::default()
        })
        .to_bytes();
        let wanted = bad.map(|index| ("META-012", format!("metadata[1].value[{index}]")));
        let found = read(&bytes, Profile::Spec).err();
        prop_assert_eq!(found.map(|v| (v.rule().id, v.field().to_owned())), wanted);
        prop_assert!(read(&bytes, Profile::Ggml).is_ok());
    }

    #[test]
    fn a_violation_points_at_its_field(description in anything()) {
        let layout = lay_out(&description);
        let bytes = up_to_hole(&layout);
        for violation in diagnose_within(&bytes, &ALL).violations {
            // Two rules are about keys that are not there, and DATA rules about more than a field.
            if violation.field() == "metadata" || violation.offset() >= layout.data_offset {
                continue;
            }
            // The field, or the first part of what has several.
            let part = |field: &&Field| {
                let rest = field.path.strip_prefix(violation.field());
                rest.is_some_and(|rest| rest.starts_with(['.', '[']))
            };
            let field = layout.field(violation.field());
            let field = field.or_else(|| layout.fields.iter().find(part));
            let field = field.ok_or_else(|| TestCaseError::fail(format!("{violation}")))?;
            let exact = field.range.start == violation.offset();
            let within = field.range.contains(&violation.offset());
            let padding = violation.rule().id == "DATA-007";
            prop_assert!(exact || (padding && within), "{:?}, not {:?}", violation, field);
        }
    }

    #[test]
    fn strict_ends_where_diagnosis_says(description in anything()) {
        strict_is_diagnosis(&up_to_hole(&lay_out(&description)))?;
    }

    #[test]
    fn strict_ends_where_diagnosis_says_in_damaged_files(
        description in valid(Reach::Spec),
        flips in vec((any::<Index>(), 1u8..), 1..16),
        cuts in vec(any::<Index>(), 4),
        insertion in (any::<Index>(), vec(any::<u8>(), 0..9)),
    ) {
        let whole = lay_out(&description).to_bytes();
        let mut bytes = whole.clone();
        for (place, mask) in flips {
            let place = place.index(bytes.len());
            bytes[place] ^= mask;
            strict_is_diagnosis(&bytes)?;
            bytes[place] ^= mask;
        }
        for cut in cuts {
            strict_is_diagnosis(&bytes[..cut.index(bytes.len())])?;
        }
        let place = insertion.0.index(whole.len());
        bytes.splice(place..place, insertion.1);
        strict_is_diagnosis(&bytes)?;
    }

    #[test]
    fn strict_ends_where_diagnosis_says_in_noise(
        version in 1u32..4,
        big in any::<bool>(),
        counts in (0u8..4, 0u8..4),
        noise in vec(
            prop_oneof![
                // Small numbers of the widths that headers have, so that noise gets further.
                6 => (0u64..14).prop_map(|n| n.to_le_bytes().to_vec()),
                6 => (0u32..14).prop_map(|n| n.to_le_bytes().to_vec()),
                3 => (0u64..14).prop_map(|n| n.to_be_bytes().to_vec()),
                3 => (0u32..14).prop_map(|n| n.to_be_bytes().to_vec()),
                1 => vec(any::<u8>(), 0..9),
                1 => Just(vec![0xff; 8]),
            ],
            0..64,
        ),
    ) {
        let mut bytes = b"GGUF".to_vec();
        let width = if version == 1 { 4 } else { 8 };
        for (number, width) in
            [(version, 4), (counts.0.into(), width), (counts.1.into(), width)]
        {
            let mut field = u64::from(number).to_le_bytes()[..width].to_vec();
            if big {
                field.reverse();
            }
            bytes.extend(field);
        }
        bytes.extend(noise.concat());
        strict_is_diagnosis(&bytes)?;
    }

    #[test]
    fn no_bytes_at_all_are_too_strange(bytes in vec(any::<u8>(), 0..200)) {
        strict_is_diagnosis(&bytes)?;
        let mut named = b"GGUF".to_vec();
        named.extend(bytes);
        strict_is_diagnosis(&named)?;
    }
}
