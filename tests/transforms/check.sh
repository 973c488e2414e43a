#!/bin/bash
# check.sh - what transforms predict against the change really made: one line a pair, then TAP.
# Reads lines of record.sh from standard input; MOST: error of peak reserved that passes, percent.
set -u
VRAMCAST=${VRAMCAST:-build/vramcast}
field() { sed -n "s/^ *\"$1\": \\([0-9]*\\),*\$/\\1/p" | head -n 1; }
peaks() { # TRACE OPTION...: reserved allocated low high
	local out; out=$("$VRAMCAST" sim "$@" --no-verify --no-advice --json 2> "${TMPDIR:-/tmp}/check.$$")
	[ -n "$out" ] || { echo "# $*: $(cat "${TMPDIR:-/tmp}/check.$$")" >&2; echo "0 0 0 0"; return; }
	local low high
	read -r low high < <(printf '%s\n' "$out" | tr -d '\n' | sed -n 's/.*"interval": \[ *\([0-9]*\), *\([0-9]*\) *\].*/\1 \2/p')
	echo "$(printf '%s\n' "$out" | field peak_reserved) $(printf '%s\n' "$out" | field peak_allocated) ${low:-0} ${high:-0}"
}
printf '%-6s %5s  %-42s %9s %7s %7s  %s\n' model ranks change 'MiB' 'res %' 'all %' 'interval %'
while IFS='|' read -r model ranks transform base changed what; do
	[ -s "$base" ] && [ -s "$changed" ] || { printf '%-6s %5s  %-42s not recorded\n' "$model" "$ranks" "$what"; continue; }
	x=(); for t in $transform; do x+=(-x "$t"); done
	read -r tr ta _ _ < <(peaks "$changed"); read -r r a low high < <(peaks "$base" "${x[@]}")
	awk -v m="$model" -v n="$ranks" -v w="$what" -v tr="$tr" -v ta="$ta" -v r="$r" -v a="$a" -v lo="$low" -v hi="$high" 'BEGIN {
		e = tr ? 100 * (r - tr) / tr : 0; f = ta ? 100 * (a - ta) / ta : 0
		i = hi ? sprintf("%+.1f .. %+.1f%s", 100 * (lo - tr) / tr, 100 * (hi - tr) / tr, lo <= tr && tr <= hi ? "" : " MISSED") : ""
		printf "%-6s %5s  %-42s %9.1f %+7.2f %+7.2f  %s\n", m, n, w, tr / 1048576, e, f, i }'
done
rm -f "${TMPDIR:-/tmp}/check.$$"
