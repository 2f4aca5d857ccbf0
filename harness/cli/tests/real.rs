//! The command, the reader and ggml on real files; the command on a file of 11 GiB.
//!
//! A real file that is not in the cache makes its tests ignored, by name; with
//! `GGUF_ASSAY_REQUIRE_REAL=1` it makes them fail.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use gguf_assay::process::{Bounds, Process, Program};
use gguf_assay::{
    Answer, Channel, Failure, Profile, ReadRequest, Reference, Subject, difference, sha256,
};
use gguf_assay_format::{
    Description, OwnedArray, OwnedValue, Segment, TENSOR_TYPES, TensorDescription, ValueType,
    lay_out, read,
};
use gguf_assay_names::{Architecture, Change, CheckpointMap, CheckpointTensor};
use gguf_assay_oracle::NotDequantized;
use gguf_assay_quant::dequantize;
use libtest_mimic::{Arguments, Failed, Trial};
use safetensors::SafeTensors;
use serde_json::{Value, json};

const ASSAY: &str = env!("CARGO_BIN_EXE_gguf-assay");

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let required = std::env::var("GGUF_ASSAY_REQUIRE_REAL").is_ok_and(|value| value == "1");
    let mut trials = vec![huge()];
    for entry in entries() {
        let entry = Arc::new(entry);
        let skipped = !entry.here && !required;
        if skipped && !arguments.list {
            eprintln!("skipped: {} is not here (gguf-assay real fetch)", entry.name);
        }
        let mut test = |name: &str, test: fn(&Entry)| {
            let shared = Arc::clone(&entry);
            let trial = Trial::test(format!("{}/{name}", entry.name), move || {
                if !shared.here {
                    let how = "not here; bring it with: gguf-assay real fetch";
                    return Err(Failed::from(format!("{} is {how} {}", shared.name, shared.name)));
                }
                test(&shared);
                Ok(())
            });
            trials.push(trial.with_ignored_flag(skipped));
        };
        test("is-the-file-that-is-meant", is_meant);
        test("check", check);
        test("strict-reader", strict_reader);
        test("ggml-agrees", ggml_agrees);
        if entry.has_tensors() {
            test("numbers-are-ggmls", numbers_are_ggmls);
            test("every-number-is-finite", every_number_is_finite);
            test("a-scale-that-is-nan", a_scale_that_is_nan);
            test("by-way-of-a-checkpoint", by_way_of_a_checkpoint);
        }
        if entry.name == SMOLLM2 {
            test("cut-by-one-byte", cut_by_one_byte);
            test("cut-by-half", cut_by_half);
            test("cut-in-the-tensor-table", cut_in_the_tensor_table);
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// An entry of `corpus/real.toml`, as the command lists it.
struct Entry {
    name: String,
    path: PathBuf,
    here: bool,
    json: Value,
}

impl Entry {
    fn facts(&self) -> &Value {
        &self.json["facts"]
    }

    fn has_tensors(&self) -> bool {
        self.facts()["tensors"] != 0
    }

    fn accepts(&self, profile: Profile) -> bool {
        self.facts()["accepted"][profile.name()].as_bool().unwrap()
    }
}

fn entries() -> Vec<Entry> {
    let listed = Command::new(ASSAY).args(["real", "list", "--format", "json"]).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let list: Vec<Value> = serde_json::from_slice(&listed.stdout).unwrap();
    let entry = |json: Value| Entry {
        name: json["name"].as_str().unwrap().into(),
        path: json["path"].as_str().unwrap().into(),
        here: json["here"].as_bool().unwrap(),
        json,
    };
    list.into_iter().map(entry).collect()
}

/// What `gguf-assay check` finds, and its exit status.
fn assay_check(path: &Path, profile: Profile) -> (Value, i32) {
    let checked = Command::new(ASSAY)
        .args(["check", "--format", "json", "--profile", profile.name()])
        .arg(path)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&checked.stderr);
    let finding = serde_json::from_slice(&checked.stdout);
    let finding = finding.unwrap_or_else(|e| panic!("not one JSON object: {e}\n{stderr}"));
    (finding, checked.status.code().unwrap())
}

fn is_meant(entry: &Entry) {
    let path = Command::new(ASSAY).args(["real", "path", &entry.name]).output().unwrap();
    assert_eq!(String::from_utf8(path.stdout).unwrap().trim_end(), entry.path.to_str().unwrap());
    let bytes = fs::read(&entry.path).unwrap();
    assert_eq!(bytes.len() as u64, entry.json["size"]);
    assert_eq!(sha256(&bytes), entry.json["sha256"]);
}

fn check(entry: &Entry) {
    let facts = entry.facts();
    for profile in Profile::ALL {
        let (finding, status) = assay_check(&entry.path, profile);
        assert_eq!(status, i32::from(!entry.accepts(profile)), "{profile}: {finding}");
        assert_eq!(finding["accepted"], facts["accepted"], "{finding}");
        let summary = &finding["summary"];
        assert_eq!(summary["complete"], true, "{finding}");
        for what in ["version", "tensors", "keys"] {
            assert_eq!(summary[what], facts[what], "{what}: {finding}");
        }
        let types: serde_json::Map<String, Value> =
            serde_json::from_value::<Vec<(String, Value)>>(summary["types"].clone())
                .unwrap()
                .into_iter()
                .collect();
        assert_eq!(Value::from(types), facts["types"]);
    }
}

fn strict_reader(entry: &Entry) {
    let bytes = fs::read(&entry.path).unwrap();
    for profile in Profile::ALL {
        match read(&bytes, profile) {
            Ok(gguf) => {
                assert!(entry.accepts(profile), "{profile} accepts it");
                assert_eq!(gguf.version, entry.facts()["version"]);
                assert_eq!(gguf.tensors.len(), entry.facts()["tensors"]);
                assert_eq!(gguf.metadata.len(), entry.facts()["keys"]);
                assert!(gguf.tensors.iter().all(|tensor| gguf.tensor_bytes(tensor).is_some()));
            }
            Err(violation) => {
                assert!(!entry.accepts(profile), "{violation}");
                assert_eq!(violation.rule().id, "HDR-003", "{violation}");
            }
        }
    }
}

fn ggml_agrees(entry: &Entry) {
    let request = ReadRequest { path: entry.path.clone(), profile: Profile::Ggml, large: true };
    let ours = Reference.read(&request);
    for subject in ["ggml", "ggml-data"] {
        let program = Program {
            program: ASSAY.into(),
            args: vec!["serve".into(), subject.into()],
            ..Program::default()
        };
        let mut ggml = Process::start(program, Bounds::default()).unwrap();
        match (&ours, ggml.read(&request)) {
            (Ok(ours), Answer::Value(ggml)) => {
                assert!(entry.accepts(Profile::Ggml), "{subject} accepts it");
                assert_eq!(difference(&ggml, ours), None, "{subject}");
                assert_eq!(difference(ours, &ggml), None, "{subject}");
            }
            (Err(_), Answer::Failure(Failure::Rejected { message, .. })) => {
                assert!(!entry.accepts(Profile::Ggml), "{subject} refuses it: {message}");
                assert!(message.contains("GGUFv1 is no longer supported"), "{subject}: {message}");
            }
            (ours, ggml) => panic!("{subject}: {ggml:?}; the reference: {ours:?}"),
        }
    }
}

const GEMMA: &str = "gemma-3-270m-q4_k_m";
const SMOLLM2: &str = "SmolLM2-135M-Instruct.Q4_1";
/// The data section starts here, and ends with the file.
const SMOLLM2_DATA: u64 = 1_785_664;
const SMOLLM2_SIZE: u64 = 98_362_432;

/// The first `size` bytes of the file are refused: by both profiles and by ggml, in these words and
/// at this field.
fn cut(entry: &Entry, size: u64, answer: &str, field: &str, missing: u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.gguf");
    let mut whole = File::open(&entry.path).unwrap().take(size);
    assert_eq!(io::copy(&mut whole, &mut File::create(&path).unwrap()).unwrap(), size);

    for profile in Profile::ALL {
        let (finding, status) = assay_check(&path, profile);
        assert_eq!(status, 1, "{profile}: {finding}");
        assert_eq!(finding["accepted"][profile.name()], false, "{finding}");
        assert_eq!(finding["answer"], answer);
        assert_eq!(finding["violations"][0]["field"], field);
        assert_eq!(finding["violations"][0]["missing"], missing);
    }

    let program = Program {
        program: ASSAY.into(),
        args: vec!["serve".into(), "ggml".into()],
        ..Program::default()
    };
    let mut ggml = Process::start(program, Bounds::default()).unwrap();
    let answer = ggml.read(&ReadRequest { path, profile: Profile::Ggml, large: true });
    assert!(matches!(answer, Answer::Failure(Failure::Rejected { .. })), "{answer:?}");
}

/// Every number of every tensor, bit for bit; NaNs are one number.
fn numbers_are_ggmls(entry: &Entry) {
    let bytes = fs::read(&entry.path).unwrap();
    let gguf = read(&bytes, Profile::Spec).unwrap();
    let mut compared = 0;
    for tensor in &gguf.tensors {
        let (tensor_type, data) = (tensor.tensor_type.unwrap(), gguf.tensor_bytes(tensor).unwrap());
        let (len, size) = (tensor_type.block_len as usize, tensor_type.block_bytes as usize);
        // A part at a time: the numbers of an embedding take more memory than the file.
        for (part, blocks) in data.chunks(CHUNK * size).enumerate() {
            let mut ours = vec![0.0; blocks.len() / size * len];
            dequantize(tensor_type, blocks, gguf.byte_order, &mut ours).unwrap();
            let mut ggmls = vec![0.0; ours.len()];
            match gguf_assay_oracle::dequantize(tensor_type.id, blocks, &mut ggmls) {
                Ok(()) => {}
                Err(NotDequantized::NoFunction) if tensor_type.name == "F32" => {
                    let numbers = blocks.as_chunks::<4>().0.iter().map(|n| f32::from_le_bytes(*n));
                    ggmls = numbers.collect();
                }
                Err(error) => panic!("{}: {error}", tensor.name),
            }
            let wrong = ours.iter().zip(&ggmls).position(|(ours, ggmls)| {
                ours.to_bits() != ggmls.to_bits() && !(ours.is_nan() && ggmls.is_nan())
            });
            let wrong = wrong.map(|at| part * CHUNK * len + at);
            assert_eq!(wrong, None, "{}", tensor.name);
            compared += ours.len() as u64;
        }
    }
    let elements = gguf.tensors.iter().map(|tensor| tensor.dims.elements().unwrap());
    assert_eq!(compared, elements.sum::<u64>());
}

/// Blocks compared at a time.
const CHUNK: usize = 1 << 12;

/// What a file comes to by `names --export` and `--config` comes to the same file by `names --from
/// transformers`: names, dimensions and keys, and of numbers those that ggml makes of the blocks.
fn by_way_of_a_checkpoint(entry: &Entry) {
    let bytes = fs::read(&entry.path).unwrap();
    let gguf = read(&bytes, Profile::Spec).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let exported = folder.path().join("model.safetensors");
    let names = |args: &[&std::ffi::OsStr]| {
        let output = Command::new(ASSAY).arg("names").args(args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{said}");
        (output.stdout, said)
    };
    let path = entry.path.as_os_str();
    let (_, said) = names(&[path, "--export".as_ref(), exported.as_os_str()]);
    for (name, count) in entry.facts()["types"].as_object().unwrap() {
        assert!(name == "F32" || said.contains(&format!("{count} of {name}")), "{said}");
    }
    let (config, _) = names(&[path, "--config".as_ref()]);
    fs::write(folder.path().join("config.json"), &config).unwrap();
    let args = ["--from", "transformers", "--format", "json"].map(AsRef::as_ref);
    let (back, _) = names(&[args.as_slice(), &[folder.path().as_os_str()]].concat());
    let back: Value = serde_json::from_slice(&back).unwrap();
    assert_eq!(back["complete"], true, "{back}");

    let architecture = gguf.get("general.architecture").unwrap().as_str().unwrap();
    let mut found: Vec<(Value, Value)> = Vec::new();
    for tensor in back["tensors"].as_array().unwrap() {
        found.push((tensor["name"].clone(), tensor["dims"].clone()));
    }
    let mut expected: Vec<(Value, Value)> = Vec::new();
    for tensor in &gguf.tensors {
        let dims: Vec<u64> = tensor.dims.iter().collect();
        expected.push((json!(tensor.name.as_str().unwrap()), json!(dims)));
    }
    found.sort_by_key(|(name, _)| name.to_string());
    expected.sort_by_key(|(name, _)| name.to_string());
    assert_eq!(found, expected);
    let is_ours = |key: &str| key.starts_with(&format!("{architecture}."));
    let keys = gguf.metadata.iter().filter(|each| is_ours(each.key.as_str().unwrap()));
    let mut expected: Vec<&str> = keys.map(|each| each.key.as_str().unwrap()).collect();
    expected.sort_unstable();
    let mut found: Vec<&str> =
        back["metadata"].as_object().unwrap().keys().map(String::as_str).collect();
    found.sort_unstable();
    assert_eq!(found, expected);

    let config = serde_json::from_slice(&config).unwrap();
    let written = fs::read(&exported).unwrap();
    let tensors = SafeTensors::deserialize(&written).unwrap();
    let checkpoint: Vec<CheckpointTensor> = tensors
        .iter()
        .map(|(name, view)| CheckpointTensor {
            name: name.to_owned(),
            shape: view.shape().iter().map(|dim| *dim as u64).collect(),
        })
        .collect();
    let map = CheckpointMap::of(Architecture::find(architecture).unwrap(), &checkpoint, &config);
    for (key, value) in &map.metadata {
        assert_eq!(gguf.get(key).copied().map(OwnedValue::from).as_ref(), Some(value), "{key}");
    }
    for tensor in &map.tensors {
        let read = |at: usize| tensors.tensor(&checkpoint[at].name).ok().map(|view| view.data());
        let found = tensor.bytes(4, read).unwrap();
        let there = gguf.tensor(&tensor.name).unwrap();
        let (t, data) = (there.tensor_type.unwrap(), gguf.tensor_bytes(there).unwrap());
        let mut ggmls = vec![0.0; found.len() / 4];
        if t.name == "F32" {
            ggmls = data.as_chunks::<4>().0.iter().map(|n| f32::from_le_bytes(*n)).collect();
        } else {
            gguf_assay_oracle::dequantize(t.id, data, &mut ggmls).unwrap();
        }
        for (found, ggml) in found.as_chunks::<4>().0.iter().zip(&ggmls) {
            let found = f32::from_le_bytes(*found);
            let same = match tensor.change {
                Change::None => found.to_bits() == ggml.to_bits(),
                // One taken away and added again: below a half, that rounds.
                _ => (found - ggml).abs() <= f32::EPSILON / 2.0,
            };
            assert!(same, "{}: {found} is not {ggml}", tensor.name);
        }
    }
}

/// What `check --deep` finds, and its exit status.
fn check_deep(path: &Path) -> (Value, Option<i32>) {
    let output = Command::new(ASSAY)
        .args(["check", "--deep", "--format", "json"])
        .arg(path)
        .output()
        .unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    (json["not_finite"].clone(), output.status.code())
}

fn every_number_is_finite(entry: &Entry) {
    assert_eq!(check_deep(&entry.path), (Value::Array(Vec::new()), Some(0)));
}

/// A NaN to write into a copy of a file, by hand from its tensor table, and the block it spoils.
struct Planted {
    tensor: &'static str,
    tensor_type: &'static str,
    /// Where the tensor starts in the file.
    start: u64,
    /// Bytes of a block of the type.
    block_bytes: u64,
    /// The field within the block.
    field: u64,
    block: u64,
    /// Elements of the block, all of which are NaN then.
    block_len: u64,
    /// Elements of the tensor.
    of: u64,
}

/// The scale `d`, at the start of a block of Q4_1.
const IN_SMOLLM2: &[Planted] = &[Planted {
    tensor: "blk.15.attn_output.weight",
    tensor_type: "Q4_1",
    start: 49_114_432,
    block_bytes: 20,
    field: 0,
    block: 5,
    block_len: 32,
    of: 576 * 576,
}];

/// The scale `d`, at the end of a block of Q6_K, and `dmin` in the last of Q4_K: a NaN times a min of
/// 0 is NaN, too. The data section starts at byte 6525120.
const IN_GEMMA: &[Planted] = &[
    Planted {
        tensor: "blk.10.ffn_down.weight",
        tensor_type: "Q6_K",
        start: 6_525_120 + 216_931_328,
        block_bytes: 210,
        field: 208,
        block: 700,
        block_len: 256,
        of: 2048 * 640,
    },
    Planted {
        tensor: "blk.9.attn_output.weight",
        tensor_type: "Q4_K",
        start: 6_525_120 + 212_340_736,
        block_bytes: 144,
        field: 2,
        block: 1024 * 640 / 256 - 1,
        block_len: 256,
        of: 1024 * 640,
    },
];

fn a_scale_that_is_nan(entry: &Entry) {
    let planted = match entry.name.as_str() {
        SMOLLM2 => IN_SMOLLM2,
        GEMMA => IN_GEMMA,
        name => panic!("nobody has said where to plant a NaN in {name}"),
    };
    for plant in planted {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nan.gguf");
        fs::copy(&entry.path, &path).unwrap();
        let mut file = File::options().write(true).open(&path).unwrap();
        let at = plant.start + plant.block * plant.block_bytes + plant.field;
        file.seek(SeekFrom::Start(at)).unwrap();
        // 0x7E00, a NaN in half precision.
        file.write_all(&[0x00, 0x7E]).unwrap();
        drop(file);
        let (found, status) = check_deep(&path);
        assert_eq!((found.as_array().unwrap().len(), status), (1, Some(1)), "{found}");
        let expected = json!({
            "tensor": plant.tensor, "type": plant.tensor_type, "count": plant.block_len,
            "of": plant.of, "block": plant.block, "element": 0, "value": "NaN",
        });
        for (field, value) in expected.as_object().unwrap() {
            assert_eq!(&found[0][field], value, "{field}");
        }
    }
}

fn cut_by_one_byte(entry: &Entry) {
    // The last tensor in the table, output_norm.weight, is also the last in the data: 576 F32 at
    // offset 96574464, 1785664 + 96574464 + 576 * 4 = 98362432, the size.
    let answer = "the file is cut off: 1 byte of 98362432 (93.8 MiB) missing, from the data of \
                  tensor \"output_norm.weight\"";
    cut(entry, SMOLLM2_SIZE - 1, answer, "tensors[271].data", 1);
}

fn cut_by_half(entry: &Entry) {
    // 98362432 / 2 = 49181216. Record 70, blk.15.attn_output.weight, has 576 * 576 values in Q4_1
    // at offset 47328768: 331776 / 32 * 20 = 207360 bytes, which run from byte 49114432 to byte
    // 49321792. 49321792 - 49181216 = 140576 of them are missing; so are the 201 tensors behind.
    let half = SMOLLM2_SIZE / 2;
    assert!((49_114_432..49_321_792).contains(&half));
    assert_eq!(SMOLLM2_DATA + 47_328_768 + 207_360 - half, 140_576);
    let answer = "the file is cut off: 49181216 bytes of 98362432 (93.8 MiB) missing, from the \
                  data of tensor \"blk.15.attn_output.weight\" and 201 more of 272 tensors";
    cut(entry, half, answer, "tensors[70].data", 140_576);
}

fn cut_in_the_tensor_table(entry: &Entry) {
    // Record 136 starts at byte 1777607 with the length of its name, 8 bytes, and the 23 bytes of
    // "blk.22.attn_norm.weight"; 5 of them are kept, 18 are not.
    let size = 1_777_607 + 8 + 5;
    let answer = "the file is cut off: it ends in tensors[136].name, at byte 1777620, at least 18 \
                  bytes missing";
    cut(entry, size, answer, "tensors[136].name", 18);
}

/// The memory that a check may take for itself.
const LIMIT_KIB: u64 = 64 << 10;

/// A check takes no memory for tensor data. The limit is one of Linux on what a process has to
/// itself (heap, stacks, private maps that it may write), which a mapped file is no part of: more,
/// and the allocation fails. So nothing has to be measured while it runs.
fn huge() -> Trial {
    Trial::test("huge/check-takes-no-memory-for-tensor-data", || {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("huge.gguf");
        let size = write_huge(&path);
        assert!(size > 10 << 30, "{size}");

        let script = format!("ulimit -d {LIMIT_KIB} && exec \"$0\" check --format json \"$1\"");
        let checked = Command::new("sh").args(["-c", &script, ASSAY]).arg(&path).output().unwrap();
        let stderr = String::from_utf8_lossy(&checked.stderr);
        assert_eq!(checked.status.code(), Some(0), "{}: {stderr}", checked.status);
        let finding: Value = serde_json::from_slice(&checked.stdout).unwrap();
        assert_eq!(finding["answer"], "the file is fine");
        assert_eq!(finding["size"], size);
        assert_eq!(finding["summary"]["tensors"], HUGE_TENSORS);
        Ok(())
    })
    .with_ignored_flag(!memory_is_limited())
}

/// Whether the limit holds here: `dd` cannot have a buffer of twice as much.
fn memory_is_limited() -> bool {
    let dd = |size: u64| {
        let dd = format!("exec dd if=/dev/zero of=/dev/null count=1 bs={size}");
        let script = format!("ulimit -d {LIMIT_KIB} && {dd}");
        let status = Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    cfg!(target_os = "linux") && dd(1024) && !dd(2 * LIMIT_KIB * 1024)
}

const HUGE_TENSORS: u64 = 1000;

/// Writes a valid file of 11.1 GiB, nearly all of it a hole, with a vocabulary; gives its size.
fn write_huge(path: &Path) -> u64 {
    let q4_k = TENSOR_TYPES.iter().find(|t| t.name == "Q4_K").unwrap();
    // 256 values in 144 bytes: 4608 * 4608 take 11943936 bytes, 1000 tensors 11.1 GiB.
    let tensor = |index| TensorDescription::zeros(&format!("t.{index}"), q4_k, &[4608, 4608]);
    let tokens = (0..32_000).map(|index| OwnedValue::String(format!("token{index}").into()));
    let tokens = OwnedArray::new(ValueType::String, tokens.collect());
    let layout = lay_out(&Description {
        metadata: vec![
            ("general.architecture".into(), "llama".into()),
            ("general.quantization_version".into(), 2u32.into()),
            ("tokenizer.ggml.tokens".into(), OwnedValue::Array(tokens)),
        ],
        tensors: (0..HUGE_TENSORS).map(tensor).collect(),
        ..Description::default()
    });
    let mut file = File::create(path).unwrap();
    file.set_len(layout.len()).unwrap();
    for segment in layout.segments.as_slice() {
        match segment {
            Segment::Bytes(bytes) => file.write_all(bytes).unwrap(),
            Segment::Zeros(len) => {
                file.seek(SeekFrom::Current(i64::try_from(*len).unwrap())).unwrap();
            }
        }
    }
    layout.len()
}
