//! The reference reader against every case, one test a case, under the profile that
//! `GGUF_ASSAY_PROFILE` names (default `ggml`).

use std::process::ExitCode;

use gguf_assay::{Harness, Profile, Reference};

fn main() -> ExitCode {
    let profile = std::env::var("GGUF_ASSAY_PROFILE").ok();
    let profile = profile.map_or(Ok(Profile::Ggml), |name| name.parse());
    match profile {
        Ok(profile) => Harness::new(Reference).profile(profile).main(),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
