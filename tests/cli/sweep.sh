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
for v in JOB_COMPLETION_INDEX:JOB_COMPLETIONS PMIX_RANK:PMIX_SIZE OMPI_COMM_WORLD_RANK:OMPI_COMM_WORLD_SIZE SLURM_PROCID:SLURM_NTASKS; do
	env ${v%:*}=1 ${v#*:}=3 "$VRAMCAST" sweep "$a" "$b" --vary 'batch=4,8,24' --vary 'conf=|expandable_segments:True' -g rtx4090 --shard auto > "$TMP/auto"
	check "so does one that ${v%:*} numbers" cmp "$TMP/auto" "$TMP/part2"
done
run sweep "$a" --vary gpu=l4 --shard auto; expect "no scheduler is asked where there is none" 2 '' 'no array index in the environment'
run sweep "$a" --vary gpu=l4 --shard 3/2; expect "a third part of two" 2 '' '--shard 3/2: write I/N with I from 1 to N'
export PMI_RANK=2 PMI_SIZE=2; run sweep "$a" --vary gpu=l4 --shard auto; unset PMI_RANK PMI_SIZE
expect "a rank beyond the last" 2 '' '--shard: part 3 of 2'
for v in context=0,1GiB used=0,2GiB fraction=0.5,1 'x=|checkpoint:every=1' torch=2.0,2.6 model=torch,direct capacity=20GiB,30GiB; do
	run sweep "$a" -g l4 --vary "$v"; expect "of one recording ${v%%=*} can be varied" 0 '^{"id":1,'
	check "and that makes a difference: ${v%%=*}" test "$(sed 's/^{"id":[01],"vary":{[^}]*}//' "$TMP/out" | sort -u | wc -l)" = 2
done
run sweep "$a" -g l4 -m torch -m cupy --vary capacity=20GiB,30GiB; expect "two models" 2 '' '-m: a sweep takes one model'
head -n 2 "$TMP/one" > "$TMP/r.jsonl"; printf '{"id":2,"torn' >> "$TMP/r.jsonl"
run sweep "$a" "$b" --vary 'batch=4,8,24' --vary 'conf=|expandable_segments:True' -g rtx4090 --resume -o "$TMP/r.jsonl"
check "an interrupted sweep goes on where it stopped" cmp "$TMP/r.jsonl" "$TMP/one"
run sweep "$a" "$b" --vary batch=8,48 -g rtx4090 --table; expect "a table for people" 0 'batch=48 +oom'

# One run a line: the same runs as the combinations, under their ids, in any order and in parts.
for i in 5 0 3 1 4 2; do
	set -- 4 8 24; shift $((i / 2)); conf=; [ $((i % 2)) = 0 ] || conf=expandable_segments:True
	echo "{\"id\":$i,\"batch\":$1,\"conf\":\"$conf\"}"
done > "$TMP/scenarios"
lines() { "$VRAMCAST" sweep "$a" "$b" --scenarios - -g rtx4090 "$@" < "$TMP/scenarios"; }
lines > "$TMP/listed"
check "scenarios of standard input come in their order" test "$(sed 's/^{"id":\([0-9]*\),.*/\1/' "$TMP/listed" | tr -d '\n')" = 503142
sort -t: -k2n "$TMP/listed" > "$TMP/by_id"
check "a line of a scenario is that of the same combination" cmp "$TMP/by_id" "$TMP/sorted"
lines --shard 1/2 > "$TMP/half1"; lines --shard 2/2 > "$TMP/half2"
run reduce -q "$TMP/half1" "$TMP/half2" --runs 6
check "parts of scenarios make the whole" cmp "$TMP/out" "$TMP/one"
head -n 2 "$TMP/listed" > "$TMP/r.jsonl"; printf '{"id":3,"torn' >> "$TMP/r.jsonl"
lines --resume -o "$TMP/r.jsonl"
check "scenarios go on where they stopped" cmp "$TMP/r.jsonl" "$TMP/listed"
wrong() { printf '%b\n' "$2" > "$TMP/wrong"; run sweep "$a" --scenarios "$TMP/wrong"; expect "scenarios: $1" "$3" '' "$4"; }
bad() { printf '%b\n' "$2" > "$TMP/wrong"; run sweep "$a" --scenarios "$TMP/wrong"; expect "scenarios: $1" 2 "$3" '1 of [23] scenarios could not be run'; }
bad "keys that differ" '{"gpu":"t4"}\n{"conf":"x"}' '^\{"id":1,"vary":\{\},"error":".*line 2: \\"conf\\" is not in the lines before'
bad "a key that is missing" '{"gpu":"t4","fraction":1}\n{"gpu":"l4"}' 'line 2: \\"fraction\\" is missing'
bad "the first line, with keys of its own" '{"x1":[]}\n{"id":5,"gpu":"l4"}' '^\{"id":0,"vary":\{\},"error"'
bad "an id that is there twice" '{"id":1,"gpu":"t4"}\n{"id":1,"gpu":"l4"}' '^\{"id":2,"vary":\{\},"error":"id 1 is there twice'
bad "half a line, whose id is known" '{"id":3,"gpu":"t4"}\n{"id":9,"gpu":"l' '^\{"id":9,"vary":\{\},"error":".*line 2: '
bad "a line without an id that another has" '{"id":1,"gpu":"t4"}\n[1]\n{"id":7,"gpu":"l4"}' '^\{"id":8,"vary":\{\},"error":".*line 2: one JSON'
check "... and those with ids are run" test "$(printf '%s\n' "$out" | grep -c peak_used)" = 2
cp "$TMP/out" "$TMP/r.jsonl"; cp "$TMP/out" "$TMP/out.before"
run sweep "$a" --scenarios "$TMP/wrong" --resume -o "$TMP/r.jsonl"
check "... and kept" cmp "$TMP/out.before" "$TMP/r.jsonl"
wrong "a value that is a list" '{"gpu":["t4"]}' 1 'line 1: "gpu" is no text or number'
wrong "no object" '[1]' 1 'one JSON object per line'
# One bad line of many is told in its place.
{ head -n 2 "$TMP/scenarios"; echo '{"id":7,"batch":24,"conf":"nonsense:1"}'; sed -n 3p "$TMP/scenarios"; echo '{"id":8,"batch":"x","conf":""}'
	sed -n 4,6p "$TMP/scenarios"; } > "$TMP/some_wrong"
run sweep "$a" "$b" -g rtx4090 --scenarios "$TMP/some_wrong"
expect "a bad scenario is told, and the others are run" 2 '^\{"id":7,"vary":.*"error":".*nonsense' '2 of 8 scenarios could not be run'
printf '%s\n' "$out" | grep -v '"error"' > "$TMP/right"
check "... with the lines that they have without it" cmp "$TMP/right" "$TMP/listed"
wrong "a card that is none" '{"gpu":"nocard"}' 2 '1 of 1 scenarios could not be run'
run sweep "$a" --scenarios /dev/null; expect "no scenarios are no runs" 0
run sweep "$a" --vary gpu=t4 --scenarios /dev/null; expect "two ways to say it" 2 '' 'leave one out'

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
