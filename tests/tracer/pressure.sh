#!/bin/sh
# pressure.sh - bursts, a recorder that stands still, a limit of size, a full disk.
. tests/tracer/lib.sh
export LD_LIBRARY_PATH="$bin"

# Fewer than the recorder can take (make bench measures that), more than any training run makes.
run record -q -o "$TMP/b.vct" -- "$bin/burst" 4 400000 1
equal "400 000 events in a second from 4 threads: all there" "$(field "$TMP/b.vct" events)" 400000
equal "400 000 events in a second from 4 threads: 0 dropped" "$(field "$TMP/b.vct" dropped)" 0

# stopped FILE BURST-ARGUMENTS...: a recorder that gets no processor until the burst is over
stopped() {
	file=$1; shift
	rm -f "$TMP/s.began" "$TMP/s.go" "$TMP/s.done"
	"$VRAMCAST" record -q -o "$file" -- sh -c ": > '$TMP/s.began'; until [ -e '$TMP/s.go' ]; do sleep 0.05; done
		'$bin/burst' $* > '$TMP/s.out'; : > '$TMP/s.done'; sleep 0.3" &
	recorder=$!
	for i in $(seq 600); do [ -e "$TMP/s.began" ] && break; sleep 0.05; done
	kill -STOP "$recorder"; : > "$TMP/s.go"
	for i in $(seq 1200); do [ -e "$TMP/s.done" ] && break; sleep 0.05; done
	kill -CONT "$recorder"
	wait "$recorder"
	made=$(sed -n 's/events \([0-9]*\) .*/\1/p' "$TMP/s.out")
	kept=$(field "$file" events); lost=$(field "$file" dropped)
}

# However late the recorder comes: the program's threads go on in further rings of the journal.
stopped "$TMP/f.vct" 4 2000000 1
equal "2 000 000 events in a second from 4 threads, the recorder stands still: all there, 0 dropped" "$made $kept $lost" "2000000 2000000 0"
bare=$(LD_LIBRARY_PATH=$bin "$bin/burst" 4 2000000 1 | sed 's/.*kib //')
grown=$(($(sed 's/.*kib //' "$TMP/s.out") - bare))
[ "$grown" -lt 65536 ] && pass "and the program's resident memory grows by less than 64 MiB" || fail "and the program's resident memory grows by less than 64 MiB" "$grown KiB"

run record -q -o "$TMP/w.vct" -- "$bin/burst" 24 1200000 2
grown=$((${out##*kib } - bare))
equal "24 threads: all there" "$(field "$TMP/w.vct" events) $(field "$TMP/w.vct" dropped)" "2400000 0"
[ "$grown" -lt 65536 ] && pass "24 threads: less than 64 MiB too" || fail "24 threads: less than 64 MiB too" "$grown KiB"

stopped "$TMP/s.vct" 1 5500000 1
if [ "$lost" -gt 0 ]; then pass "a journal that is full drops and does not block"; else fail "a journal that is full drops and does not block" "kept $kept lost $lost"; fi
left=$("$VRAMCAST" info --json "$TMP/s.vct" | tr ',' '\n' | sed -n 's/.*"unmatched_frees": *\([0-9]*\).*/\1/p' | head -n 1)
[ "$((kept + lost + ${left:-0}))" -ge "$made" ] && pass "every event is either in the trace or counted" ||
	fail "every event is either in the trace or counted" "made $made kept $kept lost $lost left $left"

run record -o "$TMP/m.vct" --max-size 64K -- "$bin/burst" 1 1000000 1
expect "--max-size stops the recording, not the program" 0 "events 1000000" "stopped early: the trace reached --max-size"
equal "a recording that stopped early has one hole, a whole one none" "$(field "$TMP/m.vct" gaps) $(field "$TMP/w.vct" gaps)" "1 0"
[ "$(stat -c %s "$TMP/m.vct")" -lt 1000000 ] && pass "the trace stays near the limit" || fail "the trace stays near the limit"

# A process that outlives the program and never rests: the recorder gives it its three seconds.
began=$(date +%s)
run record -o "$TMP/l.vct" --max-size 64K -- "$bin/victim" "leave:$TMP/l.enough" 1000
: > "$TMP/l.enough"
expect "a process left behind does not keep the recorder" 2 "" "l.*vct: .*"
took=$(($(date +%s) - began))
[ "$took" -lt 20 ] && pass "it ended before that process did" || fail "it ended before that process did" "after $took s"
equal "the program's own trace is whole" "$(field "$TMP/l.vct" events) $(field "$TMP/l.vct" dropped)" "1500 0"
expect "the other one's trace says that it was still running" 2 "" "stopped early: the process was still running|stopped early: the trace reached"

env --ignore-signal=CHLD "$VRAMCAST" record -q -o "$TMP/c.vct" -- "$bin/victim" exit 1000; rc=$?
equal "the exit code, where whoever started us ignores the end of children" "$rc" 3

# A limit on file sizes ends whoever goes beyond it: neither the program nor the recorder.
for blocks in 200 1000; do # of 512 bytes: no journal at all, one small ring for each thread
	out=$(sh -c "ulimit -f $blocks; exec '$VRAMCAST' record -q -o '$TMP/u.vct' -- '$bin/burst' 2 100000 1" 2> "$TMP/err"); rc=$?
	equal "ulimit -f $blocks: the program runs to its end" "$(echo "$out" | cut -d ' ' -f 2)" "100000"
	[ "$blocks" = 1000 ] && continue
	grep -q '1 process was not recorded .* the limit on file sizes (ulimit -f) is too small' "$TMP/err" && pass "ulimit -f: record says why there is nothing" || fail "ulimit -f: record says why there is nothing" "$(cat "$TMP/err")"
	equal "and its exit code says that recording failed" "$rc" 125
done
equal "ulimit -f: what has no room in the journal is counted" "$(($(field "$TMP/u.vct" events) + $(field "$TMP/u.vct" dropped) + $(field "$TMP/u.vct" unmatched_frees)))" 100000

if mkdir "$TMP/small" && mount -t tmpfs -o size=400k none "$TMP/small" 2> /dev/null; then
	dd if=/dev/zero of="$TMP/small/fill" bs=1k count=300 2> /dev/null
	run record -o "$TMP/small/f.vct" -- "$bin/burst" 1 100000 1
	expect "a disk too small for a journal: the program runs on" 125 "events 100000" "1 process was not recorded .* no room for their journals in .* which need 1[0-9]*\.[0-9]* KiB each; .* is free now"
	umount "$TMP/small"
	mount -t tmpfs -o size=2m none "$TMP/small"
	dd if=/dev/zero of="$TMP/small/fill" bs=1k count=1800 2> /dev/null
	run record -o "$TMP/small/f.vct" -- "$bin/burst" 1 750000 4
	expect "a disk that fills up: the program runs on, record says so" 0 "events 3000000" "disk is full"
	run info "$TMP/small/f.vct"
	expect "what was written before is readable" 0 "."
	umount "$TMP/small"
	mount -t tmpfs -o size=2m none "$TMP/small"
	dd if=/dev/zero of="$TMP/small/fill" bs=1k count=1600 2> /dev/null
	run record -o "$TMP/small/k.vct" --keep 10m -- "$bin/burst" 1 400000 1
	expect "a disk too small for a ring: the program runs on, record says that it has nothing" 125 "events 400000" "nothing of process [0-9]* could be written: the disk is full"
	check "no empty file is left" test ! -e "$TMP/small/k.vct"
	umount "$TMP/small"
else
	skip "a disk that fills up" "no right to mount a small one here"
fi
finish
