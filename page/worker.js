"use strict";
// The engine's side of the page: the program, run with the words of a command line on files that stay where they are. The same
// lines serve a worker in a browser and tests/page/check.js.
function vramcastHost(m) {
	const fs = m.FS;
	let folder = 0;
	fs.mkdir("/work");
	return {
		// Files of the browser are read where they are, piece by piece; bytes are kept. Each is known by its name in /work.
		give(files, watch) {
			const lent = files.filter(f => f.blob), at = "/lent" + ++folder;
			for (const f of files.filter(f => f.bytes)) {
				fs.mkdirTree(("/work/" + f.name).replace(/\/[^/]*$/, ""));
				fs.writeFile("/work/" + f.name, f.bytes);
			}
			if (!lent.length) return;
			// Each piece that is fetched asks another process: few and large ones, but who only looks at the head gets little.
			const reader = new FileReaderSync(), least = 64 << 10, most = 32 << 20;
			m.WORKERFS.stream_ops.read = function (stream, buffer, offset, length, position) {
				const node = stream.node;
				if (position >= node.size) return 0;
				if (!node.held || position < node.at || position >= node.at + node.held.length) {
					const more = node.held && position === node.at + node.held.length ? Math.min(4 * node.held.length, most) : least;
					node.at = position;
					node.held = new Uint8Array(reader.readAsArrayBuffer(node.contents.slice(position, position + more)));
				}
				const from = position - node.at, part = node.held.subarray(from, from + length);
				buffer.set(part, offset);
				watch(position + part.length, node.size);
				return part.length;
			};
			fs.mkdir(at);
			fs.mount(m.WORKERFS, { blobs: lent.map((f, i) => ({ name: String(i), data: f.blob })) }, at);
			lent.forEach((f, i) => fs.symlink(at + "/" + i, "/work/" + f.name));
		},
		// Like a process: words in; exit code, standard output, standard error and the files named in `take` out.
		run(words, take) {
			fs.chdir("/work");
			for (const fd of [0, 1, 2]) if (fs.streams[fd]) fs.close(fs.streams[fd]);
			fs.open("/dev/null", "r");
			fs.open("/out", "w");
			fs.open("/err", "w");
			let code;
			try {
				code = m.callMain(words.slice());
			} catch (e) {
				if (e.name !== "ExitStatus") throw e;
				code = e.status;
			}
			const text = name => fs.readFile(name, { encoding: "utf8" }), made = {};
			for (const name of take || []) {
				if (!fs.analyzePath("/work/" + name).exists) continue;
				made[name] = fs.readFile("/work/" + name);
				fs.unlink("/work/" + name);
			}
			return { code, out: text("/out"), err: text("/err"), made };
		},
		memory: () => m.HEAP8.length,
	};
}
async function vramcastStart(module) {
	return vramcastHost(await vramcastEngine({
		thisProgram: "vramcast",
		print() {}, printErr() {},
		quit(code, e) { throw e; },
		instantiateWasm(imports, done) {
			WebAssembly.instantiate(module, imports).then(instance => done(instance));
			return {};
		},
	}));
}
if (typeof WorkerGlobalScope !== "undefined") {
	let host, last = 0;
	self.onmessage = async function (e) {
		const { id, module, give, words, take } = e.data;
		try {
			if (module) host = await vramcastStart(module);
			if (give) host.give(give, function (at, of) {
				const now = performance.now();
				if (now - last < 50) return;
				last = now;
				self.postMessage({ at, of });
			});
			self.postMessage({ id, ...(words ? host.run(words, take) : {}), memory: host.memory() });
		} catch (error) {
			self.postMessage({ id, broke: String(error) });
		}
	};
}
