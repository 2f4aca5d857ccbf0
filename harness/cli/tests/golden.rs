//! What the command prints and what errors say, against `golden/`. After a change that is meant,
//! `INSTA_UPDATE=always cargo test -p gguf-assay-cli --test golden` writes the new texts.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gguf_assay_cases::Corpus;
use gguf_assay_format::{ByteOrder, Status, TENSOR_TYPES};
use gguf_assay_oracle::NotDequantized;
use gguf_assay_quant::dequantize;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn snapshot(folder: &str, name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(root().join("golden").join(folder));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// Runs the command at the root of the repository.
fn assay(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gguf-assay"));
    command.args(args).current_dir(root()).env("NO_COLOR", "1").env("COLUMNS", "100");
    command.output().unwrap()
}

/// The call, what it printed and its exit status.
fn transcript(args: &[&str]) -> String {
    let output = assay(args);
    let mut text = format!("$ gguf-assay {}\n", args.join(" "));
    text += &String::from_utf8(output.stdout).unwrap();
    text += &String::from_utf8(output.stderr).unwrap();
    let _ = writeln!(text, "[exit status {}]", output.status.code().unwrap());
    text
}

/// What `check` answers, for files that need different answers.
#[test]
fn check() {
    let mut text = String::new();
    for id in [
        "read/tensors/every-scalar-type",
        "read/metadata/key-hyphen",
        "read/arrays/nested",
        "read/metadata/duplicate-key",
        "read/metadata/key-escape-sequence",
        "read/truncation/quantized-at-tensors-1-dims-0-plus-1",
        "read/truncation/quantized-at-tensors-1-data",
        "read/truncation/minimal-at-header-magic",
        "read/download/html",
        "read/download/lfs-pointer",
        "read/download/ggjt",
        "read/download/gzip",
        "read/download/zip",
        "read/download/safetensors",
        "read/download/zeros-for-magic",
        "read/download/zeros-before",
    ] {
        text += &transcript(&["check", &format!("corpus/{id}.gguf")]);
        text.push('\n');
    }
    snapshot("cli", "check", &text);
}

#[test]
fn check_json() {
    let text = transcript(&[
        "check",
        "--format",
        "json",
        "corpus/read/metadata/duplicate-key.gguf",
        "corpus/read/download/html.gguf",
    ]);
    snapshot("cli", "check-json", &text);
}

/// The types, and the first numbers of one block of each. Where ggml has a function, the numbers are
/// ggml's, and the reference's are the same.
#[test]
fn quants() {
    let mut text = String::new();
    for t in TENSOR_TYPES.iter().filter(|t| t.status != Status::Removed) {
        let len = t.block_len.max(8) as usize;
        let blocks = len / t.block_len as usize;
        let size = blocks * t.block_bytes as usize;
        // Bytes that differ, and that make no scale infinite or NaN.
        let bytes: Vec<u8> = (0..size).map(|place| (place * 37 % 59) as u8).collect();
        let mut numbers = vec![0.0; len];
        dequantize(t, &bytes, ByteOrder::Little, &mut numbers).unwrap();
        let mut ggmls = vec![0.0; len];
        let source = match gguf_assay_oracle::dequantize(t.id, &bytes, &mut ggmls) {
            Ok(()) => {
                let bits =
                    |numbers: &[f32]| numbers.iter().map(|n| n.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&numbers), bits(&ggmls), "{t}");
                "ggml"
            }
            Err(NotDequantized::NoFunction) => "reference",
            Err(error) => panic!("{t}: {error}"),
        };
        let weight = f64::from(8 * t.block_bytes) / f64::from(t.block_len);
        let _ = writeln!(
            text,
            "{:>2} {t}: {} bytes for {}, {weight} bits a weight\n   {source}: {:?}",
            t.id,
            t.block_bytes,
            t.block_len,
            &numbers[..8]
        );
    }
    snapshot("quants", "types", &text);
}

/// What `names` answers for a file, its config, an architecture, and a file with a fault.
#[test]
fn names() {
    let pairs = "corpus/names/pairs";
    let mut text = String::new();
    for args in [
        &["names", &format!("{pairs}/deepseek2-v3/model.gguf")][..],
        &["names", &format!("{pairs}/llama4/model.gguf"), "--config"],
        &["names", &format!("{pairs}/gpt2/model.gguf"), "--format", "json"],
        &["names", &format!("{pairs}/gpt-oss-mxfp4/model.gguf"), "--keep-mxfp4"],
        &["names", "qwen3moe"],
        &["names", "qwen3_moe"],
        &["names", "chameleon"],
        &["names", "corpus/read/tensors/twelve-tensors.gguf"],
        &["names", "corpus/read/tensors/twelve-tensors.gguf", "--config"],
        &[
            "names",
            "corpus/read/tensors/twelve-tensors.gguf",
            "--config",
            "--export",
            "x.safetensors",
        ],
        &["names", "corpus/read/header/empty-file.gguf"],
        &["names", "corpus/read/download/html.gguf"],
        &["names", "--from", "transformers", "corpus"],
        &["names", "--from", "transformers", "--to", "transformers", "corpus"],
    ] {
        text += &transcript(args);
        text.push('\n');
    }
    snapshot("cli", "names", &text);
}

/// The exported parameters come to the same file again, and are those of the checkpoint.
#[test]
fn exported_parameters() {
    let out = tempfile::tempdir().unwrap();
    let pair = root().join("corpus/names/pairs/minimax-m2");
    let exported = out.path().join("model.safetensors");
    let (file, exported) = (pair.join("model.gguf"), exported.to_str().unwrap().to_owned());
    let export = assay(&["names", file.to_str().unwrap(), "--export", &exported]);
    assert_eq!(export.status.code(), Some(0), "{}", String::from_utf8_lossy(&export.stderr));
    std::fs::copy(pair.join("config.json"), out.path().join("config.json")).unwrap();
    let back = assay(&["names", "--from", "transformers", out.path().to_str().unwrap()]);
    assert_eq!(back.status.code(), Some(0), "{}", String::from_utf8_lossy(&back.stdout));
    let text = String::from_utf8(back.stdout).unwrap();
    assert!(text.contains("41 parameters come to 29 tensors"), "{text}");
}

/// gpt-oss with MXFP4: dequantized, or as it is published, and from there to the same file again.
#[test]
fn exported_blocks() {
    let pair = root().join("corpus/names/pairs/gpt-oss-mxfp4");
    let file = pair.join("model.gguf");
    for (more, parameters, note) in [
        (&[][..], 20, "; tensors made F32: 3 of MXFP4"),
        // Blocks and scales of two.
        (&["--keep-mxfp4"], 22, ""),
    ] {
        let out = tempfile::tempdir().unwrap();
        let exported = out.path().join("model.safetensors").to_str().unwrap().to_owned();
        let mut args = vec!["names", file.to_str().unwrap(), "--export", &exported];
        args.extend_from_slice(more);
        let export = assay(&args);
        let said = String::from_utf8(export.stderr).unwrap();
        assert_eq!(export.status.code(), Some(0), "{said}");
        assert_eq!(said.trim_end(), format!("{exported}: {parameters} parameters{note}"));
        std::fs::copy(pair.join("config.json"), out.path().join("config.json")).unwrap();
        let back = assay(&["names", "--from", "transformers", out.path().to_str().unwrap()]);
        assert_eq!(back.status.code(), Some(0), "{}", String::from_utf8_lossy(&back.stdout));
        let text = String::from_utf8(back.stdout).unwrap();
        assert!(text.contains(&format!("{parameters} parameters come to 22 tensors")), "{text}");
        let blocks = text.contains("blk.0.ffn_gate_exps.weight [64, 32, 3] MXFP4");
        assert_eq!(blocks, !more.is_empty(), "{text}");
    }
}

#[test]
fn wrong_calls() {
    let mut text = String::new();
    for args in [
        &["check", "there/is/no/such.gguf"][..],
        &["check", "corpus"],
        &["explain", "META-999"],
        &["explain", "duplicate-key"],
        &["run", "no-such-reader"],
        &["run", "reference", "--filter", "nothing/*"],
        &["run", "--profile", "strict"],
        &["run", "reference", "--timeout", "0"],
        &["run", "--adapter", "there/is/no/adapter", "--filter", "read/header/empty-file"],
        &["report"],
        &["report", "there/is/no/such.json"],
        &["report", "corpus/read/alignment"],
        &["report", "harness/subjects/capabilities.json"],
        &["subjects", "install", "no-such-reader"],
        &["serve", "no-such-reader"],
        &["dequantize", "corpus/read/tensors/twelve-tensors.gguf", "no-such-tensor"],
        &["dequantize", "corpus/read/download/html.gguf", "t"],
    ] {
        text += &transcript(args);
        text.push('\n');
    }
    // A new case is no news here.
    let cases = format!(" of {} cases", Corpus::embedded().all().count());
    snapshot("cli", "wrong-calls", &text.replace(&cases, " of all cases"));
}

#[test]
fn explanations() {
    let mut text = transcript(&["explain", "META-006"]);
    text.push('\n');
    text += &transcript(&["explain", "read/metadata/duplicate-key"]);
    snapshot("cli", "explain", &text);
}

#[test]
fn lists() {
    let mut text = transcript(&["list", "rules"]);
    text.push('\n');
    text += &transcript(&["list", "types"]);
    text.push('\n');
    text += &transcript(&["list", "cases", "read/alignment/*"]);
    text.push('\n');
    text += &transcript(&["list", "architectures", "g*"]);
    snapshot("cli", "list", &text);
}

#[test]
fn help() {
    let mut text = String::new();
    for args in [
        &["--help"][..],
        &["run", "--help"],
        &["report", "--help"],
        &["check", "--help"],
        &["names", "--help"],
        &["subjects", "--help"],
    ] {
        text += &transcript(args);
        text.push('\n');
    }
    snapshot("cli", "help", &text);
}

/// Nothing that a file says reaches the terminal as it is.
#[test]
fn no_control_characters_reach_the_terminal() {
    let corpus = Corpus::embedded();
    let cases = corpus.cases.iter().filter(|case| ["metadata", "tensors"].contains(&case.area()));
    let paths: Vec<String> = cases.map(|case| format!("corpus/{}.gguf", case.id)).collect();
    let committed = paths.iter().map(String::as_str).filter(|path| root().join(path).exists());
    for format in ["text", "json"] {
        let mut args = vec!["check", "--all", "--format", format];
        args.extend(committed.clone());
        let text = String::from_utf8(assay(&args).stdout).unwrap();
        assert!(text.contains("key-escape-sequence"), "the hostile cases are among them");
        for line in text.lines() {
            assert_eq!(line.chars().find(|c| c.is_control()), None, "{line:?}");
        }
    }
}
