#!/bin/bash
# sweep.sh - how much faster a sweep is on all cores than on one (the same 480 runs, best of three), and 512 runs over a
# trace of 50,000 events: seconds of the clock, and of the processor, which do not depend on who else is there.
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

t=$(mktemp); trap 'rm -f "$t" "$t.time"' EXIT
awk 'BEGIN {
	srand(7); print "vramcast-golden 1\ntotal 85899345920\nevents auto"
	for (n = 0; n < 50000; n++) {
		k = int(rand() * 1600) + 1
		if (k in id) { print "f " id[k]; delete id[k] }
		else { id[k] = ++next_id; print "m " next_id " " (rand() < 0.5 ? int(rand() * 1048576) + 1 : int(rand() * 30) * 1048576 + 1024) " 0" }
	}
}' > "$t"
TIMEFORMAT='%R %U %S'
{ time "$VRAMCAST" sweep "$t" --vary torch=2.0..2.15 --vary "conf=$conf|max_split_size_mb:256|roundup_power2_divisions:16" \
	--vary gpu=a100-40,h100-80g-sxm,l4,rtx4090 > "$t.out" 2> /dev/null; } 2> "$t.time"
runs=$(wc -l < "$t.out"); rm -f "$t.out"
[ "$runs" -eq 512 ] || { echo "bench_sweep: $runs runs instead of 512" >&2; exit 1; }
awk '{ printf "bench sweep.50k.512.s %.2f s\nbench sweep.50k.512.cpu.s %.2f s\n", $1, $2 + $3 }' "$t.time"
