#!/bin/sh
# bfc.sh - what TensorFlow's own allocator did with the scripts of vectors/, line by line, without TensorFlow.
. tests/support/tap.sh
v=tests/oracle-bfc/vectors; play=$BUILD/tests/oracle-bfc-play
set --
for s in "$v"/*.s.gz; do
	for r in "${s%.s.gz}".*.r.gz; do set -- "$@" "$s" "$r"; done
done
out=$("$play" "$@") && pass "the bfc model does what TensorFlow does: $(echo "$out" | tail -n 1)" || fail "recorded vectors differ" "$(echo "$out" | head -n 5)"
"$play" -t "$v/full.txt" | cmp -s - "$v/full.words" && pass "and says the same when memory runs out" || fail "other words when memory runs out" "$("$play" -t "$v/full.txt" | diff "$v/full.words" -)"
# A changed result must be noticed: the comparison itself is under test here.
gzip -dc "$2" | sed '100s/[0-9]$/x/' > "$TMP/r"
"$play" "$1" "$TMP/r" > "$TMP/out" && fail "a changed line went unnoticed" || pass "a changed line is found"
finish
