//! What the reference says about every case: in which words, at which place, and that what it has
//! read of a valid file is that file.

use std::fmt::Write as _;
use std::path::Path;

use gguf_assay_cases::{BuiltFile, Case, Corpus};
use gguf_assay_format::{
    Field, OwnedValue, Profile, RULES, Segment, Value, diagnose, lay_out, printable,
};
use gguf_assay_smith::roundtrip;

fn small() -> impl Iterator<Item = (Case, BuiltFile)> {
    let cases = Corpus::embedded().cases.into_iter().filter(|case| !case.is_large());
    cases.map(|case| {
        let file = case.build().unwrap();
        (case, file)
    })
}

/// The words, against `golden/errors/`, one snapshot an area, and one of the rules. After a change
/// that is meant, `INSTA_UPDATE=always cargo test -p gguf-assay-cases --test diagnosis` writes the new ones.
#[test]
fn words() {
    let mut areas: Vec<(String, String)> = Vec::new();
    for (case, file) in small() {
        let bytes = file.to_bytes();
        let diagnosis = diagnose(&bytes);
        let verdict = match Profile::ALL.map(|profile| diagnosis.accepted_by(profile)) {
            [true, true] => "accepted",
            [true, false] => "accepted by spec, refused by ggml",
            [false, true] => "refused by spec, accepted by ggml",
            [false, false] => "refused",
        };
        let mut text = format!("{} ({})\n  {verdict}\n", case.id, case.rule);
        for violation in &diagnosis.violations {
            let said = violation.to_string();
            assert_eq!(format!("{violation:?}"), said);
            assert_eq!(printable(&said, said.len()), said, "harmless on a terminal");
            let _ = write!(text, "  {said}");
            let _ = match violation.missing() {
                Some(missing) => writeln!(text, " ({missing} missing)"),
                None => writeln!(text),
            };
        }
        if diagnosis.omitted > 0 {
            let _ = writeln!(text, "  and {} more", diagnosis.omitted);
        }
        match areas.iter_mut().find(|(area, _)| area == case.area()) {
            Some((_, all)) => all.push_str(&text),
            None => areas.push((case.area().to_owned(), text)),
        }
    }
    let mut rules = String::new();
    for rule in RULES {
        let _ = writeln!(rules, "{rule} {} (required by {})", rule.title, rule.required_by());
        for (who, by) in [("spec", rule.spec), ("ggml", rule.ggml), ("policy", rule.policy)] {
            let Some(clause) = by.clause() else { continue };
            let _ = writeln!(rules, "  {who}: {clause}");
        }
    }
    let mut settings = insta::Settings::clone_current();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/errors");
    settings.set_snapshot_path(golden);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (area, text) in areas {
            insta::assert_snapshot!(area, text);
        }
        insta::assert_snapshot!("rules", rules);
    });
}

/// A violation is said to be where the writer, which knows nothing of the reader, laid its field.
/// Of files spoiled by hand, only fields up to the spoiled byte are where they were.
#[test]
fn places() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (case, file) in small() {
        let mut description = case.description().unwrap();
        if let Some(fault) = case.fault().unwrap().filter(|fault| fault.is_described()) {
            fault.describe(&mut description).unwrap();
        }
        let laid = lay_out(&description);
        assert_eq!(laid.is_empty(), matches!(laid.len(), 0), "{}", case.id);
        let (file, sound) = (file.to_bytes(), laid.to_bytes());
        let spoiled = sound.iter().zip(&file).position(|(a, b)| a != b);
        let spoiled = spoiled.unwrap_or(sound.len().min(file.len())) as u64;
        for violation in &diagnose(&file).violations {
            let Some(Field { range, path }) = laid.field(violation.field()) else { continue };
            // The reader's end is where the file should have ended.
            if range.start > spoiled || path == "end" {
                continue;
            }
            compared += 1;
            if !range.is_empty() {
                let smallest = laid.field_at(range.start).unwrap();
                assert!(range.start <= smallest.range.start, "{}: {path}", case.id);
            }
            // Of padding, the byte that is not zero.
            let found = match path.ends_with("padding") {
                true => range.contains(&violation.offset()),
                false => range.start == violation.offset(),
            };
            if !found {
                wrong.push(format!("{}: {violation}, laid at {range:#x?}", case.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {compared}\n{}", wrong.len(), wrong.join("\n"));
    println!("{compared} places");
    assert!(compared > 0);
}

/// A file is laid out in stretches that are not empty, its bytes in as few as can be, and long runs of
/// zeros as holes: a file of many gigabytes takes no memory.
#[test]
fn stretches() {
    let mut holes = Vec::new();
    for case in Corpus::embedded().cases {
        let description = case.description().unwrap();
        let file = match case.fault().unwrap() {
            Some(_) if case.is_large() => continue,
            Some(fault) => fault.lay_out(&description).unwrap(),
            None => lay_out(&description).segments,
        };
        assert_eq!(file.is_empty(), matches!(file.len(), 0), "{}", case.id);
        let mut after_bytes = false;
        for segment in file.as_slice() {
            assert!(!matches!(segment.len(), 0) && !segment.is_empty(), "{}", case.id);
            match segment {
                Segment::Bytes(_) => assert!(!after_bytes, "{}", case.id),
                Segment::Zeros(len) => holes.push((case.id.clone(), *len)),
            }
            after_bytes = matches!(segment, Segment::Bytes(_));
        }
    }
    // By hand: 5,000 elements of one byte. What is shorter than a page is written out.
    assert!(holes.contains(&("read/arrays/of-5000-zeros".into(), 5000)), "{holes:?}");
    assert!(holes.iter().all(|(_, len)| *len > 4096), "{holes:?}");
}

/// What is read of a valid file, written again, is that file.
#[test]
fn read_and_written() {
    let mut compared = 0;
    for (case, file) in small() {
        let held = roundtrip(&file.to_bytes());
        compared +=
            u32::from(held.unwrap_or_else(|difference| panic!("{}: {difference}", case.id)));
    }
    assert!(compared > 0);
}

/// Keys and tensors are found by name, the first of each name, and are what the case says.
#[test]
fn lookups() {
    let text = |value: &OwnedValue| format!("{value:?}");
    let mut of_faults = 0;
    for (case, file) in small() {
        let mut description = case.description().unwrap();
        let fault = case.fault().unwrap();
        match &fault {
            Some(fault) if fault.is_described() => fault.describe(&mut description).unwrap(),
            Some(_) => continue,
            None => {}
        }
        let bytes = file.to_bytes();
        // Refused or not, what was read to the end is there.
        let diagnosis = diagnose(&bytes);
        let Some(gguf) = diagnosis.gguf.filter(|_| diagnosis.complete) else { continue };
        assert_eq!(gguf.metadata.len(), description.metadata.len(), "{}", case.id);
        assert_eq!(gguf.tensors.len(), description.tensors.len(), "{}", case.id);
        of_faults += u32::from(fault.is_some());
        let laid = lay_out(&description);
        assert!(gguf.get("no such key").is_none() && gguf.tensor("no such tensor").is_none());
        for (index, (key, value)) in description.metadata.iter().enumerate() {
            let before = &description.metadata[..index];
            let Ok(key) = std::str::from_utf8(key) else { continue };
            if before.iter().any(|(other, _)| other == key.as_bytes()) {
                continue;
            }
            let found = *gguf.get(key).unwrap();
            let (Value::Array(array), OwnedValue::Array(of)) = (found, value) else {
                assert_eq!(text(&found.into()), text(value), "{}: {key}", case.id);
                continue;
            };
            let elements = array.into_iter().map(|element| text(&element.into()));
            assert!(elements.eq(of.iter().map(text)), "{}: {key}", case.id);
            assert_eq!(array.is_empty(), of.is_empty(), "{}: {key}", case.id);
            let elements: Vec<_> = array.iter().collect();
            assert_eq!(format!("{array:?}"), format!("{elements:?}"), "{}: {key}", case.id);
            let (least, most) = array.iter().size_hint();
            assert!(least as u64 <= of.len(), "{}: {key}", case.id);
            assert!(most.is_some_and(|most| most as u64 >= of.len()), "{}: {key}", case.id);
            assert_eq!(array.byte_order(), description.byte_order, "{}: {key}", case.id);
            if let Some(size) = array.element_type().size() {
                assert_eq!(array.bytes().len() as u64, of.len() * size, "{}: {key}", case.id);
                // No more fields than a person would look at.
                let field = laid.field(&format!("metadata[{index}].value[0]"));
                assert_eq!(field.is_some(), (1..=256).contains(&of.len()), "{}: {key}", case.id);
            }
        }
        for (index, tensor) in description.tensors.iter().enumerate() {
            let before = &description.tensors[..index];
            let Ok(name) = std::str::from_utf8(&tensor.name) else { continue };
            if before.iter().any(|other| other.name == name.as_bytes()) {
                continue;
            }
            let found = gguf.tensor(name).unwrap();
            assert!(found.dims.iter().eq(tensor.dims.iter().copied()), "{}: {name}", case.id);
            assert_eq!(found.dims.is_empty(), tensor.dims.is_empty(), "{}: {name}", case.id);
            assert_eq!(format!("{:?}", found.dims), format!("{:?}", tensor.dims), "{}", case.id);
            assert!(found.name == *name && found.name != *"no such tensor", "{}: {name}", case.id);
            assert_eq!(found.type_id, tensor.type_id, "{}: {name}", case.id);
            assert!(tensor.offset.is_none_or(|offset| found.offset == offset), "{}", case.id);
            assert_eq!(tensor.data.is_empty(), matches!(tensor.data.len(), 0), "{}", case.id);
        }
    }
    assert!(of_faults > 0);
}
