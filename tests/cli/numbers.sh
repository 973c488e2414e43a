#!/bin/sh
# numbers.sh - sizes and values at the edge of what can be: refused with a sentence, or an answer that holds.
. tests/support/tap.sh
L=tests/ladders/recordings
a=$L/bert-cls_batch0004_torch2.9.1.vct; b=$L/bert-cls_batch0008_torch2.9.1.vct; m=$L/mlp_batch0016_torch2.9.1.vct
for x in 1e16 1e19 1e300; do
	run sim $a@batch=4 $b@batch=8 --set batch=$x --no-advice
	expect "--set batch=$x is refused" 2 '' "--set batch=$x: $x is too large a number: the largest is 9e\+15"
done
run sim $a@batch=4 $b@batch=8 --set batch=-1 --no-advice; expect "so is a value below zero" 2 '' '--set batch=-1: -1 must be above zero'
run sweep $a@batch=4 $b@batch=8 --vary batch=8,1e19; expect "and one among those of a sweep" 2 '' '1e19 is too large'
for x in 0 -4 1e19; do
	run sim $a@batch=$x $b@batch=8 --set batch=16; expect "@batch=$x is refused" 2 '' "@batch=$x: $x (must be above zero|is too large)"
done
# one recording of a network whose sizes grow with the square of what is asked: bytes beyond 2^64
for x in 1e6 1e9 1e12 9e15; do
	run sim $m@batch=16 --set batch=$x -g h100-80g-sxm --no-verify --no-advice --json
	if [ "$rc" = 3 ] || [ "$rc" = 6 ]; then pass "a batch of $x does not fit"; else fail "a batch of $x does not fit" "exit code $rc" "$err"; fi
	said=$(printf '%s\n' "$out" | tr -d ' \n' | sed 's/.*"peak_reserved":\([0-9]*\),.*"interval":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2 \3/')
	case $said in
	*[!0-9\ ]*) fail "and the ends of its interval are bytes that can be" "no interval: $said" ;;
	*) check "and the ends of its interval are bytes that can be" awk "BEGIN { split(\"$said\", v); exit !(v[1] <= 2 ^ 60 && v[2] <= v[3] && v[3] <= 2 ^ 60) }" ;;
	esac
done
run sim $a --capacity 18446744073709551615; expect "2^64 - 1 bytes are no card" 2 '' "larger than any memory"
run sim $a --capacity 0.5; expect "half a byte is a slip" 2 '' "'0.5' is a part of a byte \(did you mean 0.5GiB\?\)"
run estimate --params 7B --layers 32 --hidden 4096; expect "7B is 7e9" 0
run estimate --params 7B --layers 32 --hidden 4k; expect "4k may be 4000 or 4096" 2 '' "'4k' is not a number \(write 4e3\)"
run estimate --params 0x10 --layers 32 --hidden 4096; expect "numbers are decimal" 2 '' "'0x10' is not a number"
run sim $a --device 18446744073709551615; expect "nor is such a number a device" 2 '' 'too large a number'
finish
