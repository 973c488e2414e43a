#!/bin/sh
# snapshot.sh - PyTorch snapshots written by export: the recording comes back field by field, replays as
# exactly as before, and other readers take it.
. tests/support/tap.sh
PY=${PYTHON:-python3}
"$PY" -c 'import sys; sys.exit(sys.version_info < (3, 6))' 2> /dev/null && has_python=1 || has_python=

numbers() { # what info and sim say of a trace, without its name
	"$VRAMCAST" sim "$1" --json > "$TMP/json" 2> "$TMP/err" || [ $? = 3 ] || { cat "$TMP/err"; return 1; }
	sed -e 's/"file": "[^"]*"//;s/"source": "[^"]*"//' "$TMP/json"
}
again() { # NAME FILE
	if ! "$VRAMCAST" export "$2" --to pickle:events=0 -o "$TMP/w.pickle" 2> "$TMP/err"; then
		fail "$1 is written as a snapshot" "$(cat "$TMP/err")"; return
	fi
	numbers "$2" > "$TMP/a"; numbers "$TMP/w.pickle" > "$TMP/b"
	check "$1: the snapshot replays with the same numbers and the same fidelity" diff "$TMP/a" "$TMP/b"
	"$VRAMCAST" export "$TMP/w.pickle" --to pickle:events=0 -o "$TMP/w2.pickle"
	check "$1: written again it is the same file" cmp "$TMP/w.pickle" "$TMP/w2.pickle"
}
for f in traces/*.vct; do again "$(basename "$f")" "$f"; done
# SNAPSHOTS: a folder with more of them
for f in tests/snapshots/graphs*.pickle.gz tests/snapshots/streams*.pickle.gz ${SNAPSHOTS:+"$SNAPSHOTS"/*.pickle}; do
	[ -e "$f" ] || continue
	b=$(basename "$f")
	again "$b" "$f"
	if [ "$has_python" ]; then
		check "$b: every event, segment, block and frame is the original's" "$PY" tests/support/roundtrip.py "$f" "$TMP/w.pickle"
	else
		skip "$b: every event, segment, block and frame is the original's" "no python3"
	fi
done

# a what-if: the written snapshot is the recording of a run that never took place
"$VRAMCAST" export traces/lm-train-ctx128.vct --to pickle -o "$TMP/e.pickle" --conf expandable_segments:True
run info "$TMP/e.pickle"
expect "a what-if under other settings replays exactly" 0 'reproduces this recording exactly'
run sim "$TMP/e.pickle" --no-verify --json
want=$("$VRAMCAST" sim traces/lm-train-ctx128.vct --no-verify --conf expandable_segments:True --json | grep '"peak_reserved"')
expect "and has the peak that was predicted" 0 "$(printf '%s' "$want" | sed 's/^ *//;s/,$//')"
"$VRAMCAST" export traces/decomfl.vct --to pickle -o "$TMP/o.pickle" --capacity 1GiB
run info "$TMP/o.pickle" --json
expect "a run that dies has its out-of-memory event" 0 '"ooms": 1'
"$VRAMCAST" export traces/decomfl.vct --to pickle:events=1000 -o "$TMP/c.pickle"
run info "$TMP/c.pickle"
expect "cut to its last events it still replays exactly" 0 'reproduces this recording exactly'
expect "and says that it was cut" 0 'ring buffer overflowed'
run sim traces/decomfl.vct --conf '' --conf expandable_segments:True -o "$TMP/two.pickle"
expect "two runs of one device do not fit into one snapshot" 2 '' 'one run of a device'
check "and nothing was written" sh -c "! test -e '$TMP/two.pickle'"
run export traces/attention.vct --to pickle -o - -m direct
expect "other models are written too" 0

# How far a segment can still grow decides between two free blocks: 500 MiB that can become 1100 (the range
# ends at 9/8 of the device) against 1100 that can become 1500. A snapshot does not tell the device's size.
{
	printf 'vramcast-golden 1\nname t\nabout t\nversions 2.0.1 2.15.0\ntotal 8197111808\nother 0\nva inc\nevents auto\n'
	echo "conf expandable_segments:True"
	mib=1048576
	printf 'm %s %s 0\n' 1 $((1500 * mib)) 2 $((6200 * mib))
	printf '%s\n' 'f 1' e
	printf 'm %s %s 0\n' 3 $((1100 * mib)) 4 $((500 * mib))
	printf '%s\n' 'f 3' 'f 4' "m 5 $((480 * mib)) 0"
} > "$TMP/grow.ops"
"$VRAMCAST" export "$TMP/grow.ops" --to pickle -o "$TMP/g.pickle" -g rtx3070 --context 0 --torch 2.9 --conf expandable_segments:True
run sim "$TMP/g.pickle" --torch 2.9
expect "a snapshot whose placements depend on the size of its device: the card is found that reproduces it" 0 'reproduces this recording exactly'

viz=${MEMORY_VIZ:-$("${PACKED:-$PY}" -c 'import torch.cuda._memory_viz as m; print(m.__file__)' 2> /dev/null)}
if [ "$has_python" ] && [ -f "$viz" ]; then
	"$VRAMCAST" export traces/decomfl.vct --to pickle:category=lifetime -o "$TMP/v.pickle"
	for what in trace_plot segment_plot; do
		check "torch.cuda._memory_viz $what takes it" "$PY" "$viz" $what "$TMP/v.pickle" -o "$TMP/v.html"
	done
	for what in stats trace; do
		check "torch.cuda._memory_viz $what takes it" "$PY" "$viz" $what "$TMP/v.pickle"
	done
else
	skip "torch.cuda._memory_viz takes it" "no torch, and MEMORY_VIZ names no copy of _memory_viz.py"
fi

# settings of a PyTorch to come: names of the same length take the place of those that are known
"$VRAMCAST" export traces/attention.vct --to pickle -o "$TMP/known.pickle" \
	--conf 'max_split_size_mb:100000,roundup_power2_divisions:[256:1,>:2],garbage_collection_threshold:0.5'
LC_ALL=C sed 's/roundup_power2_divisions/roundup_power3_divisions/;s/garbage_collection_threshold/garbage_collector_threshold_/' \
	"$TMP/known.pickle" > "$TMP/later.pickle"
run sim "$TMP/later.pickle" --no-advice
expect "a recorded setting that is not known is named and left out" 0 'setting "roundup_power3_divisions:\[256:1,>:2\]", which PyTorch is not known to have: it is ignored'
expect "each of them, and only those" 0 'settings +max_split_size_mb:100000$'
run sim "$TMP/later.pickle" --conf max_split_size_mb:100000,garbage_collector_threshold_:0.5
expect "asked for by the user it is refused" 2 '' "refuses the settings .*garbage_collector_threshold_"
"$VRAMCAST" export traces/attention.vct --to pickle -o "$TMP/own.pickle" --torch 2.13 --conf pinned_max_cached_size_mb:64
run sim "$TMP/own.pickle" --torch 2.13 --json
expect "a setting of 2.13 about the host's memory is read" 0 '"conf": "pinned_max_cached_size_mb:64"'
finish
