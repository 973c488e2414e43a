#!/bin/sh
# recordings.sh - the public recordings hold what was counted in them by other means: allocations, frees, the
# heap at the first event, the heap at the end. Those are skipped where the recordings are not at hand (DATA=FOLDER).
. tests/support/tap.sh
# Recordings with several streams: work on the device goes on for a while after a block was given back.
for f in tests/snapshots/streams-lag*.gz; do
	n=$("$VRAMCAST" dump "$f" | awk '$3 == "free_done" { n++ } END { print n + 0 }')
	[ "$n" -gt 0 ] && pass "${f##*/}: $n deferred frees keep their completion" || fail "${f##*/}: no deferred free"
	run info "$f"; expect "${f##*/} is reproduced" 0 'reproduces this recording exactly'
done
# A profile's microseconds, however they are written
sed 's/"ts": 10.5/"ts": 1.05e1/; s/"ts": 12.25/"ts": 0.001225e4/' tests/fuzz/corpus/profile.json > "$TMP/exponents.json"
"$VRAMCAST" dump tests/fuzz/corpus/profile.json > "$TMP/plain.txt"; "$VRAMCAST" dump "$TMP/exponents.json" > "$TMP/exponents.txt"
check "times with exponents are times" cmp "$TMP/plain.txt" "$TMP/exponents.txt"
run dump tests/fuzz/corpus/profile.json
expect "9.5 microseconds after the first mark are 9,500 nanoseconds" 0 '^2 9501 alloc'
data=${DATA:-../shared/data}
[ -d "$data/snapshots" ] || { skip "the public recordings" "$data is not here"; finish; }
# count FILE : allocs frees segment_allocs start-MiB final-MiB
count() {
	"$VRAMCAST" dump "$1" 2> "$TMP/err" | awk '
		{ for (i = 4; i <= NF; i++) { split($i, f, "="); v[f[1]] = f[2] } }
		$3 == "alloc" { a++ } $3 == "free" { fr++ } $3 == "segment_alloc" { s++ }
		$3 == "heap_segment" { if (int(v["flags"] / 16) % 2) e += v["size"]; else b += v["size"] }
		{ delete v } END { printf "%d %d %d %d %d", a, fr, s, b / 1048576, e / 1048576 }'
}
holds() { # holds PATTERN NUMBERS
	for f in "$data"/$1; do got=$(count "$f"); done
	[ "$got" = "$2" ] && pass "$1: $2" || fail "$1" "counted $got, expected $2"
}
holds 'snapshots/ZidongLiu*' '7946 7549 61 0 1810'
holds 'snapshots/silmont*__mem_snapshot*' '36 26 9 0 3606'
holds 'snapshots/sidsoc*train*' '8768 8956 678 18666 63964'
holds 'snapshots/sidsoc*infer*' '1800 1800 279 18666 24156'
holds 'snapshots/Wedsonlin*medium_128_training*' '6526 6305 0 6900 6900'
holds 'snapshots/Wedsonlin*medium_256_training*' '6624 6403 0 8836 8836'
holds 'snapshots/Wedsonlin*medium_1024_training*' '7591 7370 0 24012 24012'
holds 'snapshots/Wedsonlin*medium_128_inference*' '1280 1280 0 1682 1682'
holds 'snapshots/Wedsonlin*medium_256_inference*' '1280 1280 0 1778 1778'
holds 'snapshots/Wedsonlin*medium_1024_inference*' '1280 1280 0 3056 3056'
holds 'snapshots/MAGMA27*' '1721 1721 0 13524 13524'
holds 'snapshots/silmont*forward_fp32*' '681 681 0 582 582'
holds 'snapshots/silmont*forward_bf16*' '937 937 0 822 822'
holds 'snapshots/volcengine*' '0 0 0 24976 24976'
holds 'snapshots/Yiyi*' '0 0 0 11296 11296'
holds 'snapshots/LfieLike*' '0 0 0 16340 16340'
# Profiles: one allocation more stands for what was there before.
holds 'kineto/*Qwen*' '1126 1125 0 0 0'
holds 'kineto/*bert-small*' '110 109 0 0 0'
holds 'kineto/*df_index*' '13386 13385 0 0 0'
for f in "$data"/kineto/*; do
	run info "$f"
	printf '%s' "$out" | grep -q 'not known to live\|address of a live' && fail "$f: every free finds its block" "$out"
done
# The profiler's own highest "Total Allocated" is the sum of block sizes, which is what a profile requests.
peak() { for f in "$data"/kineto/$1; do run info "$f" --json; done; expect "$1: the highest Total Allocated" 0 "\"peak_requested\": *$2"; }
peak '*Qwen*' 2088508416
peak '*bert-small*' 101305344
peak '*df_index*' 6629508096
finish
