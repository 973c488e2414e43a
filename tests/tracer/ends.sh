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

# thrown NAME CODE COMMAND-WITH-CHILD PROGRAM...: the same for an exception that nobody catches
thrown() {
	name=$1; code=$2; in_child=$3; shift 3
	rm -f "$TMP"/*.vct
	run record -q -o "$TMP/a.vct" -- "$@"
	equal "$name: the exit code, and 1500 events survive" "$rc $(field "$TMP/a.vct" events) $(field "$TMP/a.vct" complete)" "$code 1500 true"
	rm -f "$TMP"/*.vct
	run record -q -o "$TMP/a.vct" -- $in_child
	equal "$name in a forked child: both traces" "$rc $(field "$TMP/a.vct" events) $(field "$(ls "$TMP"/a.*.vct 2> /dev/null)" events)" "$code 10 1500"
}
if own "${CXX:-c++}" && ${CXX:-c++} -o "$TMP/thrown" tests/tracer/thrown.cc "$bin/libc10.so" 2> "$TMP/log"; then
	thrown "an exception of C++" 134 "$TMP/thrown -c 1000" "$TMP/thrown" 1000
else
	skip "an exception of C++" "no C++ compiler"
fi
if own python3; then
	thrown "an exception of Python" 1 "python3 tests/tracer/thrown.py $bin/libc10.so 1000 child" \
		python3 tests/tracer/thrown.py "$bin/libc10.so" 1000
else
	skip "an exception of Python" "no python3"
fi

# From outside, as a scheduler does: to the recorder, which hands it on.
rm -f "$TMP"/*.vct
"$VRAMCAST" record -q -o "$TMP/a.vct" -- "$bin/victim" "wait:$TMP/ready" 1000 &
recorder=$!
for i in $(seq 200); do [ -e "$TMP/ready" ] && break; sleep 0.05; done
kill -TERM "$recorder"; wait "$recorder"; rc=$?
equal "SIGTERM to the recorder: the program gets it, 1500 events survive" "$rc $(field "$TMP/a.vct" events) $(field "$TMP/a.vct" complete)" "143 1500 true"

rm -f "$TMP"/*.vct
run record -q -o "$TMP/a.vct" -- "$bin/victim" exec 1000
equal "exec: the first image's events" "$(field "$TMP/a.vct" events)" 1500
equal "exec: the second image has a trace of its own" "$(field "$(ls "$TMP"/a.*.vct)" events)" 1500

rm -f "$TMP"/*.vct
VRAMCAST_NULL_CLOCK=device run record -q -o "$TMP/a.vct" -- \
	sh -c 'LD_PRELOAD="$1:$LD_PRELOAD" exec "$2" exec 1000' sh "$PWD/$bin/still_clock.so" "$bin/victim"
equal "exec at the same moment of a null GPU's clock: two traces" \
	"$(field "$TMP/a.vct" events) $(field "$(ls "$TMP"/a.*.vct)" events)" "1500 1500"

run record -q -o "$TMP/t.vct" -- "$bin/victim" threads 1000
equal "600 threads, one after another: no event is lost" "$(field "$TMP/t.vct" events)" 10500
equal "600 threads: none dropped" "$(field "$TMP/t.vct" dropped)" 0
equal "nothing is left behind" "$(ls -d "$TMP"/*.journal "$TMP"/*.part 2> /dev/null)" ""
finish
