#!/bin/sh
# bench.sh - what a request costs by a plan, over what it costs in PyTorch's own allocator, in turns.
# TORCH_ENV: a folder with bin/python that has a CUDA build of PyTorch.
[ -n "$TORCH_ENV" ] || { echo "# plan.request: TORCH_ENV names no Python with PyTorch"; exit 0; }
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
lib=${BUILD:-build}/tests/plan/overhead.so
dry() { "$VRAMCAST" -q dryrun -g h100-80g-sxm --no-record -- "$TORCH_ENV/bin/python" tests/plan/overhead.py "$lib"; }
with() { "$VRAMCAST" -q run "$@" -- "$VRAMCAST" -q dryrun -g h100-80g-sxm --no-record -- "$TORCH_ENV/bin/python" tests/plan/overhead.py "$lib"; }
with --learn "$tmp/p.vcp" > "$tmp/log" 2>&1 || { tail -3 "$tmp/log"; exit 1; }
for turn in 1 2 3; do
	echo "native $(dry 2> /dev/null)"; echo "planned $(with --plan "$tmp/p.vcp" 2> "$tmp/err")"
done | awk '{ if (!($1 in t) || $3 < t[$1]) t[$1] = $3 } END {
	printf "bench plan.request.native %.1f ns\nbench plan.request.planned %.1f ns\nbench plan.request.ratio %.2f x\n", t["native"], t["planned"], t["planned"] / t["native"] }'
grep 'requests served' "$tmp/err" | sed 's/^/# /'
