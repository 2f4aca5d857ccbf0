//! Checkpoints: configs, an index and safetensors files.

use std::collections::BTreeMap;

use gguf_assay_checkpoint::{Checkpoint, Finding, Header, MemoryFiles, Options, judge, rule};
use safetensors::SafeTensors;

/// Stands in front of each file of an input, with a byte for its name behind it.
const MARK: &[u8] = b"\n#FILE";

/// The names that a file may have.
const NAMES: [&str; 8] = [
    "config.json",
    "model.safetensors",
    "model.safetensors.index.json",
    "model-00001-of-00002.safetensors",
    "model-00002-of-00002.safetensors",
    "quantize_config.json",
    "hf_quant_config.json",
    "consolidated.safetensors",
];

/// Added to the place of a name: what follows is the text of a header, a zero, and a pattern of bytes.
/// The length in front, and as much data as the offsets say, are made for it, so that what is mutated
/// in a header stays a header.
const MADE: u8 = 0x80;

/// As much data is made for a header.
const MOST_DATA: u64 = 16 << 10;

/// The input of the target that has these files; other names are left out, and so is all of the data
/// of a safetensors file but 8 bytes.
pub fn checkpoint_input(files: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let mut input = Vec::new();
    for (name, bytes) in files {
        let Some(place) = NAMES.iter().position(|each| each == name) else { continue };
        let place = u8::try_from(place).expect("few names");
        input.extend(MARK);
        let parts =
            parts(bytes).map(|(header, data)| [header, &data[..data.len().min(8)]].join(&0));
        match parts.filter(|parts| made(parts).len() == bytes.len()) {
            Some(parts) => {
                input.push(place | MADE);
                input.extend(parts);
            }
            // Its length, or that of its data, is not what it should be.
            None => {
                input.push(place);
                input.extend(bytes);
            }
        }
    }
    input
}

/// The header and the data of a safetensors file.
fn parts(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
}

/// The files of an input.
fn files(input: &[u8]) -> MemoryFiles {
    let mut files = BTreeMap::new();
    let mut rest = input;
    while let Some(start) = rest.windows(MARK.len()).position(|bytes| bytes == MARK) {
        rest = &rest[start + MARK.len()..];
        let Some((name, after)) = rest.split_first() else { break };
        let end = after.windows(MARK.len()).position(|bytes| bytes == MARK);
        let bytes = &after[..end.unwrap_or(after.len())];
        let place = usize::from(name & !MADE) % NAMES.len();
        let bytes = if name & MADE == 0 { bytes.to_vec() } else { made(bytes) };
        files.insert(NAMES[place].to_owned(), bytes);
    }
    MemoryFiles(files)
}

/// The file of a header's text, a zero, and the pattern of its data.
fn made(bytes: &[u8]) -> Vec<u8> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (text, pattern) = bytes.split_at(end);
    let tensors = Header::parse(text, u64::MAX).0.unwrap_or_default().tensors;
    let end = tensors.iter().map(|tensor| tensor.offset.saturating_add(tensor.len)).max();
    let start = 8 + text.len() as u64;
    let data = end.unwrap_or(start).saturating_sub(start).min(MOST_DATA);
    let pattern = pattern.get(1..).filter(|pattern| !pattern.is_empty()).unwrap_or(&[0]);
    let data = pattern.iter().copied().cycle().take(data as usize);
    (text.len() as u64).to_le_bytes().into_iter().chain(text.iter().copied()).chain(data).collect()
}

/// Opens and judges the files, whatever they hold: nothing panics, nothing reaches a report as it is,
/// no count is believed, and of headers those are refused that safetensors refuses.
pub fn checkpoint(input: &[u8]) {
    let files = files(input);
    for (name, bytes) in files.0.iter().filter(|(name, _)| name.ends_with(".safetensors")) {
        let (header, findings) = Header::read(&files, name);
        agrees(bytes, &header.unwrap_or_default(), &findings);
    }
    let len: usize = files.0.values().map(Vec::len).sum();
    let checkpoint = Checkpoint::open(files).expect("files in memory");
    for tensor in checkpoint.tensors() {
        if let Ok(bytes) = checkpoint.read(&tensor.name) {
            assert!(bytes.len() <= len, "{}", tensor.name);
        }
    }
    for tp in [None, Some(2)] {
        let judgement = judge(&checkpoint, &Options { tp, ..Options::default() });
        for finding in &judgement.findings {
            let text = finding.to_string();
            assert!(!text.contains(char::is_control), "{text:?}");
        }
        for module in &judgement.modules {
            if let Ok(matrix) = checkpoint.unpack(module) {
                // A byte has 8 codes of one bit at most.
                assert!(matrix.numbers.len() <= 8 * len, "{}", module.name);
                assert_eq!(matrix.shape.iter().product::<u64>(), matrix.numbers.len() as u64);
            }
        }
    }
}

/// Holds the verdict on a header against that of safetensors, and the tensors where both accept.
fn agrees(file: &[u8], header: &Header, findings: &[Finding]) {
    // safetensors 0.8 adds up where data ends without a look, and panics with overflow checks.
    let sum = header.tensors.iter().try_fold(0u64, |sum, tensor| sum.checked_add(tensor.len));
    if sum.is_none_or(|sum| sum > u64::MAX / 2) {
        return;
    }
    let faults: Vec<&Finding> = findings.iter().filter(|finding| finding.is_fault()).collect();
    let Ok((length, theirs)) = SafeTensors::read_metadata(file) else {
        assert!(!faults.is_empty(), "only safetensors refuses it");
        return;
    };
    for fault in faults {
        let is_known = rule::ACCEPTED_BY_SAFETENSORS.contains(&fault.rule);
        assert!(is_known, "safetensors accepts it: {fault}");
    }
    for tensor in &header.tensors {
        let info = theirs.info(&tensor.name).expect("a tensor");
        let (start, end) = info.data_offsets;
        let offset = (8 + length + start) as u64;
        assert_eq!((offset, (end - start) as u64), (tensor.offset, tensor.len), "{}", tensor.name);
        assert!(info.shape.iter().map(|dim| *dim as u64).eq(tensor.shape.iter().copied()));
        assert_eq!(info.dtype.to_string(), tensor.dtype.name);
    }
}

/// The first rule that the files break.
pub(crate) fn rule(input: &[u8]) -> String {
    let checkpoint = Checkpoint::open(files(input)).expect("files in memory");
    match judge(&checkpoint, &Options::default()).findings.first() {
        Some(finding) => finding.to_string(),
        None => "none: the checkpoint is in order".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_back_from_an_input() {
        let text = r#"{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}"#;
        let file = [&(text.len() as u64).to_le_bytes(), text.as_bytes(), b"\x77\x77\x77"].concat();
        let config = ("config.json".to_owned(), b"{}".to_vec());
        let all = BTreeMap::from([config, ("model.safetensors".into(), file)]);
        assert_eq!(files(&checkpoint_input(&all)).0, all);
        assert_eq!(files(b"").0, BTreeMap::new());
        checkpoint(&checkpoint_input(&all));
        assert!(rule(&checkpoint_input(&all)).starts_with("none"));
    }
}
