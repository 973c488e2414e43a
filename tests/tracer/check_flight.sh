#!/bin/sh
# check_flight.sh - real PyTorch on the null GPU: what the flight recorder keeps, what it seals and each
# window begins warm and replays exactly. TORCH_ENVS as in check_torch_trace.sh.
. tests/tracer/lib.sh
[ -n "$TORCH_ENVS" ] || { skip "the flight recorder against PyTorch" "TORCH_ENVS names no Python with a CUDA build of PyTorch"; finish; }
# judge: exact, warm and other recordings; those with nothing to compare do not count
judge() {
	exact=0; warm=0; other=
	for f in "$TMP"/f*.vct; do
		got=$("$VRAMCAST" sim --json "$f" | tr -d ' \n')
		case $got in
		*'"events_compared":0,'*) continue ;;
		*'"exact":true'*) exact=$((exact + 1)) ;;
		*) other="$other $(basename "$f")" ;;
		esac
		case $got in *'"start":"warm"'*) warm=$((warm + 1)) ;; esac
	done
}
go() { # go OPTION... -- ARGUMENT...
	rm -f "$TMP"/f*.vct
	PATH="$env/bin:$PATH" timeout 200 "$VRAMCAST" dryrun --no-record -q -g rtx4090 -- "$VRAMCAST" record -q -o "$TMP/f.vct" "$@" > "$TMP/log" 2>&1
}
for env in $TORCH_ENVS; do
	for how in "" pool; do
		name="$(basename "$env") ${how:-streams}"
		# shellcheck disable=SC2086
		go --paused -- python3 tests/tracer/torch_windows.py 1 $how || { skip "$name" "PyTorch does not run: $(tail -n 1 "$TMP/log" | cut -c 1-100)"; continue; }
		judge
		equal "$name: windows of any beginning, $exact of them, replay exactly" "$other $((exact > 8)) $((warm > 8))" " 1 1"
		# shellcheck disable=SC2086
		[ "$how" ] && want=2 || want=3
		go --keep 8steps -- python3 tests/tracer/torch_windows.py 2 $how
		judge
		equal "$name: what is kept, at the refusal, at a dump and at the end" "$other $exact $warm $(ls "$TMP"/f*.vct | wc -l | tr -d ' ')" " $want $want $want"
		rm -f "$TMP"/f*.vct
		# shellcheck disable=SC2086
		PATH="$env/bin:$PATH" timeout 200 "$VRAMCAST" dryrun -q -g rtx4090 -o "$TMP/f.vct" --keep 8steps -- python3 tests/tracer/torch_windows.py 2 $how > "$TMP/log" 2>&1
		judge
		equal "$name: dryrun --keep keeps and seals the same" "$other $exact $warm $(ls "$TMP"/f*.vct | wc -l | tr -d ' ')" " $want $want $want"
	done
done
finish
