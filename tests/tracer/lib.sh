# lib.sh - sourced by the tracer's tests.
. tests/support/tap.sh
bin=${BUILD:-build}/tests/tracer
# field FILE NAME: a number or word of info --json's top level
field() { "$VRAMCAST" info --json --no-verify "$1" | awk -v RS='[,{}\n]' -v name="\"$2\":" '
	!found && $1 == name { found = 1; sub(/^ *"[^"]*": *"?/, ""); sub(/"$/, ""); print }'; }
# equal NAME GOT EXPECTED
equal() { if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "got $2, expected $3"; fi; }
