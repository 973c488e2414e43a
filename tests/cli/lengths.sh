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
finish
