#!/bin/sh
# pools.sh - what CuPy's pool did with the scripts of vectors/, line by line, without CuPy.
. tests/support/tap.sh
v=tests/oracle-pools/vectors; play=$BUILD/tests/oracle-pools-play
set --
for s in "$v"/cupy-*.s.gz; do set -- "$@" "$s" "${s%.s.gz}.r.gz"; done
out=$("$play" cupy "$@") && pass "the model cupy does what the real one does: $(echo "$out" | tail -n 1)" ||
	fail "recorded vectors differ" "$(echo "$out" | head -n 5)"
# A changed result must be noticed, also where the model is told which of equal chunks was taken.
gzip -dc "$2" | sed '100s/[0-9]$/x/' > "$TMP/r"
"$play" cupy "$1" "$TMP/r" > "$TMP/out" && fail "a changed line went unnoticed" || pass "a changed line is found"
gzip -dc "$2" | awk '/^a / && ++n == 200 { $2 = "600000000000" } { print }' > "$TMP/r"
"$play" cupy "$1" "$TMP/r" > "$TMP/out" && fail "a changed address went unnoticed" || pass "a changed address is found"
finish
