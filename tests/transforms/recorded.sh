#!/bin/bash
# recorded.sh - transforms predict changes that were really made and recorded, within the stated limits, and what they
# predicted when somebody last looked.
cd "$(dirname "$0")/../.." || exit 1
. tests/support/held.sh
here=tests/transforms
TAP=1 TMPDIR="${TMP:-/tmp}" ANSWERS="$TMP/answers" $here/check.sh < $here/recordings/pairs > "$TMP/tap"; rc=$?
sed '$d' "$TMP/tap"
n=$(grep -c . "$TMP/answers")
as_they_were $((n + 1)) $here/answers.txt || rc=1
echo "1..$((n + 1))"
exit $rc
