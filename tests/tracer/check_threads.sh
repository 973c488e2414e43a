#!/bin/sh
# check_threads.sh - the tracer under ThreadSanitizer, in programs built with it too.
. tests/tracer/lib.sh
export VC_CUPTI="$PWD/$bin/libcupti_standin.so" VC_DIR="$TMP/j" TSAN_OPTIONS=exitcode=66
while read -r program; do
	rm -rf "$TMP/j"; mkdir "$TMP/j"
	# shellcheck disable=SC2086
	LD_PRELOAD=$PWD/$BUILD/libvramcast_trace.so "$bin"/$program > "$TMP/log" 2>&1
	if [ $? = 66 ] || grep -q 'ThreadSanitizer' "$TMP/log"; then fail "threads: $program" "$(cat "$TMP/log")"
	else pass "threads: $program"; fi
done << 'LIST'
victim threads 100
victim -c return 100
burst 4 20000 0.3
cupti_client
torch/lib/client 4 500
torch/lib/convolve threads
cupti_profiler late
cupti_profiler early
LIST
unset VC_DIR; mkdir "$TMP/a"
"$bin/attached" "$PWD/$BUILD/libvramcast_trace.so" "$TMP/a" 50 > "$TMP/log" 2>&1
if [ $? = 66 ] || grep -q ThreadSanitizer "$TMP/log"; then fail "threads: attached" "$(cat "$TMP/log")"
else equal "threads: joined and left 50 times" "$(tail -n 1 "$TMP/log")" 50; fi
finish
