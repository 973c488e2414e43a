#!/bin/sh
# trust.sh - every answer says what it rests on: level, matched share, interval, what would narrow it.
. tests/support/tap.sh
gpt=tests/recordings/gpt.vct
says() { # NAME LEVEL NARROW-PATTERN: of the last run's output, in whatever spacing
	flat=$(printf '%s' "$out" | tr -d '\n' | sed 's/  */ /g; s/": /":/g')
	for want in "\"level\":\"$2\"" '"matched":' '"recordings":' "\"narrow\":$3"; do
		printf '%s' "$flat" | grep -qE -- "$want" || { fail "$1" "lacks $want" "$flat"; return; }
	done
	pass "$1"
}
run sim $gpt --json --no-advice; says "sim of a recording as it is" exact null
run sim $gpt --json --no-advice --conf expandable_segments:True; says "other settings are exact" exact null
run sim $gpt --json --no-advice --no-verify -x lora; says "a change that was not recorded gives bounds" bounds '"a recording of the change'
run sim $gpt@batch=1 --json --no-advice --no-verify --set batch=2
says "one recording gives bounds" bounds '"a second short recording'
printf '%s' "$out" | tr -d ' \n' | grep -q '"interval":\[[0-9]' && pass "with an interval" || fail "with an interval" "$out"
run sim $gpt@batch=1 --no-advice --no-verify --set batch=2; expect "and says so to people" 0 'to narrow it +a second short recording'
run sweep $gpt --vary capacity=8G; says "sweep, each line" exact null
run sweep $gpt --no-verify --vary capacity=8G; says "what was not checked is not exact" unverified null
run estimate --params 1e9 --layers 16 --hidden 2048 --json; says "estimate" formulas '"a dry run'
L=tests/ladders/recordings
two="$L/gpt-amp_batch0004_torch2.9.1.vct@batch=4 $L/gpt-amp_batch0008_torch2.9.1.vct@batch=8"
run sim $two --json --no-advice --no-verify --set batch=12; says "two recordings extrapolate" extrapolated '"a recording at a value nearer'
expect "a card that nobody named is said" 0 'no card is named: row sums as on 132 multiprocessors, -g'
run sim $two --json --no-advice --no-verify --set batch=12 -g h200
printf '%s' "$out" | grep -q 'no card is named' && fail "and not where -g names it" "$out" || pass "and not where -g names it"
run sweep $two --no-verify --vary batch=12; says "in sweep, too" extrapolated '"a recording at'
run fit $two --no-verify --find batch -g t4 --json
printf '%s' "$out" | grep -qE '"matched": (0.99|1)' && printf '%s' "$out" | grep -q '"level": "extrapolated"' &&
	printf '%s' "$out" | grep -q '"narrow": "a recording at' && pass "and in fit" || fail "and in fit" "$out"
finish
