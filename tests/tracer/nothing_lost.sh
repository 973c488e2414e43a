#!/bin/sh
# nothing_lost.sh - many processes, many names, little room: all events, or a counted and printed loss. LONG=1: 3,000 forks
# with 1,024 descriptors and a million names.
. tests/tracer/lib.sh
export LD_LIBRARY_PATH="$bin"
traces() { ls "$TMP"/"$1"*.vct 2> /dev/null | wc -l | tr -d ' '; }
clean() { rm -rf "$TMP"/f.*; }
# How many events the recorder says are lost.
told() { echo "$err" | sed -n 's/.* events, \([0-9]*\) dropped.*/\1/p; s/^ *\([0-9]*\) more events are lost.*/\1/p; s/^ *\([0-9]*\) frees of memory whose.*/\1/p; s/.*at least \([0-9]*\) events of theirs.*/\1/p' | awk '{ n += $1 } END { print n + 0 }'; }

: "${forks:=${LONG:+3000}}" "${descriptors:=${LONG:+1024}}" "${names:=${LONG:+1000000}}"
: "${forks:=600}" "${descriptors:=64}" "${names:=150000}"
( ulimit -n "$descriptors"; exec "$VRAMCAST" record -q -o "$TMP/f.vct" -- "$bin/forks" "$forks" 20 ) > /dev/null 2> "$TMP/err"; rc=$?
equal "$forks short forks with $descriptors descriptors: each has its recording" "$rc $(traces f)" "0 $forks"
equal "$forks short forks: nothing is left unread" "$(ls -d "$TMP/f.vct.journal" 2> /dev/null)" ""
clean
( ulimit -Sn 64; exec "$VRAMCAST" record -q -o "$TMP/f.vct" -- sh -c "ulimit -Sn 1024; exec '$bin/forks' 200 20 live" ) > /dev/null 2> "$TMP/err"; rc=$?
equal "200 processes at the same time and a recorder with 64 descriptors" "$rc $(traces f)" "0 200"
sum=0
for f in "$TMP"/f*.vct; do sum=$((sum + $(field "$f" events))); done
equal "and all of their events" "$sum" 4000
clean

run record -q -o "$TMP/f.vct" -- "$bin/forks" -n "$names"
equal "$names different names, each of them twice: all have their names" "$("$VRAMCAST" dump "$TMP/f.vct" | grep -c 'label=a mark of a name of its own')" $((2 * names))
clean

run record -q -o "$TMP/f.vct" -- sh -c 'exit 7'
expect "-q says that nothing was recorded" 7 "" "nothing was recorded"

long=$TMP
for i in 1 2 3; do long=$long/$(printf 'd%.0s' $(seq 200)); done
mkdir -p "$long"
run record -q -o "$long/p.vct" -- "$bin/victim" return 1000
equal "a journal whose path is above 512 bytes" "$rc $(field "$long/p.vct" events)" "2 1500"

# A recorder that was killed before the first record: the journal has no name for its trace yet.
mkdir "$TMP/f.vct.journal"
: > "$TMP/f.ready"; rm "$TMP/f.ready"
VC_DIR=$TMP/f.vct.journal VC_OPTIONS=device=cpu LD_PRELOAD=$PWD/${BUILD:-build}/libvramcast_trace.so "$bin/victim" return 1000
head -c 4096 /dev/zero > "$TMP/f.vct.journal/lost"
sh -c "ulimit -f 100; VC_DIR=$TMP/f.vct.journal VC_OPTIONS=device=cpu LD_PRELOAD=$PWD/${BUILD:-build}/libvramcast_trace.so exec '$bin/victim' return 1000"
size=$(du -sk "$TMP/f.vct.journal" | cut -f 1)
[ "$size" -lt 2048 ] && pass "a journal is as large as what it holds: less than 2 MiB for 1500 events" || fail "a journal is as large as what it holds" "$size KiB"
run recover "$TMP/f.vct.journal"
expect "recover writes beside the folder of the journal, and says what had no room for one" 0 "$TMP/f.vct: 1500 events" "1 processes more were not recorded"
equal "and nothing is left in it" "$(ls -d "$TMP/f.vct.journal" 2> /dev/null)" ""
clean

if mkdir "$TMP/small" && mount -t tmpfs -o size=8m none "$TMP/small" 2> /dev/null; then
	run record -o "$TMP/small/f.vct" -- sh -c "for i in 1 2 3 4 5 6 7 8; do '$bin/burst' 1 20000 2 & done; wait"
	n=0; sum=0
	for f in "$TMP"/small/f*.vct; do n=$((n + 1)); some=$(field "$f" events); sum=$((sum + ${some:-0})); done
	equal "8 processes in 8 MiB: all events are there, or said to be lost" "$rc $n $((sum + $(told)))" "0 8 320000"
	dd if=/dev/zero of="$TMP/small/fill" bs=1k count=$(($(df -k "$TMP/small" | awk 'END { print $4 }') - 400)) 2> /dev/null
	run record -q -o "$TMP/small/g.vct" -- sh -c "for i in 1 2 3 4 5 6 7 8; do '$bin/burst' 1 2000 1 & done; wait"
	expect "of 8 processes some find no room: how many is said, with -q too" 125 "" "vramcast: [1-7] processes were not recorded .* no room for their journals"
	told=$(sed -n 's/vramcast: \([0-9]*\) process.* not recorded.*/\1/p' "$TMP/err")
	got=$(ls "$TMP"/small/g*.vct | wc -l | tr -d ' ')
	equal "those that are recorded and those that are not: 8" "$((got + ${told:-0}))" 8
	umount "$TMP/small"
	while read -r size what; do
		mount -t tmpfs -o "size=$size" none "$TMP/small"
		run record -o "$TMP/small/f.vct" -- sh -c "for i in 1 2 3 4 5 6 7 8; do '$bin/burst' 2 5000000 0.1 & done; wait"
		made=$(echo "$out" | awk '/^events/ { n += $2 } END { print n + 0 }'); kept=0; n=0
		told=$(told)
		for f in "$TMP"/small/f*.vct; do
			n=$((n + 1)); some=$(field "$f" events); kept=$((kept + ${some:-0})) # none where the disk was full before
		done
		none=$(echo "$err" | sed -n 's/vramcast: \([0-9]*\) process.* not recorded.*/\1/p')
		if [ "$((n + ${none:-0}))" = 8 ] && [ "$((kept + told))" -ge "$made" ] && [ "$made" -gt 3000000 ]; then pass "$what: $made events of 8 processes, of which $told are told to be lost"
		else fail "$what: all events or a printed loss" "$n traces, made $made, kept $kept, told $told" "$err"; fi
		umount "$TMP/small"
	done <<- 'LIST'
		20m a file system of 20 MiB
		64m 64 MiB of shared memory
	LIST
else
	skip "a small file system" "no right to mount one here"
fi
finish
