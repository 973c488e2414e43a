#!/bin/sh
# cupti_shared.sh - a profiler in the recorded program and the tracer use CUPTI at the same time: the
# profiler gets what it gets alone, the recording has everything.
. tests/tracer/lib.sh
export VC_CUPTI="$PWD/$bin/libcupti_standin.so"

for how in late early finalize held; do
	alone=$("$bin/cupti_profiler" "$how")
	run record -o "$TMP/a.vct" -- "$bin/cupti_profiler" "$how"
	equal "$how: the profiler gets what it gets alone" "$out" "$alone"
	expect "$how: recorded" 0 "kernels 40000 copies 2 others 0" "recorded: .*kernels, copies"
	"$VRAMCAST" dump "$TMP/a.vct" > "$TMP/dump"
	equal "$how: the recording has every kernel before, during and after" "$(grep -c 'label=before' "$TMP/dump") $(grep -c 'label=profiled' "$TMP/dump") $(grep -c 'label=after' "$TMP/dump")" "3000 40000 3000"
	equal "$how: and what the profiler did not ask for" "$(grep -c ' outside_alloc .*device memory' "$TMP/dump") $(grep -c ' outside_alloc .*mapped memory' "$TMP/dump")" "1 2"
	wrong=$(awk '/label=profile begins/ { if (!from) from = $2 } /label=profile ends/ { to = $2 }
		/label=profiled/ { if (!min || $2 < min) min = $2; if ($2 > max) max = $2 }
		END { if (min < from - 1000000 || max > to + 1000000) print from, min, max, to }' "$TMP/dump")
	equal "$how: kernels stamped by the profiler's clock lie in the time of its profile" "$wrong" ""
	equal "$how: they last as long as they did" "$(awk '/label=profiled/ { split($0, a, "size="); split(a[2], b, " "); if (b[1] < 360 || b[1] > 380) n++ } END { print n + 0 }' "$TMP/dump")" 0
	equal "$how: records CUPTI lost are counted" "$(field "$TMP/a.vct" dropped)" 6
done
run record -q -o "$TMP/c.vct" --device cpu -- "$bin/cupti_profiler" late
equal "of the host's memory alone: CUPTI is left to the profiler" "$rc $out $("$VRAMCAST" dump "$TMP/c.vct" | grep -c ' kernel ')" "0 $("$bin/cupti_profiler" late) 0"
finish
