#!/bin/bash
# many.sh - a million results of a sweep reduced to one file, and 1,000 ranks of 100,000 events each on two cores: seconds of
# the clock, and of the processor, which do not depend on who else is there. Needs 2 GB where temporary files lie.
# make bench runs it with the others; alone: VRAMCAST=build/vramcast tests/bench/many.sh
free=$(df -Pk "${TMPDIR:-/tmp}" | awk 'NR == 2 { print $4 }')
[ "$free" -gt 5000000 ] || { echo "# many: less than 5 GB free in ${TMPDIR:-/tmp}"; exit 0; }
t=$(mktemp -d); trap 'rm -rf "$t"' EXIT
TIMEFORMAT='%R %U %S'
said() { awk -v n="$1" '{ printf "bench %s.s %.2f s\nbench %s.cpu.s %.2f s\n", n, $1, n, $2 + $3 }' "$t/time"; }

# The lines of two parts, as --shard 0/2 and 1/2 would have written them: those of one real run under all numbers.
"$VRAMCAST" sweep -q --json traces/lm-train-ctx128.vct --no-verify --vary gpu=a100-80g-sxm > "$t/line" ||
	{ echo "bench_many: the sweep failed" >&2; exit 1; }
for part in 0 1; do
	awk -v part=$part '{ sub(/^\{"id":0,/, ""); for (id = part; id < 1000000; id += 2) print "{\"id\":" id "," $0 }' "$t/line" > "$t/part$part"
done
{ time "$VRAMCAST" reduce -q "$t/part0" "$t/part1" --runs 1000000 -o "$t/all"; } 2> "$t/time"
[ "$(wc -l < "$t/all")" -eq 1000000 ] || { echo "bench_many: the results are not whole" >&2; exit 1; }
awk -v n="$(wc -c < "$t/line")" 'BEGIN { printf "bench reduce.million.line.bytes %d B\n", n }'
said reduce.million
rm -f "$t"/part? "$t/all"

requests() { # SEED : made-up requests, in no order that a training has
	awk -v seed="$1" 'BEGIN {
		srand(seed); print "vramcast-golden 1\ntotal 85899345920\nevents auto"
		for (n = 0; n < 100000; n++) {
			k = int(rand() * 1600) + 1
			if (k in id) { print "f " id[k]; delete id[k] }
			else { id[k] = ++next_id; print "m " next_id " " (rand() < 0.5 ? int(rand() * 1048576) + 1 : int(rand() * 30) * 1048576 + 1024) " 0" }
		}
	}'
}
for seed in 7 8; do
	requests $seed > "$t/$seed.txt" && "$VRAMCAST" export -q "$t/$seed.txt" -o "$t/$seed.vct" || exit 1
done
for i in $(seq 0 999); do cp "$t/7.vct" "$t/run.rank$i.vct"; done
cp "$t/8.vct" "$t/run.rank500.vct" # one that is unlike the others
{ time "$VRAMCAST" ranks "$t"/run.rank*.vct -j 2 -g h100-80g-sxm > "$t/ranks"; } 2> "$t/time"
[ -s "$t/ranks" ] || { echo "bench_many: ranks said nothing" >&2; exit 1; }
said ranks.1000
