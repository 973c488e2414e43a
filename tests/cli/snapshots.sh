#!/bin/sh
# snapshots.sh - what ten releases of PyTorch write is read, by Python's pickler and by TorchScript's, and the
# model reproduces it from the middle of the run on, empty_cache and a failed request included.
. tests/support/tap.sh
for py in tests/snapshots/torch-*.py.pickle.gz; do
	base=${py%.py.pickle.gz}; v=${base##*-}
	run info "$py"; expect "torch $v: every address is reproduced" 0 'reproduces this recording exactly'
	case $v in 2.7) ;; *) expect "torch $v: the layout tells the version" 0 "^  torch +$v \(guessed\)" ;; esac
	"$VRAMCAST" dump "$py" > "$TMP/py" 2> "$TMP/err"
	for kind in heap_segment heap_block alloc free trim segment_alloc segment_free oom; do
		grep -q " $kind " "$TMP/py" || fail "torch $v: $kind is among the events"
	done
	if [ -e "$base.ts.pickle.gz" ]; then
		"$VRAMCAST" dump "$base.ts.pickle.gz" > "$TMP/ts" 2> "$TMP/err"
		check "torch $v: TorchScript's pickle holds the same events" cmp "$TMP/py" "$TMP/ts"
	fi
	"$VRAMCAST" dump "$base.list.pickle.gz" 2> "$TMP/err" | grep 'heap_segment' | sed 's/^[0-9]* //; s/ flags=[0-9]*//' | sort -u > "$TMP/list"
	"$VRAMCAST" dump "$py" 2> "$TMP/err" | grep 'heap_segment' | grep 'final\|flags=1[6-9]\|flags=2' | sed 's/^[0-9]* //; s/ flags=[0-9]*//' | sort -u > "$TMP/final"
	check "torch $v: the list of segments has the same segments" cmp "$TMP/list" "$TMP/final"
done
finish
