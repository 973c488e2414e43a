#!/bin/sh
# command.sh - record as a command: exit codes, names, messages, environment.
. tests/tracer/lib.sh

run record -o "$TMP/a.vct" -- sh -c 'exit 7'
expect "the exit code passes through" 7 "" "nothing was recorded"
run record -q -o "$TMP/a.vct" -- sh -c 'kill -USR1 $$'
expect "128 + n for a signal" 138
run record -o "$TMP/a.vct" -- "$TMP/not-there"
expect "127 when there is no such program" 127 "" "cannot run"
: > "$TMP/plain"
run record -o "$TMP/a.vct" -- "$TMP/plain"
expect "126 when it cannot be executed" 126 "" "cannot run"
run record -o "$TMP/no/such/folder/a.vct" -- true
expect "125 when the recording cannot be made" 125 "" "cannot write .*/no/such/folder/a.vct"
run record
expect "no program: usage" 2 "" "which program"
run record --param batch -- true
expect "--param needs a value" 2 "" "NAME=VALUE"
run record --stacks sometimes -- true
expect "--stacks takes four words" 2 "" "off, py, py:N"
run record --stacks py:0 -- true
expect "--stacks py:N takes a number of steps" 2 "" "off, py, py:N"
run record -q -o "$TMP/a.vct" -- sh -c 'echo out; echo err >&2'
expect "the program's own output is untouched" 0 "^out$" "^err$"
LD_PRELOAD= run record -q -o "$TMP/a.vct" -- sh -c 'echo $LD_PRELOAD'
expect "one library is preloaded" 0 "^[^:]*libvramcast_trace.so$"
equal "no trace of nothing" "$(ls "$TMP"/*.vct "$TMP"/*.journal 2> /dev/null)" ""

export LD_LIBRARY_PATH="$bin"
run record -o "$TMP/a.vct" --param batch=8 --param seq=512 -- "$bin/victim" return 1000
expect "the summary: file, events, dropped" 2 "" "a.vct: 1500 events, 0 dropped"
expect "the summary: peak" 2 "" "peak allocated"
expect "the summary: what was recorded" 2 "" "recorded: requests, addresses, times, start_heap"
expect "the summary: the next command" 2 "" "next: vramcast sim .*a.vct"
run info "$TMP/a.vct"
expect "memory of the host is held against PyTorch's CPU allocator" 0 'recording of host memory: .*Reproduced exactly: 1500 events'
run sim "$TMP/a.vct"
expect "by whose rules it is replayed" 0 'level +exact'
run sim "$TMP/a.vct" -g l4
expect "a card has another allocator" 0 'level +allocator only'
run info --json "$TMP/a.vct"
expect "parameters are in the trace" 0 '"batch": *8'
expect "the trace is complete" 0 '"complete": *true'
RANK=3 LOCAL_RANK=1 WORLD_SIZE=4 run record -q -o "$TMP/r.vct" -- "$bin/victim" return 10
[ -e "$TMP/r.rank3.vct" ] && pass "a rank's trace carries its number" || fail "a rank's trace carries its number" "$(ls "$TMP")"
run record -q -o "$TMP/c.vct" --device cuda -- "$bin/victim" return 10
[ -e "$TMP/c.vct" ] && fail "--device cuda leaves the CPU heap alone" || pass "--device cuda leaves the CPU heap alone"
run record -q -o "$TMP/n.vct" --stacks native -- "$bin/victim" return 10
equal "--stacks native: every allocation says where it came from" "$("$VRAMCAST" dump "$TMP/n.vct" | grep -c ' alloc .* at=.*victim')" 10
if own python3 && python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))'; then
	printf 'import ctypes\nlib = ctypes.PyDLL(None)\nf = lib._ZN3c109alloc_cpuEm\nf.restype = ctypes.c_void_p\ndef forward():\n    return f(64)\nforward()\n' > "$TMP/p.py"
	LD_PRELOAD="$PWD/$bin/libc10.so" run record -q -o "$TMP/p.vct" --stacks py -- python3 "$TMP/p.py"
	run dump "$TMP/p.vct"
	expect "--stacks py: the line of Python that allocated" 0 'alloc .* at=.*p.py:6:forward'
	run info "$TMP/p.vct"; expect "info says that it is host memory" 0 'recording of host memory: PyTorch'
	run sim "$TMP/p.vct"; expect "sim says so, too" 0 'trust +a recording of host memory'
fi
sig() { "$VRAMCAST" record -q -o "$TMP/g.vct" -- "$bin/victim" "wait:$TMP/g.ready" 10 & r=$!
	for i in $(seq 100); do [ -e "$TMP/g.ready" ] && break; sleep 0.05; done
	kill -TERM $r; wait $r; rc=$?; }
sig
equal "SIGTERM to record ends the program and keeps the trace" "$rc $(field "$TMP/g.vct" events)" "143 15"
finish
