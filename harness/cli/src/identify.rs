//! What a file is that does not start as a GGUF file does.

use gguf_assay_format::MAGIC;

/// What the start of a file says about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// What it is, after "this is".
    pub(crate) what: &'static str,
    /// What to do.
    pub(crate) advice: &'static str,
}

const HTML: Identity = Identity {
    what: "an HTML page, not a model",
    advice: "the address led to a web page: on Hugging Face use /resolve/ instead of /blob/, and log \
             in if the repository is gated",
};

/// Magics at the start of a file.
const MAGICS: &[(&[u8], Identity)] = &[
    (
        b"version https://git-lfs",
        Identity {
            what: "a Git LFS pointer, not the file that it points to",
            advice: "run `git lfs pull` in the repository, or download the file itself",
        },
    ),
    (
        b"# xet version",
        Identity {
            what: "a Xet pointer, not the file that it points to",
            advice: "download the file itself, with a client that knows Xet",
        },
    ),
    (b"tjgg", legacy("a GGJT file, a format from before GGUF")),
    (b"fmgg", legacy("a GGMF file, a format from before GGUF")),
    (b"lmgg", legacy("a GGML file, a format from before GGUF")),
    (b"algg", legacy("a GGLA file, a LoRA adapter from before GGUF")),
    (b"nsgg", legacy("a GGSN file, a saved session and not a model")),
    (b"\x1f\x8b", packed("gzip-compressed")),
    (b"\x28\xb5\x2f\xfd", packed("zstd-compressed")),
    (b"\xfd7zXZ\0", packed("xz-compressed")),
    (b"BZh", packed("bzip2-compressed")),
    (b"7z\xbc\xaf\x27\x1c", packed("a 7-Zip archive")),
    (
        b"PK\x03\x04",
        Identity {
            what: "a ZIP archive (PyTorch checkpoints are such archives too)",
            advice: "unpack it; if it is a PyTorch checkpoint, convert it with convert_hf_to_gguf.py",
        },
    ),
    (
        b"\x80\x02",
        Identity {
            what: "a Python pickle, such as an old PyTorch checkpoint",
            advice: "do not load it unless you trust its author: pickles run code; convert the model",
        },
    ),
    (b"\x89HDF", Identity { what: "an HDF5 file", advice: "convert the model to GGUF" }),
    (
        b"GGUG",
        Identity {
            what: "neither GGUF nor anything known (the magic is GGUG)",
            advice: "the file is damaged in its first bytes: download it again",
        },
    ),
    (
        b"FUGG",
        Identity {
            what: "a file whose magic is byte-swapped (FUGG): the writer swapped what is not a number",
            advice: "report it to the writer: the magic is the bytes GGUF in either byte order",
        },
    ),
    (
        b"\x7fELF",
        Identity { what: "an ELF executable, not a model", advice: "fetch the model itself" },
    ),
    (b"%PDF", Identity { what: "a PDF document, not a model", advice: "fetch the model itself" }),
];

const fn legacy(what: &'static str) -> Identity {
    let advice = "convert the model again from its source with a current convert_hf_to_gguf.py";
    Identity { what, advice }
}

const fn packed(what: &'static str) -> Identity {
    Identity { what, advice: "unpack it, or download it without compression" }
}

/// Recognises files that are not GGUF; `None` for GGUF files and for what nobody knows.
pub(crate) fn identify(bytes: &[u8]) -> Option<Identity> {
    if bytes.is_empty() {
        return Some(Identity {
            what: "an empty file",
            advice: "the download failed before its first byte: download it again",
        });
    }
    if bytes.starts_with(&MAGIC) {
        return None;
    }
    let head = &bytes[..bytes.len().min(1024)];
    if let Some((_, identity)) = MAGICS.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Some(Identity { ..*identity });
    }
    let text = head.trim_ascii_start();
    let lower = text.get(..14).unwrap_or(text).to_ascii_lowercase();
    if [&b"<!doctype html"[..], b"<html", b"<head", b"<body"].iter().any(|t| lower.starts_with(t)) {
        return Some(HTML);
    }
    if is_safetensors(bytes) {
        return Some(Identity {
            what: "a safetensors file",
            advice: "load it with a tool that reads safetensors, or convert it with \
                     convert_hf_to_gguf.py",
        });
    }
    if lower.starts_with(b"<?xml") || lower.starts_with(b"{") {
        return Some(Identity {
            what: "XML or JSON text, such as an error message of a server, not a model",
            advice: "read it: it may say why the download was refused",
        });
    }
    if head.windows(4).any(|window| window == MAGIC) {
        return Some(Identity {
            what: "a GGUF file with something in front of it",
            advice: "the download kept a header that does not belong to the file: download it again",
        });
    }
    if head.starts_with(&[0; 4]) {
        return Some(Identity {
            what: "a file that starts with zeros: the space was reserved, but its start never written",
            advice: "the download or copy did not finish: download it again",
        });
    }
    if std::str::from_utf8(text)
        .is_ok_and(|text| !text.chars().any(|c| c.is_control() && !c.is_whitespace()))
    {
        return Some(Identity {
            what: "text, not a model",
            advice: "read it: it may say why the download was refused",
        });
    }
    None
}

/// A safetensors file starts with the length of its JSON header.
fn is_safetensors(bytes: &[u8]) -> bool {
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else { return false };
    let length = u64::from_le_bytes(*length);
    (2..=100 << 20).contains(&length) && rest.first() == Some(&b'{')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_for_a_model() {
        for (bytes, what) in [
            (&b""[..], "an empty file"),
            (b"\n <!DOCTYPE HTML><html>", "an HTML page"),
            (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
            (b"tjgg\x03\0\0\0", "a GGJT file"),
            (b"\x1f\x8b\x08", "gzip"),
            (b"PK\x03\x04", "a ZIP archive"),
            (b"\x10\0\0\0\0\0\0\0{\"a\":", "a safetensors file"),
            (&[0; 64], "a file that starts with zeros"),
            (b"Access denied", "text"),
            (b"{\"error\":1}", "XML or JSON"),
            (b"1000\r\nGGUF\x03", "a GGUF file with something in front"),
        ] {
            let identity = identify(bytes).unwrap();
            assert!(identity.what.starts_with(what), "{what}: {}", identity.what);
        }
        assert_eq!(identify(b"GGUF"), None);
        assert_eq!(identify(b"\x01\x02\x03\x04"), None);
    }
}
