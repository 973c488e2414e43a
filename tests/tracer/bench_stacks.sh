#!/bin/sh
# bench_stacks.sh - what --stacks py adds to an allocation, after 1, 300 and 3,000 lines of a function.
bin=${BUILD:-build}/tests/tracer; tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
command -v python3 > /dev/null || exit 0
export LD_PRELOAD="$PWD/$bin/libc10.so"
for lines in 1 300 3000; do
	off=$("$VRAMCAST" record -q -o "$tmp/a.vct" -- python3 tests/tracer/stack_cost.py "$lines")
	on=$("$VRAMCAST" record -q --stacks py -o "$tmp/b.vct" -- python3 tests/tracer/stack_cost.py "$lines")
	echo "bench record.stacks.$lines $((on - off)) ns/allocation"
	awk -v a="$on" -v b="$off" -v l="$lines" 'BEGIN { printf "bench record.stacks.%s.ratio %.2f x\n", l, a / b }'
done
