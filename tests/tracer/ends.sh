#!/bin/sh
# ends.sh - the kill matrix: whichever way a process ends, every event it recorded is in its trace.
. tests/tracer/lib.sh
export LD_LIBRARY_PATH="$bin"

for way in return:2 exit:3 _exit:4 _Exit:5 quick_exit:6 abort:134 term:143 segv:139 kill:137; do
	how=${way%:*}
	rm -f "$TMP"/*.vct
	run record -q -o "$TMP/a.vct" -- "$bin/victim" "$how" 1000
	equal "$how: the exit code passes through" "$rc" "${way#*:}"
	equal "$how: 1000 allocations and 500 frees survive" "$(field "$TMP/a.vct" events)" 1500
	equal "$how: the trace is complete" "$(field "$TMP/a.vct" complete)" true
	rm -f "$TMP"/*.vct
	run record -q -o "$TMP/a.vct" -- "$bin/victim" -c "$how" 1000
	equal "$how in a forked child: the parent's events" "$(field "$TMP/a.vct" events)" 20
	child=$(ls "$TMP"/a.*.vct 2> /dev/null)
	equal "$how in a forked child: the child's events" "$(field "$child" events)" 1500
done

rm -f "$TMP"/*.vct
run record -q -o "$TMP/a.vct" -- "$bin/victim" exec 1000
equal "exec: the first image's events" "$(field "$TMP/a.vct" events)" 1500
equal "exec: the second image has a trace of its own" "$(field "$(ls "$TMP"/a.*.vct)" events)" 1500

run record -q -o "$TMP/t.vct" -- "$bin/victim" threads 1000
equal "600 threads, one after another: no event is lost" "$(field "$TMP/t.vct" events)" 10500
equal "600 threads: none dropped" "$(field "$TMP/t.vct" dropped)" 0
equal "nothing is left behind" "$(ls -d "$TMP"/*.journal "$TMP"/*.part 2> /dev/null)" ""
finish
