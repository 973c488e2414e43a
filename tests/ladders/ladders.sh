#!/bin/sh
# ladders.sh - the predictions of the shipped ladders stay within their bounds, and what they were.
. tests/support/held.sh
here=tests/ladders
"$BUILD/tests/ladders" $here/recordings .vct "$TMP/answers"; rc=$?
as_they_were 5 $here/answers.txt || rc=1
exit $rc
