#!/bin/sh
# time.sh - how long a step takes: said where the recording has kernels, null where it has none.
. tests/support/tap.sh
gpt=tests/recordings/gpt.vct
flat() { printf '%s' "$out" | tr -d ' \n'; }
run info $gpt; expect "info: step time, samples per second, that they are computed" 0 'step time +about 33 ms \(3. ms .*, 30 samples/s, GPU busy .*computed by the null GPU .*rough'
run info $gpt --json; expect "info as JSON" 0 '"step_ns": 33083179'
run sim $gpt --no-verify --no-advice --json
flat | grep -q '"time":{"recorded_ns":[0-9]*,"predicted_ns":[0-9]*,"driver_ns":[0-9]*,"gpu_busy":[0-9.]*,"step_ns":33083179' &&
	pass "sim: the fields of the contract, and the step" || fail "sim: time" "$out"
flat | grep -q '"basis":"recorded"' && flat | grep -q '"modelled":true' && pass "recorded, by a modelled card" || fail "recorded" "$out"
[ "$(flat | sed -n 's/.*"steps_per_s":\(30\.2[0-9]\).*/\1/p')" = 30.22 ] && pass "33.08 ms a step are 30.2 steps a second" || fail "steps a second" "$out"
for f in gpt-4:host style-24:host; do
	run sim tests/recordings/h100/${f%:*}.vct --no-verify --no-advice --json
	flat | grep -q "\"bound\":\"${f#*:}\"" && pass "$f: what bounds a step" || fail "$f: bound" "$out"
done
run sim $gpt --no-verify --no-advice --json; flat | grep -q '"bound":"gpu"' && pass "a busy card bounds" || fail "bound by the card" "$out"
run sim $gpt --no-verify --no-advice -x accumulate:k=4; expect "four micro-batches take about four times as long" 0 'time +about 1[0-4]0 ms a step, .*not measured: rough'
run sim $gpt --no-verify --no-advice -x checkpoint --json
step=$(flat | sed -n 's/.*"step_ns":\([0-9]*\).*/\1/p')
[ "${step:-0}" -gt 34000000 ] && [ "$step" -lt 45000000 ] && pass "checkpointing costs time" || fail "checkpointing costs time" "$step"
run sim $gpt@batch=1 --no-verify --no-advice --set batch=2 --json
flat | grep -q '"interval_ns":\[[0-9]*,[0-9]*\]' && flat | grep -q '"basis":"bounds"' && pass "from one recording: an interval" || fail "bounds of time" "$out"
run sim $gpt --no-verify --no-advice --capacity 6500MiB --json
flat | grep -q '"step_ns":null' && flat | grep -q '"why":"[^"]*memory' && pass "out of memory: no time, and why" || fail "out of memory: no time" "$out"
run sweep $gpt --no-verify --vary capacity=8G,6G
[ "$(printf '%s\n' "$out" | grep -c '"step_ns":33083179')" = 1 ] && [ "$(printf '%s\n' "$out" | grep -c '"step_ns":null')" = 1 ] &&
	pass "sweep: each line has its time" || fail "sweep: time" "$out"
run sweep $gpt --no-verify -q --table --vary gpu=l4,a100-80g-sxm
[ "$(printf '%s\n' "$out" | grep -cE ' [0-9.]{1,3} it/s( \([0-9.]+ \.\. [0-9.]+\))? rough$')" = 2 ] && pass "a table has two digits, and says that times are rough" ||
	fail "times of a table" "$out"
run sim traces/attention.vct --no-verify --no-advice --json
for f in step_ns samples_per_s gpu_busy data_wait; do
	flat | grep -q "\"$f\":null" && pass "without kernels $f is null" || fail "without kernels $f is null" "$out"
done
run info traces/attention.vct; printf '%s' "$out" | grep -q 'step time' && fail "and info says nothing of it" "$out" || pass "and info says nothing of it"
for c in 64000:0 63900:1; do
	run sim traces/lm-train-ctx128.vct --json --no-advice --no-verify --capacity ${c%:*}MiB
	expect "with ${c%:*} MiB a step flushes ${c#*:} times" 0 "\"flushes_per_step\": ${c#*:}[,.]?"
	[ "$(printf '%s\n' "$out" | sed -n 's/.*"flushes_per_step": \([0-9.]*\),*/\1/p')" = "${c#*:}" ] || fail "flushes per step" "$out"
done
# Changes that were really made on an H100: autocast in two recordings, the others against how often step() moves each tensor.
h=tests/recordings/h100/gpt-4
busy() { # microseconds that the GPU works in a step, of the last answer
	flat | sed -n 's/.*"gpu_busy":\([0-9.]*\).*"step_ns":\([0-9]*\).*/\1 \2/p' | awk '{ printf "%.0f\n", $1 * $2 / 1000 }'
}
real() { "$VRAMCAST" info $1 --json | tr -d ' \n' | sed -n 's/.*"step_ns":\([0-9]*\).*"gpu_busy":\([0-9.]*\).*/\1 \2/p' | awk '{ printf "%.0f\n", $1 * $2 / 1000 }'; }
run sim $h.vct --no-verify --no-advice --json -x precision:to=amp
s=$(busy) r=$(real $h-autocast.vct)
[ "${s:-0}" -gt $((r * 85 / 100)) ] && [ "$s" -lt $((r * 115 / 100)) ] && pass "autocast: the GPU works $s us a step, on the card it was $r" || fail "autocast" "$s said, $r seen"
b=$(real $h.vct)
for x in sgd adamw,step=fused; do
	run sim $h.vct --no-verify --no-advice --json -x optimizer:to=$x
	s=$(busy); [ "${s:-$b}" -lt "$b" ] && pass "$x takes less time than AdamW's lists" || fail "$x" "$s, as it is $b"
done
run sim $h.vct --no-verify --no-advice --json -x optimizer:to=muon
flat | grep -q '"step_ns":null' && flat | grep -q '"why":"[^"]*notknown' && pass "an optimizer whose kernels are not known: no time" || fail "muon" "$out"
run sim $h.vct --no-verify --no-advice --json -x lora
s=$(busy); [ "${s:-$b}" -lt "$b" ] && pass "adapters: no gradients of the weights" || fail "adapters" "$s, as it is $b"
finish
