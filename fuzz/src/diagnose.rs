//! The diagnosis against the strict reading.

use gguf_assay_format::{Profile, read};

use crate::parse::look_at;

/// Diagnoses the bytes as a file and looks at what could be read: nothing panics, a profile accepts
/// what a strict reading by it accepts, and that stops at the first violation that binds the profile.
pub fn diagnose(bytes: &[u8]) {
    let diagnosis = gguf_assay_format::diagnose(bytes);
    for profile in Profile::ALL {
        let strict = read(bytes, profile);
        assert_eq!(strict.is_ok(), diagnosis.accepted_by(profile), "{profile}");
        // What is left out of a long diagnosis cannot be compared.
        if diagnosis.omitted == 0 {
            let first = diagnosis.violations.iter().find(|violation| violation.binds(profile));
            assert_eq!(strict.as_ref().err(), first, "{profile}");
        }
    }
    if let Some(gguf) = &diagnosis.gguf {
        look_at(gguf, bytes);
    }
}
