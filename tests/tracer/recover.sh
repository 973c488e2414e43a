#!/bin/sh
# recover.sh - the recorder dies too: what the journal and the partial trace hold becomes a trace.
. tests/tracer/lib.sh
export LD_LIBRARY_PATH="$bin"

# child_of PID: the first child, from /proc, because a small system has no ps
child_of() {
	for d in /proc/[0-9]*; do
		parent=$(sed -n 's/^PPid:[[:space:]]*//p' "$d/status" 2> /dev/null)
		[ "$parent" = "$1" ] && { echo "${d#/proc/}"; return; }
	done
}

# both SUM [OPTION...]: record a victim of SUM allocations, kill recorder and victim at once
both() {
	sum=$1; shift
	rm -rf "$TMP"/k.*
	"$VRAMCAST" record -q -o "$TMP/k.vct" --param batch=8 "$@" -- "$bin/victim" "wait:$TMP/k.ready" "$sum" 2> /dev/null &
	recorder=$!
	for i in $(seq 200); do [ -e "$TMP/k.ready" ] && break; sleep 0.05; done
	victim=$(child_of "$recorder")
	kill -9 "$recorder" "$victim"
	wait "$recorder" 2> /dev/null
	# nobody waits for the victim: a busy machine takes a while to take its memory apart, then its files
	for i in $(seq 200); do
		[ -e "/proc/$victim" ] && ! grep -q '^State:[[:space:]]*Z' "/proc/$victim/status" 2> /dev/null || break
		sleep 0.05
	done
}

both 1000
[ -d "$TMP/k.vct.journal" ] && pass "the journal is still there" || fail "the journal is still there"
run record -q -o "$TMP/k.vct" -- true
expect "a new recording does not overwrite it" 2 "" "recover"
run recover "$TMP/k.vct"
expect "recover finds the journal by the name of the trace" 0 "k.vct: 1500 events"
equal "1000 allocations and 500 frees are recovered" "$(field "$TMP/k.vct" events)" 1500
equal "what it was recorded with is kept" "$("$VRAMCAST" info --json "$TMP/k.vct" | grep -c '"batch": *8')" 1
equal "nothing is left behind" "$(ls -d "$TMP"/k.*.journal "$TMP"/k.*.part 2> /dev/null)" ""

both 60000
journal=$(ls "$TMP"/k.vct.journal/*.vcj)
equal "info reads a journal as it is, with the part written before" "$(field "$journal" events)" 90000
run sim --json --no-verify "$journal"
expect "sim reads it too" 0 '"schema"'
equal "it is not called complete" "$(field "$journal" complete)" false
run recover "$TMP/k.vct.journal"
expect "a recording of which a part was written already" 0 "k.vct: 90000 events"
equal "each event is there once" "$(field "$TMP/k.vct" events)" 90000

stacks() { "$VRAMCAST" dump "$TMP/k.vct" | awk '$3 == "alloc" { n[/ at=/ ? "with" : "without"]++ } END { print n["with"] + 0, n["without"] + 0 }'; }
both 40000 --stacks native # the first 33 000 or so are stored, the others in the journal
run recover "$TMP/k.vct"
expect "a recording with call stacks" 0 "k.vct: 60000 events"
equal "each allocation has its call stack, whether it was in the partial trace or in the journal" "$(stacks)" "40000 0"

# A journal that no recorder ever met: its trace gets the name of the folder, once.
mkdir "$TMP/n.vct.journal" "$TMP/plain"
for folder in n.vct.journal n.vct.journal plain; do
	VC_DIR="$TMP/$folder" VC_OPTIONS=device=cpu LD_PRELOAD="$PWD/${BUILD:-build}/libvramcast_trace.so" "$bin/victim" return 1000
	journal=$(ls "$TMP/$folder"/*.vcj); pid=${journal##*/}; pid=${pid%%-*}
	case $folder$(ls "$TMP/n.vct" 2> /dev/null) in plain*) trace=$journal.vct ;; *n.vct) trace=$TMP/n.$pid.vct ;; *) trace=$TMP/n.vct ;; esac
	run recover "$journal"
	expect "nobody read it: ${trace#"$TMP"/} is made" 0 "^$trace: 1500 events|${trace##*/}: 1500 events"
	equal "... with all of it" "$(field "$trace" events) $(ls "$TMP/$folder"/*.vcj 2> /dev/null)" "1500 "
done
# A part that was written and is damaged since: a block of it is lost, and that is said.
both 60000
dd if=/dev/zero of="$(ls "$TMP"/k.vct.part)" bs=1 seek=3000 count=64 conv=notrunc 2> /dev/null
run recover "$TMP/k.vct"
kept=$(field "$TMP/k.vct" events)
[ "$rc" = 0 ] && [ "$kept" -gt 60000 ] && [ "$kept" -lt 90000 ] && pass "a damaged part: the other blocks are there" || fail "a damaged part: the other blocks are there" "$rc $kept" "$err"
equal "... and the hole is said" "$(field "$TMP/k.vct" gaps)" 1

mkdir "$TMP/empty.vct.journal"; run recover "$TMP/empty.vct.journal"; expect "a folder without journals" 2 '' 'holds no journal: nothing to recover'
run recover "$TMP/nothing"
expect "no such recording: one sentence" 1 "" "there is no recording"
printf 'this is no journal' > "$TMP/x.vcj"
run recover "$TMP/x.vcj"
expect "not a journal: one sentence" 1 "" "not a recording journal"
finish
