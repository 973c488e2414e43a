#!/bin/sh
# tune.sh - a few hundred replays of a trace of 100,000 events, all cores.
t=$(mktemp); trap 'rm -f "$t"' EXIT
awk 'BEGIN {
	srand(7); print "vramcast-golden 1\ntotal 85899345920\nevents auto"
	for (n = 0; n < 100000; n++) {
		k = int(rand() * 1600) + 1
		if (k in id) { print "f " id[k]; delete id[k] }
		else { id[k] = ++next_id; print "m " next_id " " (rand() < 0.5 ? int(rand() * 1048576) + 1 : int(rand() * 30) * 1048576 + 1024) " 0" }
	}
}' > "$t"
from=$(date +%s%N)
tried=$("$VRAMCAST" tune "$t" --torch 2.15 --json | sed -n 's/.*"tried": \([0-9]*\).*/\1/p')
to=$(date +%s%N)
awk -v n="$tried" -v ns=$((to - from)) 'BEGIN { printf "bench tune.100k.runs %d runs\nbench tune.100k.s %.2f s\n", n, ns / 1e9 }'
