#!/bin/sh
# ladders.sh - the predictions of the shipped ladders stay within their bounds, and what they were.
here=tests/ladders
"$BUILD/tests/ladders" $here/recordings .vct "$TMP/answers"; rc=$?
[ -z "$UPDATE" ] || cp "$TMP/answers" $here/answers.txt
if diff $here/answers.txt "$TMP/answers" > "$TMP/diff"; then
	echo "ok 5 - all $(grep -c . $here/answers.txt) predictions and intervals are what they were"
else
	echo "not ok 5 - $(grep -c '^>' "$TMP/diff") predictions or intervals are not what they were (when it is meant: make answers)"
	head -n 30 "$TMP/diff" | sed 's/^/#   /'; rc=1
fi
exit $rc
