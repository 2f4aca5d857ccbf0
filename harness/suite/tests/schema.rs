//! The published schema and the code agree on what a message is.

use gguf_assay::protocol::{Described, Given, PROTOCOL, Request, Response, file_to_json};
use gguf_assay::{
    ByteOrder, CaseFiles, CheckpointQuestion, Corpus, DequantizeRequest, Failure, NamesRequest,
    Profile, ReadRequest, Reference, Subject,
};
use jsonschema::Validator;
use serde_json::{Value, json};

fn schema() -> Validator {
    let text = include_str!("../protocol.schema.json");
    jsonschema::validator_for(&serde_json::from_str(text).unwrap()).unwrap()
}

fn complaints(schema: &Validator, message: &Value) -> Vec<String> {
    schema.iter_errors(message).map(|error| error.to_string()).collect()
}

#[test]
fn every_message_of_a_run_is_valid() {
    let schema = schema();
    let files = CaseFiles::new().unwrap();
    let mut reference = Reference;
    let about = Described { protocol: PROTOCOL, about: reference.about() };
    let mut messages = vec![
        serde_json::to_value(&about).unwrap(),
        serde_json::to_value(Request::Describe { protocol: PROTOCOL }).unwrap(),
    ];
    for (id, case) in Corpus::embedded().cases.iter().filter(|case| !case.is_large()).enumerate() {
        let id = id as u64;
        let path = files.path(case).unwrap();
        let profile = Profile::Spec;
        let request =
            Request::Read { id, path: path.display().to_string(), profile: profile.name().into() };
        messages.push(serde_json::to_value(request).unwrap());
        let result = reference.read(&ReadRequest { path, profile, large: false });
        messages.push(serde_json::to_value(Response::to_read(id, &result)).unwrap());
        if let Some(expected) = case.expected().unwrap() {
            messages.push(json!({ "id": id, "ok": file_to_json(&expected) }));
        }
    }
    for (id, case) in Corpus::embedded().blocks.iter().enumerate() {
        let id = id as u64;
        let (tensor_type, bytes) = (case.tensor_type, case.bytes.clone());
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let (name, big_endian) = (tensor_type.name.into(), case.byte_order == ByteOrder::Big);
        let request = Request::Dequantize { id, r#type: name, hex, big_endian };
        messages.push(serde_json::to_value(request).unwrap());
        let result = reference.dequantize(&DequantizeRequest {
            tensor_type,
            bytes,
            byte_order: case.byte_order,
        });
        messages.push(serde_json::to_value(Response::to_dequantize(id, &result)).unwrap());
    }
    for (id, case) in Corpus::embedded().names.iter().enumerate() {
        let id = id as u64;
        let NamesRequest { architecture, given } = NamesRequest::of(case, &files).unwrap();
        let request = NamesRequest { architecture: architecture.clone(), given: given.clone() };
        let given = Given::of(&given);
        let message = serde_json::to_value(Request::MapNames { id, architecture, given }).unwrap();
        let again: Request = serde_json::from_value(message.clone()).unwrap();
        assert_eq!(serde_json::to_value(again).unwrap(), message);
        messages.push(message);
        let result = reference.map_names(&request);
        let response = Response::to_map_names(id, &result);
        messages.push(serde_json::to_value(&response).unwrap());
        assert_eq!(response.into_map_names().unwrap(), result);
    }
    for (id, case) in Corpus::embedded().checkpoints.iter().enumerate() {
        let id = id as u64;
        match CheckpointQuestion::of(case, &files).unwrap() {
            CheckpointQuestion::Judge(request) => {
                let path = request.path.display().to_string();
                let message = Request::JudgeCheckpoint { id, path, tp: request.tp };
                messages.push(serde_json::to_value(message).unwrap());
                let result = reference.judge_checkpoint(&request);
                let response = Response::to_judge_checkpoint(id, &result);
                messages.push(serde_json::to_value(&response).unwrap());
                assert_eq!(response.into_judge_checkpoint().unwrap(), result);
            }
            CheckpointQuestion::Unpack(request) => {
                let path = request.path.display().to_string();
                let message = Request::Unpack { id, path, module: request.module.clone() };
                messages.push(serde_json::to_value(message).unwrap());
                let result = reference.unpack(&request);
                let response = Response::to_unpack(id, &result);
                messages.push(serde_json::to_value(&response).unwrap());
                let back = response.into_unpack().unwrap();
                // Not by value: a NaN is not equal to itself.
                assert_eq!(format!("{back:?}"), format!("{result:?}"));
            }
        }
    }
    let unimplemented = Response::to_read(1, &Err(Failure::Unimplemented("big-endian".into())));
    messages.push(serde_json::to_value(unimplemented).unwrap());
    for message in &messages {
        let complaints = complaints(&schema, message);
        assert!(complaints.is_empty(), "{message}: {complaints:?}");
    }
}

#[test]
fn messages_that_depart_from_the_protocol_are_not() {
    let schema = schema();
    for message in [
        json!({}),
        json!({"op": "describe"}),
        json!({"op": "read", "id": 1, "path": "x", "profile": "strict"}),
        json!({"id": 1}),
        json!({"id": 1, "ok": {}, "unimplemented": "x"}),
        json!({"op": "dequantize", "id": 1, "type": "Q4_0", "hex": "0"}),
        json!({"id": 1, "ok": {"f32": "0000"}}),
        json!({"op": "map_names", "id": 1, "architecture": "llama", "to": "gguf", "names": []}),
        json!({"op": "map_names", "id": 1, "architecture": "llama", "to": "onnx", "config": {}, "names": []}),
        json!({"id": 1, "ok": {"config": {}}}),
        json!({"id": 1, "ok": {"names": [{"shape": [1]}]}}),
        json!({"id": 1, "ok": {"names": [{"name": "a", "shape": ["1"]}]}}),
        json!({"op": "judge_checkpoint", "id": 1}),
        json!({"op": "judge_checkpoint", "id": 1, "path": "x", "tp": 0}),
        json!({"op": "unpack", "id": 1, "path": "x"}),
        json!({"id": 1, "ok": {"method": 4}}),
        json!({"id": 1, "ok": {"bits": 4}}),
        json!({"id": 1, "ok": {"method": "gptq", "modules": [{"bits": 4}]}}),
        json!({"id": 1, "ok": {"method": "gptq", "group_size": -2}}),
        json!({"id": 1, "ok": {"shape": [1]}}),
        json!({"id": 1, "ok": {"size": 1}}),
        json!({"id": 1, "ok": {"metadata": [["a", {"u32": 1}]]}}),
        json!({"id": 1, "ok": {"metadata": [["a", {"u32": "1", "u8": "1"}]]}}),
        json!({"id": 1, "ok": {"metadata": [["a", {"f32": "1.5"}]]}}),
        json!({"id": 1, "ok": {"metadata": [["a"]]}}),
        json!({"id": 1, "ok": {"tensors": [{"dims": ["1"]}]}}),
        json!({"id": 1, "ok": {"tensors": [{"name": "t", "dims": [1]}]}}),
    ] {
        assert!(!complaints(&schema, &message).is_empty(), "{message} is valid");
    }
}
