#!/bin/sh
# steps.sh - the steps of a program that marks none, in record's summary and in info.
. tests/tracer/lib.sh
export LD_LIBRARY_PATH="$bin"
for want in fixed:40 fixed:5 lengths:40 micro:12 odd:40; do
	what=${want%:*}; number=${want#*:}
	run record -o "$TMP/a.vct" -- "$bin/steps" "$what" "$number"
	expect "$what: record finds $number steps" 0 "" ", $number steps by the pattern of allocations \(confidence (1.00|0.[4-9][0-9])\)"
	got=$("$VRAMCAST" info --json "$TMP/a.vct" | tr '\n' ' ' | sed 's/.*"steps": *{\([^}]*\)}.*/\1/' | tr -d ' "')
	case $got in count:$number,source:pattern,confidence:*) pass "$what: so does info" ;; *) fail "$what: so does info" "$got" ;; esac
done
run record -o "$TMP/a.vct" -- "$bin/steps" none 40
expect "no order: no steps" 0 "" ", 0 steps$"
run info "$TMP/a.vct"
[ "$(echo "$out" | grep -c iterations)" = 0 ] && pass "no order: none in info" || fail "no order: none in info" "$out"
finish
