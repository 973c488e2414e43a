#!/bin/sh
# reduce.sh - parts of a sweep become the sweep again, byte for byte.
. tests/support/tap.sh
trace=tests/recordings/gpt.vct@batch=1
over() {
	"$VRAMCAST" sweep -q --json "$trace" --no-verify --vary gpu=t4,rtx4090,a100-40g-sxm \
		--vary 'conf=max_split_size_mb:64|expandable_segments:True' --vary fraction=0.4,0.9 "$@"
}
over -o "$TMP/all"
for i in 1 2 3 4; do over --shard $i/4 -o "$TMP/part$i"; done
run reduce "$TMP/part3" "$TMP/part1" "$TMP/part4" "$TMP/part2" "$TMP/part1" -o "$TMP/merged"
expect "parts in any order, one of them twice" 0 '' '15 lines of 5 files, 3 there twice, 0 cut off; 12 kept'
check "the result is what one sweep writes" cmp "$TMP/all" "$TMP/merged"
"$VRAMCAST" reduce -q - < "$TMP/part2" > "$TMP/piped"
check "standard input" cmp "$TMP/part2" "$TMP/piped"

head -c -200 "$TMP/part2" > "$TMP/torn"
run reduce "$TMP/torn" -o "$TMP/merged"
expect "a last line that was cut off is dropped and counted" 0 '' '2 lines of 1 file, 0 there twice, 1 cut off; 2 kept'

run reduce "$TMP/part1" "$TMP/part2" "$TMP/part3" "$TMP/part4" --runs 12 -o "$TMP/merged"
expect "--runs: all are there" 0
run reduce "$TMP/part1" "$TMP/part2" "$TMP/part4" --runs 12 -o "$TMP/lost"
expect "--runs: a part is missing" 1 '' '3 of 12 runs are missing, run 2 first'
check "nothing is written then, either" test ! -e "$TMP/lost"
run reduce "$TMP/all" --runs 13
expect "--runs: the end is missing" 1 '' '1 of 13 runs are missing, run 12 first'
run reduce "$TMP/all" --runs 7
expect "--runs: more than there are" 1 '' 'run 11 is there, and --runs 7 ends before it'
sed 's/"peak_used":[0-9]*/"peak_used":1/' "$TMP/part1" > "$TMP/other"
run reduce "$TMP/part1" "$TMP/other" -o "$TMP/none"
expect "parts of two sweeps" 1 '' 'run 0 is in .*part1 and in .*other, and they do not agree'
check "nothing is written then" test ! -e "$TMP/none"
echo '{"x":1}' > "$TMP/x"
run reduce "$TMP/x"
expect "something else" 1 '' 'x, line 1: no line of .vramcast sweep --json'
run reduce
expect "no file" 2 '' 'which files'
finish
