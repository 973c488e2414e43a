#!/bin/sh
# bench_torch.sh - a training loop of CPU PyTorch with and without the tracer: processes that take turns.
# TORCH_ENV: a folder with bin/python3 that has PyTorch; a CUDA build runs on the null GPU's libraries.
[ -n "$TORCH_ENV" ] || { echo "# record.overhead: TORCH_ENV names no Python with PyTorch"; exit 0; }
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
export CUDA_VISIBLE_DEVICES= PATH="$TORCH_ENV/bin:$PATH"
python3 -c 'import torch' 2> /dev/null || on="$VRAMCAST dryrun --no-record -q -g rtx4090 --"
# shellcheck disable=SC2086
$on python3 tests/tracer/torch_turns.py turns "${ROUNDS:-100}" "$VRAMCAST" record -q -o OUT "$tmp/a" --
events=$("$VRAMCAST" info --json "$tmp/a.0.vct" | tr ',{}' '\n' | sed -n 's/^ *"events": *//p' | tail -n 1)
echo "$(stat -c %s "$tmp/a.0.vct") $events" | awk '{ printf "bench record.bytes %.2f bytes/event\n", $1 / $2 }'
