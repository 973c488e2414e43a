#!/bin/sh
# bench_hook.sh - what one recorded event costs on the hook path, and bytes per event on disk.
bin=${BUILD:-build}/tests/tracer; tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
bare=$(LD_LIBRARY_PATH=$bin/null "$bin/hook_cost")
with=$(LD_LIBRARY_PATH=$bin/null "$VRAMCAST" record -q -o "$tmp/a.vct" -- "$bin/hook_cost")
awk -v a="$bare" -v b="$with" 'BEGIN { printf "bench record.hook %.1f ns/event\n", b - a }'
out=$("$VRAMCAST" record -o "$tmp/b.vct" -- "$bin/burst" 4 2000000 1 2>&1)
printf '%s\n' "$out" | sed -n 's/.* events, \([0-9]*\) dropped.*/bench record.burst.dropped \1 events/p'
