"use strict";
// The instrument of the report: memory over time. Dragging selects a range: the axes are drawn anew, and what grew between its
// ends is listed; the cursor shows the heap at a moment; a click on a block shows where it came from.
report.look = function () {
	const LEFT = 62, RIGHT = 10, TOP = 30, PLOT = 260, HIGH = TOP + PLOT + 42, ROWS = 60, GREW = 12;
	const GIB = 1073741824, MIB = 1048576;

	// ---- the data: lines of "name value value ...", columns and blocks as differences ----
	function read(text) {
		const runs = [];
		let r = null, byTime = false;
		function sums(values, unit) {
			let v = 0;
			return values.map(d => (v += +d * unit));
		}
		for (const line of text.split("\n")) {
			const at = line.indexOf(" "), name = line.slice(0, at), rest = line.slice(at + 1), v = rest.split(" ");
			if (name === "axis") byTime = rest === "time";
			else if (name === "run") runs.push(r = { name: rest, clock: 0, kinds: [], files: [], frames: [null], steps: [] });
			else if (name === "unit") [r.unit, r.grain] = v.map(Number);
			else if (name === "card") [r.capacity, r.base] = v.map(Number);
			else if (name === "kind") r.kinds.push({ slot: +v[0], klass: v[1], name: v.slice(2).join(" "), at: null });
			else if (name === "layer") r.kinds[r.kinds.length - 1].at = sums(v, r.unit);
			else if (name === "frame") r.frames.push({ parent: +v[0], text: r.files[v[1]] + ":" + v[2] + " " + v.slice(3).join(" ") });
			else if (name === "file") r.files.push(rest);
			else if (name === "step") r.steps.push({ event: +v[0], n: +v[1] });
			else if (name === "end") r.end = { event: +v[0], time: +v[1] };
			else if (name === "blocks") r.all = +v[0];
			else if (name === "oom") r.oom = { event: +v[0], request: +v[1] };
			else if (name === "peak") r.peak = +rest;
			else if (name === "clock") r.clock = +rest;
			else if (name) r[name] = sums(at < 0 ? [] : v, ["reserved", "size"].includes(name) ? r.unit : ["addr", "segaddr", "segsize"].includes(name) ? r.grain : 1);
		}
		runs.forEach(finish);
		return { runs, byTime: byTime && runs.every(x => x.time) };
	}
	function finish(r) {
		r.n = r.event.length;
		if (r.clock && r.time) { // runs that met stand on one clock; what is said of one counts from its own start
			r.time = r.time.map(t => t + r.clock);
			r.end.time += r.clock;
		}
		r.used = r.event.map((_, i) => r.kinds.reduce((sum, k) => sum + (k.at ? k.at[i] : 0), 0));
		r.segments = (r.segsize || []).map((size, i) => ({ size, addr: r.segaddr[i], born: r.segborn[i], died: r.segdied[i], pool: r.segpool[i] }))
			.sort((a, b) => a.addr - b.addr);
		r.pools = [...new Set((r.segpool || []).filter(p => p > 1).map(p => p >> 1))];
		r.lives = (r.size || []).map(function (size, i) {
			const f = r.site[i];
			let own = f; // the user's line, where there is one
			while (own && /site-packages\/torch\//.test(r.frames[own].text)) own = r.frames[own].parent;
			const site = r.frames[own || f];
			return { size, addr: r.addr[i], born: r.born[i], died: r.died[i], site: r.site[i], kind: r.of[i], id: r.block[i],
				stream: r.stream[i], text: site ? site.text : r.born[i] ? "no call stack" : "there at the start" };
		});
	}

	// ---- numbers as the pictures write them ----
	function digits(x) { return Number.isInteger(x) ? String(x) : x < 9.995 ? x.toFixed(2) : x < 99.95 ? x.toFixed(1) : x.toFixed(0); }
	function bytes(b) {
		return b >= GIB / 10 ? digits(b / GIB) + " GiB" : b >= MIB ? digits(b / MIB) + " MiB" : b >= 1024 ? digits(b / 1024) + " KiB" : b + " B";
	}
	function span(ns) {
		return ns >= 1e9 ? digits(ns / 1e9) + " s" : ns >= 1e6 ? digits(ns / 1e6) + " ms" : digits(ns / 1e3) + " \u00b5s";
	}
	function count(n) { return String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ","); }
	function escape(text) { return text.replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" }[c])); }
	// Steps of an axis: 1, 2 or 5 times a power of ten of `unit`, at most `most` of them.
	function ticks(first, last, unit, most) {
		let step = unit;
		while ((last - first) / step < most / 10) step /= 10;
		for (let i = 0; (last - first) / step > most; i++) step *= i % 3 === 1 ? 2.5 : 2;
		const all = [];
		for (let k = Math.ceil(first / step); k * step <= last; k++) all.push(k * step);
		return all;
	}

	// ---- what is looked at ----
	const source = document.getElementById("r-data"), over = new AbortController(); // of this look, once there is another
	if (report.over) report.over.abort();
	report.over = over;
	if (!source) return;
	const data = read(source.content.textContent);
	const look = { first: 0, last: 0, at: 0, hidden: new Set(), least: 0, text: "", chosen: null, group: 0, byTime: data.byTime };
	const views = [];

	// The last index whose value is not above x.
	function before(list, x) {
		let low = 0, high = list.length;
		while (low < high) {
			const mid = (low + high) >> 1;
			if (list[mid] <= x) low = mid + 1;
			else high = mid;
		}
		return Math.max(0, low - 1);
	}
	function starts(r) { return look.byTime ? r.time : r.event; }
	function end(r) { return look.byTime ? r.end.time : r.end.event; }
	function whole() { return Math.max(1, ...views.map(v => end(v.run))); }
	// Where an event stands on the axis: times between two columns are straight lines.
	function axisOf(r, event) {
		if (!look.byTime) return event;
		const i = before(r.event, event), e = i + 1 < r.n ? r.event[i + 1] : r.end.event, t = i + 1 < r.n ? r.time[i + 1] : r.end.time;
		return r.time[i] + (e > r.event[i] ? Math.min(1, (event - r.event[i]) / (e - r.event[i])) : 0) * (t - r.time[i]);
	}
	function column(r) { return before(starts(r), look.at); }
	function moment(r, i) {
		const all = r.clock ? " (" + span(r.momenttime[i] + r.clock) + " on the clock of all)" : "";
		return (r.momenttime ? span(r.momenttime[i]) + all + ", " : "") + "event " + count(r.moment[i]);
	}
	function fits(b) {
		return b.size >= look.least && !look.hidden.has(b.kind) && (!look.text || stack(b).join("\n").toLowerCase().includes(look.text));
	}
	function stack(b) {
		if (!b.stack) {
			b.stack = [];
			for (let f = b.site; f; f = b.run.frames[f].parent) b.stack.push(b.run.frames[f].text);
		}
		return b.stack;
	}

	// ---- drawing: strings of SVG in the classes that all pictures share ----
	function text(x, y, klass, what) { return `<text class="${klass}" x="${x}" y="${y}">${escape(what)}</text>`; }
	function tenth(x) { return Math.round(x * 10) / 10; }
	// At most one column per pixel: the one with the most in use, so that its layers add up.
	function reduce(v) {
		const r = v.run, at = starts(r), list = [];
		for (let i = before(at, look.first); i < r.n && at[i] <= look.last; i++) {
			const x = Math.max(0, Math.floor((at[i] - look.first) * v.scale)), last = list[list.length - 1];
			if (!last || last.x !== x) list.push({ x, i, reserved: r.reserved[i] });
			else {
				if (r.used[i] > r.used[last.i]) last.i = i;
				last.reserved = Math.max(last.reserved, r.reserved[i]);
			}
		}
		return list;
	}
	// The upper edge of what `height` says of each column.
	function edge(v, list, y, height) {
		const to = LEFT + Math.max(0, Math.min(v.wide, Math.ceil((end(v.run) - look.first) * v.scale)));
		let d = "", was = null, first = null;
		for (const c of list) {
			const h = tenth(y(height(c)));
			if (was === null) first = LEFT + c.x + " " + h;
			else if (h !== was) d += "H" + (LEFT + c.x) + "V" + h;
			was = h;
		}
		return first ? "M" + first + d + "H" + to : "";
	}
	function area(v, list, y, height) {
		const d = edge(v, list, y, height), floor = tenth(y(0));
		return d && d + "V" + floor + "H" + (LEFT + list[0].x) + "z";
	}
	function axes(v, most, y, bottom, title) {
		const unit = most >= GIB ? GIB : most >= MIB ? MIB : 1024, name = unit === GIB ? "GiB" : unit === MIB ? "MiB" : "KiB";
		let s = text(LEFT - 8, y(most) - 8, "sm mut e", name) + text(LEFT, y(most) - 8, "h2 fg", title);
		for (const b of ticks(0, most, unit, 6))
			s += `<path class="gr" d="M${LEFT} ${tenth(y(b))}h${v.wide}"/>` + text(LEFT - 8, tenth(y(b) + 4), "mut e", digits(b / unit));
		const [u, n] = !look.byTime ? [1, ""] : look.last > 1e9 ? [1e9, " s"] : look.last > 1e6 ? [1e6, " ms"] : [1e3, " \u00b5s"];
		for (const t of ticks(look.first, look.last, u, v.wide / 110)) {
			const x = tenth(LEFT + (t - look.first) * v.scale), room = x > LEFT + v.wide - 40;
			s += `<path class="ax" d="M${x} ${bottom}v5"/>` + text(x, bottom + 18, room ? "mut e" : "mut c", (look.byTime ? +(t / u).toPrecision(9) : count(t)) + n);
		}
		return s;
	}
	// The most that is drawn, and the capacity where it is near; runs side by side share it.
	function ceiling(v) {
		const r = v.run, at = starts(r);
		let most = MIB;
		for (let i = before(at, look.first); i < r.n && at[i] <= look.last; i++) most = Math.max(most, r.base + r.reserved[i]);
		return r.capacity && most > r.capacity * 0.6 ? Math.max(most, r.capacity) : most;
	}
	function timeline(v) {
		const r = v.run, list = reduce(v), bottom = TOP + PLOT, shown = r.kinds.filter(k => k.at && !look.hidden.has(k.slot));
		const most = Math.max(...views.map(ceiling)), top = most * 1.06, y = b => bottom - b / top * PLOT, reserved = c => r.base + c.reserved;
		let s = axes(v, most, y, bottom, "") + `<path class="hx" d="${area(v, list, y, reserved)}"/>`;
		for (let k = shown.length; k--;)
			s += `<path class="${shown[k].klass} ar" d="${area(v, list, y, c => shown.slice(0, k + 1).reduce((b, x) => b + x.at[c.i], r.base))}"/>`;
		if (r.base) s += `<path class="base" d="${area(v, list, y, () => r.base)}"/>`;
		s += `<path class="res nf" d="${edge(v, list, y, reserved)}"/>`;
		if (r.capacity && r.capacity <= most) s += `<path class="capl" d="M${LEFT} ${tenth(y(r.capacity))}h${v.wide}"/>` +
			text(LEFT + v.wide, tenth(y(r.capacity)) - 5, "sm capt e halo", "capacity " + bytes(r.capacity));
		return s + spread(v, y) + marks(v, bottom);
	}
	// Where steps begin on the axis; the last one ends with the run.
	function steps(r) { return r.steps.map(m => axisOf(r, m.event)).concat(end(r)); }
	function stepAt(r, at) {
		const all = steps(r), k = all.findIndex((x, i) => i + 1 < all.length && x <= at && all[i + 1] > at);
		return k < 0 ? null : [all[k], all[k + 1]];
	}
	// One step fills the picture: between which lines all the others, but for the first, run.
	function spread(v, y) {
		const r = v.run, all = steps(r), own = stepAt(r, (look.first + look.last) / 2);
		if (!own || Math.abs(own[0] - look.first) + Math.abs(own[1] - look.last) > (look.last - look.first) / 50 || all.length < 4) return "";
		const at = starts(r), low = [], high = [], WIDE = 240;
		for (let k = 1; k + 2 < all.length; k++)
			for (let x = 0; x < WIDE && all[k] !== own[0]; x++) {
				const i = before(at, all[k] + (all[k + 1] - all[k]) * x / WIDE), b = r.base + r.used[i];
				low[x] = Math.min(low[x] === undefined ? b : low[x], b);
				high[x] = Math.max(high[x] || 0, b);
			}
		if (!high.length) return "";
		const line = list => list.map((b, x) => (x ? "L" : "M") + tenth(LEFT + x * v.wide / WIDE) + " " + tenth(y(b))).join("");
		return `<path class="opens nf thin" d="${line(low)}"/><path class="opens nf thin" d="${line(high)}"/>` +
			text(LEFT + v.wide, TOP + 14, "sm open e halo", "dotted: the least and the most of the other steps");
	}
	function inside(x) { return x >= look.first && x <= look.last; }
	function marks(v, bottom) {
		const r = v.run, steps = r.steps.map(m => ({ x: axisOf(r, m.event), n: m.n })).filter(m => inside(m.x));
		let s = "", last = -100;
		for (const m of steps) {
			const x = tenth(LEFT + (m.x - look.first) * v.scale);
			s += `<path class="it" d="M${x} ${TOP}V${TOP + PLOT}"/>`;
			if (x - last > 60 && x < LEFT + v.wide - 40) s += text(last = x, bottom + 32, "ti mut", "step " + m.n);
		}
		if (r.oom && inside(axisOf(r, r.oom.event))) {
			const x = tenth(LEFT + (axisOf(r, r.oom.event) - look.first) * v.scale), left = x > LEFT + 130;
			s += `<path class="bads" d="M${x} ${TOP}V${TOP + PLOT}"/>` + text(left ? x - 5 : x + 5, TOP + 28, "b1 bad halo" + (left ? " e" : ""), "out of memory");
		}
		return s;
	}
	function drawView(v) {
		const wide = Math.max(300, v.figure.clientWidth);
		v.wide = wide - LEFT - RIGHT;
		v.scale = v.wide / (look.last - look.first);
		v.svg.setAttribute("viewBox", `0 0 ${wide} ${HIGH}`);
		v.paper.innerHTML = `<rect class="bg" width="${wide}" height="${HIGH}"/>` + timeline(v);
	}
	function drawCursor(v, at, hover) {
		const x = tenth(LEFT + (at - look.first) * v.scale);
		v.over.innerHTML = inside(at) ? `<path class="${hover ? "ax" : "res"}" d="M${x} ${TOP}V${TOP + PLOT}"/>` : "";
		const r = v.run, i = before(starts(r), at);
		const most = bytes(r.reserved[i]), then = bytes(r.segments.reduce((sum, s) => sum + (s.born <= r.moment[i] && s.died > r.moment[i] ? s.size : 0), 0));
		v.read.textContent = "At " + moment(r, i) + ": " + most + " reserved" + (r.segments.length && then !== most ? " in this column (" + then + " at that event)" : "") + ", " + bytes(r.used[i]) + " in use: " +
			r.kinds.filter(k => k.at && k.at[i]).map(k => k.name.toLowerCase() + " " + bytes(k.at[i])).join(", ");
	}
	// Runs side by side share their axes.
	function draw() {
		look.last = Math.min(Math.max(look.last, look.first + 1), whole());
		look.first = Math.max(0, Math.min(look.first, look.last - 1));
		views.forEach(drawView);
		views.forEach(v => drawCursor(v, look.at));
		views.forEach(growth);
		chosen();
	}

	// ---- the heap at the cursor ----
	// Blocks of one call site and kind, those of most bytes first; each with its largest block.
	function sitesOf(list) {
		const sites = new Map();
		for (const b of list) {
			const name = b.text + "\n" + b.kind, g = sites.get(name);
			if (!g) sites.set(name, { size: b.size, n: 1, top: b });
			else {
				g.size += b.size;
				g.n++;
				if (b.size > g.top.size) g.top = b;
			}
		}
		return [...sites.values()].sort((a, b) => b.size - a.size || a.top.id - b.top.id);
	}
	function heap() {
		for (const v of views) {
			const r = v.run, i = column(r), event = r.moment[i], live = r.lives.filter(b => b.born <= event && b.died > event);
			const list = live.filter(fits), listed = live.reduce((sum, b) => sum + b.size, 0), sites = sitesOf(list);
			const rows = sites.slice(0, ROWS).map((g, k) => `<tr${g.top === look.chosen ? ' class="r-hit"' : ""}><td><button type="button" data-k="${k}">` +
				`${escape(g.top.text)}</button></td><td>${kindOf(g.top)}</td><td class="r-n">${bytes(g.size)}</td><td class="r-n">${count(g.n)}</td>` +
				`<td class="r-n">${bytes(g.top.size)}</td></tr>`);
			const more = sites.length - rows.length, sum = list.reduce((n, b) => n + b.size, 0);
			v.live = live;
			v.list = sites.map(g => g.top);
			flame(v, list.length < live.length ? list : live);
			segments(v, live, r.used[i] > listed, event);
			v.table.caption.textContent = "The heap at " + moment(r, i);
			v.table.tBodies[0].innerHTML = rows.join("");
			v.table.tFoot.innerHTML = `<tr><td>what fits the filter${more > 0 ? ", the largest " + ROWS + " above" : ""}</td><td></td>` +
				`<td class="r-n">${bytes(sum)}</td><td class="r-n">${count(list.length)}</td><td></td></tr>` +
				(r.used[i] > listed ? `<tr><td>smaller or briefer blocks, which the report does not hold one by one</td><td></td><td class="r-n">${bytes(r.used[i] - listed)}</td><td></td><td></td></tr>` : "") +
				`<tr><td><b>in use</b></td><td></td><td class="r-n"><b>${bytes(r.used[i])}</b></td><td></td><td></td></tr>`;
		}
	}
	// Who holds it at the cursor, by call stack; the program's own lines. A click searches for one.
	function flame(v, live) {
		const r = v.run, used = r.used[column(r)], wide = v.wide + LEFT + RIGHT, HIGH = 22, root = { size: used, kids: new Map() };
		const on = ["oh", "ow", "os", "og", "oa", "ot", "ok1", "ol", "oo"];
		function grow(node, name, b) {
			if (!node.kids.has(name)) node.kids.set(name, { name, size: 0, kids: new Map(), kind: b.kind });
			const k = node.kids.get(name);
			k.size += b.size;
			if (k.kind !== b.kind) k.kind = -1;
			return k;
		}
		for (const b of live) {
			const own = stack(b).filter(t => !/site-packages\/torch\//.test(t)).reverse();
			const group = look.group === 1 ? ["stream " + b.stream] : look.group === 2 ? [poolOf(b)] : [];
			group.concat(own.length ? own : [kindOf(b)]).reduce((node, name) => grow(node, name, b), root).own = own.length;
		}
		const held = live.reduce((sum, b) => sum + b.size, 0);
		if (used > held) grow(root, "smaller or briefer blocks", { size: used - held, kind: -1 });
		let s = "", deep = 0;
		(function box(node, x, y) {
			for (const k of [...node.kids.values()].sort((a, b) => b.size - a.size)) {
				const w = k.size / used * wide, kind = r.kinds.find(q => q.slot === k.kind), room = Math.floor((w - 10) / 7);
				if (w < 1.5) continue;
				deep = Math.max(deep, y + HIGH);
				s += `<g data-t="${k.own || k.kids.size ? escape(k.name) : ""}"><title>${escape(k.name)}: ${bytes(k.size)}</title><rect class="${kind ? kind.klass : "base"}" x="${tenth(x)}" ` +
					`y="${y}" width="${tenth(w - 1)}" height="${HIGH - 2}" rx="2"/>` + (room > 3 ? text(tenth(x + 5), y + 14, "sm " + (kind ? on[k.kind] : "obase"),
						k.name.length > room ? k.name.slice(0, room - 1) + "\u2026" : k.name) : "") + "</g>";
				box(k, x, y + HIGH);
				x += w;
			}
		}(root, 0, 0));
		v.flame.setAttribute("viewBox", `0 0 ${wide} ${Math.max(deep, HIGH)}`);
		v.flame.innerHTML = used ? s : "";
	}
	function poolOf(b) {
		if (b.pool) return b.pool;
		const s = b.run.segments.find(q => q.addr <= b.addr && b.addr < q.addr + q.size && q.born <= b.born && q.died >= b.born);
		return b.pool = !s ? "no segment" : (s.pool > 1 ? "private pool " + (1 + b.run.pools.indexOf(s.pool >> 1)) + ", " : "") + (s.pool % 2 ? "small blocks" : "large blocks");
	}
	// Segments in address order, one behind the other. What no held block covers is free only where all blocks are held.
	function segments(v, live, some, event) {
		const r = v.run, wide = v.wide + LEFT + RIGHT, HIGH = 14, GAP = 4, there = r.segments.filter(s => s.born <= event && s.died > event);
		const place = new Map(live.map((b, k) => [b, k]));
		const all = there.reduce((sum, s) => sum + s.size, 0), row = all / Math.min(12, Math.max(1, Math.ceil(all / MIB / 16))), blocks = [...live].sort((a, b) => a.addr - b.addr);
		let out = "", at = 0, k = 0;
		function put(from, size, klass, title, b) {
			for (let a = from, end = from + size; a < end;) {
				const line = Math.floor(a / row), stop = Math.min(end, (line + 1) * row), w = (stop - a) / row * wide;
				if (stop <= a) break;
				if (w > 0.4) out += `<rect class="${klass}"${b ? ` data-k="${place.get(b)}"` : ""} x="${tenth((a - line * row) / row * wide)}" y="${line * (HIGH + GAP)}" width="${tenth(w)}" height="${HIGH}"><title>${title}</title></rect>`;
				a = stop;
			}
		}
		for (const s of there) {
			const end = s.addr + s.size, hex = "0x" + s.addr.toString(16);
			put(at, s.size, some ? "card" : "hx", `segment of ${bytes(s.size)} at ${hex}: ${some ? "free, or blocks that the report does not hold one by one" : "free"}`);
			while (k < blocks.length && blocks[k].addr < s.addr) k++;
			for (; k < blocks.length && blocks[k].addr < end; k++) {
				const b = blocks[k], kind = r.kinds.find(q => q.slot === b.kind);
				put(at + b.addr - s.addr, Math.min(b.size, end - b.addr), (kind ? kind.klass : "base") + (fits(b) ? "" : " i-out"), escape(b.text) + ": " + bytes(b.size), b);
			}
			put(at, row * 1.5 / wide, "fg", "segment of " + bytes(s.size) + " at " + hex);
			at += s.size;
		}
		v.map.hidden = !all;
		v.map.setAttribute("viewBox", `0 0 ${wide} ${Math.ceil(all / row || 1) * (HIGH + GAP)}`);
		v.map.innerHTML = out;
		v.mapped.textContent = all ? `${count(there.length)} segments of ${bytes(all)} in address order; a line begins each, ${some ? "pale is free or not held one by one" : "hatched is free"}.` : "";
	}
	// What grew between the ends of the range: kinds exactly, call sites as far as their blocks are held.
	function growth(v) {
		const r = v.run, at = starts(r), a = before(at, look.first), z = before(at, look.last), sites = new Map();
		const sign = d => (d > 0 ? "+" : d < 0 ? "\u2212" : "") + bytes(Math.abs(d));
		const part = look.first > 0 || look.last < whole();
		v.grown.hidden = !part;
		if (!part) return;
		for (const b of r.lives) {
			const d = b.size * ((b.born <= r.moment[z] && b.died > r.moment[z]) - (b.born <= r.moment[a] && b.died > r.moment[a]));
			if (d) sites.set(b.text + "\n" + kindOf(b), (sites.get(b.text + "\n" + kindOf(b)) || 0) + d);
		}
		const list = [...sites].filter(s => s[1]).sort((x, y) => Math.abs(y[1]) - Math.abs(x[1])).slice(0, GREW);
		const all = r.used[z] - r.used[a], rest = all - list.reduce((sum, s) => sum + s[1], 0);
		const row = (name, kind, d) => `<tr><td>${escape(name)}</td><td>${kind}</td><td class="r-n">${sign(d)}</td></tr>`;
		v.grown.caption.textContent = "What grew from " + moment(r, a) + " to " + moment(r, z);
		v.grown.tBodies[0].innerHTML = list.map(s => row(...s[0].split("\n"), s[1])).join("");
		v.grown.tFoot.innerHTML = (rest ? row("others, and blocks that the report does not hold one by one", "", rest) : "") +
			r.kinds.filter(k => k.at && k.at[z] !== k.at[a]).map(k => row("all " + k.name.toLowerCase(), "", k.at[z] - k.at[a])).join("") +
			row("in use", "", all);
	}
	function kindOf(b) { return (b.run.kinds.find(k => k.slot === b.kind) || { name: "" }).name; }
	function chosen() {
		const b = look.chosen;
		if (!b) {
			detail.innerHTML = '<p class="r-mut">Click a call site or a block in the segments: size, call stack, birth and end appear here.</p>';
			return;
		}
		const now = b.run.moment[column(b.run)];
		const when = e => (b.run.time ? span(axisTime(b.run, e)) + ", " : "") + "event " + count(e);
		const like = sitesOf(b.run.lives.filter(o => o.text === b.text && o.kind === b.kind && o.born <= now && o.died > now && fits(o)))[0];
		detail.innerHTML = (like && like.n > 1 ? `<p>One of ${count(like.n)} blocks, ${bytes(like.size)} in all, of this call site and kind at the cursor:</p>` : "") +
			`<p><b>Block ${b.id}: ${bytes(b.size)}, ${escape(kindOf(b))}</b>, stream ${b.stream}, at 0x${b.addr.toString(16)}</p>` +
			`<p>Born ${b.born ? "at " + when(b.born) : "before the first event"}, ${b.died > b.run.end.event ? "stays to the end" : "freed at " + when(b.died)}.</p>` +
			(b.site ? "<ol>" + stack(b).map(t => "<li><code>" + escape(t) + "</code></li>").join("") + "</ol>" : '<p class="r-mut">No call stack was recorded.</p>');
	}
	function axisTime(r, event) {
		const was = look.byTime;
		look.byTime = true;
		const t = axisOf(r, event);
		look.byTime = was;
		return t - r.clock;
	}

	// ---- what a person does ----
	function link() {
		const r = views[0].run, show = x => look.byTime ? +(x / 1e6).toFixed(6) + "ms" : String(Math.round(x)); // exact: a rounded peak is none
		const range = look.first > 0 || look.last < whole();
		const others = location.hash.slice(1).split("&").filter(p => p && !/^[te]=/.test(p)).concat(""); // of the page around it
		history.replaceState(null, "", "#" + others.join("&") + (look.byTime ? "t=" : "e=") + (range ? show(look.first) + "-" + show(look.last) + "@" : "") +
			show(look.byTime ? r.momenttime[column(r)] + r.clock : r.moment[column(r)]));
	}
	function moveTo(at, quiet) {
		look.at = Math.max(0, Math.min(at, whole()));
		views.forEach(v => drawCursor(v, look.at));
		heap();
		if (!quiet) link();
	}
	function range(first, last) {
		look.first = first;
		look.last = last;
		draw();
		link();
	}
	function choose(b) {
		look.chosen = b;
		views.forEach(v => drawCursor(v, look.at));
		heap();
		chosen();
	}
	function zoom(f, around) { range(around - (around - look.first) * f, around + (look.last - around) * f); }
	function all() { range(0, whole()); }
	// "#t=795ms", "#t=700ms-900ms", "#t=0.7s-0.9s@795ms"; "#e=" counts events.
	function follow() {
		const m = /[#&]([te])=([^@&]*)(?:@([^&]*))?/.exec(decodeURIComponent(location.hash)), parts = m ? m[2].split("-") : [];
		if (!m || (m[1] === "t" && !data.runs[0].time)) return false;
		const unit = { ns: 1, us: 1e3, "\u00b5s": 1e3, ms: 1e6, s: 1e9, min: 6e10 };
		function value(t) {
			const p = /^([\d.]+)\s*([a-z\u00b5]*)$/.exec(t || "");
			return p ? parseFloat(p[1]) * (m[1] === "t" ? unit[p[2] || "ns"] : 1) : NaN;
		}
		look.byTime = m[1] === "t";
		const a = value(parts[0]), z = value(parts[1]), at = value(m[3]);
		if (!(a >= 0)) return false;
		look.first = z > a ? a : 0;
		look.last = z > a ? z : whole();
		look.at = at >= 0 ? at : z > a ? (a + z) / 2 : a;
		return true;
	}
	function pointer(v) {
		let from = null, waiting = 0;
		const place = ev => (ev.clientX - v.svg.getBoundingClientRect().left) / v.svg.getBoundingClientRect().width * (v.wide + LEFT + RIGHT);
		const axis = x => look.first + Math.max(0, Math.min(v.wide, x - LEFT)) / v.scale;
		v.svg.addEventListener("pointerdown", function (ev) {
			if (ev.button) return;
			from = place(ev);
			v.svg.setPointerCapture(ev.pointerId);
		});
		v.svg.addEventListener("pointermove", function (ev) {
			const x = place(ev);
			if (waiting) return;
			waiting = requestAnimationFrame(function () {
				waiting = 0;
				drawCursor(v, axis(x), true);
				if (from !== null && Math.abs(x - from) > 4)
					v.over.innerHTML += `<rect class="i-range" x="${Math.max(LEFT, Math.min(from, x))}" y="${TOP}" width="${Math.abs(x - from)}" height="${PLOT}"/>`;
			});
		});
		v.svg.addEventListener("pointerup", function (ev) {
			const x = place(ev), start = from;
			from = null;
			cancelAnimationFrame(waiting);
			waiting = 0;
			if (start === null) return;
			if (Math.abs(x - start) > 4) {
				const a = axis(Math.min(x, start)), z = axis(Math.max(x, start));
				look.at = Math.max(a, Math.min(look.at, z));
				range(a, z);
				heap();
				return;
			}
			moveTo(axis(x));
		});
		v.svg.addEventListener("pointercancel", () => { from = null; });
		v.svg.addEventListener("pointerleave", () => drawCursor(v, look.at));
		v.svg.addEventListener("dblclick", all);
		v.svg.addEventListener("wheel", function (ev) {
			if (!ev.ctrlKey && !ev.metaKey) return;
			ev.preventDefault();
			zoom(ev.deltaY < 0 ? 0.8 : 1.25, axis(place(ev)));
		}, { passive: false });
		v.table.addEventListener("click", function (ev) {
			if (ev.target.dataset.k) choose(v.list[+ev.target.dataset.k]);
		});
	}
	function keys(ev) {
		const v = views[0], r = v.run, i = column(r), at = starts(r), page = (look.last - look.first) / 4, list = v.list || [];
		const next = list[Math.max(0, Math.min(list.length - 1, list.indexOf(look.chosen) + (ev.key === "ArrowUp" ? -1 : 1)))];
		const does = {
			ArrowLeft: () => ev.shiftKey ? range(look.first - Math.min(page, look.first), look.last - Math.min(page, look.first)) : moveTo(at[Math.max(0, i - 1)]),
			ArrowRight: () => ev.shiftKey ? range(look.first + Math.min(page, whole() - look.last), look.last + Math.min(page, whole() - look.last)) : moveTo(at[Math.min(r.n - 1, i + 1)]),
			s: () => { const own = stepAt(r, look.at); if (own) range(...own); },
			Home: () => moveTo(0), End: () => moveTo(at[r.n - 1]),
			"+": () => zoom(0.5, look.at), "-": () => zoom(2, look.at), Escape: all,
			p: () => moveTo(peak(r)), o: () => r.oom && moveTo(axisOf(r, r.oom.event)),
			ArrowDown: () => next && choose(next), ArrowUp: () => next && choose(next),
		};
		if (!does[ev.key] || ev.ctrlKey || ev.metaKey || ev.altKey) return;
		ev.preventDefault();
		does[ev.key]();
	}
	// The start of the fullest column at the peak of what is reserved.
	function peak(r) { return starts(r)[before(r.event, r.peak)]; }

	// ---- the page around it ----
	const make = report.make, button = report.button, before0 = document.getElementById("ledger");
	const section = make("section", "", null, "i-all"), tools = make("div", "", null, "r-tools"), filter = make("div", "", null, "r-tools");
	const sides = make("div", "", null, "i-sides"), detail = make("div", "", null, "i-detail");
	const find = make("input");
	function label(textOf, input, parent) {
		const l = make("label", textOf + " ", parent);
		l.append(input);
		return input;
	}
	function select(parent, title, choices, chosenAt, change) {
		const s = label(title, make("select"), parent);
		choices.forEach(function (c, i) { make("option", c, s).value = String(i); });
		s.value = String(chosenAt);
		s.onchange = () => change(+s.value);
		return s;
	}
	function addView(run) {
		const v = { run, figure: make("figure", "", sides, "i-view"), scale: 1 };
		v.title = make("figcaption", run.name, v.figure, "r-mut");
		v.tools = make("div", "", v.figure, "r-tools");
		v.figure.insertAdjacentHTML("beforeend", '<svg xmlns="http://www.w3.org/2000/svg" role="img" tabindex="0" aria-label="Memory over time; arrow keys move the cursor"><g></g><g></g></svg>');
		v.svg = v.figure.querySelector("svg");
		[v.paper, v.over] = v.svg.children;
		v.read = make("p", "", v.figure, "i-read");
		v.read.setAttribute("aria-live", "polite");
		const scroll = make("div", "", v.figure, "r-scroll i-heap");
		scroll.innerHTML = '<table><caption></caption><thead><tr><th scope="col">Where</th><th scope="col">Kind</th><th scope="col" class="r-n">Size</th>' +
			'<th scope="col" class="r-n">Blocks</th><th scope="col" class="r-n">Largest</th></tr></thead><tbody></tbody><tfoot></tfoot></table>';
		v.table = scroll.firstChild;
		scroll.insertAdjacentHTML("beforebegin", '<svg xmlns="http://www.w3.org/2000/svg" class="i-flame" role="img" aria-label="Who holds the memory at the cursor, by call stack"></svg>');
		v.flame = scroll.previousSibling;
		v.flame.addEventListener("click", function (ev) {
			const box = ev.target.closest("g");
			find.value = box ? box.dataset.t : "";
			find.oninput();
		});
		scroll.insertAdjacentHTML("beforebegin", '<p class="r-mut"></p><svg xmlns="http://www.w3.org/2000/svg" class="i-map" role="img" aria-label="Segments at the cursor, in address order"></svg>');
		v.map = scroll.previousSibling;
		v.mapped = v.map.previousSibling;
		v.map.addEventListener("click", function (ev) {
			if (ev.target.dataset.k) choose(v.live[+ev.target.dataset.k]);
		});
		scroll.insertAdjacentHTML("beforebegin", '<table hidden><caption></caption><thead><tr><th scope="col">Where</th><th scope="col">Kind</th>' +
			'<th scope="col" class="r-n">Grew by</th></tr></thead><tbody></tbody><tfoot></tfoot></table>');
		v.grown = scroll.previousSibling;
		report.sortable(v.table);
		report.saveable(v.svg, v.tools, "vramcast-look");
		views.push(v);
		pointer(v);
	}
	function setRuns(a, b) {
		views.length = 0;
		sides.textContent = "";
		look.chosen = null;
		addView(data.runs[a]);
		if (b >= 0 && b !== a) addView(data.runs[b]);
		sides.classList.toggle("i-two", views.length > 1);
		look.first = 0;
		look.last = whole();
		draw();
		heap();
	}
	function again() { draw(); heap(); }
	function build() {
		const runs = data.runs, names = runs.map((r, i) => (i + 1) + ": " + r.name), two = { a: 0, b: runs.length > 1 ? 1 : -1 };
		runs.forEach(r => r.lives.forEach(b => { b.run = r; }));
		make("h2", "Look closer", section).id = "look";
		make("p", "Drag over the picture to select a range and see what grew in it; click for the heap at a moment. Keys: arrows move the cursor, + and \u2212 " +
			"zoom, Shift and arrows move the range, p peak, o out of memory, s one step and the spread of the others, up and down blocks, Escape everything.", section, "r-mut");
		section.append(tools, filter, sides, detail);
		if (runs.length > 1) {
			select(tools, "run", names, 0, i => setRuns(two.a = i, two.b));
			select(tools, "beside", ["none"].concat(names), 2, i => setRuns(two.a, two.b = i - 1));
		}
		button("whole run", "Escape", tools, all);
		button("\u2212", "zoom out", tools, () => zoom(2, (look.first + look.last) / 2));
		button("+", "zoom in", tools, () => zoom(0.5, (look.first + look.last) / 2));
		button("peak", "p", tools, () => moveTo(peak(views[0].run)));
		if (runs.some(r => r.oom)) button("out of memory", "o", tools, () => views[0].run.oom && moveTo(axisOf(views[0].run, views[0].run.oom.event)));
		if (runs.some(r => r.steps.length > 2)) button("one step", "s", tools, function () {
			const own = stepAt(views[0].run, look.at);
			if (own) range(...own);
		});
		if (runs.every(r => r.time)) select(tools, "axis", ["time", "events"], look.byTime ? 0 : 1, i => { look.byTime = !i; all(); moveTo(look.at); });
		const kinds = new Map(runs.flatMap(r => r.kinds.filter(k => k.at).map(k => [k.slot, k])));
		for (const k of kinds.values()) {
			const l = make("label", "", filter, "i-kind"), box = make("input", "", l);
			box.type = "checkbox";
			box.checked = true;
			box.onchange = () => { look.hidden[box.checked ? "delete" : "add"](k.slot); again(); };
			l.insertAdjacentHTML("beforeend", `<svg width="12" height="12" aria-hidden="true"><rect class="${k.klass}" width="12" height="12" rx="2"/></svg>`);
			l.append(k.name);
		}
		const sizes = [0, 65536, MIB, 16 * MIB, 128 * MIB, GIB];
		select(filter, "blocks of at least", sizes.map(b => b ? bytes(b) : "any size"), 0, i => { look.least = sizes[i]; again(); });
		select(filter, "grouped by", ["call stack", "stream", "pool"], 0, i => { look.group = i; again(); });
		label("call stack has", find, filter);
		find.type = "search";
		find.oninput = () => { look.text = find.value.trim().toLowerCase(); again(); };
		section.addEventListener("keydown", ev => { if (ev.target.closest("svg")) keys(ev); });
		before0.before(section);
		const first = document.querySelector("nav a[href='#ledger']"), a = make("a", "Look closer");
		a.href = "#look";
		first.before(a);
		setRuns(two.a, two.b);
		if (!follow()) look.at = runs[0].oom ? axisOf(runs[0], runs[0].oom.event) : peak(runs[0]);
		again();
		window.addEventListener("hashchange", () => { if (follow()) again(); }, { signal: over.signal });
		window.addEventListener("resize", draw, { signal: over.signal });
	}
	if (data.runs.length) build();
	performance.mark("vramcast-instrument");
};
