"use strict";
// Zoom and search; the page says everything without it.
(function () {
	function make(tag, text, parent) {
		var e = document.createElement(tag);
		if (text) e.textContent = text;
		if (parent) parent.appendChild(e);
		return e;
	}
	function zoomable(svg) {
		var full = svg.getAttribute("viewBox").split(" ").map(Number), box = full.slice(), drag = null;
		var tools = make("div"), fig = svg.parentNode;
		tools.className = "r-tools";
		fig.insertBefore(tools, svg);
		function show() { svg.setAttribute("viewBox", box.join(" ")); }
		function zoom(f, cx, cy) {
			var w = Math.min(full[2], Math.max(full[2] / 400, box[2] * f)), k = w / box[2];
			box = [cx - (cx - box[0]) * k, cy - (cy - box[1]) * k, w, box[3] * k];
			if (w === full[2]) box = full.slice();
			show();
		}
		function at(ev) {
			var r = svg.getBoundingClientRect();
			return [box[0] + (ev.clientX - r.left) / r.width * box[2], box[1] + (ev.clientY - r.top) / r.height * box[3]];
		}
		[["+", 0.6], ["\u2212", 1 / 0.6]].forEach(function (b) {
			var e = make("button", b[0], tools);
			e.type = "button";
			e.title = b[1] < 1 ? "zoom in" : "zoom out";
			e.onclick = function () { zoom(b[1], box[0] + box[2] / 2, box[1] + box[3] / 2); };
		});
		var all = make("button", "whole picture", tools), hint = make("span", "Ctrl + wheel zooms, dragging moves, double click resets", tools);
		all.type = "button";
		all.onclick = svg.ondblclick = function () { box = full.slice(); show(); };
		hint.className = "r-mut";
		svg.addEventListener("wheel", function (ev) {
			if (!ev.ctrlKey && !ev.metaKey) return;
			ev.preventDefault();
			var p = at(ev);
			zoom(ev.deltaY < 0 ? 0.8 : 1.25, p[0], p[1]);
		}, { passive: false });
		svg.addEventListener("pointerdown", function (ev) { if (box[2] < full[2]) { drag = at(ev); svg.setPointerCapture(ev.pointerId); } });
		svg.addEventListener("pointermove", function (ev) {
			if (!drag) return;
			var p = at(ev);
			box[0] += drag[0] - p[0];
			box[1] += drag[1] - p[1];
			show();
		});
		svg.addEventListener("pointerup", function () { drag = null; });
	}
	function searchable(nav) {
		var tools = make("div"), input = make("input", "", tools), count = make("span", "", tools), timer;
		tools.className = "r-tools";
		input.type = "search";
		input.placeholder = "find a call site, a function, a size \u2026";
		input.setAttribute("aria-label", "search the tables and the pictures");
		count.className = "r-mut";
		nav.parentNode.insertBefore(tools, nav.nextSibling);
		function find() {
			var q = input.value.trim().toLowerCase(), rows = 0, marks = 0;
			document.querySelectorAll("table.r-find tbody tr").forEach(function (tr) {
				var hit = q && tr.textContent.toLowerCase().indexOf(q) >= 0;
				tr.classList.toggle("r-hide", !!q && !hit);
				rows += hit ? 1 : 0;
			});
			document.querySelectorAll("figure svg g title, figure svg rect title").forEach(function (t) {
				var hit = q && t.textContent.toLowerCase().indexOf(q) >= 0, e = t.parentNode;
				(e.tagName === "g" ? e.querySelectorAll("rect") : [e]).forEach(function (x) { x.classList.toggle("r-found", !!hit); });
				marks += hit ? 1 : 0;
			});
			count.textContent = q ? rows + " rows, " + marks + " places in the pictures" : "";
		}
		input.addEventListener("input", function () { clearTimeout(timer); timer = setTimeout(find, 120); });
	}
	function copyable(line) {
		var b = make("button", "copy", line), code = line.querySelector("code");
		b.type = "button";
		b.onclick = function () {
			var r = document.createRange();
			r.selectNodeContents(code);
			var s = window.getSelection();
			s.removeAllRanges();
			s.addRange(r);
			try { document.execCommand("copy"); b.textContent = "copied"; } catch (e) { b.textContent = "selected"; }
		};
	}
	document.querySelectorAll("figure > svg").forEach(zoomable);
	document.querySelectorAll(".r-line").forEach(copyable);
	searchable(document.querySelector("nav"));
}());
