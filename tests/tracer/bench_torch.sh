#!/bin/sh
# bench_torch.sh - a training loop of CPU PyTorch with and without the tracer, run in turn: medians.
# TORCH_ENV: a folder with bin/python that has PyTorch; a CUDA build runs on the null GPU's libraries.
[ -n "$TORCH_ENV" ] || { echo "# record.overhead: TORCH_ENV names no Python with PyTorch"; exit 0; }
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
export CUDA_VISIBLE_DEVICES= WORKERS=0
one() { "$VRAMCAST" dryrun -q -g rtx4090 "$@" -- "$TORCH_ENV/bin/python" tests/tracer/torch_cpu.py 2> /dev/null | grep '^seconds'; }
for i in $(seq "${ROUNDS:-7}"); do
	one --no-record >> "$tmp/bare"
	one -o "$tmp/a.vct" >> "$tmp/with"
done
median() { sort -n -k "$2" "$1" | awk -v c="$2" '{ v[NR] = $c } END { print v[int((NR + 1) / 2)] }'; }
events=$("$VRAMCAST" info --json "$tmp/a.vct" | tr ',{}' '\n' | sed -n 's/^ *"events": *//p' | tail -n 1)
size=$(stat -c %s "$tmp/a.vct")
awk -v ca="$(median "$tmp/bare" 6)" -v cb="$(median "$tmp/with" 6)" -v a="$(median "$tmp/bare" 2)" -v b="$(median "$tmp/with" 2)" -v ra="$(median "$tmp/bare" 4)" \
	-v rb="$(median "$tmp/with" 4)" -v n="$events" -v s="$size" 'BEGIN {
	printf "bench record.overhead.cpu %.2f %%\n", 100 * (cb - ca) / ca
	printf "bench record.overhead %.2f %%\nbench record.rss %.1f MiB\nbench record.bytes %.2f bytes/event\n",
		100 * (b - a) / a, (rb - ra) / 1048576, s / n }'
