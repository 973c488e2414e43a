#!/bin/sh
# check.sh - the engine of the page against the program (check.js). Without Emscripten or node it is skipped.
. tests/support/tap.sh
for need in emcc node; do
	command -v $need > /dev/null || { skip "the page answers as the program does" "no $need here"; finish; }
done
make --no-print-directory DEPS=skip BUILD="$BUILD" DIST="$TMP" page > "$TMP/log" 2>&1 ||
	{ fail "the page is built" "$(tail -n 20 "$TMP/log")"; finish; }
exec node tests/page/check.js "$TMP/vramcast.html" "$VRAMCAST"
