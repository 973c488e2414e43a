#!/bin/sh
# cupti_records.sh - the kernel and physical planes against a scripted CUPTI of several versions.
. tests/tracer/lib.sh
export VC_CUPTI="$PWD/$bin/libcupti_standin.so"
count() { "$VRAMCAST" dump "$TMP/a.vct" | grep -cE "$1"; }

for version in 14 18 23 28 130001; do
	STANDIN_CUPTI=$version run record -o "$TMP/a.vct" -- "$bin/cupti_client"
	expect "CUPTI API $version: recorded" 0 "" "recorded: .*kernels, copies"
	equal "API $version: every kernel, whichever order" "$(count ' kernel .*(one|two)<')" 20000
	equal "API $version: half of them on the other stream" "$(count " kernel .* stream=$((0xabc08)) ")" 10000
	equal "API $version: copies and fills" "$(count ' copy .*(memcpy HtoD|memset)')" 2
	equal "API $version: an allocation seen in two contexts counts once" "$(count ' outside_alloc .*device memory')" 100
	equal "API $version: frees" "$(count ' outside_free .*device memory')" 50
	equal "API $version: pinned host memory" "$(count ' outside_alloc .*pinned host memory')" 1
	equal "API $version: mappings that succeeded" "$(count ' outside_(alloc|free) .*mapped memory')" 2
	equal "API $version: a refused allocation is marked" "$(count ' mark .*12345678 bytes refused')" 1
	equal "API $version: lost and untimed records are counted" "$(field "$TMP/a.vct" dropped)" 14
done
run record -q -o "$TMP/a.vct" -- "$bin/cupti_client" _exit
equal "_exit fetches what CUPTI still holds" "$(count ' kernel .*(one|two)<')" 20000
run record -q -o "$TMP/a.vct" -- "$bin/cupti_client" abort
equal "abort fetches what CUPTI still holds" "$rc $(count ' kernel .*(one|two)<')" "134 20000"
STANDIN_BUSY=1 run record -o "$TMP/a.vct" -- "$bin/cupti_client"
expect "another tool holds CUPTI: the program runs, record says why" 0 "" "another profiler holds CUPTI"
STANDIN_REFUSE=10 run record -o "$TMP/a.vct" -- "$bin/cupti_client"
expect "a kind that is refused: that capability is off" 0 "" "failed: kernels"
equal "a kind that is refused: the others go on" "$(count ' copy ')" 2
VC_CUPTI=$PWD/$bin/libc10.so run record -o "$TMP/a.vct" -- "$bin/cupti_client"
expect "a library that is no CUPTI" 0 "" "lacks a function"
finish
