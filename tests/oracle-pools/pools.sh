#!/bin/sh
# pools.sh - what the pools of CuPy and of MindSpore did with the scripts of vectors/, line by line, without either.
. tests/support/tap.sh
v=tests/oracle-pools/vectors; play=$BUILD/tests/oracle-pools-play
for pool in cupy mindspore; do
	set --
	for s in "$v/$pool"-*.s.gz; do set -- "$@" "$s" "${s%.s.gz}.r.gz"; done
	out=$("$play" "$pool" "$@") && pass "the model $pool does what the real one does: $(echo "$out" | tail -n 1)" ||
		fail "recorded vectors differ" "$(echo "$out" | head -n 5)"
	# A changed result must be noticed, also where the model is told which of equal chunks was taken.
	gzip -dc "$2" | sed '100s/[0-9]$/x/' > "$TMP/r"
	"$play" "$pool" "$1" "$TMP/r" > "$TMP/out" && fail "a changed line went unnoticed" || pass "a changed line is found"
	gzip -dc "$2" | awk '/^a / && ++n == 200 { $2 = "600000000000" } { print }' > "$TMP/r"
	"$play" "$pool" "$1" "$TMP/r" > "$TMP/out" && fail "a changed address went unnoticed" || pass "a changed address is found"
done
finish
