#!/bin/sh
# rooms.sh - lines of code per room, without blank lines and comments, and the share of the whole.
# -m prints a Markdown table, -c nothing but fails when a room holds more than a quarter of the whole.
rooms='vramcast.c commands common tracer allocator nullgpu visualize visualize/sinks python python/vramcast
	simulator/replay simulator/sources simulator/models simulator/observers simulator/transforms
	simulator/anatomy simulator/rewrite simulator/predict simulator/session simulator/search
	simulator/packing simulator/serving simulator/advise simulator/time'

# Comments: /* */ and // of C, # of Python (its docstrings count as code, as for cloc's --docstring-as-code).
count() { awk '
	FNR == 1 { inside = 0; python = FILENAME ~ /\.(py|txt|awk)$/ }
	{
		s = $0
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
		if (s ~ /[^ \t]/) n++
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
