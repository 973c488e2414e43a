#!/bin/sh
# weight.sh [FILE...] - what each C file weighs: its lines, how many commands reach it, and which unit tests are about
# it, so that dead weight is seen. What reaches what is the linker's view: nm on the objects of the build, as for
# check-circles.sh. A test is about a file when it includes its header; "linked" counts the tests that contain it.
# What vramcast.c alone needs says "the front door".
# What a library of ours consists of (nullgpu/, tracer/, allocator/) runs in other programs and says "library".
# Without FILE all files, those that few commands reach and few tests know first.
build=${BUILD:-build}
[ -f "$build/vramcast.o" ] || { echo "weight: $build is not built" >&2; exit 1; }
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
find "$build" -name '*.o' ! -path '*/tests/*' | sed "s|^$build/||" | sort | while read -r o; do
	c=${o%.o}.c
	case $c in nullgpu/obj/*) c=nullgpu/${c#nullgpu/obj/*/} ;; esac
	[ -f "$c" ] && echo "$o $c"
done > "$tmp/objects"
(cd "$build" && cut -d' ' -f1 "$tmp/objects" | xargs nm -A) > "$tmp/symbols" 2> /dev/null
[ -x "$build/tests/test_codec" ] || echo "weight: the unit tests are not built (make unit-tests), so none is linked" >&2
for t in "$build"/tests/test_*; do
	[ -x "$t" ] && [ ! -d "$t" ] && nm "$t" 2> /dev/null | awk -v t="${t##*/}" '$2 ~ /[TDRB]/ { print t, $3 }'
done > "$tmp/linked"
grep -o '^#include "[a-z_/0-9]*\.h"' tests/unit/test_*.c tests/models/*.c 2> /dev/null |
	sed 's|.*/\([a-z_0-9]*\)\.c:#include "\(.*\)\.h"|\1 \2.c|' > "$tmp/about"
cut -d' ' -f2 "$tmp/objects" | sort -u | xargs wc -l | sed '/ total$/d' | awk '{ print $2, $1 }' > "$tmp/lines"
awk -v only="$*" '
	FILENAME ~ /objects$/ { source[$1] = $2; next }
	FILENAME ~ /symbols$/ {
		o = $1; sub(/:.*/, "", o); f = source[o]; if (f == "") next
		world = ""; if (o ~ /^nullgpu\/obj\//) { world = o; sub(/^nullgpu\/obj\//, "", world); sub(/\/.*/, "", world) }
		kind = $(NF - 1); name = world " " $NF
		if (kind ~ /^[TDRBVW]$/) at[name] = f
		else if (kind == "U") need[f "\t" name]
		next
	}
	FILENAME ~ /linked$/ { if ($2 == "main") next; if ((" " $2) in at && !(($1, at[" " $2]) in in_test)) { in_test[$1, at[" " $2]]; linked[at[" " $2]]++ }; next }
	FILENAME ~ /about$/ { about[$2] = about[$2] " " $1; next }
	FILENAME ~ /lines$/ { lines[$1] = $2 }
	function reach(from,   todo, n, i, f, k, p) { # marks all files that FROM needs
		split("", seen); n = 1; todo[1] = from; seen[from]
		for (i = 1; i <= n; i++) {
			k = split(uses[todo[i]], p, " ")
			for (f = 1; f <= k; f++) if (!(p[f] in seen)) { seen[p[f]]; todo[++n] = p[f] }
		}
		for (f in seen) if (from == "vramcast.c") door[f]
		else if (f != from) { commands[f]++; by[f] = by[f] " " name_of(from) }
	}
	function name_of(f) { sub(/.*\/cmd_/, "", f); sub(/\.c$/, "", f); return f }
	END {
		for (k in need) { split(k, p, "\t"); if ((p[2] in at) && at[p[2]] != p[1] && !((p[1], at[p[2]]) in edge)) {
			edge[p[1], at[p[2]]]; uses[p[1]] = uses[p[1]] " " at[p[2]] } }
		for (f in lines) if (f ~ /^commands\/cmd_/ && (" vc_command_" name_of(f)) in at) { all++; reach(f) }
		reach("vramcast.c")
		for (f in lines) {
			if (only != "" && index(" " only " ", " " f " ") == 0) continue
			if (f ~ /^commands\/cmd_/ && !commands[f]) commands[f] = 1
			how = !commands[f] && f ~ /^(nullgpu|tracer|allocator)\// ? "library         " : !commands[f] && (f in door) ? "the front door  " : sprintf("%2d of %d commands", commands[f], all)
			printf "%5d lines  %s  %3d linked  %s  %s\n", lines[f], how, linked[f], f,
				about[f] == "" ? "(no test includes its header)" : "tests:" about[f]
			if (only != "") print "  reached by:" (by[f] == "" ? " no command of the program" : by[f])
		}
	}' "$tmp/objects" "$tmp/symbols" "$tmp/linked" "$tmp/about" "$tmp/lines" | if [ -n "$1" ]; then cat; else sort -k3,3n -k1,1nr; fi
