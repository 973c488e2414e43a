#!/bin/sh
# docs_reference.sh - the reference pages say what the program says (scripts/make-reference.sh).
. tests/support/tap.sh
VRAMCAST=$VRAMCAST scripts/make-reference.sh "$TMP/reference" > "$TMP/log" 2>&1 && pass "the reference is made from the program" ||
	fail "the reference is made from the program" "$(cat "$TMP/log")"
for f in "$TMP"/reference/*.md "$TMP"/reference/commands/*.md docs/reference/commands/*.md; do
	name=${f#"$TMP"/reference/}; name=${name#docs/reference/}
	cmp -s "$TMP/reference/$name" "docs/reference/$name" || stale="$stale $name"
done
[ -z "$stale" ] && pass "every page is as the program makes it" ||
	fail "every page is as the program makes it" "stale:$stale" "run scripts/make-reference.sh"
finish
