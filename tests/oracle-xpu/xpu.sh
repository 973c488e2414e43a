#!/bin/sh
# xpu.sh - what PyTorch 2.6's own allocator for XPU did with the scripts of vectors/, line by line, without PyTorch.
. tests/support/tap.sh
v=tests/oracle-xpu/vectors; play=$BUILD/tests/oracle-xpu-play
set --
for r in "$v"/*.r.gz; do set -- "$@" "${r%.r.gz}.s.gz" "$r"; done
out=$("$play" -v 2.6 "$@") && pass "the torch model does what PyTorch 2.6 does on XPU: $(echo "$out" | tail -n 1)" || fail "recorded vectors differ" "$(echo "$out" | head -n 5)"
"$play" -v 2.11 "$@" > "$TMP/out" && fail "the rules of another release went unnoticed" || check "the rules of another release are noticed" grep -q 'model' "$TMP/out"
gzip -dc "$2" | sed '100s/[0-9]$/x/' > "$TMP/r"
"$play" -v 2.6 "$1" "$TMP/r" > "$TMP/out" && fail "a changed line went unnoticed" || pass "a changed line is found"
finish
