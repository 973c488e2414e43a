#!/bin/sh
# inputs.sh - what a recording can and cannot be asked: parameters it says itself, a profile's own counters, a heap
# at one moment, a recording of host memory.
. tests/support/tap.sh
run info tests/recordings/gpt.vct@batch=4; expect "a parameter that the file says otherwise is refused" 2 '' 'says itself that it was recorded with batch=1, not 4'
run info tests/recordings/gpt.vct@batch=1; expect "the same value is not" 0 'events'
run info traces/lm-medium-ctx1024.vct@batch=4; expect "nor is one that it does not say" 0 'batch +4'

run sim traces/llm-oom.vct -g a100-40g-sxm; expect "a heap at one moment is said to be one" 6 'live blocks at one moment: no request was recorded'
printf '%s' "$out" | grep -q 'fits' && fail "and does not fit" "$out" || pass "and does not fit"

event() { printf '{"ph":"i","cat":"cpu_instant_event","name":"[memory]","ts":%s,"args":{"Device Type":1,"Device Id":0,"Addr":%s,"Bytes":%s,"Total Allocated":%s,"Total Reserved":%s}},' "$@"; }
{ printf '{"schemaVersion":1,"traceEvents":['; event 1 1048576 4194304 4194304 8589934592; event 2 1048576 -4194304 0 8589934592; printf '{}]}'; } > "$TMP/p.json"
run sim "$TMP/p.json"; expect "a profile's own counters are shown, and that they contradict the replay" 0 'counters say 8.00 GiB reserved .*: they contradict it' &&
	expect "and that nothing was verified" 0 'not verified'
run sim "$TMP/p.json" --capacity 6GiB; expect "and between the two nothing is decided" 6 'undecided: .* to 8.00 GiB of 6.00 GiB'
run sim "$TMP/p.json" --json; expect "as JSON" 0 '"level": "unverified"'
{ printf '{"schemaVersion":1,"traceEvents":['; event 1 1048576 4194304 4194304 20971520; event 2 1048576 -4194304 0 20971520; printf '{}]}'; } > "$TMP/p.json"
run sim "$TMP/p.json"; expect "counters that agree are no proof" 0 'within 5 %, which is not a proof'
# One script with and without autocast is two configurations: whatever nobody recorded is refused, or cannot be told.
T=tests/transforms/recordings
for m in gpt bert conv; do
	for pair in "$T/$m.vct@batch=4 $T/${m}_--precision_amp.vct@batch=8" "$T/${m}_--precision_amp.vct@batch=4 $T/$m.vct@batch=8"; do
		bad=
		for batch in 2 6 16; do
			run sim $pair --set batch=$batch --no-advice
			[ "$rc" = 2 ] || grep -q "these recordings cannot tell" "$TMP/out" || bad="$bad $batch"
		done
		[ -z "$bad" ] && pass "$m: fp32 and autocast are no family, whatever the target" || fail "$m: fp32 and autocast" "answered at batch$bad: $pair"
	done
done
finish
