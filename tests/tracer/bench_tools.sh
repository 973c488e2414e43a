#!/bin/sh
# bench_tools.sh - a training loop of CPU PyTorch alone, recorded, recorded with stacks, under memray and under heaptrack:
# processes that take turns. TORCH_ENV as in bench_torch.sh; MEMRAY: a folder that memray was installed to (pip install
# --target); heaptrack is found where Debian puts it.
[ -n "$TORCH_ENV" ] || { echo "# record.tools: TORCH_ENV names no Python with PyTorch"; exit 0; }
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
export CUDA_VISIBLE_DEVICES= PATH="$TORCH_ENV/bin:$PATH"
[ -n "$MEMRAY" ] || echo "# record.tools.memray: MEMRAY names no folder"
: "${HEAPTRACK:=$(ls /usr/lib/*/heaptrack/libheaptrack_preload.so /usr/lib/heaptrack/libheaptrack_preload.so 2> /dev/null | head -n 1)}"
[ -n "$HEAPTRACK" ] && export HEAPTRACK || echo "# record.tools.heaptrack: it is not installed"
python3 -c 'import torch' 2> /dev/null || on="$VRAMCAST dryrun --no-record -q -g rtx4090 --"
# shellcheck disable=SC2086
$on python3 tests/tracer/torch_turns.py tools "${ROUNDS:-100}" "$tmp" "$VRAMCAST"
unset CUDA_VISIBLE_DEVICES
# A block that many others' uses stand beside: record_stream, on the null GPU.
"$VRAMCAST" dryrun --no-record -q -g rtx4090 -- python3 -c 'import torch; torch.zeros(1, device="cuda")' > /dev/null 2>&1 || exit 0
best() { for i in 1 2 3 4 5; do "$@"; done | sort -n | head -n 1; }
bare='LD_PRELOAD=$(printf %s "$LD_PRELOAD" | tr : "\n" | grep -v libvramcast_trace | paste -sd: -); exec "$@"'
alone=$(best "$VRAMCAST" dryrun --no-record -q -g rtx4090 -- sh -c "$bare" sh python3 tests/tracer/torch_uses.py)
with=$(best "$VRAMCAST" dryrun --no-record -q -g rtx4090 -- sh -c "$bare" sh "$VRAMCAST" record -q -o "$tmp/u.vct" -- python3 tests/tracer/torch_uses.py)
awk -v a="$alone" -v b="$with" 'BEGIN { printf "bench record.uses.ratio %.2f x\n", b / a }'
