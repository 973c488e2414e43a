"use strict";
// What the whole report can do with a script: theme, zoom, saving, search, sorting, copying. It says everything without it.
// page/ shows reports one after the other: each calls report.show(), and report.look() (instrument.js).
const report = (function () {
	function make(tag, text, parent, klass) {
		const e = document.createElement(tag);
		if (text) e.textContent = text;
		if (klass) e.className = klass;
		if (parent) parent.appendChild(e);
		return e;
	}
	function button(text, title, parent, press) {
		const b = make("button", text, parent);
		b.type = "button";
		b.title = title;
		b.onclick = press;
		return b;
	}
	function themed(nav) {
		const names = ["auto", "dark", "light"], root = document.documentElement;
		const rules = []; // those for a dark screen, of the page and of the pictures
		if (root.className) return; // --theme chose one
		for (const sheet of document.styleSheets)
			for (const rule of sheet.cssRules)
				if (rule.media && /dark|screen|not all/.test(rule.media.mediaText)) rules.push({ rule, auto: "(prefers-color-scheme: dark)" });
		const b = button("", "colours of the page: as the system, dark, light", nav, () => paint(names[(names.indexOf(root.dataset.theme) + 1) % 3]));
		function paint(name) {
			root.dataset.theme = name;
			root.style.colorScheme = name === "auto" ? "" : name;
			for (const r of rules) r.rule.media.mediaText = name === "auto" ? r.auto : name === "dark" ? "screen" : "not all";
			b.textContent = "Theme: " + name;
		}
		paint(root.dataset.theme || "auto");
	}
	function keep(blob, name) {
		const a = make("a");
		a.href = URL.createObjectURL(blob);
		a.download = name;
		a.click();
		setTimeout(() => URL.revokeObjectURL(a.href), 10000);
	}
	// The picture as a file of its own: with the style that all pictures of the page share, in the theme of now.
	function standalone(svg) {
		const copy = svg.cloneNode(true), shared = document.getElementById("r-style"), defs = shared.querySelector("defs");
		const style = document.createElementNS(copy.namespaceURI, "style"), box = copy.viewBox.baseVal;
		style.textContent = [...shared.querySelector("style").sheet.cssRules].map(r => r.cssText).join("\n");
		copy.prepend(style, defs.cloneNode(true));
		copy.setAttribute("width", box.width);
		copy.setAttribute("height", box.height);
		return new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
	}
	function savePng(svg, name) {
		const image = new Image(), canvas = make("canvas"), url = URL.createObjectURL(standalone(svg));
		image.onload = function () {
			canvas.width = image.width * 2;
			canvas.height = image.height * 2;
			canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
			canvas.toBlob(blob => keep(blob, name), "image/png");
			URL.revokeObjectURL(url);
		};
		image.src = url;
	}
	function saveable(svg, tools, name) {
		button("SVG", "save this picture as SVG", tools, () => keep(standalone(svg), name + ".svg"));
		button("PNG", "save this picture as PNG", tools, () => savePng(svg, name + ".png"));
	}
	function zoomable(svg) {
		const full = svg.getAttribute("viewBox").split(" ").map(Number), fig = svg.parentNode, tools = make("div", "", null, "r-tools");
		let box = full.slice(), drag = null;
		fig.insertBefore(tools, svg);
		function show() { svg.setAttribute("viewBox", box.join(" ")); }
		function whole() { box = full.slice(); show(); }
		function zoom(f, cx, cy) {
			const w = Math.min(full[2], Math.max(full[2] / 400, box[2] * f)), k = w / box[2];
			box = w === full[2] ? full.slice() : [cx - (cx - box[0]) * k, cy - (cy - box[1]) * k, w, box[3] * k];
			show();
		}
		function at(ev) {
			const r = svg.getBoundingClientRect();
			return [box[0] + (ev.clientX - r.left) / r.width * box[2], box[1] + (ev.clientY - r.top) / r.height * box[3]];
		}
		function middle(f) { return () => zoom(f, box[0] + box[2] / 2, box[1] + box[3] / 2); }
		button("+", "zoom in (Ctrl and the wheel; drag to move)", tools, middle(0.6));
		button("\u2212", "zoom out", tools, middle(1 / 0.6));
		button("whole picture", "double click", tools, whole);
		saveable(svg, tools, "vramcast-" + (fig.dataset.name || "picture"));
		svg.ondblclick = whole;
		svg.addEventListener("wheel", function (ev) {
			if (!ev.ctrlKey && !ev.metaKey) return;
			ev.preventDefault();
			zoom(ev.deltaY < 0 ? 0.8 : 1.25, ...at(ev));
		}, { passive: false });
		svg.addEventListener("pointerdown", function (ev) {
			if (box[2] < full[2]) { drag = at(ev); svg.setPointerCapture(ev.pointerId); }
		});
		svg.addEventListener("pointermove", function (ev) {
			if (!drag) return;
			const p = at(ev);
			box[0] += drag[0] - p[0];
			box[1] += drag[1] - p[1];
			show();
		});
		svg.addEventListener("pointerup", () => { drag = null; });
	}
	function searchable(nav) {
		const tools = make("div", "", null, "r-tools"), input = make("input", "", tools), count = make("span", "", tools, "r-mut");
		let timer;
		input.type = "search";
		input.placeholder = "find a call site, a function, a size \u2026";
		input.setAttribute("aria-label", "search the tables and the pictures");
		count.setAttribute("role", "status");
		nav.after(tools);
		function find() {
			const q = input.value.trim().toLowerCase();
			let rows = 0, places = 0;
			document.querySelectorAll("table.r-find tbody tr").forEach(function (tr) {
				const hit = q && tr.textContent.toLowerCase().includes(q);
				tr.classList.toggle("r-hide", !!q && !hit);
				rows += hit ? 1 : 0;
			});
			document.querySelectorAll("figure svg g title, figure svg rect title").forEach(function (t) {
				const hit = q && t.textContent.toLowerCase().includes(q), e = t.parentNode;
				(e.tagName === "g" ? e.querySelectorAll("rect") : [e]).forEach(x => x.classList.toggle("r-found", !!hit));
				places += hit && e.closest("figure").offsetParent ? 1 : 0;
			});
			count.textContent = q ? rows + " rows, " + places + " places in the pictures" : "";
		}
		input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(find, 120); });
	}
	// "1.5 GiB" and "12,345" by size, anything else by letters; what is equal stays in its order.
	function worth(text) {
		const m = /^([\d,.]+)\s*(B|KiB|MiB|GiB|%)?$/.exec(text.trim());
		return m ? parseFloat(m[1].replace(/,/g, "")) * ({ KiB: 1024, MiB: 1048576, GiB: 1073741824 }[m[2]] || 1) : text.toLowerCase();
	}
	function sortable(table) {
		table.querySelectorAll("thead th").forEach(function (th, i) {
			const text = th.textContent;
			th.textContent = "";
			button(text, "sort by this column", th, function () {
				const up = th.getAttribute("aria-sort") === "descending", body = table.tBodies[0];
				const rows = [...body.rows].map(tr => ({ tr, v: worth(tr.cells[i].textContent) }));
				rows.sort(function (a, b) {
					const order = typeof a.v === typeof b.v ? (a.v > b.v) - (a.v < b.v) : typeof a.v === "number" ? 1 : -1;
					return up ? order : -order;
				});
				table.querySelectorAll("th").forEach(x => x.removeAttribute("aria-sort"));
				th.setAttribute("aria-sort", up ? "ascending" : "descending");
				body.append(...rows.map(r => r.tr));
			}).className = "r-sort";
		});
	}
	function copyable(line) {
		const code = line.querySelector("code"), b = button("copy", "copy this line", line, function () {
			window.getSelection().selectAllChildren(code);
			b.textContent = document.execCommand("copy") ? "copied" : "selected";
		});
	}
	function show(root) {
		const nav = root.querySelector("nav");
		root.querySelectorAll("figure > svg").forEach(zoomable);
		root.querySelectorAll(".r-line").forEach(copyable);
		root.querySelectorAll("table.r-find").forEach(sortable);
		searchable(nav);
		themed(nav);
	}
	return { make, button, keep, copyable, saveable, sortable, show };
}());
