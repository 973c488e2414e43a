#!/bin/sh
# sweep.sh - many runs: fixed order whatever the threads, shards and resumption, and predictions.
. tests/support/tap.sh
L=tests/ladders/recordings
a=$L/gpt-amp_batch0001_torch2.9.1.vct@batch=1
b=$L/gpt-amp_batch0002_torch2.9.1.vct@batch=2

run sweep "$a" "$b"; expect "without --vary it says what is missing" 2 '' 'say what to vary'
run sweep "$a" --vary batch=4,8; expect "one recording cannot tell about another batch size" 2 '' 'the recordings do not differ|one recording'
run sweep "$a" "$b" --vary batch=8..4; expect "an empty range" 2 '' 'empty range'
run sweep "$a" "$b" --vary 'batch=4,8,24' --vary 'conf=|expandable_segments:True' -g rtx4090 -j1
expect "one line per combination" 0 '"id":5'
cp "$TMP/out" "$TMP/one"
check "six lines" test "$(wc -l < "$TMP/one")" = 6
check "the recorded peak of batch 24 is predicted" grep -q '"batch":24.*"peak_reserved":14893973504' "$TMP/one"
run sweep "$a" "$b" --vary 'batch=4,8,24' --vary 'conf=|expandable_segments:True' -g rtx4090 -j4
check "four threads write the same bytes as one" cmp "$TMP/one" "$TMP/out"
for i in 1 2 3; do "$VRAMCAST" sweep "$a" "$b" --vary 'batch=4,8,24' --vary 'conf=|expandable_segments:True' -g rtx4090 --shard $i/3 > "$TMP/part$i"; done
cat "$TMP"/part? | sort -t: -k2n > "$TMP/parts"; sort -t: -k2n "$TMP/one" > "$TMP/sorted"
check "three shards together are the whole" cmp "$TMP/parts" "$TMP/sorted"
SLURM_ARRAY_TASK_ID=12 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=10 "$VRAMCAST" sweep "$a" "$b" --vary 'batch=4,8,24' --vary 'conf=|expandable_segments:True' -g rtx4090 --shard auto > "$TMP/slurm"
check "a Slurm array task finds its part" cmp "$TMP/slurm" "$TMP/part3"
head -n 2 "$TMP/one" > "$TMP/r.jsonl"; printf '{"id":2,"torn' >> "$TMP/r.jsonl"
run sweep "$a" "$b" --vary 'batch=4,8,24' --vary 'conf=|expandable_segments:True' -g rtx4090 --resume -o "$TMP/r.jsonl"
check "an interrupted sweep goes on where it stopped" cmp "$TMP/r.jsonl" "$TMP/one"
run sweep "$a" "$b" --vary batch=8,48 -g rtx4090 --table; expect "a table for people" 0 'batch=48 +oom'

# Scratch of row sums depends on the card's multiprocessors: each card's own count, not the first's.
v=$L/vit-b16_batch0002_torch2.9.1.vct@batch=2; w=$L/vit-b16_batch0004_torch2.9.1.vct@batch=4
peaks() { grep -oE '"peak_reserved": ?[0-9]+' | tr -dc '0-9\n'; }
for g in h200 rtx4090 t4; do "$VRAMCAST" sim "$v" "$w" --set batch=32 -g $g --no-advice --json 2> /dev/null | peaks; done > "$TMP/alone"
run sweep "$v" "$w" --vary batch=32 --vary gpu=h200,rtx4090,t4
printf '%s\n' "$out" | peaks > "$TMP/swept"
check "a sweep over cards predicts for each what sim predicts for it alone" cmp "$TMP/alone" "$TMP/swept"
run sim "$v" "$w" --set batch=32 -g h200 -g rtx4090 -g t4 --no-advice --json
printf '%s\n' "$out" | peaks > "$TMP/swept"
check "and so does sim with several cards" cmp "$TMP/alone" "$TMP/swept"
check "three cards of different size differ" test "$(sort -u "$TMP/alone" | wc -l)" = 3
finish
