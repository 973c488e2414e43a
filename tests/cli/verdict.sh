#!/bin/sh
# verdict.sh - a verdict holds for the whole interval of the answer, or is undecided; "exact" has to be earned; and
# every way out carries the level, the interval and whether the recording was checked.
. tests/support/tap.sh
L=tests/ladders/recordings
one=$L/gpt-amp_batch0004_torch2.9.1.vct@batch=4
run sim $one --set batch=24 --no-advice --json # what it needs where nothing limits it
number() { printf '%s' "$out" | tr -d ' \n' | sed -n "s/.*$1.*/\\1/p"; }
best=$(number '"peak_reserved":\([0-9]*\),"peak_used') low=$(number '"interval":\[\([0-9]*\),[0-9]*\],"level') high=$(number '"interval":\[[0-9]*,\([0-9]*\)\],"level')
check "the example leaves something open on both sides" test "$low" -lt "$best" -a "$best" -lt "$high"
card=$((best + (high - best) / 4)) small=$(((low + best) / 2)) tiny=$((low * 2 / 3)) large=$((high * 3 / 2))
ask="$one --set batch=24 --capacity $card --no-advice --force"
has() { printf '%s' "$out" | tr -d ' \n' | grep -qE -- "$2" && pass "$1" || fail "$1" "lacks $2" "$out"; } # NAME PATTERN

run sim $ask; expect "one end fits, the other does not: undecided, code 6" 6 'undecided: [0-9.]+ GiB to [0-9.]+ GiB of [0-9.]+ GiB used, so it may run out of memory; best estimate: fits'
run sim $ask --json
expect "in JSON, too" 6 '"verdict": "undecided"'
has "with the verdict of each end" '"verdict_low":"fits","verdict_high":"oom"'
has "and what it rests on" '"interval":\[[0-9]*,[0-9]*\],"level":"bounds","checked":true,"reproduced":true'
run sim $ask --assume low; expect "--assume low decides" 0 'fits, by the lower end of the interval'
run sim $ask --assume best; expect "--assume best decides" 0 'fits, by the best estimate'
run sim $ask --assume high; expect "--assume high decides" 3 'runs out of memory, by the upper end of the interval'
run sim $ask --assume middle; expect "--assume knows three words" 2 '' '--assume middle: must be one of low\|best\|high'
run sim $ask --fail-above 90%; expect "--fail-above looks at the upper end, and says by how much" 4 'over the budget: up to [0-9.]+ GiB used, --fail-above 90% allows [0-9.]+ GiB, which is [0-9.]+ GiB less'
run sim $one --set batch=24 --capacity $((high + 1048576)) --no-advice --fail-above $((best * 100 / high + 2))%; expect "though the best estimate is below it" 4 'over the budget: up to'
run sim $one --set batch=24 --capacity $large --no-advice --fail-above 85%; expect "and not where all of it is below" 0 'fits: '
run sim $ask --strict; expect "--strict does not trust it" 5 'not trustworthy: the upper end of the interval uses [0-9.]+ GiB, [0-9.]+ [GM]iB more than there is'
run sim $one --set batch=24 --capacity $large --no-advice --strict; expect "but what fits at both ends" 0 'fits: '
run sim $one --set batch=24 --capacity $small --no-advice --json; has "where the best estimate runs out, the lower end may still fit" '"verdict":"undecided".*"verdict_low":"fits"'
run sim $one --set batch=24 --capacity $tiny --no-advice --force; expect "both ends run out: that is certain" 3 'runs out of memory at event'
run sim $one --set batch=24 --capacity $((card * 5 / 4)) --fraction 0.8 --no-advice; expect "a fraction is a limit for the ends, too" 6 'undecided'
run sim $one --set batch=24 --capacity $((card * 5 / 4)) -x fraction:f=0.8 --no-advice; expect "also one that is set on the way" 6 'undecided'
run manpage sim; expect "the man page knows the code" 0 '6 undecided'

# The ways out.
run sim $ask -o "$TMP/x.xml" -o "$TMP/x.md" -o "$TMP/x.html" -o "$TMP/x.svg" -o "$TMP/x.prom" -o "$TMP/x.json" -o "$TMP/x.jsonl"
in_file() { grep -qE -- "$3" "$TMP/$2" && pass "$1" || fail "$1" "$2 lacks $3" "$(head -c 2000 "$TMP/$2")"; }
in_file "JUnit skips it" x.xml '<skipped message="May fit or run out of memory: [0-9.]* to [0-9.]* GiB of [0-9.]* GiB used"/>'
in_file "and counts it" x.xml 'failures="0" errors="0" skipped="1"'
in_file "and says the level" x.xml 'level bounds, checked and reproduced'
in_file "Markdown" x.md '\*\*undecided\*\*.*[0-9.]+ GiB to [0-9.]+ GiB \| bounds'
in_file "HTML" x.html 'r-verdict r-open'
in_file "HTML says the level" x.html 'Level of trust: bounds'
in_file "SVG: its own colour and sign" x.svg 'class="opens"'
in_file "SVG: its word" x.svg '>undecided<'
in_file "SVG: its interval" x.svg '[0-9.]+ to [0-9.]+ GiB of [0-9.]+ GiB used'
in_file "OpenMetrics: verdict" x.prom '^vramcast_verdict\{.*verdict="undecided"\} 1$'
in_file "OpenMetrics: level" x.prom '^vramcast_level\{.*level="bounds"\} 1$'
in_file "OpenMetrics: upper end" x.prom "^vramcast_peak_reserved_high_bytes\{.*\} $high\$"
in_file "JSON of results" x.json '"verdict": "undecided"'
in_file "lines of JSON" x.jsonl '"verdict":"undecided","level":"bounds","checked":true,"reproduced":true,"interval":\[1'
run export $one --set batch=24 --capacity $card --to csv:what=runs -o "$TMP/x.csv"
in_file "CSV" x.csv ',undecided,.*,bounds,1,1$'
run sweep $one --set batch=24 --vary capacity=$tiny,$card,$large --table --force
expect "a row of a sweep has both ends" 0 "^capacity=$card +undecided +[0-9.]+ GiB +[0-9.]+\.\.1[0-9.]+ %"
run sweep $one --set batch=24 --vary capacity=$tiny,$card,$large --json; printf '%s\n' "$out" > "$TMP/runs.jsonl"
run plot "$TMP/runs.jsonl" -o "$TMP/sweep.svg"; in_file "a sweep is read back with its verdicts" sweep.svg 'undecided: may fit'
run tune $one --set batch=24 --capacity $((best + 1048576)) --json; has "tune ranks it between flushing and running out" '"verdict":"(fits|flushes|undecided)".*"interval":\[.*"level":"bounds"'
run fit $one --capacity $card --force; expect "from one recording the headline of fit is the best estimate" 0 'largest that fits +2[0-9] \(best estimate\)'
expect "with what is certain and possible, and what to record" 0 'certain up to +[0-9]+, possible up to [0-9]+; record batch [0-9]+ to narrow it'
run fit tests/recordings/lengths-4.vct tests/recordings/lengths-8.vct --capacity 500M --force
expect "from several the headline is what is certain" 0 'largest that fits +up to [0-9]+ certainly, up to [0-9]+ possibly; record batch [0-9]+ to narrow it'
run fit tests/recordings/lengths-4.vct tests/recordings/lengths-8.vct --capacity 500M --json
has "in JSON, too" '"certain":([0-9]+),"possible":[0-9]+,"headline":\1,"record_next":[0-9]+'
has "with undecided runs between" '"batch":[0-9]+,"verdict":"undecided"'

# Exact only as recorded, but for the card, the settings and the tenants.
t=traces/lm-train-ctx128.vct
level() { # NAME LEVEL OPTION...
	name=$1 want=$2; shift 2
	run sim "$@" --no-advice --json; has "$name: $want" "\"level\":\"$want\",\"checked\""
}
level "as recorded" exact $t
level "a card that is large enough" exact $t -g h200 --used 1GiB
level "settings that would have made another heap" bounds $t -g h100-80g-pcie --conf expandable_segments:True --used 1GiB
level "settings, of a whole program" exact tests/recordings/gpt.vct --conf expandable_segments:True
level "settings without effect" exact $t --conf max_split_size_mb:100000
level "a change of nothing but a limit" bounds $t -x fraction:f=0.9
level "another version" "allocatoronly" $t --torch 2.15
has "has an interval" '"interval":\[[0-9]'
# The same script recorded under both versions: the interval of each holds what the other reserved.
held=0 pairs=0
for batch in 0001 0002 0008 0024; do
	for pair in 2.9.1:2.15.0 2.15.0:2.9.1; do
		from=$L/gpt-amp_batch${batch}_torch${pair%:*}.vct to=$L/gpt-amp_batch${batch}_torch${pair#*:}.json
		truth=$(sed -n 's/.*"peak_reserved": \([0-9]*\).*/\1/p' "$to")
		run sim "$from" --torch "$(expr "${pair#*:}" : '\([0-9]*\.[0-9]*\)')" --no-advice --json
		low=$(number '"interval":\[\([0-9]*\),[0-9]*\],"level') high=$(number '"interval":\[[0-9]*,\([0-9]*\)\],"level')
		pairs=$((pairs + 1))
		[ "${low:-0}" -le "$truth" ] && [ "${high:-0}" -ge "$truth" ] && held=$((held + 1))
	done
done
check "the interval of another version held $held of $pairs recordings under it" test "$held" = 8
level "another model" "allocatoronly" $t -m bfc
level "not checked" unverified $t --no-verify
level "a profile" unverified tests/fuzz/corpus/old-profile.json
run sim $t -m bfc --no-advice; expect "another model says what it is" 0 'another allocator under the requests of PyTorch: compare allocators'
level "a heap without events" unverified traces/llm-oom.vct
has "is undecided on every card" '"verdict":"undecided"'
has "and cut short" '"cut_short":true'
run sim traces/llm-oom.vct --assume low; expect "unless told to go by what was recorded" 0 'fits, by the lower end'
run sim tests/recordings/first-step.vct -g a100-40g-sxm --json --no-advice
expect "a run that died in its first step decides nothing about the rest" 6 '"verdict": "undecided"'
run sim traces/llm-oom.vct --strict; expect "and is not trusted" 5 'not trustworthy: nothing was checked'
finish
