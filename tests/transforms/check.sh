#!/bin/bash
# check.sh - what transforms predict against the change really made: one line a pair, then a summary.
# TAP=1: instead, a test a pair; it holds when neither error is above the two limits at the end of the
# line and what really happened lies in the interval. Reads lines of record.sh from standard input. What really happened is what the recording says of
# itself; a recording that the allocator model does not replay exactly is marked.
set -u
VRAMCAST=${VRAMCAST:-build/vramcast}
log=${TMPDIR:-/tmp}/check.$$
field() { sed -n "s/^ *\"$1\": \\([0-9]*\\),*\$/\\1/p" | sort -n | tail -n 1; }
truth() { # TRACE: reserved allocated exact
	local out; out=$("$VRAMCAST" info --json "$1" 2> "$log")
	echo "$(field peak_reserved <<< "$out") $(field peak_allocated <<< "$out") $(sed -n 's/^ *"exact": \([a-z]*\),*/\1/p' <<< "$out")"
}
predict() { # TRACE OPTION...: reserved allocated low high
	local out low high
	out=$("$VRAMCAST" sim "$@" --no-verify --no-advice --json 2> "$log")
	[ -n "$out" ] || { echo "# $*: $(cat "$log")" >&2; echo "0 0 0 0"; return; }
	read -r low high < <(tr -d '\n' <<< "$out" | sed -n 's/.*"interval": \[ *\([0-9]*\), *\([0-9]*\) *\].*/\1 \2/p')
	echo "$(field peak_reserved <<< "$out") $(field peak_allocated <<< "$out") ${low:-0} ${high:-0}"
}
[ "${TAP:-0}" = 1 ] || printf '%-9s %5s  %-42s %9s %7s %7s  %s\n' model ranks change 'MiB' 'res %' 'all %' 'interval %'
n=0 bad=0
while IFS='|' read -r model ranks transform base changed what most mosta; do
	[ -s "$base" ] && [ -s "$changed" ] || { printf '%-9s %5s  %-42s not recorded\n' "$model" "$ranks" "$what"; continue; }
	x=(); for t in $transform; do x+=(-x "$t"); done
	read -r tr ta exact < <(truth "$changed"); read -r r a low high < <(predict "$base" "${x[@]}")
	if [ "${TAP:-0}" = 1 ]; then
		n=$((n + 1))
		[ -z "$ANSWERS" ] || echo "$r $a $low $high $model $ranks $transform" >> "$ANSWERS"
		awk -v n="$n" -v m="$model" -v w="$what" -v t="$transform" -v tr="$tr" -v ta="$ta" -v r="$r" -v a="$a" -v lo="$low" -v hi="$high" \
			-v ex="$exact" -v most="$most" -v mosta="$mosta" 'BEGIN {
			e = tr ? 100 * (r - tr) / tr : 100; f = ta ? 100 * (a - ta) / ta : 100
			ok = r && ex == "true" && e <= most && e >= -most && f <= mosta && f >= -mosta && ((!hi && r == tr) || (lo <= tr && tr <= hi))
			printf "%sok %d - -x %s predicts %s%s within %s %% reserved, %s %% allocated, and its interval holds it\n", ok ? "" : "not ", n, t, m, w, most, mosta
			if (!ok) printf "#   errors %+.2f %% and %+.2f %%, interval %+.1f .. %+.1f %%, recording replayed exactly: %s\n", e, f, 100 * (lo - tr) / tr, 100 * (hi - tr) / tr, ex
			exit !ok }' || bad=1
		continue
	fi
	awk -v m="$model" -v n="$ranks" -v w="$what" -v tr="$tr" -v ta="$ta" -v r="$r" -v a="$a" -v lo="$low" -v hi="$high" -v ex="$exact" 'BEGIN {
		if (!r) { printf "%-9s %5s  %-42s %9.1f refused\n", m, n, w, tr / 1048576; exit }
		e = tr ? 100 * (r - tr) / tr : 0; f = ta ? 100 * (a - ta) / ta : 0
		i = hi ? sprintf("%+.1f .. %+.1f%s", 100 * (lo - tr) / tr, 100 * (hi - tr) / tr, lo <= tr && tr <= hi ? "" : " MISSED") : tr == r ? "" : "none"
		printf "%-9s %5s  %-42s %9.1f %+7.2f %+7.2f  %s%s\n", m, n, w, tr / 1048576, e, f, i, ex == "true" ? "" : " (recording not replayed exactly)" }'
done
rm -f "$log"
[ "${TAP:-0}" = 1 ] && { echo "1..$n"; exit $bad; }
exit 0
