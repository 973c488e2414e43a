#!/bin/sh
# vllm.sh - what vLLM's own scheduler did with the scripts of vectors/, line by line, without vLLM.
. tests/support/tap.sh
v=tests/oracle-vllm/vectors; play=$BUILD/tests/oracle-vllm-play
for release in 0.10 0.23 0.31 0.32 0.33; do
	set --
	for r in "$v"/*-"$release".r.gz; do set -- "$@" "${r%.r.gz}.s.gz" "$r"; done
	out=$("$play" -v "$release" "$@") && pass "the model does what vLLM $release does: $(echo "$out" | tail -n 1)" || fail "recorded vectors of $release differ" "$(echo "$out" | head -n 5)"
done
# The rules of another release, and a changed result, must be noticed: the comparison itself is under test here.
set --
for r in "$v"/*-0.23.r.gz; do set -- "$@" "${r%.r.gz}.s.gz" "$r"; done
"$play" -v 0.18 "$@" > "$TMP/out" && fail "the rules of another release went unnoticed" || check "the rules of another release are noticed" grep -q 'lines differ' "$TMP/out"
set -- "$v"/g20-0.31.s.gz "$v"/g20-0.31.r.gz
"$play" -v 0.33 "$@" > "$TMP/out" && fail "the rules of another release went unnoticed in groups" || check "and in groups of layers" grep -q 'lines differ' "$TMP/out"
set -- "$v"/g37-0.31.s.gz "$v"/g37-0.31.r.gz
gzip -dc "$2" | sed '100s/[0-9]$/x/' > "$TMP/r"
"$play" -v 0.31 "$1" "$TMP/r" > "$TMP/out" && fail "a changed line went unnoticed" || pass "a changed line is found"
finish
