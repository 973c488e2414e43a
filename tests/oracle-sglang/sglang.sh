#!/bin/sh
# sglang.sh - what SGLang's own code made of the servers of vectors/, without SGLang.
. tests/support/tap.sh
v=tests/oracle-sglang/vectors; play=$BUILD/tests/oracle-sglang-play
out=$("$play" -v $v/0.5.23.s.gz $v/0.5.23.r.gz) && pass "the pools are divided as SGLang does it: $out" || fail "recorded plans differ" "$out"
gzip -dc $v/0.5.23.r.gz | sed '100s/tokens /tokens 1/; 100s/refused/tokens/' > "$TMP/r"
"$play" -v $v/0.5.23.s.gz "$TMP/r" > "$TMP/out" && fail "a changed plan went unnoticed" || check "a changed plan is found" grep -q ', 1 differ' "$TMP/out"
serve=$BUILD/tests/oracle-sglang-serve
set --
for r in $v/q*.r.gz; do set -- "$@" "${r%.r.gz}.s.gz" "$r"; done
out=$("$serve" -v 0.5.23 "$@") && pass "requests are served as SGLang does it: $out" || fail "recorded requests differ" "$out"
"$serve" -v 0.5.21 "$@" > "$TMP/out" && fail "that prefixes of the waiting stay in use went unnoticed" || check "the rules of another release are noticed" grep -q 'lines differ' "$TMP/out"
finish
