#!/bin/sh
# failures.sh - programs that ran out of memory and went on, and programs on several devices, are replayed to
# the address, and their failures are met again on the recorded card.
. tests/support/tap.sh
r=tests/recordings
for f in oom expoom fraction devices expdevices; do
	run sim --strict --no-advice -g rtx4090 $r/$f.vct
	case $f in *devices) want=0 ;; *) want=3 ;; esac
	expect "$f: every address is reproduced" $want 'reproduces this recording exactly'
done
for f in oom expoom; do
	run sim --json --no-advice -g rtx4090 $r/$f.vct; expect "$f: all 19 failures are met again" 3 '"ooms": 19,'
done
for f in devices expdevices; do
	for d in 0 1 2; do
		run sim --strict --no-advice --device $d $r/$f.vct
		expect "$f: device $d alone" 0 'reproduces this recording exactly'
	done
	run info --json $r/$f.vct
	[ "$(printf '%s\n' "$out" | grep -c '"peak_allocated": [1-9]')" = 3 ] &&
		pass "$f: info knows the peak of each" || fail "$f: info knows the peak of each" "$out"
done
# A program that died in its first step: what is recorded is the least that it needs.
run sim $r/first-step.vct -g a100-40g-sxm
expect "a recording that ends in its failure fits as far as it goes, which decides nothing" 6 'undecided: fits as far as it was recorded'
expect "and how to record all of it stands below" 6 'dryrun -g a100-40g-sxm --capacity 1TiB -o whole.vct -- python examples/gpt.py --batch-size 12'
run sim $r/first-step.vct
expect "so for the recorded card, too" 3 'The recording ends where the program ran out of memory'
case $out in *"larger card"*) fail "and no larger card is advised" "$out" ;; *) pass "and no larger card is advised" ;; esac
run sim --json $r/oom.vct -g a100-40g-sxm
expect "a program that went on after a failure is whole" 0 '"cut_short": false'
# What the settings change is asked on memory without an end; a range of addresses as for a small card holds no large request.
run sim tests/recordings/expoom.vct --conf max_split_size_mb:64 --capacity 1500MiB --no-advice --no-verify
expect "a request larger than the card's range of addresses" 3 '--conf max_split_size_mb:64 +[0-9.]+ GiB -> [0-9.]+ GiB reserved'
finish
