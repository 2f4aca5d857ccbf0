//! The protocol loop that adapters in JavaScript share, driven with a reader made for it.

use std::path::Path;

use gguf_assay::process::{Bounds, MemoryKind, Process, Program};
use gguf_assay::{Answer, Channel, DequantizeRequest, OwnedValue};
use gguf_assay_format::{ByteOrder, TensorType};

mod protocol_loop;
use protocol_loop::{hold, read, rejected, value};

const ADAPTER: &str = r#"
import * as adapter from "./gguf-assay-adapter.mjs";

class Odd extends Error {}

async function read(path) {
	console.log("what a reader prints is no answer");
	const name = path.split("/").at(-1);
	if (name === "values") {
		return {
			version: 3,
			metadata: [
				["text", { string: "é" }],
				["f32", { f32: adapter.f32(-0) }],
				["f64", { f64: adapter.f64(Infinity) }],
				["u64", { u64: adapter.integer(2n ** 64n - 1n) }],
				["array", { array: { type: "i8", values: [adapter.integer(-7)] } }],
			],
			tensors: [{ name: "t", type: undefined, dims: [4, 2].map(adapter.integer) }],
		};
	}
	if (name === "odd") throw new Odd("of a module");
	if (name === "text") throw "no error at all";
	if (name === "recursion") return await read(path);
	if (name === "unimplemented") throw new adapter.Unimplemented("big-endian");
	process.exit(3);
}

const describe = () => ({ name: "odd", version: adapter.version("odd"), ops: ["read", "dequantize"] });
await adapter.serve(describe, read, (type, blocks) => blocks);
"#;

#[test]
#[ignore = "needs node"]
fn what_a_reader_does_is_reported_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("javascript/gguf-assay-adapter.mjs");
    write("gguf-assay-adapter.mjs", &std::fs::read_to_string(shared).unwrap());
    write("node_modules/odd/package.json", r#"{ "version": "1.2.3" }"#);
    let args = vec![write("adapter.mjs", ADAPTER)];
    let program = Program { program: "node".into(), args, ..Program::default() };
    let bounds = Bounds { memory_kind: MemoryKind::Resident, ..Bounds::default() };
    let mut process = Process::start(program, bounds).unwrap();
    assert_eq!(process.about().version, "1.2.3");
    let file = hold(&mut process, "Odd", "RangeError");
    assert!(matches!(value(&file, "array"), OwnedValue::Array(array) if array.len() == 1));
    assert_eq!(file.tensors.unwrap()[0].type_name, None);
    assert_eq!(read(&mut process, "text"), rejected("String", "no error at all"));
    let blocks = DequantizeRequest {
        tensor_type: TensorType::by_name("F32").unwrap(),
        bytes: 1.5f32.to_le_bytes().into(),
        byte_order: ByteOrder::Little,
    };
    assert_eq!(process.dequantize(&blocks), Answer::Numbers(vec![1.5]));
}
