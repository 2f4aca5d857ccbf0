/**
 * The adapter protocol in JavaScript: requests as JSON lines on stdin, answers on stdout.
 *
 * An adapter imports its reader, and calls `serve(describe, read)`, with `dequantize` if it has that.
 * Whatever the reader throws is reported as it is; the suite judges it.
 */

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const PROTOCOL = 1;

/** Thrown by an adapter for what its reader openly does not do. */
export class Unimplemented extends Error {}

/** The version of an installed package, from the file that npm put beside this one. */
export function version(name) {
	const path = new URL(`./node_modules/${name}/package.json`, import.meta.url);
	return JSON.parse(readFileSync(path, "utf8")).version;
}

/** An integer, a number or a BigInt: a decimal string, so that no digit is lost. */
export function integer(value) {
	return BigInt(value).toString();
}

/** A float that came from 32 bits, as those bits. */
export function f32(value) {
	const view = new DataView(new ArrayBuffer(4));
	view.setFloat32(0, value);
	return "0x" + view.getUint32(0).toString(16).padStart(8, "0");
}

/** A float, as its bits. */
export function f64(value) {
	const view = new DataView(new ArrayBuffer(8));
	view.setFloat64(0, value);
	return "0x" + view.getBigUint64(0).toString(16).padStart(16, "0");
}

/** The name of an error's type. */
function kind(error) {
	return error?.constructor?.name ?? typeof error;
}

/** What an error says; anything can be thrown. */
function message(error) {
	return error instanceof Error ? error.message : String(error);
}

/** For readers that dequantize nothing. */
function unable(typeName) {
	throw new Unimplemented(`dequantizing ${typeName}`);
}

async function answer(request, describe, read, dequantize) {
	if (request.op === "describe") {
		return { protocol: PROTOCOL, ...describe() };
	}
	const { id } = request;
	try {
		if (request.op === "dequantize") {
			const numbers = await dequantize(request.type, Buffer.from(request.hex, "hex"));
			return { id, ok: { f32: Buffer.from(numbers).toString("hex") } };
		}
		return { id, ok: await read(request.path) };
	} catch (error) {
		if (error instanceof Unimplemented) {
			return { id, unimplemented: error.message };
		}
		return { id, error: { message: message(error), kind: kind(error) } };
	}
}

/**
 * Answers requests until stdin ends.
 *
 * `describe()` gives an object with `name`, `version`, `language`, `home` and `ops`; `read(path)` one
 * with `version`, `metadata` and `tensors`, in which what is undefined is not compared;
 * `dequantize(typeName, blocks)` the numbers of the blocks as the bytes of little-endian floats of 32
 * bits. Each may be a promise, but for the first.
 */
export async function serve(describe, read, dequantize = unable) {
	const write = process.stdout.write.bind(process.stdout);
	// What a reader prints must not end up among the answers.
	process.stdout.write = process.stderr.write.bind(process.stderr);
	for await (const line of createInterface({ input: process.stdin })) {
		const text = JSON.stringify(await answer(JSON.parse(line), describe, read, dequantize));
		await new Promise((done) => write(text + "\n", done));
	}
}
