#!/bin/sh
# rmm.sh - what RMM's own pool did with the scripts of vectors/, line by line, without RMM.
. tests/support/tap.sh
v=tests/oracle-rmm/vectors; play=$BUILD/tests/oracle-rmm-play
set --
for s in "$v"/*.s.gz; do
	for r in "${s%.s.gz}".*.r.gz; do set -- "$@" "$s" "$r"; done
done
out=$("$play" "$@") && pass "the rmm_pool model does what RMM does: $(echo "$out" | tail -n 1)" || fail "recorded vectors differ" "$(echo "$out" | head -n 5)"
# A changed result must be noticed: the comparison itself is under test here.
gzip -dc "$2" | sed '100s/[0-9a-f]$/x/' > "$TMP/r"
"$play" "$1" "$TMP/r" > "$TMP/out" && fail "a changed line went unnoticed" || pass "a changed line is found"
finish
