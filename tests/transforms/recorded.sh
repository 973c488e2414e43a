#!/bin/bash
# recorded.sh - transforms predict changes that were really made and recorded, within the stated limits, and what they
# predicted when somebody last looked.
cd "$(dirname "$0")/../.." || exit 1
here=tests/transforms
TAP=1 TMPDIR="${TMP:-/tmp}" ANSWERS="$TMP/answers" $here/check.sh < $here/recordings/pairs > "$TMP/tap"; rc=$?
sed '$d' "$TMP/tap"
n=$(grep -c . "$TMP/answers")
[ -z "$UPDATE" ] || cp "$TMP/answers" $here/answers.txt
if diff $here/answers.txt "$TMP/answers" > "$TMP/diff"; then
	echo "ok $((n + 1)) - all $n predictions and intervals are what they were"
else
	echo "not ok $((n + 1)) - $(grep -c '^>' "$TMP/diff") predictions or intervals are not what they were (when it is meant: make answers)"
	head -n 30 "$TMP/diff" | sed 's/^/#   /'; rc=1
fi
echo "1..$((n + 1))"
exit $rc
