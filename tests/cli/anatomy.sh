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
# Adam has two states of each, also where the first step is not like the others: weights are no workspaces.
for of in leak-graph h100/lstm_packed-4 h100/transformer_xl-4; do
	run info tests/recordings/$of.vct --json
	[ $((2 * $(bytes parameter))) = "$(bytes 'optimizer state')" ] && pass "$of: its weights are no workspaces" ||
		fail "$of: its weights are no workspaces" "$(bytes parameter) $(bytes 'optimizer state')"
done
run dump --anatomy "$r"
expect "dump tells what each allocation is" 0 'alloc .* is=gradient phase=backward iteration=0'
[ "$(printf '%s\n' "$out" | grep -c ' is=parameter phase=init')" = 4 ] &&
	pass "embedding, flattened LSTM weights, head" || fail "embedding, flattened LSTM weights, head" "$out"
# The second epoch's first step ends at the fourth mark and has an evaluation before it.
n=$(printf '%s\n' "$out" | grep -c ' is=.* phase=other$\| is=.* phase=other at=')
[ "$n" = 30 ] && pass "an evaluation between two steps belongs to neither" || fail "an evaluation between two steps" "$n"
# Six steps by tests/programs/full_vision.py: the scaler left three out, so they have no mark.
run info tests/recordings/h100/scaler.vct
expect "steps that a gradient scaler left out are iterations" 0 'iterations +6, from names of call sites'
"$VRAMCAST" plot "$r" -o "$TMP/a.svg"
grep -q '>Optimizer state<' "$TMP/a.svg" && ! grep -q '>Live to the end<' "$TMP/a.svg" &&
	grep -q '<title>backward</title>' "$TMP/a.svg" &&
	pass "the picture shows categories and phases of a recording without names" || fail "the picture shows categories"
run info "$r"; [ "$rc" = 0 ] && ! printf '%s' "$out" | grep -q '^  layers' &&
	pass "layers that cuDNN hides are not made up" || fail "layers that cuDNN hides are not made up" "$out"
run info tests/recordings/gpt.vct
expect "24 blocks, and what each of them is" 0 'layers +24, from the pattern \(confidence 0\.[89].*; 48\.05 MiB of parameters and .* of activations each'
run info tests/recordings/gpt.vct --json; expect "as JSON" 0 '"layers": \{'
printf '%s\n' "$out" | tr -d ' \n' | sed -n 's/.*"parameters":\[\([0-9,]*\)\].*/\1/p' | tr , '\n' > "$TMP/parameters"
[ "$(sort -u "$TMP/parameters")" = 50384896 ] && [ "$(grep -c . "$TMP/parameters")" = 24 ] &&
	pass "12 d^2 + 13 d parameters of 4 bytes in each" || fail "parameters of each layer" "$(cat "$TMP/parameters")"
# 24 of them, 32,000 words to and from 1,024, all trained: each has a gradient while the optimizer works.
awk -v p="$(bytes parameter)" -v g="$(bytes gradient)" 'BEGIN { exit !(p == 1471509504 && g <= p && g >= 0.99 * p) }' &&
	pass "as many bytes of gradients as of parameters, within 1 %" || fail "gradients" "$(bytes parameter) $(bytes gradient)"
# A recording that begins within a run: what was there already is part of what is live at the peak.
run info traces/lm-train-ctx128.vct --json
printf '%s\n' "$out" | awk -F '[:,]' '/"categories"/ { in_it = 1; next } in_it && /}/ { in_it = 0 } in_it { sum += $2 }
	/"there at the start"/ { start = $2 } /"peak_requested"/ { peak = $2 } END { exit !(sum == peak && start == 13660841984) }' &&
	pass "categories and what was there at the start are all that is live at the peak" ||
	fail "categories and what was there at the start are all that is live" "$out"
# Blocks called from one line in a loop, in a recording whose stacks hold the interpreter's own frames too.
run info traces/lm-medium-ctx1024.vct; expect "a model of 24 blocks" 0 'layers +24, .*' && expect "and where they are called" 0 '24 at model\.py:382'
# A generator and a discriminator whose layers end in a norm: what they hand on is not kept for the backward pass.
run info tests/recordings/layers/electra.vct; expect "two models of 12 blocks" 0 'layers +24, .* of parameters with gradients and .*' && expect "of one class" 0 '24 at modeling_electra\.py:396'
run info traces/lm-train-ctx128.vct; expect "a model of 32 blocks" 0 'layers +32, .*' && expect "and where they are called" 0 '32 at model\.py:380'
run sim traces/lm-medium-ctx1024.vct -x checkpoint:module=model.py:382 --json
held=$(printf '%s\n' "$out" | sed -n 's/^ *"peak_reserved": \([0-9]*\),*$/\1/p' | head -n 1)
[ "${held:-0}" -gt 8589934592 ] && [ "$held" -lt 9663676416 ] && pass "with its blocks checkpointed it needs 8 to 9 GiB" ||
	fail "with its blocks checkpointed" "$held"
finish
