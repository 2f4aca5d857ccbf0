//! `gguf-assay dequantize` on a tensor whose numbers are known by hand.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gguf_assay_format::{Data, Description, TensorDescription, lay_out};

/// Two rows of one block of Q8_0 (type 8): a scale of 1 (0x3C00), then one of -0.5 (0xB800), and the
/// quants 0 to 31.
fn model(dir: &Path) -> PathBuf {
    let quants: Vec<u8> = (0..32).collect();
    let data = [&[0x00, 0x3C][..], &quants, &[0x00, 0xB8], &quants].concat();
    let tensor = TensorDescription {
        name: "blk.0.attn_q.weight".into(),
        dims: vec![32, 2],
        type_id: 8,
        offset: None,
        data: Data::Bytes(data),
    };
    let description = Description { tensors: vec![tensor], ..Description::default() };
    let path = dir.join("model.gguf");
    std::fs::write(&path, lay_out(&description).to_bytes()).unwrap();
    path
}

fn dequantize(path: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gguf-assay"));
    command.arg("dequantize").arg(path).args(args).env("NO_COLOR", "1").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.into()).unwrap()
}

#[test]
fn the_start_of_a_row() {
    let dir = tempfile::tempdir().unwrap();
    let path = model(dir.path());
    let output = dequantize(&path, &["blk.0.attn_q.weight", "--row", "1", "--first", "3"]);
    assert_eq!(
        text(&output.stdout),
        "blk.0.attn_q.weight: Q8_0 [32, 2], row 1 of 2\n\
         \x20  -0.000000e0 -5.000000e-1  -1.000000e0\n\
         \x20 … 29 more in the row\n"
    );
    assert_eq!(output.status.code(), Some(0));
}

/// NumPy's format, version 1.0: magic, version, length of the header, header, data.
#[test]
fn a_numpy_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = model(dir.path());
    let out = dir.path().join("out.npy");
    let args = ["blk.0.attn_q.weight", "--out", out.to_str().unwrap()];
    assert_eq!(dequantize(&path, &args).status.code(), Some(0));
    let bytes = std::fs::read(out).unwrap();
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    assert_eq!(start % 64, 0);
    let header = text(&bytes[10..start]);
    let dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 32, ), }";
    assert_eq!(header.trim_end(), dict);
    assert!(header.ends_with('\n'));
    let (numbers, rest) = bytes[start..].as_chunks::<4>();
    assert!(rest.is_empty());
    let numbers: Vec<f32> = numbers.iter().map(|number| f32::from_le_bytes(*number)).collect();
    let expected: Vec<f32> =
        (0..32u8).map(f32::from).chain((0..32u8).map(|q| f32::from(q) * -0.5)).collect();
    assert_eq!(numbers, expected);
}

#[test]
fn what_is_not_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = model(dir.path());
    for (args, complaint) in [
        (&["attn_q"][..], "there is blk.0.attn_q.weight"),
        (&["output.weight"], "the file has 1"),
        (&["blk.0.attn_q.weight", "--row", "2"], "2 rows, so that the last is 1"),
    ] {
        let output = dequantize(&path, args);
        assert!(text(&output.stderr).contains(complaint), "{}", text(&output.stderr));
        assert_eq!(output.status.code(), Some(2));
    }
}
