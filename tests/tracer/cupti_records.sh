#!/bin/sh
# cupti_records.sh - the kernel and physical planes against a scripted CUPTI of several versions.
. tests/tracer/lib.sh
export VC_CUPTI="$PWD/$bin/libcupti_standin.so"
count() { "$VRAMCAST" dump "$TMP/a.vct" | grep -cE "$1"; }

for version in 14 15 16 18 20 22 23 24 27 28 130000 130001; do
	STANDIN_CUPTI=$version run record --launches -o "$TMP/a.vct" -- "$bin/cupti_client"
	expect "CUPTI API $version: recorded" 0 "" "recorded: .*kernels, copies"
	equal "API $version: every kernel, whichever order" "$(count ' kernel .*(one|two)<')" 20000
	equal "API $version: half of them on the other stream" "$(count " kernel .* stream=$((0xabc08)) ")" 10000
	equal "API $version: copies and fills" "$(count ' copy .*(memcpy HtoD|memset)')" 2
	equal "API $version: an allocation seen in two contexts counts once" "$(count ' outside_alloc .*device memory.*')" 105
	equal "API $version: frees" "$(count ' outside_free .*device memory')" 52
	equal "API $version: cuMemAlloc and cuMemFree once each, also where CUPTI has no record of them" "$(count ' outside_(alloc|free) .*size=3145728 addr=51000[01]000000 .*device memory')" 4
	equal "API $version: pinned host memory, also at the address of a cuMemAlloc without a record" "$(count ' outside_alloc .*pinned host memory') $(count ' outside_free .*addr=510000000000 .*pinned host memory')" "2 1"
	equal "API $version: mappings that succeeded, and no record of their pieces" "$(count ' outside_(alloc|free) .*mapped memory') $(count ' addr=520000000000 ')" "4 0"
	equal "API $version: a refused allocation is marked" "$(count ' mark .*12345678 bytes refused')" 1
	equal "API $version: a pool is made once, in two contexts, trimmed, destroyed" "$(count ' driver_pool .* flags=1$') $(count ' driver_pool .* flags=3 label=trim, keep 1234') $(count ' driver_pool .* flags=2$')" "1 1 1"
	used=$([ "$version" -ge 16 ] && echo "id=$((42 << 20)) " || echo ""); grown=$([ "$version" -ge 16 ] && echo 2 || echo 0)
	equal "API $version: what the trimmed pool holds and uses" "$(count " driver_pool device=0 ${used}size=$((48 << 20)) addr=900000000000 flags=3")" 1
	equal "API $version: the pool grows with allocations (from 11.6 on)" "$(count ' driver_pool device=0 id=[0-9]* size=[0-9]* addr=900000000000$')" "$grown"
	equal "API $version: overheads and what they cost, the driver and us" "$(count ' overhead .*(compiler|instrumentation|buffer request)') $(field "$TMP/a.vct" overhead_ns) $(field "$TMP/a.vct" driver_ns) $(field "$TMP/a.vct" tracing_ns)" "3 10000 5000 5000"
	equal "API $version: launches (from 12.5 on)" "$(count ' launch device=0 id=5 size=')" "$([ "$version" -ge 23 ] && echo 1 || echo 0)"
	equal "API $version: lost and untimed records are counted" "$(field "$TMP/a.vct" dropped)" 14
done
run record -q -o "$TMP/a.vct" -- "$bin/cupti_client" _exit
equal "_exit fetches what CUPTI still holds" "$(count ' kernel .*(one|two)<')" 20000
run record -q -o "$TMP/a.vct" -- "$bin/cupti_client" abort
equal "abort fetches what CUPTI still holds" "$rc $(count ' kernel .*(one|two)<')" "134 20000"
equal "info sums the pools up" "$(field "$TMP/a.vct" driver_pools) $(field "$TMP/a.vct" driver_pool_reserved)" "1 $((64 << 20))"
for version in 24 130001; do # before 12.9 a refusal would be CUPTI's end: the stand-in aborts too
	STANDIN_CUPTI=$version run record -o "$TMP/a.vct" -- "$bin/cupti_client" starve
	many=$(count ' kernel .*label=many'); lost=$(field "$TMP/a.vct" dropped)
	equal "API $version, no buffer comes back: each kernel is recorded or counted, and those after it are there" "$rc $((many + lost)) $(count ' kernel .*label=after')" "0 300000 1000"
	if [ "$version" -lt 27 ]; then equal "API $version, no buffer comes back: it gets as many as it wants" "$lost" 0
	else expect "API $version, no buffer comes back: 40 MiB and no more, and record says so" 0 "" "kernel times are missing: CUPTI held 40 MiB"; [ "$lost" -gt 0 ] && [ "$many" -gt 190000 ] && pass "API $version: the others are lost" || fail "API $version: the others are lost" "$many $lost"; fi
done
STANDIN_SUBSCRIBE=39 run record -o "$TMP/a.vct" -- "$bin/cupti_client"
expect "another tool holds CUPTI: the program runs, record says why" 0 "" "another profiler holds CUPTI"
STANDIN_SUBSCRIBE=999 run record -o "$TMP/a.vct" -- "$bin/cupti_client"
expect "no driver: the program runs, record says why" 0 "" "no kernel times: cuptiSubscribe answered 999"
equal "it is said once" "$(echo "$err" | grep -c 'answered 999')" 1
STANDIN_REFUSE=10 run record -o "$TMP/a.vct" -- "$bin/cupti_client"
expect "a kind that is refused: that capability is off" 0 "" "failed: kernels"
equal "a kind that is refused: the trace says so" "$("$VRAMCAST" info --json "$TMP/a.vct" | grep -c '"kernels": *"failed"')" 1
equal "a kind that is refused: the others go on" "$(count ' copy ')" 2
STANDIN_REGISTER=7 run record -o "$TMP/a.vct" -- "$bin/cupti_client"
expect "no buffers are taken: record says why" 0 "" "no kernel times: cuptiActivityRegisterCallbacks answered 7 \(CUPTI_SUCCESS\)$"
run record -q --graphs launch -o "$TMP/a.vct" -- "$bin/cupti_client" graphs
equal "--graphs launch: a time for each launch of a graph" "$("$VRAMCAST" dump "$TMP/a.vct" | sed -n 's/^[0-9]* [0-9]* kernel/kernel/p')" "kernel device=1 id=8 size=4000 stream=$((0xabc08)) label=CUDA graph
kernel device=1 id=8 size=1500 stream=$((0xabc08)) label=CUDA graph"
equal "... and those without a time are counted" "$(field "$TMP/a.vct" dropped)" 1
rm "$TMP/a.vct"; run record -q -o "$TMP/a.vct" -- "$bin/cupti_client" graphs
equal "they are asked for with --graphs launch alone" "$rc $(ls "$TMP/a.vct" 2> /dev/null)" "0 "
run record -o "$TMP/a.vct" -- "$bin/cupti_client" robbed
expect "CUPTI gives no buffer back: record says so" 0 "" "kernel times are missing: another client of CUPTI took its buffers over"
VC_CUPTI=$PWD/$bin/libc10.so run record -o "$TMP/a.vct" -- "$bin/cupti_client"
expect "a library that is no CUPTI" 0 "" "lacks a function"
finish
