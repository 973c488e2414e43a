#!/bin/bash
# lengths.sh - batches padded to their longest sample (tests/recordings/lengths.py): no law holds, and the interval says so.
. tests/support/tap.sh
R=tests/recordings
run sim $R/lengths-64.vct --json
truth=$(printf '%s\n' "$out" | sed -n 's/^ *"peak_reserved": \([0-9]*\),*$/\1/p' | head -n 1)
run sim $R/lengths-4.vct $R/lengths-8.vct --set batch=64
expect "steps that differ in the length of their samples are said" 0 'steps differ in the length of their samples'
run sim $R/lengths-4.vct $R/lengths-8.vct --set batch=64 --json
interval=$(printf '%s\n' "$out" | awk '/"interval": \[/ { getline; low = $1 + 0; getline; print low, $1 + 0; exit }')
check "what a batch of 64 needed ($truth) is inside the interval ($interval)" sh -c 'set -- $1; [ "$2" -le "$1" ] && [ "$3" -ge "$1" ] && [ "$3" -lt $((2 * $1)) ]' - "$truth $interval"
for from in 4 8; do
	run sim $R/lengths-$from.vct --set batch=64 --json
	interval=$(printf '%s\n' "$out" | awk '/"interval": \[/ { getline; low = $1 + 0; getline; print low, $1 + 0; exit }')
	check "and from batch $from alone ($interval)" sh -c 'set -- $1; [ "$2" -le "$1" ] && [ "$3" -ge "$1" ]' - "$truth $interval"
done

# As many words as the data masks (tests/recordings/masked.py): steps are drawn, and laws go through their middle.
run sim $R/masked-32.vct --json
truth=$(printf '%s\n' "$out" | sed -n 's/^ *"peak_reserved": \([0-9]*\),*$/\1/p' | head -n 1)
run sim $R/masked-4.vct $R/masked-8.vct --set batch=32
expect "steps that differ in their data are said to be drawn" 0 'or in other data, and were drawn'
run sim $R/masked-4.vct $R/masked-8.vct --set batch=32 --json
interval=$(printf '%s\n' "$out" | awk '/"interval": \[/ { getline; low = $1 + 0; getline; print low, $1 + 0; exit }')
check "what they needed at 32 ($truth) is inside the interval ($interval)" sh -c 'set -- $1; [ "$2" -le "$1" ] && [ "$3" -ge "$1" ] && [ "$3" -lt $((2 * $2)) ]' - "$truth $interval"

# Packed sentences (tests/programs/lstm_packed.py): workspace that the first step makes to stay is no data, and the most
# that is asked for at once, without any data, is the same at each length.
asked() { run sim "$@" --json; printf '%s\n' "$out" | sed -n 's/^ *"peak_requested": \([0-9]*\),*$/\1/p' | head -n 1; }
truth=$(asked $R/packed-96.vct)
said=$(asked $R/packed-64.vct $R/packed-192.vct --set seq=96)
check "what no recording changes is no data: $said of $truth bytes" test "$said" = "$truth"

# Twelve samples a step in batches of 5 (tests/programs/gpt_global.py): the last turn of the loop has two. It is replayed
# at several sizes, so the interval has no room for what it might be: an eleventh of the peak, where it was a quarter.
run sim $R/constant-5.vct --json
truth=$(printf '%s\n' "$out" | sed -n 's/^ *"peak_reserved": \([0-9]*\),*$/\1/p' | head -n 1)
run sim $R/constant-2.vct $R/constant-4.vct --set batch=5 --json
interval=$(printf '%s\n' "$out" | awk '/"interval": \[/ { getline; low = $1 + 0; getline; print low, $1 + 0; exit }')
check "a last turn that is not full: $truth lies in a narrow interval ($interval)" \
	sh -c 'set -- $1; [ "$2" -le "$1" ] && [ "$3" -ge "$1" ] && [ $((11 * ($3 - $2))) -lt "$1" ]' - "$truth $interval"

# 128 and 256 are powers of two: 300 may be 512, and 193 would tell.
L=tests/ladders/recordings
run sim $L/gpt-accum_seq0128_torch2.9.1.vct@seq=128 $L/gpt-accum_seq0256_torch2.9.1.vct@seq=256 --set seq=300
expect "a length that may be rounded up is said, and what would tell" 0 'seq may be rounded up: a recording at 193 tells'
run sim $L/gpt-accum_seq0128_torch2.9.1.vct@seq=128 $L/gpt-accum_seq0256_torch2.9.1.vct@seq=256 --set seq=300 --json
high=$(printf '%s\n' "$out" | awk '/"interval": \[/ { getline; getline; print $1 + 0; exit }')
need=$(sed -n 's/^ "peak_reserved": \([0-9]*\),$/\1/p' $L/gpt-accum_seq0512_torch2.9.1.json)
low=$(printf '%s\n' "$out" | awk '/"interval": \[/ { getline; print $1 + 0; exit }')
best=$(printf '%s\n' "$out" | sed -n 's/^ *"peak_reserved": \([0-9]*\),*$/\1/p' | head -n 1)
check "nothing is smaller than all ways of rounding: the lower end is the guess ($low, $best)" test "$low" = "$best"
check "the upper end at 300 ($high) is what 512 needs ($need), or more" test "$high" -ge "$need"
finish
