#!/bin/sh
# browser.sh - pictures and the report in a real browser: no overlap of measured text, no console errors,
# zoom and search work. Skipped where no headless Chromium is.
. tests/support/tap.sh

browser=''
for b in chromium chromium-browser google-chrome; do command -v $b >/dev/null 2>&1 && { browser=$b; break; }; done
if [ -z "$browser" ]; then skip "pictures in a browser" "no Chromium here"; finish; fi
# dom FILE [SIZE]: the page after its scripts ran on stdout, what the console said in $TMP/console
dom() { timeout 60 $browser --headless --no-sandbox --disable-gpu --allow-file-access-from-files --virtual-time-budget=8000 \
	--user-data-dir="$TMP/profile" --enable-logging=stderr --window-size="${2:-1240,900}" --dump-dom "file://$1" 2> "$TMP/console"; }

T=traces/lm-train-ctx128.vct
set --
for t in timeline segments ranks flame compare; do
	for w in 600 1200; do
		"$VRAMCAST" plot $T -g a100-40g-sxm -t $t --width $w -o "$TMP/$t-$w.svg" 2>/dev/null && set -- "$@" $t-$w
	done
done
{
	echo '<!DOCTYPE html><meta charset="utf-8"><body>'
	for p in "$@"; do echo "<div id=\"$p\">"; cat "$TMP/$p.svg"; echo '</div>'; done
	cat <<'JS'
<script>
var out = [];
document.querySelectorAll("body > div").forEach(function (d) {
	var svg = d.querySelector("svg"), page = svg.viewBox.baseVal, bad = "";
	var boxes = [].map.call(svg.querySelectorAll("text"), function (t) {
		var b = t.getBBox(), cut = b.height * 0.16; // the ascent and descent that hold no ink
		return { x: b.x, y: b.y + cut, r: b.x + b.width, b: b.y + b.height - cut, t: t.textContent };
	});
	boxes.forEach(function (a, i) {
		if (a.x < -0.5 || a.r > page.width + 0.5 || a.b > page.height) bad = bad || "'" + a.t + "' leaves the page";
		for (var j = 0; j < i; j++) {
			var b = boxes[j];
			if (a.x < b.r - 0.5 && b.x < a.r - 0.5 && a.y < b.b && b.y < a.b) bad = bad || "'" + a.t + "' covers '" + b.t + "'";
		}
	});
	out.push(d.id + ": " + (bad || boxes.length + " labels apart"));
});
document.body.textContent = "";
var pre = document.createElement("pre");
pre.textContent = out.join("\n");
document.body.appendChild(pre);
</script>
JS
} > "$TMP/all.html"
dom "$TMP/all.html" > "$TMP/seen"
for p in "$@"; do
	if grep -q "$p: [0-9]* labels apart" "$TMP/seen"; then pass "$p: no measured label covers another"
	else fail "$p: no measured label covers another" "$(grep "$p:" "$TMP/seen")"; fi
done

"$VRAMCAST" report $T -g a100-40g-sxm -o "$TMP/r.html" 2>/dev/null
cat > "$TMP/probe.js" <<'JS'
<script>
(function () {
	function fire(e, type) { e.dispatchEvent(new Event(type, { bubbles: true })); }
	var svg = document.querySelector("figure[data-name] > svg"), full = svg.getAttribute("viewBox");
	document.querySelector("figure[data-name] .r-tools button").click();
	var zoomed = svg.getAttribute("viewBox") !== full;
	document.querySelectorAll("figure[data-name] .r-tools button")[2].click();
	var back = svg.getAttribute("viewBox") === full;
	var input = document.querySelector("input[type=search]");
	input.value = "optimizer";
	fire(input, "input");
	setTimeout(function () {
		var shown = document.querySelectorAll("table.r-find tbody tr:not(.r-hide)").length;
		var found = document.querySelectorAll("svg .r-found").length;
		var e = document.createElement("p");
		e.textContent = "zoomed " + zoomed + " back " + back + " rows " + (shown > 0) + " marks " + (found > 0) +
			" pictures " + document.querySelectorAll("figure > svg").length;
		document.body.appendChild(e);
	}, 400);
}());
</script>
JS
sed -e "/<\/body>/{
r $TMP/probe.js
}" "$TMP/r.html" > "$TMP/probed.html"
dom "$TMP/probed.html" > "$TMP/seen"
check "the report zooms and goes back" grep -q 'zoomed true back true' "$TMP/seen"
check "and finds rows and places in pictures" grep -q 'rows true marks true' "$TMP/seen"
dom "$TMP/r.html" > /dev/null
check "the report opens without a word on the console" sh -c '! grep -iE "CONSOLE|Uncaught|Refused" "$1"' sh "$TMP/console"
timeout 60 $browser --headless --no-sandbox --disable-gpu --user-data-dir="$TMP/profile" --print-to-pdf="$TMP/r.pdf" "file://$TMP/r.html" >/dev/null 2>&1
check "and prints" sh -c 'head -c 4 "$1" | grep -q PDF' sh "$TMP/r.pdf"
finish
