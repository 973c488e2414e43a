#!/bin/sh
# usage.sh - help, mistakes and exit codes: every wrong command line gets one sentence and code 2.
. tests/support/tap.sh

run; expect "without arguments the commands are listed" 0 'sim +replay a trace'
run --version; expect "--version names it" 0 '^vramcast [0-9]+\.[0-9]+\.[0-9]+$'
run siem; expect "a mistyped command is answered with the nearest" 2 '' "there is no command 'siem' \(did you mean sim\?\)"
run sim; expect "sim wants a trace" 2 '' 'name a trace'
run sim --capasity 1G x; expect "a mistyped option too" 2 '' 'did you mean --capacity'
run sim --capacity lots x; expect "a size that is none" 2 '' "'lots' is not a size"
run sim /nonexistent.vct; expect "a file that is not there" 1 '' 'nonexistent.vct'
run sim .; expect "a directory" 1 '' 'directory'
: > "$TMP/empty"; run sim "$TMP/empty"; expect "an empty file" 1 '' 'empty'
echo "just some words" > "$TMP/words"; run info "$TMP/words"; expect "not a trace" 1 '' 'words'
run help nothing-like-this; expect "help for an unknown name" 2 '' 'nothing is called'
run list modles; expect "list of an unknown socket" 2 '' "no list 'modles'"

# numbers and options that contradict each other or mean nothing
t=traces/decomfl.vct
run sim $t --capacity 0; expect "a device without memory" 2 '' 'capacity 0'
for f in -0.1 2; do run sim $t --fraction $f; expect "a fraction of $f" 2 '' 'goes from 0 to 1'; done
run sim $t --fail-above 90%; expect "a budget without a card" 2 '' '90% of what'
run sweep $t --vary gpu=l4 --vary gpu=a10; expect "a key varied twice" 2 '' 'given twice'
run sweep $t --vary gpu=l4,nosuch -o "$TMP/s"; expect "a mistyped card in a sweep" 2 '' "no gpu 'nosuch'"
[ ! -e "$TMP/s" ] && pass "is told before anything is written" || fail "is told before anything is written"
run sweep $t --vary gpu=l4 --resume; expect "resume without a file" 2 '' 'name it with -o'
run dump $t --from 5 --to 2; expect "an empty range of events" 2 '' 'nothing lies between'
run plot $t -t nosuch; expect "a picture that is not there" 2 '' 'no such picture'
run plot $t -o "$TMP/none/x.png"; expect "a converted picture in a folder that is not there" 1 '' 'cannot write .*none/x.png: No such file'
run fit --find batch -g l4 -- nosuch train.py; expect "fit of a program without the key" 2 '' '\{batch\} has to stand in its arguments'
run sim $t --device 65536; expect "a device number beyond 16 bits" 2 '' 'no events of device 65536'
run estimate --params -1 --layers 2 --hidden 5; expect "a negative count of parameters" 2 '' 'params -1: must be above zero'
run estimate --params 1e30 --layers 2 --hidden 5; expect "a count of parameters beyond any model" 2 '' 'params 1e\+30: the largest is 9e\+15'
run estimate --params 1e15 --layers 1e9 --hidden 1e9; expect "an estimate beyond any memory" 2 '' 'more than any machine'
run gpus --need 1G; expect "a need without cards" 2 '' 'give both'
run gpus --free '' --need 1G; expect "cards that nobody listed" 2 '' 'free is empty'
# what a sweep goes on with must be its own
echo "notes of mine" > "$TMP/notes"; run sweep $t --vary gpu=l4 --resume -o "$TMP/notes"
expect "resume with another file" 2 '' 'not of this sweep'
check "leaves it as it was" grep -q 'notes of mine' "$TMP/notes"
run sweep $t --vary gpu=l4 -o "$TMP/s"; run sweep $t --vary gpu=a10 --resume -o "$TMP/s"
expect "resume with another sweep's lines" 2 '' 'not of this sweep'
run sweep $t --vary gpu=l4,a10 --resume -o "$TMP/s"; expect "resume with more values of the same key" 0
check "adds them" test "$(grep -c '"gpu":' "$TMP/s")" = 2
# the format follows the name of the file
run export $t -o "$TMP/x.csv"; check "export without --to writes what the extension says" grep -q '^run,' "$TMP/x.csv"
# recordings must have a place before the program runs
run record -o "$TMP" -- true; expect "recording into a directory" 125 '' 'is a directory'
run record -o /dev/null -- true; expect "recording into a device" 125 '' 'not a file that can be replaced'
library=$(dirname "$VRAMCAST")/libvramcast_trace.so
if sanitized; then skip "an installed program finds its library" "a sanitized library cannot be preloaded"
elif [ -f "$library" ]; then # make, then make install PREFIX=elsewhere
	mkdir -p "$TMP/at/bin" "$TMP/at/lib/vramcast"; cp "$VRAMCAST" "$TMP/at/bin/vramcast"; cp "$library" "$TMP/at/lib/vramcast/"
	"$TMP/at/bin/vramcast" record -o "$TMP/at/x.vct" -- true 2> "$TMP/err"; rc=$?; out=; err=$(cat "$TMP/err")
	expect "an installed program finds its library beside its own folder" 0 '' 'nothing was recorded'
fi
[ -c /dev/null ] && pass "which stays what it is" || fail "which stays what it is"
run dryrun -g nosuch -- true; expect "a dry run on an unknown card" 2 '' "no gpu 'nosuch'"
run dryrun -g l4 -- nosuch-program; expect "a dry run of an unknown program" 127 '' 'no such program'
run dryrun -g l4 -- traces/README.md; expect "a dry run of what is no program" 127 '' 'run with: -- python'

for c in $("$VRAMCAST" help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
	run help "$c"; expect "help $c" 0 "^vramcast $c"
	# lines to paste stay whole, and so do the choices of a parameter
	long=$("$VRAMCAST" help "$c" | awk 'length > 100 && !/^  vramcast / && !/^ *[^ ]*$/')
	[ -z "$long" ] && pass "no line of the help of $c is longer than 100 columns" || fail "help $c: $long"
	# every option of the help is in the manual page, and the other way round
	"$VRAMCAST" help "$c" | sed -nE 's/^  (-., |    )--([a-z0-9-]*).*/\2/p' | grep -vxE 'quiet|verbose|color' | sort > "$TMP/help"
	"$VRAMCAST" manpage "$c" | sed -n 's/^\.B .*\\-\\-\([a-z0-9\\-]*\)\\fR.*/\1/p' | tr -d '\\' | sort > "$TMP/man"
	check "the manual page of $c has the same options" cmp "$TMP/help" "$TMP/man"
	"$VRAMCAST" "$c" --help > "$TMP/man"; "$VRAMCAST" help "$c" | head -n "$(wc -l < "$TMP/man")" > "$TMP/help" # which has lists behind
	check "$c --help says the same" cmp "$TMP/help" "$TMP/man"
done
"$VRAMCAST" help | sed -n 's/^  \([a-z]*\) .*/\1/p' | sort > "$TMP/help"
run manpage; printf '%s\n' "$out" | sed -n 's/^\.B vramcast \([a-z]*\)$/\1/p' | sort > "$TMP/man"
check "the first manual page names the same commands" cmp "$TMP/help" "$TMP/man"
run list settings; expect "settings, and since when" 0 '^  expandable_segments:True +PyTorch 2.1 on$'
run mcp now; expect "mcp takes no arguments" 2 '' "mcp takes nothing \('now'\)"
for s in bash zsh fish; do run completions $s; expect "completions for $s" 0 'vramcast'; done
"$VRAMCAST" completions bash > "$TMP/c.sh"; check "the bash completion parses" bash -n "$TMP/c.sh"
if [ -e /dev/full ]; then
	"$VRAMCAST" list > /dev/full 2> "$TMP/err"; rc=$?; out=; err=$(cat "$TMP/err")
	expect "a full disk is an error with a sentence" 1 '' 'No space left'
fi
finish
