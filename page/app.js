// What the page does around the report: files, words of command lines, and where their answers go. Every number and every
// picture is the program's.
(function () {
	const $ = id => document.getElementById(id), make = report.make, form = $("p-settings"), names = ["g", "capacity", "used", "torch", "conf"];
	const option = { g: "-g", capacity: "--capacity", used: "--used", torch: "--torch", conf: "--conf" };
	let files = [], answers = null, advice = null, turn = 0, shown = false, asking = "", recorded = "", kind = "";

	// ---- the engine: the program in a worker, or two: the second looks for what would help ----
	async function unpack(id) {
		const packed = Uint8Array.from(atob($(id).textContent), c => c.charCodeAt(0));
		return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
	}
	const ready = (async function () {
		const [wasm, worker] = await Promise.all([unpack("engine-wasm").then(b => WebAssembly.compile(b)), unpack("engine-worker")]);
		return { wasm, url: URL.createObjectURL(new Blob([worker], { type: "text/javascript" })) };
	}());
	ready.catch(e => say("This browser cannot run the page: " + e.message + ". It takes one of 2023 or later.", true));
	async function engine(give, watch) {
		const { wasm, url } = await ready, worker = new Worker(url), waits = new Map();
		let n = 0, over = "";
		function end(why) {
			over = why;
			worker.terminate();
			for (const w of waits.values()) w.reject(new Error(why));
			waits.clear();
		}
		worker.onerror = e => end(e.message || "the engine ended");
		worker.onmessage = function ({ data }) {
			if (data.at !== undefined) return watch && watch(data.at, data.of);
			const w = waits.get(data.id);
			waits.delete(data.id);
			if (data.broke) end(/memory|allocat/i.test(data.broke) ? "there is not enough memory: a page has 4 GiB at most. The program for Linux has no such limit." : data.broke);
			if (w) (data.broke ? w.reject(new Error(over)) : w.resolve(data));
		};
		function ask(message) {
			if (over) return Promise.reject(new Error(over));
			return new Promise(function (resolve, reject) {
				waits.set(++n, { resolve, reject });
				worker.postMessage({ id: n, ...message });
			});
		}
		await ask({ module: wasm, give });
		return { run: (words, take) => ask({ words, take }), give: more => ask({ give: more }), stop: () => end("stopped") };
	}

	// While nobody has dropped anything yet: what there is to choose from, and work of the kind that comes. A browser compiles a
	// function well only once it has run for a while, and all workers share what it has compiled.
	let idle = null, spare = null, offered = false;
	(async function () {
		const bytes = new Uint8Array(await unpack("engine-warm")), e = idle = await engine([{ name: ".idle/warm.vct", bytes }], watch);
		if (turn) return e.stop();
		const run = (...w) => e.run(w, [".idle/warm.html", ".idle/warm.svg"]), sim = ["sim", ".idle/warm.pickle", "--brief", "--no-advice"];
		await offer(e);
		await run("export", ".idle/warm.vct", "-o", ".idle/warm.pickle");
		for (let again = 0; again < 6; again++) await run(...sim, "-o", ".idle/warm.svg");
		await run("report", ".idle/warm.pickle", "--no-advice", "-o", ".idle/warm.html");
		for (const o of $("p-confs").options) await run(...sim, "--conf", o.value);
		for (const o of [["-g", "t4"], ["--torch", "2.4"], ["--torch", "2.12"]]) await run(...sim, ...o);
		idle = null;
		spare = e;
	}()).catch(() => {}); // a drop stops it

	// ---- saying things ----
	function say(text, bad) {
		$("p-status").textContent = text;
		$("p-status").className = bad ? "p-bad" : "r-mut";
	}
	function busy(on) {
		$("p-busy").hidden = !on;
		$("p-progress").removeAttribute("value");
	}
	function watch(at, of) {
		$("p-progress").max = of;
		$("p-progress").value = at;
		say(at < of ? "Reading " + Math.round(100 * at / of) + " %" : "Replaying \u2026");
	}
	function quoted(word) { return /^[\w@%+=:,.\/-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'"; }
	function told(r) { return (r.out + r.err).replace(/^vramcast \w+: /gm, "").replace(/^(next: .*|\(.*: vramcast .*\))\n?/gm, "").trim(); }

	// ---- settings: the form, the address, the words ----
	function chosen() {
		const all = [];
		for (const name of names) if (form.elements[name].value.trim()) all.push([name, form.elements[name].value.trim()]);
		for (const row of $("p-transforms").children) {
			const [box, params] = row.querySelectorAll("input");
			if (box.checked) all.push(["x", box.value + (params.value.trim() ? ":" + params.value.trim() : "")]);
		}
		for (const input of $("p-set").querySelectorAll("input[type=number]"))
			if (input.value && input.value !== input.dataset.recorded) all.push(["set", input.name + "=" + input.value]);
		return all;
	}
	function words() { return chosen().flatMap(([name, value]) => [name === "x" ? "-x" : name === "set" ? "--set" : option[name], value]); }
	function toAddress() {
		const look = location.hash.slice(1).split("&").filter(p => /^[te]=/.test(p));
		history.replaceState(null, "", "#" + chosen().map(([k, v]) => k + "=" + encodeURIComponent(v)).concat(look).join("&"));
	}
	function fromAddress() {
		form.reset();
		for (const part of location.hash.slice(1).split("&")) {
			const at = part.indexOf("="), name = part.slice(0, at);
			let value = "";
			try { value = decodeURIComponent(part.slice(at + 1)); } catch { continue; }
			if (names.includes(name)) form.elements[name].value = value;
			else if (name === "x") {
				const box = [...$("p-transforms").querySelectorAll("[type=checkbox]")].find(b => b.value === value.split(":")[0]);
				if (!box) continue;
				box.checked = true;
				box.closest("div").querySelector("input:not([type])").value = value.slice(box.value.length + 1);
				$("p-changes").open = true;
			} else if (name === "set") {
				const input = [...$("p-set").querySelectorAll("[type=number]")].find(i => i.name === value.split("=")[0]);
				if (input) input.value = value.split("=")[1];
			}
		}
	}
	async function offer(e) { // what there is to choose from, as the program lists it
		if (offered) return;
		const rows = async what => [...(await e.run(["list", what])).out.matchAll(/^ {2}(\S+) +(.*)$/gm)].map(r => r.slice(1));
		function fill(id, all) {
			$(id).textContent = "";
			for (const [value, label] of all) Object.assign(make("option", "", $(id)), { value, label });
		}
		fill("p-cards", JSON.parse((await e.run(["gpus", "--json"])).out).gpus.map(c => [c.name, c.title]));
		fill("p-versions", await rows("versions"));
		fill("p-confs", await rows("settings"));
		$("p-transforms").textContent = "";
		for (const [name, summary] of await rows("transforms")) {
			const row = make("div", "", $("p-transforms")), label = make("label", "", row), box = make("input", "", label), params = make("input", "", row);
			box.type = "checkbox";
			box.value = name;
			label.append(" " + name + ": " + summary);
			params.placeholder = "as usual";
			params.setAttribute("aria-label", "parameters of " + name);
			box.onchange = async function () {
				const old = row.querySelector("pre");
				if (old) old.remove();
				if (box.checked && answers) make("pre", (await answers.run(["help", name])).out.replace(/^[^]*?Parameters:\n/, ""), row);
			};
		}
		offered = true;
	}

	// ---- opening ----
	function named(list) { // a name is a word of a command line: no folder, no option, none twice
		const seen = new Map();
		return list.map(function (f) {
			const name = f.name.replace(/[\/\0]/g, "_").replace(/^-/, "_") || "recording", n = seen.get(name) || 0;
			seen.set(name, n + 1);
			return { name: n ? n + "-" + name : name, blob: f };
		});
	}
	function stop() {
		turn++;
		for (const e of [answers, advice, idle]) if (e) e.stop();
		answers = advice = idle = null;
		asking = "";
		busy(false);
	}
	async function open(list, start) {
		stop();
		const mine = turn;
		performance.clearMarks();
		performance.mark("vramcast-open");
		files = named(list);
		shown = false;
		recorded = "";
		kind = files.length > 1 ? "ranks" : "recording";
		$("p-report").textContent = $("p-answer").textContent = $("p-set").textContent = "";
		for (const id of ["p-answer", "p-settings", "p-take", "p-set"]) $(id).hidden = true;
		document.body.classList.add("p-has");
		busy(true);
		say("Reading \u2026");
		try {
			const e = spare || await engine(files, watch), waited = e === spare;
			spare = null;
			if (mine !== turn) return e.stop();
			answers = e;
			if (waited) await e.give(files);
			await offer(e);
			if (files.length > 1) await family(e);
			fromAddress();
			if (start) start();
			await again();
		} catch (error) {
			if (mine === turn) fail(error);
		}
	}
	function fail(error) {
		stop();
		say(error.message === "stopped" ? "Stopped." : "It did not work: " + error.message, true);
	}
	// Recordings of one program at several values: a slider for the one that differs.
	async function family(e) {
		const values = new Map();
		for (const f of files) {
			const r = await e.run(["info", f.name, "--json"]), params = r.code ? {} : JSON.parse(r.out).params || {};
			for (const [name, value] of Object.entries(params))
				if (Number.isFinite(value)) values.set(name, (values.get(name) || []).concat(value));
		}
		for (const [name, list] of values) {
			const low = Math.min(...list), high = Math.max(...list);
			if (list.length < files.length || low === high) continue;
			kind = "family";
			const label = make("label", name + " ", $("p-set")), number = make("input", "", label), slider = make("input", "", label);
			Object.assign(number, { type: "number", name, min: 1, defaultValue: high });
			Object.assign(slider, { type: "range", min: 1, max: 4 * high, defaultValue: high });
			slider.setAttribute("aria-label", name);
			slider.oninput = () => { number.value = slider.value; };
			number.oninput = () => { slider.value = number.value; };
			slider.onchange = number.onchange = again;
			$("p-set").hidden = false;
		}
	}

	// ---- answering ----
	function said(parent, title, text) {
		const [first, ...rest] = text.split("\n"), box = make("div", "", parent);
		make("h2", title, box);
		make("p", first, box, "r-verdict");
		make("pre", rest.join("\n").trim(), box);
	}
	function answer(now) {
		const box = $("p-answer");
		box.textContent = "";
		box.hidden = false;
		if (recorded && recorded !== now) said(box, "As recorded", recorded);
		said(box, recorded && recorded !== now ? "What would be" : "The answer", now);
	}
	function ask(kind, at) {
		const all = files.map(f => f.name);
		if (kind === "ranks") return ["ranks", ...all, ...at];
		return ["sim", ...all, ...at, "--brief", "--no-advice"];
	}
	// Everything anew: the answer, the pictures, and then what would help, which takes longest.
	async function again() {
		const e = answers, at = words(), asked = JSON.stringify(at);
		if (!e || asked === asking) return; // a form that is filled in from the address asks, too
		const mine = ++turn;
		asking = asked;
		if (advice) advice.stop();
		advice = null;
		busy(true);
		try {
			if (kind === "family" && !at.includes("--set")) {
				const last = $("p-set").querySelector("input[type=number]");
				at.push("--set", last.name + "=" + last.value);
			}
			const first = shown || kind !== "recording" ? [] : ["-o", "first.svg"]; // a timeline: the report takes longer
			const r = await e.run([...ask(kind, at), ...first], ["first.svg"]);
			if (mine !== turn) return;
			toAddress();
			if (![0, 3, 6].includes(r.code)) return await other(e, r, mine);
			$("p-settings").hidden = $("p-take").hidden = false;
			$("p-command").textContent = ["vramcast", kind === "ranks" ? "ranks" : "sim", ...files.map(f => f.name), ...at].map(quoted).join(" ");
			if (!recorded && words().length) {
				recorded = told(await e.run(ask(kind, [])));
				if (mine !== turn) return;
			}
			recorded = recorded || told(r);
			answer(told(r));
			say("");
			performance.mark("vramcast-answer");
			if (shown) $("p-report").classList.add("p-old");
			if (r.made["first.svg"]) await glance(r.made["first.svg"]);
			if (mine !== turn) return;
			const html = await e.run(["report", ...files.map(f => f.name), ...at, "--no-advice", "-o", "report.html"], ["report.html"]);
			if (mine !== turn) return;
			if (html.made["report.html"]) paint(html.made["report.html"]);
			else say(told(html), true);
			shown = true;
			performance.mark("vramcast-picture");
			busy(false);
			say("");
			if (kind === "recording") await help(at, mine);
		} catch (error) {
			if (mine === turn && error.message !== "stopped") fail(error);
		}
	}
	async function glance(svg) {
		const picture = new DOMParser().parseFromString(new TextDecoder().decode(svg), "image/svg+xml").documentElement;
		$("p-report").textContent = "";
		make("figure", "", $("p-report")).append(document.adoptNode(picture));
		await new Promise(done => setTimeout(done));
		performance.mark("vramcast-first");
	}
	// No recording, or no such card: the program says what it is.
	async function other(e, r, mine) {
		if (!recorded && files.length === 1 && !words().length) {
			const plain = await e.run([files[0].name]);
			if (mine !== turn) return;
			if (!plain.code && plain.out.trim()) {
				answer(told(plain));
				say("");
				busy(false);
				return;
			}
		}
		busy(false);
		$("p-settings").hidden = !recorded && !words().length;
		say(told(r), true);
	}
	async function help(at, mine) {
		await new Promise(done => setTimeout(done, 500)); // who tries one setting after another waits for none
		if (mine !== turn) return;
		const e = await engine(files);
		if (mine !== turn) return e.stop();
		advice = e;
		say("Looking for what would help \u2026");
		const r = await e.run(["report", files[0].name, ...at, "-o", "report.html"], ["report.html"]);
		if (mine === turn && r.made["report.html"]) paint(r.made["report.html"], true);
		if (mine === turn) say("");
		if (advice === e) advice = null;
		e.stop();
		performance.mark("vramcast-help");
	}

	// The report, as the program writes it, becomes a part of the page; its scripts are here already.
	function paint(bytes, quietly) {
		const text = new TextDecoder().decode(bytes), doc = new DOMParser().parseFromString(text, "text/html"), to = $("p-report");
		for (const s of doc.querySelectorAll("script")) s.remove();
		for (const m of doc.querySelectorAll("main")) m.replaceWith(...m.childNodes); // the page has one
		for (const h of doc.querySelectorAll("h1")) {
			const h2 = make("h2", h.textContent);
			h.replaceWith(h2);
		}
		if (quietly) { // what would help, between the ledger and the rest: nothing else moves or is drawn anew
			const range = doc.createRange(), first = doc.getElementById("help"), end = doc.getElementById("timeline"), before = $("timeline");
			if (!first || !end || !before) return;
			range.setStartBefore(first);
			range.setEndBefore(end);
			before.before(range.extractContents());
			const link = make("a", "What would help");
			link.href = "#help";
			to.querySelector("nav").prepend(link);
			return;
		}
		to.classList.remove("p-old");
		to.replaceChildren(...doc.body.childNodes);
		report.show(to);
		report.look();
	}

	// ---- taking along ----
	async function take(what) {
		const e = answers, all = files.map(f => f.name), at = words(), stem = all[0].replace(/\.(pickle|vct|json|gz|zst|zip)$/g, "");
		if (!e) return;
		const line = { html: ["report", ...all, ...at, "-o", "take.html"], json: [kind === "ranks" ? "ranks" : "sim", ...all, ...at, "--json"],
			vct: ["export", all[0], ...at.filter((w, i) => w === "-x" || at[i - 1] === "-x"), "--to", "vct", "-o", "take.vct"] }[what];
		busy(true);
		try {
			const r = await e.run(line, ["take.html", "take.vct"]), made = what === "json" ? r.out : r.made["take." + what];
			if (made) report.keep(new Blob([made], { type: { html: "text/html", json: "application/json", vct: "application/octet-stream" }[what] }), stem + "." + what);
			else say(told(r), true);
		} catch (error) {
			return fail(error);
		}
		busy(false);
	}

	// ---- what a person does ----
	$("p-files").onchange = function () { if (this.files.length) open([...this.files]); };
	$("p-stop").onclick = () => { stop(); say("Stopped.", true); };
	$("p-explain").onclick = function () {
		if ($("p-text").value.trim()) open([new File([$("p-text").value], "message.txt")]);
	};
	form.onsubmit = ev => { ev.preventDefault(); again(); };
	form.onreset = () => setTimeout(again);
	form.addEventListener("change", ev => { if (ev.target.closest(".p-fields, #p-transforms")) again(); });
	for (const b of $("p-take").querySelectorAll("[data-take]")) b.onclick = () => take(b.dataset.take);
	report.copyable($("p-take").querySelector(".r-line"));
	for (const type of ["dragover", "drop", "dragleave"])
		document.addEventListener(type, function (ev) {
			if (![...ev.dataTransfer.types].includes("Files")) return;
			ev.preventDefault();
			document.body.classList.toggle("p-over", type === "dragover");
			if (type === "drop") open([...ev.dataTransfer.files]);
		});
	document.addEventListener("paste", function (ev) {
		if (ev.target.closest("input, textarea")) return;
		const text = ev.clipboardData.getData("text"), all = [...ev.clipboardData.files];
		if (all.length) open(all);
		else if (text.trim()) open([new File([text], "message.txt")]);
	});
	document.addEventListener("click", function (ev) { // the address holds the settings: links within the page leave it alone
		const a = ev.target.closest("nav a"), to = a && $(a.hash.slice(1));
		if (!to) return;
		ev.preventDefault();
		to.scrollIntoView();
		to.tabIndex = -1;
		to.focus({ preventScroll: true });
	});
	window.addEventListener("hashchange", function () {
		if (!answers) return;
		fromAddress();
		again();
	});
	const kept = [...document.querySelectorAll(".p-recording")]; // report --ask: recordings travel in the page
	if (kept.length) {
		const settings = [...names, "x", "set"].flatMap(k => (kept[0].dataset[k] || "").split("\n").filter(v => v).map(v => k + "=" + encodeURIComponent(v)));
		if (location.hash.length < 2 && settings.length) history.replaceState(null, "", "#" + settings.join("&"));
		open(kept.map(k => new File([Uint8Array.from(atob(k.textContent), c => c.charCodeAt(0))], k.dataset.name)));
	}
}());
