/** The reader of @huggingface/gguf behind the adapter protocol. What it hands out is reported as it is. */

import { GGMLQuantizationType, gguf, GGUFValueType } from "@huggingface/gguf";
import * as adapter from "./gguf-assay-adapter.mjs";

/** The reader's own entries among the metadata, in the place of keys of the file that are called so. */
const HEADER = ["version", "tensor_count", "kv_count"];

const NAMES = {
	[GGUFValueType.UINT8]: "u8",
	[GGUFValueType.INT8]: "i8",
	[GGUFValueType.UINT16]: "u16",
	[GGUFValueType.INT16]: "i16",
	[GGUFValueType.UINT32]: "u32",
	[GGUFValueType.INT32]: "i32",
	[GGUFValueType.FLOAT32]: "f32",
	[GGUFValueType.BOOL]: "bool",
	[GGUFValueType.STRING]: "string",
	[GGUFValueType.ARRAY]: "array",
	[GGUFValueType.UINT64]: "u64",
	[GGUFValueType.INT64]: "i64",
	[GGUFValueType.FLOAT64]: "f64",
};

function describe() {
	return {
		name: "hf-gguf",
		version: adapter.version("@huggingface/gguf"),
		language: "javascript",
		home: "https://github.com/huggingface/huggingface.js/tree/main/packages/gguf",
		ops: ["read"],
	};
}

/** A value without its type. */
function bare(type, value) {
	switch (type) {
		case "f32":
			return adapter.f32(value);
		case "f64":
			return adapter.f64(value);
		case "bool":
		case "string":
			return value;
		case "array":
			return inner(value);
		default:
			return adapter.integer(value);
	}
}

function array(type, values) {
	return { type, values: values.map((value) => bare(type, value)) };
}

/** An array in an array: the reader keeps no type of its elements, so they have JavaScript's. */
function inner(values) {
	const types = { bigint: "u64", boolean: "bool", number: "f64", object: "array", string: "string" };
	const type = types[typeof values[0]] ?? "u8";
	return array(type === "u64" && values.some((value) => value < 0n) ? "i64" : type, values);
}

function value({ type, subType, value }) {
	if (type === GGUFValueType.ARRAY) {
		return { array: array(NAMES[subType], value) };
	}
	return { [NAMES[type]]: bare(NAMES[type], value) };
}

async function read(path) {
	// The count of parameters is the reader's only look at whether the tensors fit into the file.
	const options = { allowLocalFile: true, typedMetadata: true, computeParametersCount: true };
	const { metadata, typedMetadata, tensorInfos } = await gguf(path, options);
	return {
		// A key of this name takes the version's place.
		version: typedMetadata.version.type === GGUFValueType.UINT32 ? metadata.version : undefined,
		metadata: Object.entries(typedMetadata)
			.filter(([key]) => !HEADER.includes(key))
			.map(([key, typed]) => [key, value(typed)]),
		// It says where a tensor begins, but neither hands out its bytes nor says how many there are.
		tensors: tensorInfos.map(({ name, dtype, shape, offset }) => ({
			name,
			type: GGMLQuantizationType[dtype],
			dims: shape.map(adapter.integer),
			offset: adapter.integer(offset),
		})),
	};
}

await adapter.serve(describe, read);
