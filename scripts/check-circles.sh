#!/bin/sh
# check-circles.sh - no two files may need each other, directly or over others: what the linker sees.
# The torch model is one unit in several files (simulator/models/torch.h says why).
build=${BUILD:-build}
[ -f "$build/vramcast.o" ] || { echo "not ok 1 - circles: $build is not built"; exit 1; }
edges=$(mktemp); out=$(mktemp); trap 'rm -f "$edges" "$out"' EXIT
# A stand-in library of the null GPU is a world of its own: the same names stand in several.
# An object whose source is gone is not part of anything.
find "$build" -name '*.o' ! -path '*/tests/*' | sed "s|^$build/||" | sort | while read -r o; do
	c=${o%.o}.c
	case $c in nullgpu/obj/*) c=nullgpu/${c#nullgpu/obj/*/} ;; esac
	[ ! -f "$c" ] && [ ! -f "$build/$c" ] || echo "$o"
done > "$out"
(cd "$build" && xargs nm -A) < "$out" | awk '
	{ file = $1; sub(/\.o:.*/, "", file); sub(/models\/torch_[a-z]*$/, "models/torch", file)
	  world = ""; if (file ~ /^nullgpu\/obj\//) { world = file; sub(/^nullgpu\/obj\//, "", world); sub(/\/.*/, "", world) }
	  kind = $(NF - 1); name = world " " $NF }
	kind ~ /^[TDRBVW]$/ { at[name] = file }
	kind == "U" { need[file "\t" name] = 1 }
	END { for (k in need) { split(k, p, "\t")
	        if ((p[2] in at) && at[p[2]] != p[1]) print p[1], at[p[2]] } }' | sort -u > "$edges"
n=$(tr ' ' '\n' < "$edges" | sort -u | wc -l)
[ "$n" -gt 100 ] || { echo "not ok 1 - circles: only $n files were seen"; exit 1; }
if tsort "$edges" > /dev/null 2> "$out"; then
	echo "ok 1 - circles: $n files, none needs one that needs it"
else
	sed 's/^tsort: /# /' "$out"; echo "not ok 1 - circles"; exit 1
fi
