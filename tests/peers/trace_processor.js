#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// trace_processor.js - Perfetto's trace processor as a program: the WebAssembly that Perfetto's own page runs
// ($PERFETTO_ENGINE, a folder of that page), behind the four addresses that the Python package perfetto asks of
// trace_processor_shell: /status, /parse, /notify_eof and /query.
"use strict";
const fs = require("fs"), http = require("http"), path = require("path"), vm = require("vm");
const engine = process.env.PERFETTO_ENGINE;
const port = Number(process.argv[process.argv.indexOf("--http-port") + 1]);

// ---- protocol buffers: as much as the envelope needs (protos/perfetto/trace_processor/trace_processor.proto) ----
function varint(v) {
	const out = [];
	for (; v > 127; v = Math.floor(v / 128)) out.push(v % 128 | 128);
	return Buffer.from([...out, v]);
}
function field(n, value) {
	if (typeof value === "number") return Buffer.concat([varint(n * 8), varint(value)]);
	return Buffer.concat([varint(n * 8 + 2), varint(value.length), value]);
}
function fields(data) {
	const out = {};
	let at = 0;
	const read = () => {
		let v = 0, scale = 1, b;
		do { b = data[at++]; v += (b & 127) * scale; scale *= 128; } while (b & 128);
		return v;
	};
	while (at < data.length) {
		const key = read(), kind = key % 8;
		let value;
		if (kind === 0) value = read();
		else if (kind === 2) { const n = read(); value = data.subarray(at, at += n); }
		else at += kind === 1 ? 8 : 4;
		(out[Math.floor(key / 8)] ||= []).push(value);
	}
	return out;
}
const REQUEST = 2, FATAL = 5;                      // TraceProcessorRpc
const APPEND = 1, FINALIZE = 2, QUERY = 3, STATUS = 8;  // TraceProcessorMethod
const APPEND_DATA = 101, QUERY_ARGS = 103, RESULT = { 1: 201, 3: 203, 8: 210 };

// ---- the engine: a worker of a browser, and here its world ----
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = Object;
globalThis.importScripts = () => {};
globalThis.location = { href: "file://" + engine + "/engine_bundle.js" };
globalThis.XMLHttpRequest = class {     // it fetches its WebAssembly at once, in one piece
	open(method, name) { this.name = path.join(engine, path.basename(String(name))); }
	send() { const b = fs.readFileSync(this.name); this.response = b.buffer.slice(b.byteOffset, b.byteOffset + b.length); }
};
const node = globalThis.process;
globalThis.process = undefined;   // or the engine takes this for node, and looks for its files elsewhere
vm.runInThisContext(fs.readFileSync(path.join(engine, "engine_bundle.js"), "utf8"));
globalThis.process = node;

const channel = { replies: [], postMessage(bytes) { this.replies.push(Buffer.from(bytes)); } };
globalThis.onmessage({ data: channel });
let seq = 0;

// One request; the payloads of its replies (a large result comes in several).
function ask(method, ...parts) {
	channel.replies = [];
	const message = Buffer.concat([field(1, seq++), field(REQUEST, method), ...parts]);
	channel.onmessage({ data: new Uint8Array(field(1, message)) });
	return fields(Buffer.concat(channel.replies))[1].flatMap((m) => {
		const reply = fields(m);
		if (reply[FATAL]) throw new Error(reply[FATAL][0].toString());
		return reply[RESULT[method]] || [];
	});
}
const answers = {
	"/status": () => ask(STATUS),
	"/parse": (body) => ask(APPEND, field(APPEND_DATA, body)),
	"/notify_eof": () => ask(FINALIZE),
	"/query": (body) => ask(QUERY, field(QUERY_ARGS, body)),
};

function serve() {
	http.createServer((request, response) => {
		const chunks = [];
		request.on("data", (c) => chunks.push(c));
		request.on("end", () => {
			const answer = answers[request.url];
			response.writeHead(answer ? 200 : 404);
			response.end(answer ? Buffer.concat(answer(Buffer.concat(chunks))) : "");
		});
	}).listen(port, "127.0.0.1");
}
setImmediate(serve);   // after the promises with which the engine begins
