//! The protocol loop that adapters in Python share, driven with a reader made for it.

use std::path::Path;

use gguf_assay::process::{Bounds, Process, Program};
use gguf_assay::{
    Answer, Channel, CheckpointQuestion, CheckpointRequest, CheckpointValue, Failure, MappedName,
    NamesGiven, NamesRequest, NamesValue, OwnedValue, UnpackRequest, WeightValue,
};
use serde_json::json;

mod protocol_loop;
use protocol_loop::{hold, read, rejected, value};

const ADAPTER: &str = r#"
import sys
import gguf_assay_adapter as adapter

class Odd(Exception):
    pass

def read(path):
    print("what a reader prints is no answer")
    case = path.rsplit("/", 1)[-1]
    if case == "values":
        return {
            "version": 3,
            "metadata": [
                ["text", {"string": adapter.text(b"\xc3\xa9")}],
                ["bytes", {"string": adapter.text(b"\xff")}],
                ["f32", {"f32": adapter.f32(-0.0)}],
                ["f64", {"f64": adapter.f64(float("inf"))}],
                ["u64", {"u64": adapter.integer(2**64 - 1)}],
                ["array", adapter.array("u8", [adapter.integer(7)])],
            ],
            "tensors": [adapter.tensor("t", "F32", [4, 2], 0, "00")],
        }
    if case == "key-error":
        raise KeyError("a sentence without quotes")
    if case == "recursion":
        return read(path)
    if case == "odd":
        raise Odd("of a module")
    if case == "unimplemented":
        raise adapter.Unimplemented("big-endian")
    sys.exit(3)

def map_names(architecture, to, request):
    if to == "gguf":
        raise adapter.Unimplemented("one direction only")
    names = [
        adapter.name(architecture + "." + entry["name"], [entry["name"]], entry["shape"], b"\0\0\x80\x3f")
        for entry in request["names"]
    ]
    return {"names": names, "config": {"keys": len(request["metadata"])}}

def judge_checkpoint(path, tp):
    if tp is None:
        raise Odd(path)
    return {"method": "gptq", "bits": tp}

def unpack(path, module):
    return (1, 1), b"\0\0\x80\x3f"

adapter.serve(
    lambda: {"name": "odd", "version": "1", "ops": ["read"]},
    read,
    map_names=map_names,
    judge_checkpoint=judge_checkpoint,
    unpack=unpack,
)
"#;

#[test]
#[ignore = "needs python3"]
fn what_a_reader_does_is_reported_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("adapter.py");
    std::fs::write(&script, ADAPTER).unwrap();
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
    let program = Program {
        program: "python3".into(),
        args: vec![script.display().to_string()],
        env: vec![
            ("PYTHONPATH".into(), shared.display().to_string()),
            ("PYTHONDONTWRITEBYTECODE".into(), "1".into()),
        ],
        dir: None,
    };
    let mut process = Process::start(program, Bounds::default()).unwrap();
    let file = hold(&mut process, "__main__.Odd", "RecursionError");
    assert_eq!(*value(&file, "bytes"), OwnedValue::String(b"\xff".into()));
    assert_eq!(read(&mut process, "key-error"), rejected("KeyError", "a sentence without quotes"));

    let mut map = |given| process.map_names(&NamesRequest { architecture: "llama".into(), given });
    let file = NamesGiven::File {
        path: "/no/such/file".into(),
        metadata: vec![(b"a".to_vec(), OwnedValue::U32(1))],
        tensors: vec![("t.weight".into(), vec![1, 1])],
    };
    let mapped = MappedName {
        name: "llama.t.weight".into(),
        from: Some(vec!["t.weight".into()]),
        shape: Some(vec![1, 1]),
        numbers: Some(vec![1.0]), // 0x3f800000
    };
    let expected = NamesValue { names: vec![mapped], config: Some(json!({ "keys": 1 })) };
    assert_eq!(map(file), Answer::Names(Box::new(expected)));
    let checkpoint = NamesGiven::Checkpoint { config: json!({}), parameters: Vec::new() };
    let unimplemented = Failure::Unimplemented("one direction only".into());
    assert_eq!(map(checkpoint), Answer::Failure(unimplemented));

    let mut judge = |tp| {
        let request = CheckpointRequest { path: "/folder".into(), tp };
        process.checkpoint(&CheckpointQuestion::Judge(request))
    };
    let gptq = CheckpointValue {
        method: Some("gptq".into()),
        bits: Some(2),
        ..CheckpointValue::default()
    };
    assert_eq!(judge(Some(2)), Answer::Judged(Box::new(gptq)));
    assert_eq!(judge(None), rejected("__main__.Odd", "/folder"));
    let request = UnpackRequest { path: "/folder".into(), module: "a".into() };
    let weight = WeightValue { shape: vec![1, 1], numbers: vec![1.0] };
    let answer = process.checkpoint(&CheckpointQuestion::Unpack(request));
    assert_eq!(answer, Answer::Weight(Box::new(weight)));
}
