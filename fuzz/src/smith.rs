//! The generator and the planner.

use arbitrary::Unstructured;
use gguf_assay_format::{Profile, RULES, Rule, lay_out, read};
use gguf_assay_smith::{Kind, Reach, Smith, check, plant_from, small_rules};

use crate::differential::is_accepted_by_ggml;

type Choices<'a> = (Reach, Kind, &'static Rule, Unstructured<'a>);

/// What an input chooses, and the bytes that files and faults are made of. The choices come first,
/// so that they stay when the rest grows.
fn choices(bytes: &[u8]) -> Option<Choices<'_>> {
    let mut bytes = Unstructured::new(bytes);
    let reach = *bytes.choose(&[Reach::Both, Reach::Spec, Reach::Ggml]).ok()?;
    let kind = *bytes.choose(&[Kind::Any, Kind::Any, Kind::Llama, Kind::Vocabulary]).ok()?;
    let rule = *bytes.choose(RULES).ok()?;
    Some((reach, kind, rule, bytes))
}

/// The rule whose fault is planted.
pub(crate) fn rule(bytes: &[u8]) -> String {
    match choices(bytes) {
        Some((Reach::Both, _, rule, _)) => format!("{rule}: {}", rule.title),
        _ => "none: no fault is planted".into(),
    }
}

/// Makes a file of the bytes: reference and ggml accept it. Plants a fault in it: the reference
/// names its rule, and ggml does what the rule's entry in the table says.
pub fn smith(bytes: &[u8]) {
    let Some((reach, kind, rule, mut bytes)) = choices(bytes) else { return };
    let description = Smith { reach, kind }.forge(&mut bytes);
    let file = lay_out(&description).to_bytes();
    if reach != Reach::Ggml {
        read(&file, Profile::Spec).expect("a file that the text allows");
    }
    if reach != Reach::Spec {
        read(&file, Profile::Ggml).expect("a file that ggml allows");
        assert!(is_accepted_by_ggml(&file), "ggml refuses a file that it allows");
    }
    if reach != Reach::Both || small_rules().all(|small| small != rule) {
        return;
    }
    if let Some(planted) = plant_from(rule, &description, &mut bytes) {
        check(&planted, is_accepted_by_ggml).expect("a fault that is what it is named after");
    }
}
