#!/bin/sh
# check_attach.sh - real PyTorch, attached to while it trains, again and again: on the null GPU (every other time with
# kernels; afterwards a profiler of its own sees what it sees without us) and on the CPU. There torch.profiler
# watches the whole run, and what is recorded and replayed is held against what it saw. TORCH_ENVS as in
# check_torch_trace.sh; TIMES: how often (100).
. tests/tracer/lib.sh
[ -n "$TORCH_ENVS" ] || { skip "attaching to PyTorch" "TORCH_ENVS names no Python with a CUDA build of PyTorch"; finish; }
times=${TIMES:-100}
# A dry run preloads the tracer for reasons of its own; the program is to know nothing of it.
bare='LD_PRELOAD=$(printf %s "$LD_PRELOAD" | tr : "\n" | grep -v libvramcast_trace | paste -sd: -); echo $$ > "$1"; shift; exec "$@"'
start() { # start DEVICE STEPS [TRUTH]: in the background
	rm -f "$TMP/ready" "$TMP/end" "$TMP/pid"
	[ "$1" = cpu ] && hidden="CUDA_VISIBLE_DEVICES=" || hidden=VRAMCAST_UNUSED=
	PATH="$env/bin:$PATH" "$VRAMCAST" dryrun --no-record -q -g rtx4090 -- env "$hidden" sh -c "$bare" sh "$TMP/pid" \
		"$env/bin/python3" tests/tracer/torch_loop.py "$1" "$2" "$TMP/ready" "$TMP/end" $3 > "$TMP/$1.out" 2> "$TMP/$1.err" &
	program=$!
}
for env in $TORCH_ENVS; do
	for device in ${DEVICES:-cuda cpu}; do
		name="$(basename "$env") $device"
		truth=; [ "$device" = cpu ] && truth=$TMP/truth
		start "$device" 0 $truth
		for i in $(seq 600); do [ -e "$TMP/ready" ] && break; sleep 0.1; done
		[ -e "$TMP/ready" ] || { skip "$name" "PyTorch does not run: $(tail -n 1 "$TMP/$device.err" | cut -c 1-100)"; wait "$program"; continue; }
		pid=$(cat "$TMP/pid"); before=$(ls "/proc/$pid/fd" | wc -l)
		good=0; timed=0; exact=0; warm=0; events=0; other=; lost=0; windows=
		for i in $(seq "$times"); do
			trace=$TMP/a$i.vct; rm -f "$trace"
			[ "$device" = cuda ] && [ $((i % 2)) = 0 ] && kernels=on || kernels=off
			timeout 100 "$VRAMCAST" record -q -o "$trace" --kernels $kernels --pid "$pid" --duration "${WINDOW:-0.2s}" 2> "$TMP/err" || { other="$other $i: $(cat "$TMP/err");"; continue; }
			good=$((good + 1)); events=$((events + $(field "$trace" events))); windows="$windows $trace"
			lost=$((lost + $(field "$trace" dropped)))
			lost=$((lost + $(field "$trace" unmatched_frees) + $(field "$trace" double_allocs)))
			[ $kernels = off ] || timed=$((timed + ($("$VRAMCAST" dump "$trace" | grep -c ' kernel ') > 0)))
			got=$("$VRAMCAST" sim --json "$trace" | tr -d ' \n')
			case $got in *'"exact":true'*) exact=$((exact + 1)) ;; *) cp "$trace" "${KEEP:-$TMP}/inexact.$i.vct"; other="$other $i: not exact;" ;; esac
			case $got in *'"start":"warm"'*) warm=$((warm + 1)) ;; esac
		done
		after=$(ls "/proc/$pid/fd" | wc -l)
		ours=$(grep -c vcj "/proc/$pid/maps")
		: > "$TMP/end"; wait "$program"; rc=$?
		with=$(cat "$TMP/$device.out")
		equal "$name: attached to $times times: $good windows, $events events" "$good $other" "$times "
		equal "$name: nothing is dropped, each free is of a block that is known" "$lost" 0
		if [ "$device" = cpu ]; then
			equal "$name: every window replays exactly" "$exact" "$times"
			verdict=$(python3 tests/tracer/torch_truth.py "$TMP/truth" "$VRAMCAST" $windows 2>&1)
			case $verdict in
			"$times windows,"*" 0 differ") pass "$name: recordings, replays and the program's own account against torch.profiler: $verdict" ;;
			*) fail "$name: recordings, replays and the program's own account against torch.profiler" "$verdict" ;;
			esac
		else equal "$name: every window begins warm and replays exactly" "$exact $warm" "$times $times"; equal "$name: every other window has times of kernels" "$timed" "$((times / 2))"; fi
		equal "$name: no descriptor and no journal stays behind" "$after $ours" "$before 0"
		start "$device" "${with%% *}"; wait "$program"
		equal "$name: the results of ${with%% *} steps are bit-equal" "$rc $with" "$? $(cat "$TMP/$device.out")"
	done
done
finish
