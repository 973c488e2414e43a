#!/bin/sh
# demo.sh - the first command of the README, less what it builds: every command line in it is answered as it says.
. tests/support/tap.sh
OUT=$TMP/out scripts/demo.sh > "$TMP/said" 2>&1; rc=$?
[ "$rc" = 0 ] && pass "the demo ends well" || fail "the demo ends well" "code $rc" "$(tail -5 "$TMP/said")"
for f in fits oom; do
	grep -q '</svg>' "$TMP/out/$f.svg" && pass "it draws $f.svg" || fail "it draws $f.svg"
	grep -q "$TMP/out/$f.svg" "$TMP/said" && pass "and says where $f.svg is" || fail "and says where $f.svg is" "$(tail -8 "$TMP/said")"
done
finish
