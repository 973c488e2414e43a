#!/bin/sh
# limits.sh - leak, share and fraction against what the real program did under dryrun -g a100-80g-sxm --capacity
# (PyTorch 2.11.0): the step at which a leak runs out (tests/transforms/leak.py KIND 1100), train.py gpt beside
# another process (--used 2574MiB: what it reserves itself and its context) or with set_per_process_memory_fraction.
. tests/support/tap.sh
said() { printf '%s\n' "$out" | sed -n 's/.*runs out of memory after \([0-9]*\) steps*,.*/\1/p'; }
while read -r kind capacity real; do
	run sim "tests/recordings/leak-$kind.vct" --no-advice -x leak:steps=1500 --capacity "$capacity" --context 480MiB
	s=$(said)
	check "$kind on $capacity: $real whole steps, $s predicted" test "${s:-0}" -ge $((real - 2)) -a "${s:-0}" -le $((real + 2))
done <<END
logits 700MiB 50
logits 1200MiB 300
graph 700MiB 6
graph 1200MiB 38
maps 700MiB 125
maps 900MiB 295
maps 1300MiB 635
END
run sim tests/recordings/leak-logits.vct --no-advice -x leak:steps=1500 --capacity 1200MiB --context 480MiB --json
expect "the step is in the answer for programs" 3 '"steps_before": 300'
run sim tests/transforms/recordings/bert.step.vct -x leak
expect "one step does not show what stays: refused" 2 '' 'three are needed'
gpt=tests/transforms/recordings/gpt.vct
while read -r change capacity code words; do
	run sim $gpt --no-advice --no-verify --capacity "$capacity" --context 480MiB -x "$change"
	expect "$change on $capacity: $words" "$code" "$words"
done <<END
share:n=2,context=480MiB 5148MiB 0 fits: 5.03 GiB of 5.03 GiB
share:n=2,context=480MiB 5144MiB 0 fits only by emptying the cache
share:n=2,context=480MiB 5100MiB 3 128.00 MiB asked for, 98.00 MiB free
share:n=2,context=480MiB 4900MiB 3 128.00 MiB asked for, 26.00 MiB free
fraction:f=0.9 2600MiB 0 2.04 GiB
fraction:f=0.81 2600MiB 0 2.04 GiB
fraction:f=0.80 2600MiB 0 emptying the cache 2 times
fraction:f=0.77 2600MiB 3 128.00 MiB asked for, 172.00 MiB free
fraction:f=0.7 2600MiB 3 128.00 MiB asked for, 428.00 MiB free
END
# Steps are made when they are asked for: a hundred thousand cost no more than those before the end.
if sanitized; then skip "100,000 steps in the memory of one" "a sanitized program has no limit"
else
	(ulimit -v 400000; timeout 60 "$VRAMCAST" sim tests/recordings/leak-logits.vct --no-advice -x leak:steps=100000 --capacity 1200MiB --context 480MiB > "$TMP/many" 2>&1)
	grep -q 'runs out of memory after [0-9]* steps' "$TMP/many" && pass "100,000 steps in the memory of one, up to the last that fits" || fail "100,000 steps" "$(head -c 300 "$TMP/many")"
fi
# With a card that they outlast, the line before -> after ends there, too: no replay of all of them.
run sim tests/recordings/leak-logits.vct --no-advice -x leak:steps=100000 --capacity 1200MiB --context 480MiB
expect "nor is the change replayed to its end" 3 '-x leak:steps=100000 .* -> more than (720|71[0-9])\.[0-9]* MiB reserved'
finish
