//! What is made is valid to the reference and to ggml; what is planted breaks the rule that it is
//! named after, and ggml does with it what the rule's entry in the table says.
//!
//! `GGUF_ASSAY_LONG=1` tries 100,000 seeds instead of a few thousand.

use gguf_assay_format::{Description, Profile, RULES, Rule, diagnose, lay_out, read};
use gguf_assay_oracle::{File, Mode};
use gguf_assay_smith::{Kind, Reach, Smith, check, plant, shrink, small_rules, split};

fn seeds() -> u64 {
    if std::env::var_os("GGUF_ASSAY_LONG").is_some_and(|value| value == "1") {
        100_000
    } else {
        3_000
    }
}

/// What is small enough to be laid out in memory, thousands of times.
const SMALL: [Kind; 4] = [Kind::Any, Kind::Llama, Kind::Experts, Kind::Vocabulary];

fn smith(reach: Reach, seed: u64) -> Smith {
    // Mostly anything: the others are larger and alike.
    let kind = if seed.is_multiple_of(8) { SMALL[seed as usize / 8 % 4] } else { Kind::Any };
    Smith::new(reach).kind(kind)
}

fn is_accepted_by_ggml(bytes: &[u8]) -> bool {
    let file = File::from_bytes(bytes, Mode::Header);
    file.is_ok_and(|file| file.has_data_within(bytes.len() as u64))
}

#[test]
fn valid_files_are_accepted() {
    for seed in 0..seeds() {
        for reach in [Reach::Spec, Reach::Ggml, Reach::Both] {
            let description = smith(reach, seed).forge_seed(seed);
            let bytes = lay_out(&description).to_bytes();
            let profiles: &[Profile] = match reach {
                Reach::Spec => &[Profile::Spec],
                Reach::Ggml => &[Profile::Ggml],
                Reach::Both => &Profile::ALL,
            };
            for profile in profiles {
                if let Err(violation) = read(&bytes, *profile) {
                    panic!("seed {seed}, {reach:?}, {profile}: {violation}\n{description:?}");
                }
            }
            if reach != Reach::Spec {
                assert!(is_accepted_by_ggml(&bytes), "seed {seed}, {reach:?}: {description:?}");
            }
        }
    }
}

#[test]
fn faults_break_their_rule() {
    let rules: Vec<&'static Rule> = small_rules().collect();
    let each = seeds() / rules.len() as u64 + 1;
    let mut failed = vec![];
    for rule in rules {
        for seed in 0..each {
            let description = smith(Reach::Both, seed).forge_seed(seed);
            let planted = plant(rule, &description, seed).expect("a way to break it");
            // One failure of each rule is enough to read.
            if let Err(message) = check(&planted, is_accepted_by_ggml) {
                failed.push(format!("seed {seed}: {message}"));
                break;
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
#[ignore = "takes 4 GiB of memory"]
fn faults_that_take_a_gigabyte() {
    let small: Vec<_> = small_rules().collect();
    let large: Vec<_> = RULES.iter().copied().filter(|rule| !small.contains(rule)).collect();
    assert_eq!(large.len(), 2);
    for (rule, seed) in large.into_iter().flat_map(|rule| [(rule, 1), (rule, 2)]) {
        let description = smith(Reach::Both, seed).forge_seed(seed);
        let planted = plant(rule, &description, seed).expect("a way to break it");
        check(&planted, is_accepted_by_ggml).unwrap();
    }
}

#[test]
fn the_smallest_file() {
    let none = |smith: Smith| lay_out(&smith.forge(&mut arbitrary::Unstructured::new(&[])));
    // Magic, version and two counts.
    let empty = Description::default();
    assert_eq!(lay_out(&empty).len(), 24);
    assert!(none(Smith::new(Reach::Both)).len() < 100);
    let smallest = (0..2_000).map(|seed| lay_out(&Smith::new(Reach::Ggml).forge_seed(seed)).len());
    assert_eq!(smallest.min(), Some(24));
}

/// Files of gigabytes have no gigabytes in memory.
#[test]
fn huge_files_are_holes() {
    for seed in 0..200 {
        let layout = lay_out(&Smith::new(Reach::Both).kind(Kind::Huge).forge_seed(seed));
        let held: u64 = layout
            .segments
            .as_slice()
            .iter()
            .filter(|segment| matches!(segment, gguf_assay_format::Segment::Bytes(_)))
            .map(gguf_assay_format::Segment::len)
            .sum();
        assert!(held < 1 << 20, "seed {seed}: {held} bytes");
    }
    let sizes = (0..200)
        .map(|seed| lay_out(&Smith::new(Reach::Both).kind(Kind::Huge).forge_seed(seed)).len());
    assert!(sizes.max() > Some(10 << 30));
}

#[test]
fn shards_are_valid_and_whole() {
    for seed in 0..200 {
        let whole = Smith::new(Reach::Both).kind(Kind::Llama).forge_seed(seed);
        for count in [1, 2, 3, 7] {
            let shards = split(&whole, count);
            assert_eq!(shards.len(), count);
            let tensors: usize = shards.iter().map(|shard| shard.tensors.len()).sum();
            assert_eq!(tensors, whole.tensors.len());
            for shard in &shards {
                let bytes = lay_out(shard).to_bytes();
                let diagnosis = diagnose(&bytes);
                assert!(Profile::ALL.into_iter().all(|p| diagnosis.accepted_by(p)));
                assert!(diagnosis.violations.iter().all(|v| !v.rule().id.starts_with("SPLIT")));
                assert!(is_accepted_by_ggml(&bytes));
            }
        }
    }
}

/// What is left of a file that fails is the part that makes it fail.
#[test]
fn shrunk_files_still_fail() {
    for rule in small_rules() {
        let description = Smith::new(Reach::Both).kind(Kind::Llama).forge_seed(1);
        let Some(planted) = plant(rule, &description, 1) else { continue };
        let Some(fault) = planted.fault else { continue };
        let names_it = |bytes: &[u8]| {
            diagnose(bytes).violations.iter().any(|violation| violation.rule() == rule)
        };
        let (small, fault) = shrink::shrink(&planted.description, Some(&fault), |small, fault| {
            let file = fault.and_then(|fault| fault.lay_out(small).ok());
            file.is_some_and(|file| names_it(&file.to_bytes()))
        });
        let file = fault.expect("the fault stays").lay_out(&small).expect("it has a place");
        assert!(names_it(&file.to_bytes()), "{rule}");
        let parts = small.metadata.len() + small.tensors.len();
        assert!(parts <= 3, "{rule}: {parts} entries and tensors are left");
    }
}

#[test]
fn shrunk_bytes_still_fail() {
    let bytes: Vec<u8> = (0..200).collect();
    let small = shrink::shrink_bytes(&bytes, |bytes| bytes.contains(&77) && bytes.len() > 3);
    assert_eq!(small.len(), 4);
    assert_eq!(small.iter().filter(|byte| **byte != 0).count(), 1);
}
