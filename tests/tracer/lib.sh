# lib.sh - sourced by the tracer's tests.
. tests/support/tap.sh
bin=${BUILD:-build}/tests/tracer
# field FILE NAME: a number or word of info --json's top level
field() { "$VRAMCAST" info --json "$1" | tr ',{}' '\n' | sed -n "s/^ *\"$2\": *\"\{0,1\}\([^\"]*\)\"\{0,1\}$/\1/p" | head -n 1; }
# equal NAME GOT EXPECTED
equal() { if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "got $2, expected $3"; fi; }
