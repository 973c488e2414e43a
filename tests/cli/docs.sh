#!/bin/sh
# docs.sh - every command that a document shows is run on recordings of the tree, and what the document
# shows of its output is compared. UPDATE=1 tests/cli/docs.sh writes what came out into the documents.
#
# A block ``` or ```sh holds commands. With "$ " in front of them, what follows is their output; "…" at the
# end of a line stands for its rest, and a line "…" for any number of lines. Without "$ ", every line is a
# command. Behind ```sh: needs=torch (gpu, network, build, tool, file) is not run, and listed; exit=N is
# the exit code of its commands (0 when not given; 3 is the answer "out of memory").
# Commands run in a folder of their own in which traces, tests, examples and docs are those of the tree.
BUILD=${BUILD:-build}; VRAMCAST=${VRAMCAST:-build/vramcast}
[ -n "$TMP" ] || { TMP=$(mktemp -d); trap 'rm -rf "$TMP"' EXIT; }
. tests/support/tap.sh
top=$PWD; NO_COLOR=1; export NO_COLOR
awk() { LC_ALL=C command awk "$@"; }
PATH=$(cd "$(dirname "$VRAMCAST")" && pwd):$PATH; export PATH
unset VRAMCAST_COLOR COLUMNS

# Writes N.cmd, N.want and N.info (line, kind, needs, exit) for each command of the document on stdin.
split() { awk -v dir="$1" '
	function put(s, what) { print s > (dir "/" n what) }
	function done_with() { if (n) { close(dir "/" n ".cmd"); close(dir "/" n ".want"); close(dir "/" n ".info") } }
	function value(key,   i, s) { i = index(info " ", " " key "="); if (!i) return "-"
		s = substr(info, i + length(key) + 2); sub(/ .*/, "", s); return s }
	function begin(line, kind, s) { done_with(); n++; printf "" > (dir "/" n ".want")
		put(line " " kind " " value("needs") " " value("exit"), ".info"); put(s, ".cmd"); more = s ~ /\\$/ }
	/^ *```/ {
		if (!inside) { inside = 1; info = $0; sub(/^ *```/, "", info); shell = info ~ /^(sh)?( |$)/; info = " " info; shown = more = 0 }
		else inside = 0
		next
	}
	!inside && /^(    |\t)(\$ |vramcast |make )/ { begin(NR, "indented", $0); next }
	!inside || !shell { next }
	more { put($0, ".cmd"); more = /\\$/; next }
	/^\$ / { begin(NR, "shown", substr($0, 3)); shown = 1; next }
	shown { put($0, ".want"); next }
	/^ *(#|$)/ { next }
	{ begin(NR, "plain", $0) }
	END { done_with(); print n + 0 > (dir "/count") }'; }

# compare WANT GOT: says the first difference, or nothing.
compare() { awk -v want="$1" '
	function same(w, g,   k) { k = length(w) - 2
		return w == g || (k > 0 && substr(w, k) == "…" && substr(w, 1, k - 1) == substr(g, 1, k - 1)) }
	function rest(i, j) {
		for (; i <= nw; i++) {
			if (w[i] ~ /^ *…$/) { for (; j <= ng + 1; j++) if (rest(i + 1, j)) return 1; return 0 }
			if (j > ng || !same(w[i], g[j])) { if (j > far) { far = j; at = w[i] }; return 0 }
			j++
		}
		if (j <= ng && j > far) { far = j; at = "(nothing more)" }
		return j > ng
	}
	{ sub(/[ \t]+$/, ""); g[++ng] = $0 }
	END {
		while ((getline line < want) > 0) { sub(/[ \t]+$/, "", line); w[++nw] = line }
		while (nw && w[nw] == "") nw--
		while (ng && g[ng] == "") ng--
		if (!rest(1, 1)) printf "shown:   %s\nprinted: %s\n", at, far <= ng ? g[far] : "(nothing more)"
	}' "$2"; }

# renew WANT GOT: what came out, cut where the document cuts. The lines before its first "…" are the first that
# came out; others are looked for by how the first of them begins, and stand in the order in which they came out.
# Lines beyond 116 bytes are cut.
renew() { awk -v want="$1" '
	function cut(s) { if (length(s) <= 116) return s
		s = substr(s, 1, 112); sub(/[\300-\377][\200-\277]*$/, "", s); return s "…" }
	function key(s) { gsub(/[0-9]/, "", s); return substr(s, 1, 24) }
	function find(s, from,   i) { for (i = from; i <= ng; i++) if (key(g[i]) == key(s)) return i; return 0 }
	function piece(first, n, last,   i, k) { # lines first .. first + n - 1 of want
		i = first == 1 ? 1 : find(w[first], at)
		if (!i) i = find(w[first], 1)
		if (!i && last) i = ng - n + 1 > 0 ? ng - n + 1 : 1
		if (!i) { print "docs.sh: not found any more: " w[first] > "/dev/stderr"; return }
		at = i + (last ? ng : n)
		for (k = i; k < at && k <= ng; k++) keep[k] = 1
	}
	{ sub(/[ \t]+$/, ""); g[++ng] = $0 }
	END {
		while ((getline line < want) > 0) w[++nw] = line
		while (nw && w[nw] == "") { nw--; blank++ }
		while (ng && g[ng] == "") ng--
		at = start = 1
		for (i = 1; i <= nw + 1; i++) if (i > nw || w[i] ~ /^ *…$/) {
			if (i > start) piece(start, i > nw && start == 1 ? ng : i - start, i > nw)
			start = i + 1
		}
		for (i = 1; i <= ng; i++)
			if (keep[i]) { print cut(g[i]); dots = 0 } else if (!dots++) print "…"
		while (blank-- > 0) print ""
	}' "$2"; }

# rewrite DIR: the document on stdin with the outputs in DIR/N.new.
rewrite() { awk -v dir="$1" '
	/^ *```/ { if (!inside) { inside = 1; info = $0; sub(/^ *```/, "", info); shell = info ~ /^(sh)?( |$)/; shown = more = 0 } else inside = 0; print; next }
	!inside || !shell { if (!inside && /^(    |\t)(\$ |vramcast |make )/) n++; print; next }
	more { print; more = /\\$/; if (!more) out(); next }
	/^\$ / { n++; shown = 1; print; more = /\\$/; if (!more) out(); next }
	shown { if (!renewed) print; next }
	{ if (!/^ *(#|$)/) { n++; more = /\\$/ } print }
	function out(   line, f) {
		f = dir "/" n ".new"; renewed = (getline line < f) > 0
		if (renewed) do print line; while ((getline line < f) > 0)
		close(f)
	}'; }

for doc in README.md CONTRIBUTING.md CHANGELOG.md $(find docs traces tests -name '*.md' | LC_ALL=C sort); do
	case $doc in docs/reference/commands/*|docs/reference/plugins.md) continue ;; esac
	d=$TMP/d; rm -rf "$d"; mkdir -p "$d/work"
	for f in traces tests examples docs; do ln -s "$top/$f" "$d/work/$f"; done
	split "$d" < "$doc"; count=$(cat "$d/count"); i=0; changed=; problems=; ran=0
	while [ $i -lt "$count" ]; do
		i=$((i + 1)); read -r line kind needs code < "$d/$i.info"
		[ "$kind" = indented ] && { problems="$problems
$doc:$line: a command stands in an indented block, where it is not run; use \`\`\`sh"; continue; }
		case $needs in -|torch|gpu|network|build|tool|file) ;; *) problems="$problems
$doc:$line: needs=$needs is not one of torch gpu network build tool file" ;; esac
		[ "$needs" != - ] && { echo "# not run, needs $needs: $doc:$line: $(head -n 1 "$d/$i.cmd")"; continue; }
		(cd "$d/work" && LC_ALL=C.UTF-8 timeout 60 sh "$d/$i.cmd" > "$d/got" 2>&1 < /dev/null); rc=$?; ran=$((ran + 1))
		sed -i '/^next: vramcast /d' "$d/got" # what to type next is no part of the answer
		[ "$rc" = "$( [ "$code" = - ] && echo 0 || echo "$code")" ] || problems="$problems
$doc:$line: exit code $rc: $(head -n 1 "$d/$i.cmd")
$(tail -n 2 "$d/got")"
		[ "$kind" = shown ] && grep -q . "$d/$i.want" || continue
		if [ -z "$UPDATE" ]; then
			difference=$(compare "$d/$i.want" "$d/got")
			[ -z "$difference" ] || problems="$problems
$doc:$line: $(head -n 1 "$d/$i.cmd")
$difference"
		elif [ -n "$(compare "$d/$i.want" "$d/got")" ]; then 
			renew "$d/$i.want" "$d/got" > "$d/$i.new"; changed=1
		fi
	done
	[ -z "$changed" ] || { rewrite "$d" < "$doc" > "$d/doc" && cat "$d/doc" > "$doc" && echo "# written: $doc"; }
	[ "$count" = 0 ] && continue
	[ -z "$problems" ] && pass "$doc shows what its $ran commands print" || fail "$doc shows what its $ran commands print" "$problems" "(UPDATE=1 tests/cli/docs.sh writes what came out)"
done
finish
