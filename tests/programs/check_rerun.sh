#!/bin/bash
# check_rerun.sh - programs of this folder answer for a value that nobody recorded: what `sim --set` says of one recording is
# held against a dry run of that value in another process, with the recorded seed and with another one. Needs a PyTorch built
# for CUDA (TORCH_PYTHON=python). PROGRAMS="NAME:OPTION:RECORDED:ASKED ..." says which. Then changes of -x, which are made in
# the running program, are held against programs in which they stand: CHANGES="NAME ..." says which programs.
. tests/support/tap.sh
py=${TORCH_PYTHON:-python3}
has_cuda_torch "$py" || { skip "asking real programs" "no PyTorch built for CUDA in $py"; finish; }
: "${PROGRAMS:=gpt:batch:4:8 resnet:batch:4:8 bert_packed:batch:4:8 moe:batch:4:8 detection:batch:4:8 padded:seq:96:256}"
export XDG_CACHE_HOME="$TMP/cache" PYTHONHASHSEED=0; card=rtx4090
value() { python3 -c 'import json, sys
run = json.load(open(sys.argv[1])); one = run["runs"][0]; t = run["trace"]["trust"].get("control_run", {})
low, high = one["interval"] or [one["peak_reserved"]] * 2
print(one["peak_reserved"], low, high, one["level"].replace(" ", "-"), t.get("equal", 0), t.get("requests", 0))' "$1"; }
for line in $PROGRAMS; do
	IFS=: read -r program option from to <<< "$line"
	dry() { "$VRAMCAST" dryrun -q -g $card -o "$TMP/$1.vct" --param "$option=$2" -- "$py" "tests/programs/$program.py" "--$option" "$2" --seed "$3" > "$TMP/said" 2>&1; }
	dry recorded "$from" 1 || { fail "$program is recorded" "$(tail -n 5 "$TMP/said")"; continue; }
	start=$SECONDS; run sim "$TMP/recorded.vct" --set "$option=$to" --no-advice --json; first=$((SECONDS - start))
	cp "$TMP/out" "$TMP/answer"; read -r peak low high level equal requests < <(value "$TMP/answer")
	start=$SECONDS; run sim "$TMP/recorded.vct" --set "$option=$to" --no-advice --json; second=$((SECONDS - start))
	echo "# $program $option=$to: $first s, then $second s; control run $equal of $requests; $peak bytes, $low to $high"
	check "$program $option=$to: the program answers" test "$level" = rerun
	dry truth "$to" 1; run sim "$TMP/truth.vct" --no-advice --json; read -r truth rest < <(value "$TMP/out")
	if [ "$equal" = "$requests" ]; then check "... to the byte what another process needs" test "$truth" = "$peak"
	else check "... within its interval what another process needs" test "$low" -le "$truth" -a "$truth" -le "$high"; fi
	dry other "$to" 5; run sim "$TMP/other.vct" --no-advice --json; read -r other rest < <(value "$TMP/out")
	echo "# with another seed $other bytes"
done

# -x | what the program is run with otherwise | the change, as it stands in tests/programs/common.py
changes='optimizer:to=sgd||--optimizer sgd
optimizer:to=adamw,step=fused||--optimizer fused
optimizer:to=adagrad||--optimizer adagrad
precision||--amp bf16
precision:eval=float||--amp bf16 --eval-amp no
precision:to=bf16||--bf16 1
checkpoint||--checkpoint 1
accumulate:micro=4|--steps 8|--accumulate 4 --steps 2'
: "${CHANGES=gpt bert_classify vit resnet t5 unet mixer swin}"
for program in $CHANGES; do
	while IFS='|' read -r x with changed; do
		[ "$x" = precision:to=bf16 ] && grep -q 'a.bf16' "tests/programs/$program.py" && continue # it narrows its data itself
		dry() { "$VRAMCAST" dryrun -q -g $card -o "$TMP/$1.vct" -- "$py" "tests/programs/$program.py" ${@:2} > "$TMP/said" 2>&1 < /dev/null; }
		dry recorded $with || { fail "$program is recorded" "$(tail -n 5 "$TMP/said")"; continue; }
		dry truth $changed || { echo "# $program has no $changed"; continue; }
		run sim "$TMP/recorded.vct" -x "$x" --no-advice --json; cp "$TMP/out" "$TMP/answer"
		read -r peak low high level rest < <(value "$TMP/answer")
		why=$(sed -n 's/^ *"no_rerun": "\(.*\)",*$/\1/p' "$TMP/answer")
		run sim "$TMP/recorded.vct" -x "$x" --by recordings --no-advice --json; read -r guess rest < <(value "$TMP/out")
		run sim "$TMP/truth.vct" --no-advice --json; read -r truth rest < <(value "$TMP/out")
		echo "# $program -x $x: made $peak, written $truth, estimated $guess$why"
		[ "$level" = rerun ] || { skip "$program -x $x" "$why"; continue; }
		check "$program -x $x: to the byte what a program needs in which it stands" test "$truth" = "$peak"
	done <<< "$changes"
done

# what fit finds for a recording is made in its program, and needs what the program needs in which it stands
"$VRAMCAST" dryrun -q -g a100-80g-sxm --stacks py -o "$TMP/recorded.vct" -- "$py" tests/programs/gpt.py --batch 32 > "$TMP/said" 2>&1
run fit --find anything "$TMP/recorded.vct" -g a100-80g-sxm --capacity 600MiB --context 0 --most 600 --json
check "fit makes in the program what it finds" grep -q '"proven": true' "$TMP/out"
run fit --find checkpoint "$TMP/recorded.vct" -g a100-80g-sxm --capacity 600MiB --context 0
expect "and the layers that it chooses" 0 'really done in a dry run: fits, [0-9.]+ MiB reserved, inside the interval'
finish
