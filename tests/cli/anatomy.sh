#!/bin/sh
# anatomy.sh - what the memory of a training run is for: iterations, phases, categories.
. tests/support/tap.sh
r=tests/recordings/lstm.vct
run info "$r" --json
expect "six iterations of two epochs" 0 '"count": 6'
bytes() { printf '%s\n' "$out" | sed -n "s/^ *\"$1\": \([0-9]*\),*\$/\1/p" | head -n 1; }
# The program ends after an evaluation: what the interpreter frees then has lasted all the same. 10,403,744 values
# of 4 bytes (tests/anatomy/lstm.py).
[ "$(bytes parameter)" = 41614976 ] && pass "parameters freed as the program ends are parameters" ||
	fail "parameters freed as the program ends are parameters" "$(bytes parameter)" "$out"
[ "$(bytes gradient)" = 41614984 ] && pass "gradients that are kept between steps are gradients" ||
	fail "gradients that are kept between steps are gradients" "$(bytes gradient)" "$out"
[ "$(bytes 'optimizer state')" = 83229952 ] && pass "and Adam keeps two states of each" ||
	fail "and Adam keeps two states of each" "$(bytes 'optimizer state')" "$out"
[ "$(bytes 'other temporary')" = "" ] && pass "and none of them is a temporary" ||
	fail "and none of them is a temporary" "$(bytes 'other temporary')"
run dump --anatomy "$r"
expect "dump tells what each allocation is" 0 'alloc .* is=gradient phase=backward iteration=0'
[ "$(printf '%s\n' "$out" | grep -c ' is=parameter phase=init')" = 4 ] &&
	pass "embedding, flattened LSTM weights, head" || fail "embedding, flattened LSTM weights, head" "$out"
# The second epoch's first step ends at the fourth mark and has an evaluation before it.
n=$(printf '%s\n' "$out" | grep -c ' is=.* phase=other$\| is=.* phase=other at=')
[ "$n" = 30 ] && pass "an evaluation between two steps belongs to neither" || fail "an evaluation between two steps" "$n"
"$VRAMCAST" plot "$r" -o "$TMP/a.svg"
grep -q '>Optimizer state<' "$TMP/a.svg" && ! grep -q '>Live to the end<' "$TMP/a.svg" &&
	grep -q '<title>backward</title>' "$TMP/a.svg" &&
	pass "the picture shows categories and phases of a recording without names" || fail "the picture shows categories"
finish
