#!/bin/sh
# check_torch_trace.sh - real PyTorch on the null GPU: each recording must equal the allocator's own
# trace event by event, and replay exactly. TORCH_ENVS: folders with a bin/python that has a CUDA
# build of PyTorch; without any, one skip. What was seen to pass is remembered in build/.
. tests/support/tap.sh
build=${BUILD:-build}
[ -n "$TORCH_ENVS" ] || { skip "recordings against PyTorch's own trace" "TORCH_ENVS names no Python with a CUDA build of PyTorch"; finish; }
exact='import json,sys; f = json.load(sys.stdin)["fidelity"]; print(f["exact"], f["first_divergence"] or "")'
stamp=$(cat "$build/libvramcast_trace.so" "$build/vramcast" tests/tracer/torch_*.py | cksum | tr ' ' '-')
mkdir -p "$build/torch-trace"
for env in $TORCH_ENVS; do
	version=$(sed -n "s/^__version__ = '\(.*\)'/\1/p" "$env"/lib/python3*/site-packages/torch/version.py)
	for mode in plain graph; do
		for conf in "" expandable_segments:True; do
			name="$version $mode ${conf:-native}"
			seen=$build/torch-trace/$stamp-$(echo "$name" | tr ' :+' '---')
			[ -e "$seen" ] && { pass "$name: $(cat "$seen") (before)"; continue; }
			PYTORCH_CUDA_ALLOC_CONF=$conf timeout 200 "$VRAMCAST" dryrun -q -g rtx4090 -o "$TMP/t.vct" -- \
				"$env/bin/python" tests/tracer/torch_run.py $mode "$TMP/ref" > "$TMP/log" 2>&1 ||
				{ fail "$name: runs" "$(tail -n 3 "$TMP/log")"; continue; }
			"$VRAMCAST" dump "$TMP/t.vct" > "$TMP/dump"
			if verdict=$(python3 tests/tracer/torch_compare.py "$TMP/dump" "$TMP/ref"); then
				pass "$name: $verdict"
			else
				fail "$name: equal to PyTorch's own trace" "$verdict"; continue
			fi
			replay=$("$VRAMCAST" sim --json "$TMP/t.vct" | python3 -c "$exact")
			case $replay in
			True*) pass "$name: the replay is exact"; echo "$verdict, replay exact" > "$seen" ;;
			*) fail "$name: the replay is exact" "$replay" ;;
			esac
		done
	done
done
finish
