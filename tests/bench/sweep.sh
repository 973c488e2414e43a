#!/bin/sh
# sweep.sh - how much faster a sweep is on all cores than on one: the same 480 runs, best of three.
conf='roundup_power2_divisions:2|roundup_power2_divisions:4|roundup_power2_divisions:8|max_split_size_mb:64|max_split_size_mb:128|'
gpus=a100-40,h100-80g-sxm,l4,rtx4090,t4
once() { # once JOBS : seconds
	s=$(date +%s%N)
	"$VRAMCAST" sweep traces/lm-train-ctx128.vct --no-verify --vary torch=2.0..2.15 --vary "conf=$conf" --vary "gpu=$gpus" \
		-j "$1" > /dev/null 2>&1 || exit 1
	echo $(($(date +%s%N) - s))
}
best() { for i in 1 2 3; do once "$1"; done | sort -n | head -n 1; }
one=$(best 1) && all=$(best "$(nproc)") && [ -n "$one" ] && [ -n "$all" ] || { echo "bench_sweep: the sweep failed" >&2; exit 1; }
awk -v a="$one" -v b="$all" 'BEGIN { printf "bench sweep.480.s %.2f s\nbench sweep.speedup %.2f x\n", b / 1e9, a / b }'
