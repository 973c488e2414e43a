#!/bin/sh
# progress.sh - long work shows on a terminal how far it is, in a line that goes; nowhere else a byte of it is written.
. tests/support/tap.sh
export XDG_CACHE_HOME=$TMP/cache
L=tests/ladders/recordings
a=$L/gpt-amp_batch0001_torch2.9.1.vct@batch=1
b=$L/gpt-amp_batch0002_torch2.9.1.vct@batch=2
TERM=xterm VRAMCAST_PROGRESS=now; export TERM VRAMCAST_PROGRESS # else only what takes longer than a second is shown

# seen COLUMNS ARGS... : standard error is a terminal; what it received in $TMP/seen, what it shows in the end in $left
seen() {
	columns=$1; shift
	python3 tests/support/terminal.py "$columns" "$TMP/seen" "$VRAMCAST" "$@" > "$TMP/out" 2> "$TMP/err" < /dev/null; rc=$?
	tap_read
	# a carriage return begins the line anew: of each line the last thing that is no blank is left
	left=$(python3 -c 'import sys
for line in open(sys.argv[1], "rb").read().replace(b"\r\n", b"\n").decode().split("\n"):
    shown = []
    for part in line.split("\r"):
        shown[:len(part)] = part
    print("".join(shown).rstrip())' "$TMP/seen")
}
moves() { grep -qE "$1" "$TMP/seen" || { cat "$TMP/seen"; return 1; }; } # PATTERN
gone() { [ -z "$left" ] || { echo "left: $left"; return 1; }; }
# slow NAME PATTERN ARGS... : it shows that, and nothing of it stays
slow() { what=$1 pattern=$2; shift 2; seen 80 "$@"; check "$what shows how far it is" moves "$pattern"; check "$what leaves nothing behind" gone; }

sweep() { "$@" sweep "$a" "$b" --vary batch=1..150 -g rtx4090 -j1; }
sweep "$VRAMCAST" --verbose > "$TMP/piped" 2> "$TMP/told"
check "into a pipe nothing is shown" test ! -s "$TMP/told"
sweep slow sweep '[1-9][0-9]* of 150 runs, [0-9]+ s'
check "the lines of a sweep are the same under a terminal" cmp "$TMP/piped" "$TMP/out"
BOTH=1 sweep seen 80
check "the rows of a table are whole between the lines" test "$(printf '%s\n' "$left" | grep -cE '^batch=[0-9]+ +(fits|oom|flushes|undecided) .*iB')" = 150
slow plan 'the blocks of the recording are packed, [0-9]+ s' plan traces/lm-medium-ctx1024.vct --effort 20
slow tune 'of [0-9]+ settings, [0-9]+ s' tune traces/lm-medium-ctx1024.vct -g rtx4090 -j1 --top 1000

# A program that is tried: here one that records nothing, so the line makes room for the error.
printf '#!/bin/sh\necho said >&2\nsleep 2\n' > "$TMP/program"; chmod +x "$TMP/program"
tried() { c=$1; shift; seen "$c" "$@" fit --find batch --with record --at 2,4 -- "$TMP/program" '{batch}'; }
last() { printf '%s\n' "$left" | grep -qE "$1" && [ "$(printf '%s\n' "$left" | grep -c trial)" = 1 ] || { echo "$left"; return 1; }; }
tried 120; check "a trial run is shown while it goes on" moves 'trial run 1 of at most [0-9]+: batch=2, [12] s'
check "and its error stands alone" last '^vramcast fit: the trial run with batch=2: it left no recording$'
tried 20; check "no line is longer than the terminal" python3 -c 'import sys
parts = open(sys.argv[1], newline="").read().split("said")[0].split("\r"); sys.exit(max(map(len, parts)) > 19 or len(parts) < 3)' "$TMP/seen"
silent() { grep -q said "$TMP/seen" && ! grep -q 'trial run 1' "$TMP/seen" || { cat -v "$TMP/seen"; return 1; }; }
tried 80 -q; check "-q shows nothing" silent
TERM=dumb; tried 80; check "nor does a terminal that cannot go back" silent
finish
