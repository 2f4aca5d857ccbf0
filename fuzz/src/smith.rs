//! The generator and the planner.

use arbitrary::Unstructured;
use gguf_assay_format::{Profile, RULES, lay_out, read};
use gguf_assay_smith::{Kind, Reach, Smith, check, plant_from, small_rules};

use crate::differential::is_accepted_by_ggml;

/// Makes a file of the bytes: reference and ggml accept it. Plants a fault in it: the reference
/// names its rule, and ggml does what the rule's entry in the table says.
pub fn smith(bytes: &[u8]) {
    let mut bytes = Unstructured::new(bytes);
    // The choices come first, so that they stay when the rest grows.
    let (Ok(reach), Ok(kind), Ok(rule)) = (
        bytes.choose(&[Reach::Both, Reach::Spec, Reach::Ggml]).copied(),
        bytes.choose(&[Kind::Any, Kind::Any, Kind::Llama, Kind::Vocabulary]).copied(),
        bytes.choose(RULES).copied(),
    ) else {
        return;
    };
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
