#!/bin/bash
# ledger.sh - the lines of the ledger add up, whatever is on the card.
. tests/support/tap.sh
t=traces/lm-train-ctx128.vct
value() { printf '%s\n' "$out" | sed -n "s/^ *\"$1\": \([0-9]*\),*\$/\1/p" | head -n 1; }
adds_up() { # SENTENCE
	local cap; cap=$(value capacity)
	check "$1: tensors and cache are what is reserved" test $(($(value allocated) + $(value cached))) = "$(value reserved)"
	check "$1: reserved, context, libraries and others are what is used" \
		test $(($(value reserved) + $(value context) + $(value libraries) + $(value others))) = "$(value used)"
	check "$1: what is used and what is free are the card" \
		test $(($(value used) + $(value free))) = $((cap + $(value over)))
	check "$1: the ledger and peak_used agree" test "$(value used)" = "$(value peak_used)"
}
r="--no-verify --no-advice --json"
run sim $t -g a100-40g-sxm $r; adds_up "alone"
run sim $t -g rtx4090 --used 1GiB $r; adds_up "another process"
check "and it is listed" test "$(value others)" = 1073741824
run sim $t -g a100-40g-sxm -x share:n=2,each=3GiB $r; adds_up "two processes"
check "the other one with its context" test "$(value others)" = $(((3 * 1024 + 450) << 20))
run sim $t -g a100-40g-sxm --used 1GiB -x share:n=2,each=3GiB $r; adds_up "two processes and a stranger"
check "both are counted" test "$(value others)" = $(((4 * 1024 + 450) << 20))
run sim $t -g h200 -x share:n=3,mode=aligned $r; adds_up "three processes in step"
check "three in step need more than one and less than three at their worst" test "$(value others)" -gt $((900 << 20))
run sim $t -g rtx3090 $r; adds_up "out of memory"
run sim $t -g a100-40g-sxm --context 2GiB $r; adds_up "a context of 2 GiB"
run sim $t -g rtx4090 --conf expandable_segments:True $r; adds_up "expandable segments"
run sim $t --capacity 4GiB --used 5GiB $r; adds_up "more used than there is"
run sim $t -g h200 -x share:n=2,each=3GiB --no-verify --no-advice
expect "people see the other process" 0 'other processes *3\.44 GiB'
run sim tests/transforms/recordings/gpt.vct -g h200 -x zero:stage=2,offload=optimizer,ranks=2 --host-memory 180GiB --no-verify --no-advice
expect "a host that is large enough, in words, and that it is a lower bound" 0 'fits as far as is known: .* of 180\.00 GiB, a lower bound'
# Up to the byte: what is needed is enough, one less is not.
host() { run sim tests/transforms/recordings/gpt.vct -g h200 -x zero:stage=2,offload=optimizer,ranks=2 --no-verify --no-advice --json --host-memory "$1"; }
host 180GiB; needed=$(echo "$out" | sed -n 's/^ *"needed": \([0-9]*\),*$/\1/p' | head -n 1)
host "$needed"; expect "a host of just as much" 0 '"fits": true'
host $((needed - 1)); expect "... and of a byte less" 3 '"fits": false'
finish
