#!/bin/bash
# evaluation.sh - training and evaluation at batches of their own (tests/recordings/evaluation.py): what is predicted is
# what was recorded there.
. tests/support/tap.sh
R=tests/recordings
A=$R/eval-4-8.vct@train_batch=4,eval_batch=8
B=$R/eval-8-16.vct@train_batch=8,eval_batch=16
got() { printf '%s\n' "$out" | sed -n 's/^ *"peak_reserved": \([0-9]*\),*$/\1/p' | head -n 1; }
truth() { run sim "$1" --json; got; }

for at in "6 64" "32 16"; do
	set -- $at
	want=$(truth $R/eval-$1-$2.vct)
	run sim $A $B --set train_batch=$1 --set eval_batch=$2 --json
	check "two recordings that differ in both: training with $1, evaluation with $2" test "$(got)" = "$want"
	run sim $R/eval-4-8.vct@batch=4,eval_batch=8 $R/eval-8-16.vct@batch=8,eval_batch=16 --set batch=$1 --set eval_batch=$2 --json
	check "the same where the first is called batch" test "$(got)" = "$want"
done
want=$(truth $R/eval-6-64.vct)
run sim $R/eval-4-8.vct@batch=4 $R/eval-8-16.vct@batch=8 --set train_batch=6 --set eval_batch=32 --json
check "batch alone was recorded: each phase at its own value of it" test "$(got)" = "$want"
run sim $R/eval-4-8.vct@batch=4 $R/eval-8-16.vct@batch=8 --set train_batch=32 --set batch=4 --json
check "what a part is told counts more than what all is told" test "$(got)" != ""
run sweep $A $B --vary train_batch=6 --vary eval_batch=8,64
expect "a sweep over both" 0 '"vary":\{"train_batch":6,"eval_batch":64\}'
run fit $A $B --find eval_batch --set train_batch=4 --capacity 2GiB
expect "fit looks for the evaluation's" 0 'largest that fits'
run sim $R/eval-4-8.vct@batch=4 $R/eval-6-64.vct@batch=6 --set train_batch=8 --set val_size=3
expect "a parameter nobody recorded" 2 '' 'do not say their val_size; name it'
run sim $R/gpt.vct@batch=1 --set batch=2 --set eval_batch=4
expect "a recording without an evaluation" 2 '' 'no evaluation'
finish
