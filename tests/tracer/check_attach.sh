#!/bin/sh
# check_attach.sh - real PyTorch, attached to while it trains, again and again: on the null GPU and on the CPU. TORCH_ENVS
# as in check_torch_trace.sh; TIMES: how often (100).
. tests/tracer/lib.sh
[ -n "$TORCH_ENVS" ] || { skip "attaching to PyTorch" "TORCH_ENVS names no Python with a CUDA build of PyTorch"; finish; }
times=${TIMES:-100}
# A dry run preloads the tracer for reasons of its own; the program is to know nothing of it.
bare='LD_PRELOAD=$(printf %s "$LD_PRELOAD" | tr : "\n" | grep -v libvramcast_trace | paste -sd: -); echo $$ > "$1"; shift; exec "$@"'
start() { # start DEVICE STEPS: in the background
	rm -f "$TMP/ready" "$TMP/end" "$TMP/pid"
	[ "$1" = cpu ] && hidden="CUDA_VISIBLE_DEVICES=" || hidden=VRAMCAST_UNUSED=
	PATH="$env/bin:$PATH" "$VRAMCAST" dryrun --no-record -q -g rtx4090 -- env "$hidden" sh -c "$bare" sh "$TMP/pid" \
		"$env/bin/python3" tests/tracer/torch_loop.py "$1" "$2" "$TMP/ready" "$TMP/end" > "$TMP/$1.out" 2> "$TMP/$1.err" &
	program=$!
}
for env in $TORCH_ENVS; do
	for device in ${DEVICES:-cuda cpu}; do
		name="$(basename "$env") $device"
		start "$device" 0
		for i in $(seq 600); do [ -e "$TMP/ready" ] && break; sleep 0.1; done
		[ -e "$TMP/ready" ] || { skip "$name" "PyTorch does not run: $(tail -n 1 "$TMP/$device.err" | cut -c 1-100)"; wait "$program"; continue; }
		pid=$(cat "$TMP/pid"); before=$(ls "/proc/$pid/fd" | wc -l)
		good=0; exact=0; warm=0; events=0; other=; lost=0
		for i in $(seq "$times"); do
			rm -f "$TMP"/a*.vct
			timeout 100 "$VRAMCAST" record -q -o "$TMP/a.vct" --pid "$pid" --duration "${WINDOW:-0.2s}" 2> "$TMP/err" || { other="$other $i: $(cat "$TMP/err");"; continue; }
			good=$((good + 1)); events=$((events + $(field "$TMP/a.vct" events)))
			lost=$((lost + $(field "$TMP/a.vct" dropped)))
			lost=$((lost + $(field "$TMP/a.vct" unmatched_frees) + $(field "$TMP/a.vct" double_allocs)))
			[ "$device" = cpu ] && continue # malloc's addresses are no model's
			got=$("$VRAMCAST" sim --json "$TMP/a.vct" | tr -d ' \n')
			case $got in *'"exact":true'*) exact=$((exact + 1)) ;; *) cp "$TMP/a.vct" "${KEEP:-$TMP}/inexact.$i.vct"; other="$other $i: not exact;" ;; esac
			case $got in *'"start":"warm"'*) warm=$((warm + 1)) ;; esac
		done
		after=$(ls "/proc/$pid/fd" | wc -l)
		ours=$(grep -c vcj "/proc/$pid/maps")
		: > "$TMP/end"; wait "$program"; rc=$?
		with=$(cat "$TMP/$device.out")
		equal "$name: attached to $times times: $good windows, $events events" "$good $other" "$times "
		equal "$name: nothing is dropped, each free is of a block that is known" "$lost" 0
		[ "$device" = cpu ] || equal "$name: every window begins warm and replays exactly" "$exact $warm" "$times $times"
		equal "$name: no descriptor and no journal stays behind" "$after $ours" "$before 0"
		start "$device" "${with%% *}"; wait "$program"
		equal "$name: the results of ${with%% *} steps are bit-equal" "$rc $with" "$? $(cat "$TMP/$device.out")"
	done
done
finish
