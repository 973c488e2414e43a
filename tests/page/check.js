// SPDX-License-Identifier: Apache-2.0
// check.js PAGE VRAMCAST - the engine inside the page, under node: what it answers is what the program answers, byte for byte.
// Prints TAP.
"use strict";
const fs = require("fs"), path = require("path"), zlib = require("zlib"), { spawnSync } = require("child_process");
const [page, program] = process.argv.slice(2), text = fs.readFileSync(page, "utf8");
const part = id => zlib.gunzipSync(Buffer.from(text.match(new RegExp(`id="${id}">([^<]*)<`))[1], "base64"));
const files = dir => fs.readdirSync(dir).map(f => path.join(dir, f)).filter(f => /\.(vct|gz|txt|csv|json)$/.test(f)).sort();
const trace = name => `traces/${name}.vct`, lm = trace("lm-train-ctx128"), medium = trace("lm-medium-ctx1024");
const ladder = ["0004", "0008", "0012"].map(n => `tests/ladders/recordings/bert-cls_batch${n}_torch2.9.1.vct`);

// What is changed of a run, in the words of the program.
const whatifs = [
	[lm, "-g", "a100-40g-sxm"], [lm, "-g", "h100-80g-sxm"], [lm, "-g", "rtx4090", "--conf", "expandable_segments:True"],
	[lm, "-g", "a100-40g-sxm", "--conf", "max_split_size_mb:128"], [lm, "-g", "l40s", "--torch", "2.9"],
	[lm, "-g", "a100-40g-sxm", "--conf", "", "--conf", "expandable_segments:True"], [lm, "--capacity", "48GiB"],
	[lm, "-g", "a100-80g-sxm", "--used", "20GiB"], [lm, "-g", "a100-40g-sxm", "-x", "checkpoint"],
	[lm, "-g", "a100-40g-sxm", "-x", "optimizer:to=adam8bit"], [lm, "-g", "a100-40g-sxm", "-x", "lora"],
	[lm, "-g", "a100-40g-sxm", "-x", "fsdp:ranks=2"], [lm, "-g", "a100-40g-sxm", "-x", "precision"],
	[lm, "-m", "all", "-g", "a100-80g-sxm"], [medium, "-g", "rtx3090"], [medium, "-g", "t4"],
	[medium, "-g", "rtx4090", "-x", "checkpoint"], [medium, "-g", "rtx4090", "-x", "tp:ranks=2"],
	[medium, "-g", "rtx4090", "--conf", "garbage_collection_threshold:0.6"], [medium, "-g", "rtx4090", "--conf", "roundup_power2_divisions:4"],
	[trace("decomfl"), "-g", "rtx4090"], [trace("decomfl"), "-g", "t4", "--torch", "2.4"], [trace("attention"), "-g", "t4"],
	[trace("llm-oom"), "-g", "h200"], [trace("llm-oom"), "--capacity", "4GiB"], [trace("vllm-rl-pools"), "-g", "h100-80g-sxm"],
	[trace("vllm-rl-pools"), "-g", "h100-80g-sxm", "--conf", "expandable_segments:True"], [trace("decomfl"), "-g", "nosuchcard"],
	["tests/recordings/conv-4.vct", "tests/recordings/conv-6.vct", "--set", "batch=16"],
	["tests/recordings/lengths-4.vct", "tests/recordings/lengths-8.vct", "--set", "batch=12", "-g", "t4"],
	[...ladder, "--set", "batch=32"], [...ladder, "--set", "batch=13", "-g", "t4", "-x", "checkpoint"], ["tests/recordings/autocast-16.vct", "-x", "zero:stage=2"], ["tests/recordings/masked-32.vct", "-g", "t4", "-x", "accumulate:micro=4"],
];
const snapshots = files("tests/snapshots"), cases = [];
for (const f of [...files("traces"), ...snapshots]) cases.push(["sim", f, "--json"]);
for (const w of whatifs) cases.push(["sim", ...w, "--json"]);
for (const f of files("traces"))
	for (const type of ["timeline", "flame", "ledger", "segments", "unused", "lives"]) cases.push(["plot", f, "-t", type, "-o", "-"]);
for (const f of files("traces")) cases.push(["report", f, "-g", "rtx4090", "-o", "made.html"], ["export", f, "--to", "vct", "-o", "made.vct"],
	["info", f, "--json"], [f, "-g", "rtx4090"]);
cases.push(["explain", "examples/oom.txt"], ["ranks", ...ladder.slice(1), "--json"], ["gpus", "--json"], ["list", "transforms"], ["list", "versions"], ["list", "settings"],
	["sim", "traces/README.md", "--json"], ["sim", "nowhere.vct", "--json"]);

function native(words) {
	const r = spawnSync(path.resolve(program), words, { maxBuffer: 1 << 28, env: { VRAMCAST_NULL_CUDNN_LIBRARY: "" } }), made = {};
	for (const name of ["made.html", "made.vct"])
		if (fs.existsSync(name)) {
			made[name] = fs.readFileSync(name);
			fs.unlinkSync(name);
		}
	return { code: r.status, out: r.stdout.toString(), err: r.stderr.toString(), made };
}
function differs(a, b) {
	for (const part of ["code", "out", "err"])
		if (a[part] !== b[part]) {
			const x = String(a[part]), y = String(b[part]);
			let i = 0;
			while (i < x.length && x[i] === y[i]) i++;
			return `${part} at ${i}: ${JSON.stringify(x.slice(Math.max(0, i - 60), i + 60))}, the page ${JSON.stringify(y.slice(Math.max(0, i - 60), i + 60))}`;
		}
	for (const name of Object.keys({ ...a.made, ...b.made }))
		if (!a.made[name] || !b.made[name] || Buffer.compare(a.made[name], Buffer.from(b.made[name]))) return "the file " + name;
	return "";
}
async function main() {
	globalThis.self = globalThis;
	globalThis.location = { href: "" };
	globalThis.importScripts = () => {};
	(0, eval)(part("engine-worker").toString());
	const host = await vramcastStart(await WebAssembly.compile(part("engine-wasm")));
	const names = new Set(cases.flat().filter(w => /^(traces|tests|examples)\//.test(w)));
	host.give([...names].map(name => ({ name, bytes: fs.readFileSync(name) })));
	const kinds = {};
	for (const words of cases) {
		const kind = words[0].includes("/") ? "what it answers of itself" : words[0], k = kinds[kind] = kinds[kind] || { n: 0, bad: [] };
		const why = differs(native(words), host.run(words, ["made.html", "made.vct"]));
		k.n++;
		if (why) k.bad.push("vramcast " + words.join(" ") + ": " + why);
	}
	let n = 0, failed = false;
	for (const [kind, k] of Object.entries(kinds)) {
		console.log(`${k.bad.length ? "not ok" : "ok"} ${++n} - ${kind}: ${k.n} command lines, the same bytes from the page and the program`);
		for (const line of k.bad.slice(0, 5)) console.log("#   " + line);
		failed = failed || k.bad.length > 0;
	}
	console.log(`1..${n}`);
	process.exit(failed ? 1 : 0);
}
main().catch(e => { console.log("not ok - " + String(e.stack).slice(0, 2000)); process.exit(1); });
