#!/bin/sh
# flight_ranks.sh - eight ranks for long: the ring of each stays within its size, and what is sealed when one of them runs
# out of memory replays exactly. STEPS=1000000 is the real thing; PACE: steps between two rests of a millisecond.
. tests/tracer/lib.sh
cp -r "$bin/torch" "$TMP/torch"
printf "__version__ = '2.9.0+cu000'\n" > "$TMP/torch/version.py"
steps=${STEPS:-40000}; ranks=8; ring=$((1 << 20))
export STANDIN_TORCH=9 STANDIN_DEVICE=$((64 << 30)) WORLD_SIZE=$ranks
"$VRAMCAST" record -q -o "$TMP/r.vct" --keep "$ring" -- sh -c "r=0; while [ \$r -lt $ranks ]; do RANK=\$r '$TMP/torch/lib/rank' $steps ${PACE:-100} '$TMP' & r=\$((r + 1)); done; wait" > "$TMP/out" 2> "$TMP/err" &
recorder=$!; most=0; looks=0
while kill -0 "$recorder" 2> /dev/null; do
	for f in "$TMP"/r.vct*.journal/*.vcj; do
		now=$(cat "${f%.vcj}"*.ring 2> /dev/null | wc -c); [ "$now" -gt "$most" ] && most=$now
		looks=$((looks + 1))
	done
	sleep "${LOOK:-0.05}"
done
wait "$recorder"; rc=$?
# With ARCH the shell in between is of this machine, and says that our library is not.
equal "8 ranks of $steps steps are recorded, none is refused but at the end" "$rc $(cat "$TMP/out" "$TMP/err" | grep -v 'from LD_PRELOAD cannot be preloaded')" "0 "
[ "$most" -gt 0 ] && [ "$most" -le "$ring" ] && pass "no ring is ever larger than $ring bytes: $most at most in $looks looks" || fail "no ring is ever larger than $ring bytes" "$most"
exact=; ends=; lost=0; seen=0
for r in $(seq 0 $((ranks - 1))); do
	f=$TMP/r.rank$r.oom.vct
	got=$("$VRAMCAST" sim --json "$f" | tr -d ' \n')
	case $got in *'"exact":true'*'"start":"warm"'* | *'"start":"warm"'*'"exact":true'*) ;; *) exact="$exact $r" ;; esac
	seen=$((seen + $(field "$f" events)))
	lost=$((lost + $(field "$f" dropped) + $(field "$f" unmatched_frees)))
	[ "$r" != 3 ] || ends=$("$VRAMCAST" dump "$f" | tail -n 1 | awk '{ print $3 }')
done
equal "the sealed recordings of all ranks, $seen events, begin warm and replay exactly: other ones" "$exact" ""
equal "nothing is dropped, and the refusal is the last event of its rank" "$lost $ends" "0 oom"
finish
