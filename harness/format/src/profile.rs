//! Whose rules count.

use core::fmt;
use core::str::FromStr;

/// Whose rules count when a file is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Profile {
    /// The text of ggml's `docs/gguf.md`, version 3; where it gives history, versions 1 and 2.
    Spec,
    /// What ggml does, in the version that this project pins, with the check of llama.cpp's model
    /// loader that tensors lie within the file. It differs where ggml looks keys up as C strings: to
    /// ggml, a key `general.alignment` with a zero byte and more behind it is the alignment.
    Ggml,
}

impl Profile {
    /// Both profiles.
    pub const ALL: [Profile; 2] = [Profile::Spec, Profile::Ggml];

    /// `spec` or `ggml`.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Spec => "spec",
            Profile::Ggml => "ggml",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(name: &str) -> Result<Profile, String> {
        Profile::ALL
            .into_iter()
            .find(|profile| profile.name() == name)
            .ok_or_else(|| format!("there is no profile {name:?}; the profiles are spec and ggml"))
    }
}
