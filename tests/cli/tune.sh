#!/bin/sh
# tune.sh - settings search, scripts as traces, and both policies of completion.
. tests/support/tap.sh
t=traces/lm-train-ctx128.vct

run tune $t; expect "tune prints a line to paste" 0 '^PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True$'
run tune $t --json; expect "and JSON" 0 '"schema": "vramcast.tune/1"'
want=$(printf '%s\n' "$out" | sed -n 's/.*"line": "PYTORCH_CUDA_ALLOC_CONF=\(.*\)".*/\1/p')
best=$(printf '%s\n' "$out" | grep -A4 '"recommended"' | sed -n 's/.*"peak_reserved": \([0-9]*\).*/\1/p' | head -n 1)
run sim $t --conf "$want" --start rebuild --json; expect "sim agrees with what tune promises" 0 "\"peak_reserved\": $best"
run tune $t --capacity 45GiB; expect "when nothing fits the code is 3" 3 'runs out all the same|oom'
"$VRAMCAST" tune $t -j 1 --json > "$TMP/one"; "$VRAMCAST" tune $t -j 2 --json > "$TMP/two"
check "the same bytes whatever the threads" cmp "$TMP/one" "$TMP/two"
run tune $t -m direct; expect "only the torch model has settings" 2 '' 'torch model only'

cat > "$TMP/a.ops" <<'OPS'
vramcast-golden 1
# weights, two activations, one of them used by another stream
total 1073741824
events auto
m 1 104857600 0
m 2 20971520 0
r 2 16
f 2
m 3 20971520 0
f 3
f 1
OPS
run sim "$TMP/a.ops" --torch 2.9; expect "a script is a trace" 0 'fits: 120\.00 MiB of 1\.00 GiB'
sed 's/^total/torch 3.1.0+cu140\n&/' "$TMP/a.ops" > "$TMP/later.ops"
best() { "$VRAMCAST" tune tests/recordings/gpt.vct --torch 2.15 $1 --json --top "$2" -j "$3" | grep -E '"(conf|peak_reserved|flushes|verdict)"|"tried"' | head -n 21; }
for on in "" "--capacity 8600MiB" "--capacity 6GiB"; do
	[ "$(best "$on" 3 1)" = "$(best "$on" 300 1)" ] && [ "$(best "$on" 3 1)" = "$(best "$on" 3 2)" ] &&
		pass "trials that are given up change no answer${on:+ ($on)}" || fail "trials that are given up change no answer" "$(best "$on" 3 1) $(best "$on" 300 1)"
done
run sim "$TMP/later.ops"; expect "a PyTorch that came later is replayed as the newest, and the answer says so" 0 '2\.[0-9]+ \(newest\)'
run sim "$TMP/a.ops" --torch 2.9
expect "that claims no proof" 0 'not checked against the recording'
run sim "$TMP/a.ops" --torch 2.9 --json --capacity 2GiB; expect "a what-if over streams gives an interval" 0 '"peak_reserved": 125829120'
printf '%s\n' "$out" | tr -d ' \n' | grep -q '"interval":\[125829120,146800640\]' && pass "from both policies of completion" ||
	fail "from both policies of completion" "$(printf '%s\n' "$out" | grep -A3 interval)"
run sim "$TMP/a.ops" --torch 2.9 -m torch:completion=forced; expect "a policy can be chosen" 0 'fits: 140\.00 MiB'
run sim $t -m torch -m torch:fit=first -m torch:fit=worst -m torch:segment=64MiB --json; expect "constants and fit rule are parameters" 0
[ "$(printf '%s\n' "$out" | grep '"peak_reserved"' | sort -u | wc -l)" -ge 3 ] && pass "that change the answer" || fail "that change the answer" "$out"
run sim "$TMP/a.ops" --torch 2.9 --stats --json; expect "statistics as memory_stats() has them" 0 '"active_bytes\.large_pool\.peak": 125829120'
expect "scalars too" 0 '"num_alloc_retries": 0'
run sim "$TMP/a.ops" --torch 2.9 --summary; expect "and as memory_summary() shows them" 0 '\| Allocated memory      \|      0 B   \| 122880 KiB'
cat > "$TMP/pin.ops" <<'OPS'
vramcast-golden 1
total 1073741824
events auto
m 1 62914560 0
f 1
m 2 2097152 0
m 3 104857600 0
OPS
run sim "$TMP/pin.ops" --torch 2.9 --json; expect "the report names what pins free memory" 0 '"smallest_block": 2097152'
expect "and how much" 0 '"pinned": 60817408'
run sim $t -m torch:segment=1MiB; expect "constants that contradict each other are refused" 2 '' 'segment >= large_limit'
run sim $t -m torch:min_block=256; expect "and blocks too small to order" 2 '' 'power of two from 512 on'
printf 'vramcast-golden 1\nq 1\n' > "$TMP/b.ops"
run sim "$TMP/b.ops"; expect "an unknown operation is named" 1 '' "line 2: no operation is called 'q'"
gzip -dc tests/golden/vectors/scripts/oom_0_fit.txt.gz > "$TMP/oom.ops"
run sim "$TMP/oom.ops" --torch 2.5 --json; expect "a script that runs out says what PyTorch says" 3 'CUDA out of memory\. Tried to allocate'
# Threads change nothing, however they take turns: what one of them gives up depends on what others found before.
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	"$VRAMCAST" tune --json -j $((i % 5 + 1)) tests/recordings/devices.vct 2> /dev/null | cksum
done | sort -u > "$TMP/sums"
check "threads change nothing" test "$(wc -l < "$TMP/sums")" -eq 1

finish
