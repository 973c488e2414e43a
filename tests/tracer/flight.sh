#!/bin/sh
# flight.sh - the flight recorder and windows: what is kept, what is sealed, a recorder that is killed.
. tests/tracer/lib.sh
export LD_LIBRARY_PATH="$bin"
# balance FILE: allocations less frees, and frees of what is not known
balance() { "$VRAMCAST" dump "$1" | awk '$3 == "alloc" { n++ } $3 == "free" { n-- } END { printf "%d ", n }'; field "$1" unmatched_frees; }

steps() { "$VRAMCAST" dump "$1" | grep -c ' mark .*label=step'; }

# A ring of the last steps: the end is there, with all that lives.
run record -o "$TMP/k.vct" --keep 16steps -- "$bin/forks" -s 200
expect "--keep: recorded" 0 "" "k.vct: [0-9]* events, 0 dropped"
equal "what is kept begins with what lives, and nothing is missing" "$(balance "$TMP/k.vct")" "200 0"
kept=$(steps "$TMP/k.vct")
[ "$kept" -ge 16 ] && [ "$kept" -le 18 ] && pass "16 steps are asked for: $kept are kept" || fail "16 steps are asked for" "$kept"
equal "nothing is left of the ring" "$(ls -d "$TMP"/*.journal 2> /dev/null)" ""
run record -q -o "$TMP/t.vct" --keep 0.05s -- "$bin/forks" -s 400
kept=$(steps "$TMP/t.vct")
[ "$kept" -gt 5 ] && [ "$kept" -lt 200 ] && pass "50 ms of more than 400 are kept" || fail "50 ms of more than 400 are kept" "$kept steps"

# A dry run keeps the same.
mkdir -p "$TMP/site/torch/lib"; : > "$TMP/site/torch/__init__.py"
export PYTHONPATH="$TMP/site"
if own python3 && ${CC:-cc} -shared -o "$TMP/site/torch/lib/libtorch_cuda.so" -x c /dev/null -Wl,--no-as-needed -L"${BUILD:-build}/nullgpu" -l:vcnull-libcudart.so.12 2> /dev/null; then
	run dryrun -q -g rtx4090 -o "$TMP/n.vct" --keep 16steps -- "$bin/forks" -s 200
	kept=$(steps "$TMP/n.vct")
	equal "dryrun --keep: begins with what lives" "$rc $(balance "$TMP/n.vct")" "0 200 0"
	[ "$kept" -ge 16 ] && [ "$kept" -le 18 ] && pass "dryrun --keep: 16 steps are asked for, $kept kept" || fail "dryrun --keep: 16 steps are asked for" "$kept"
else skip "dryrun --keep" "no compiler or no python3"; fi
for bad in "--keep 3" "--keep 1m --when x" "--on-oom dump" "--when reserved>90%" "--no-record --on-oom stop"; do
	# shellcheck disable=SC2086
	run dryrun -g rtx4090 -o "$TMP/x.vct" $bad -- touch "$TMP/x.ran"
	expect "dryrun $bad: one sentence" 2 "" "^vramcast( dryrun)?: --"
done
equal "and no program is started, nothing written" "$(ls "$TMP"/x.* 2> /dev/null)" ""
unset PYTHONPATH

# Windows.
run record -q -o "$TMP/w.vct" --steps 20..30 -- "$bin/forks" -s 50
equal "--steps 20..30: 11 steps, which begin with what 19 kept" "$rc $(steps "$TMP/w.vct") $(balance "$TMP/w.vct")" "0 11 30 0"
run record -q -o "$TMP/d.vct" --after 0.1s --duration 0.1s -- "$bin/forks" -s 400
kept=$(steps "$TMP/d.vct")
[ "$kept" -gt 5 ] && [ "$kept" -lt 120 ] && pass "--after, --duration: a part" || fail "--after, --duration: a part" "$kept steps"
run record -q -o "$TMP/p.vct" --paused -- "$bin/forks" -s 20
equal "--paused: what the program asks for, each window a trace of its own" "$(steps "$TMP/p.vct") $(balance "$TMP/p.vct") $(steps "$TMP/p.2.vct") $(balance "$TMP/p.2.vct")" "3 7 0 2 13 0"
equal "and no more than that" "$(ls "$TMP"/p.* | wc -l | tr -d ' ')" 2

# A ring of 1 MiB: never more on the disk.
"$VRAMCAST" record -q -o "$TMP/s.vct" --keep 1MiB -- "$bin/burst" 1 300000 6 > /dev/null 2>&1 &
recorder=$!; most=0
while kill -0 "$recorder" 2> /dev/null; do
	now=$(cat "$TMP"/s.vct.journal/*.ring 2> /dev/null | wc -c); [ "$now" -gt "$most" ] && most=$now
	sleep 0.1
done
wait "$recorder"
[ "$most" -gt 500000 ] && [ "$most" -le 1048576 ] && pass "a ring of 1 MiB stays within it" || fail "a ring of 1 MiB stays within it" "$most bytes"

# SIGUSR1: sealed, while the program goes on. Here it comes from the program itself, at once: the
# recorder may not have met it yet.
"$VRAMCAST" record -o "$TMP/u.vct" --keep 10m -- "$bin/victim" dump 1000 2> "$TMP/err" &
recorder=$!
for i in $(seq 200); do [ -e "$TMP/u.dump.vct" ] && break; sleep 0.05; done
equal "SIGUSR1 seals what is kept" "$(balance "$TMP/u.dump.vct")" "500 0"
kill -TERM "$recorder"; wait "$recorder"
equal "and the recording goes on to its end" "$(balance "$TMP/u.vct")" "500 0"

# Ranks of one job: one runs out of memory, and what the others held then is sealed with it.
cp -r "$bin/torch" "$TMP/torch"
printf "__version__ = '2.9.0+cu000'\n" > "$TMP/torch/version.py"
cat > "$TMP/rank.sh" << 'RANK'
[ "$RANK" = 2 ] || { timeout 2 "$1/victim" "wait:$2/rank.$RANK" 1000; exit 0; }
until [ -e "$2/rank.0" ] && [ -e "$2/rank.1" ]; do sleep 0.05; done
sleep 0.5
unset LD_LIBRARY_PATH; STANDIN_TORCH=9 exec "$2/torch/lib/client" 2 200
RANK
run record -o "$TMP/r.vct" --keep 10m -- sh -c "for r in 0 1 2; do RANK=\$r WORLD_SIZE=3 sh '$TMP/rank.sh' '$bin' '$TMP' & done; wait"
equal "ranks: who is refused and who is not seal together" "$(balance "$TMP/r.rank0.oom.vct") $(balance "$TMP/r.rank1.oom.vct") $("$VRAMCAST" dump "$TMP/r.rank2.oom.vct" | tail -n 1 | awk '{ print $3 }')" "500 0 500 0 oom"
run record -q -o "$TMP/x.vct" --on-oom stop -- env -u LD_LIBRARY_PATH STANDIN_TORCH=9 "$TMP/torch/lib/client" 2 200
equal "--on-oom stop: the refusal is the last event" "$("$VRAMCAST" dump "$TMP/x.vct" | tail -n 1 | awk '{ print $3 }')" oom

# Watched while it runs, by the name of its trace and by the process.
"$VRAMCAST" record -q -o "$TMP/l.vct" -- "$bin/forks" -s 3000 2> "$TMP/err" &
recorder=$!
for i in $(seq 100); do ls "$TMP"/l.vct.journal/*.top > /dev/null 2>&1 && break; sleep 0.05; done
sleep 0.5
run top --once "$TMP/l.vct"
expect "top: a process that grows by 64 KiB a step" 0 "^ +grows by 64\.00 KiB a step, because what has no call site .* keeps 64\.00 KiB a step"
process=$(echo "$out" | awk 'NR == 3 { print $2 }')
run top --once "$process"
expect "top: the same by the number of the process" 0 " +$process +- +[0-9.]+ MiB"
run view --live --once "$process" -o "$TMP/live.html"
expect "view --live: a report of what is recorded so far" 0 'live.html'
check "it is told what it is" grep -q '<h1>Grows by 64 KiB every step' "$TMP/live.html"
"$VRAMCAST" view --live "$TMP/l.vct" -o "$TMP/end.html" > "$TMP/viewed" 2>&1 &
viewer=$!
wait "$recorder"
equal "the record of the whole run says the same" "$("$VRAMCAST" sim "$TMP/l.vct" --no-advice --json | sed -n 's/^ *"leak_a_step": \([0-9]*\),$/\1/p')" 65536
run top --once "$TMP/l.vct"
expect "top: what is recorded no more" 1 "" "l.vct is not being recorded now"
run view --live "$TMP/l.vct" -o "$TMP/over.html"
expect "nor is there a page of it" 1 "" "l.vct is not being recorded now"
run top --once 1
expect "top: a process that is not recorded" 1 "" "process 1 is not being recorded, or is not yours"
run record -o "$TMP/g.vct" --guard 5 --guard-signal KILL -- true
expect "--guard-signal: one sentence" 2 "" "--guard-signal is USR1, USR2, INT or TERM"

wait "$viewer"
check "view --live to the end: it says that this is one" grep -q 'the recording has ended' "$TMP/viewed"
check "and what stands there is a report of the whole" grep -q "in 2,999 steps" "$TMP/end.html"

# Options that contradict each other, or say nothing.
for bad in "--keep ten" "--keep 5" "--when reserved>90%" "--keep 1m --steps 3..4" "--steps 0..3" "--steps 5..4" "--on-oom dump" "--keep 1m --on-oom never" "--keep 1m --when used>3" "--after soon"; do
	run record -o "$TMP/bad.vct" $bad -- true
	expect "$bad: one sentence" 2 "" "^vramcast record: --[a-z-]+ "
done
run record -q -o "$TMP/late.vct" --after 1h -- "$bin/victim" return 1000
expect "a window that never opens is said" 2 "" "nothing was recorded: the part of the run that was asked for never began"
equal "and leaves no file" "$(ls -d "$TMP"/late* 2> /dev/null)" ""

# The recorder is killed at every call that changes a file, before it and in the middle of it.
stop() { # stop N HALF
	rm -rf "$TMP"/z.*
	env STOP_COUNT="$TMP/z.count" ${1:+STOP_AT=$1} ${2:+STOP_HALF=1} LD_PRELOAD="$PWD/$bin/stop_at.so" \
		"$VRAMCAST" record -q -o "$TMP/z.vct" --keep 0.02s -- "$bin/victim" return 12000 2> /dev/null
}
stop; calls=$(cat "$TMP/z.count")
[ "$calls" -gt 20 ] && pass "the recorder changes files $calls times" || fail "the recorder changes files" "$calls times"
bad=; i=1
while [ "$i" -le "$((${ONLY:-calls + 10}))" ]; do
	for half in "" 1; do
		stop "$i" $half
		[ -e "$TMP/z.vct.journal" ] || continue
		for t in $(seq 200); do # the program ends by itself
			out=$("$VRAMCAST" recover "$TMP/z.vct" 2>&1) && break
			case $out in *"still writes"*) sleep 0.05 ;; *) break ;; esac
		done
		[ -e "$TMP/z.vct" ] || { case $out in *"holds no journal"*) continue ;; esac; bad="$bad $i$half: $out;"; continue; }
		got=$("$VRAMCAST" info --json --no-verify "$TMP/z.vct" | awk -F '[ ,:]+' '
			$2 ~ /"(allocs|frees|unmatched_frees|dropped)"/ { n[$2] = $3 }
			END { print n["\"allocs\""] - n["\"frees\""], n["\"unmatched_frees\""], n["\"dropped\""] }')
		[ "$got" = "6000 0 0" ] || bad="$bad $i$half: $got;"
	done
	i=$((i + 1))
done
equal "killed at each of them: what is left is readable, and whole from its beginning to the end" "$bad" ""
finish
