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

for c in $("$VRAMCAST" help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
	run help "$c"; expect "help $c" 0 "^vramcast $c"
	# every option of the help is in the manual page, and the other way round
	"$VRAMCAST" help "$c" | sed -n 's/^ *\(-.,\)\{0,1\} *--\([a-z0-9-]*\).*/\2/p' | grep -vxE 'quiet|verbose|color' | sort > "$TMP/help"
	"$VRAMCAST" manpage "$c" | sed -n 's/^\.B .*\\-\\-\([a-z0-9\\-]*\)\\fR.*/\1/p' | tr -d '\\' | sort > "$TMP/man"
	check "the manual page of $c has the same options" cmp "$TMP/help" "$TMP/man"
done
for s in bash zsh fish; do run completions $s; expect "completions for $s" 0 'vramcast'; done
"$VRAMCAST" completions bash > "$TMP/c.sh"; check "the bash completion parses" bash -n "$TMP/c.sh"
if [ -e /dev/full ]; then
	"$VRAMCAST" list > /dev/full 2> "$TMP/err"; rc=$?; out=; err=$(cat "$TMP/err")
	expect "a full disk is an error with a sentence" 1 '' 'No space left'
fi
finish
