#!/bin/sh
# The shipped vectors, replayed line by line.
out=$("$BUILD/tests/golden-replay" tests/golden/vectors)
rc=$?
echo "$out" | grep FAIL | head -n 20 | sed 's/^/# /'
if [ $rc = 0 ]; then
	echo "ok 1 - what the real allocator of 19 releases did is replayed to the byte: $(echo "$out" | tail -n 1)"
else
	echo "not ok 1 - recorded vectors differ: $(echo "$out" | tail -n 1)"
fi
# A changed result must be noticed: the comparison itself is under test here.
mkdir -p "$TMP/scripts" "$TMP/results" "$TMP/notes"
cp tests/golden/vectors/scripts/bounds_default.txt.gz "$TMP/scripts/"
cp tests/golden/vectors/notes/bounds_default.n0.gz "$TMP/notes/"
gzip -dc tests/golden/vectors/results/bounds_default.r0.gz | sed '100s/[0-9a-f]$/x/' | gzip -c > "$TMP/results/bounds_default.r0.gz"
echo "bounds_default 2.1.2 bounds_default.r0 bounds_default.n0" > "$TMP/index.txt"
if "$BUILD/tests/golden-replay" "$TMP" > "$TMP/out"; then
	echo "not ok 2 - a changed line went unnoticed"; exit 1
fi
grep -q 'FAIL bounds_default 2.1.2: result line 100' "$TMP/out" &&
	echo "ok 2 - a changed line is found and named" || { echo "not ok 2 - the difference is not named"; rc=1; }
exit $rc
