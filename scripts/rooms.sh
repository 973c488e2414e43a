#!/bin/sh
# rooms.sh - lines of code per room, without blank lines and comments, and the share of the whole.
# -m prints a Markdown table, -c nothing but fails when a room holds more than a quarter of the whole.
# -o REVISION counts lines only that stood in that revision already (git blame; moved lines did).
# -u REVISION writes the table into docs/architecture.md, with the lines that each room had in that revision of git.
if [ "$1" = -u ]; then
	[ -n "$2" ] || { echo "rooms: -u wants the revision to compare with" >&2; exit 2; }
	before=$(mktemp -d); trap 'rm -rf "$before"' EXIT
	git archive "$2" | tar xf - -C "$before" || exit 1
	self=$PWD/scripts/rooms.sh
	(cd "$before" && scripts/rooms.sh) | awk '{ print $1, $2, $4 }' > "$before/before.txt"
	"$self" | awk '{ print $1, $2, $4 }' > "$before/now.txt"
	awk -v revision="$2" -v date="$(date +%Y-%m-%d)" '
		FILENAME ~ /before.txt$/ { was[$1] = $3; if ($1 != "all") order[++n] = $1; next }
		FILENAME ~ /now.txt$/ { lines[$1] = $3; if (!($1 in was)) order[++n] = $1; next }
		/<!-- made by scripts\/rooms.sh/ {
			print; print "| room | lines before | lines |\n|---|--:|--:|"
			for (i = 1; i <= n; i++) printf "| `%s` | %d | %d |\n", order[i], was[order[i]], lines[order[i]]
			printf "| all | %d | %d |\n", was["all"], lines["all"]
			printf "\nBefore: %s. Now: %s, `scripts/rooms.sh -u %s`.\n", revision, date, revision
			inside = 1; next
		}
		/<!-- end -->/ { inside = 0 }
		!inside { print }' "$before/before.txt" "$before/now.txt" docs/architecture.md > "$before/page.new" &&
		cat "$before/page.new" > docs/architecture.md
	exit
fi
if [ "$1" = -o ]; then
	[ -n "$2" ] || { echo "rooms: -o wants the revision" >&2; exit 2; }
	old=$(mktemp -d); trap 'rm -rf "$old"' EXIT
	mkdir "$old/scripts"; cp scripts/rooms.sh "$old/scripts"
	git ls-files | grep -v '^tests/\|^docs/\|^scripts/' | grep '\.\([ch]\|def\|css\|js\|py\|txt\|awk\)$' | while read -r f; do
		mkdir -p "$(dirname "$old/$f")" # what came later begins with \001
		git blame -s -M -C "$2"..HEAD -- "$f" | awk '{ new = !/^\^/; sub(/^[^)]*\) ?/, ""); print (new ? "\001" : "") $0 }' > "$old/$f"
	done
	(cd "$old" && scripts/rooms.sh)
	exit
fi
rooms='vramcast.c commands common page tracer allocator nullgpu visualize visualize/sinks python python/vramcast
	simulator/replay simulator/sources simulator/models simulator/observers simulator/transforms
	simulator/anatomy simulator/rewrite simulator/predict simulator/session simulator/search
	simulator/packing simulator/serving simulator/findings simulator/advise simulator/time'

# Comments: /* */ and // of C, # of Python (its docstrings count as code, as for cloc's --docstring-as-code).
count() { awk '
	FNR == 1 { inside = 0; python = FILENAME ~ /\.(py|txt|awk)$/ }
	{
		s = $0; new = sub(/^\001/, "", s)
		if (python) sub(/^[ \t]*#.*/, "", s)
		else {
			out = ""
			while (s != "") {
				if (inside) { i = index(s, "*/"); if (!i) break; s = substr(s, i + 2); inside = 0; continue }
				if (match(s, /^("([^"\\]|\\.)*"|[^"\/]+|\/[^*\/])/)) { out = out substr(s, 1, RLENGTH); s = substr(s, RLENGTH + 1); continue }
				if (substr(s, 1, 2) == "/*") { inside = 1; s = substr(s, 3); continue }
				if (substr(s, 1, 2) == "//") break
				out = out substr(s, 1, 1); s = substr(s, 2)
			}
			s = out
		}
		if (!new && s ~ /[^ \t]/) n++
	}
	END { print n + 0 }' "$@" /dev/null; }

for r in $rooms; do
	if [ -f "$r" ]; then files=$r
	else files=$(find "$r" -maxdepth 1 -name '*.[ch]' -o -maxdepth 1 -name '*.def' -o -maxdepth 1 -name '*.css' -o -maxdepth 1 -name '*.js' -o -maxdepth 1 -name '*.py'); fi
	# The null GPU has its lists of names and its Python in folders of their own.
	[ "$r" = nullgpu ] && files="$files $(find nullgpu/names nullgpu/python -name '*.txt' -o -name '*.awk' -o -name '*.py')"
	[ -n "$files" ] && echo "$r $(echo "$files" | wc -w) $(count $files)"
done | awk -v mode="$1" '
	{ room[NR] = $1; files[NR] = $2; lines[NR] = $3; all += $3; f += $2 }
	END {
		if (mode == "-m") print "| room | files | lines of code | share |\n|---|--:|--:|--:|"
		for (i = 1; i <= NR; i++) {
			share = 100 * lines[i] / all; if (share > most) { most = share; where = room[i] }
			if (mode == "-m") printf "| `%s` | %d | %d | %.1f %% |\n", room[i], files[i], lines[i], share
			else if (mode != "-c") printf "%-24s %4d files %6d lines %5.1f %%\n", room[i], files[i], lines[i], share
		}
		if (mode == "-m") printf "| all | %d | %d | |\n", f, all
		else if (mode != "-c") printf "%-24s %4d files %6d lines\n", "all", f, all
		if (most > 25) { printf "rooms: %s holds %.1f %% of the whole, more than a quarter\n", where, most > "/dev/stderr"; exit 1 }
	}'
