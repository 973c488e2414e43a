#!/bin/sh
# check_torch_trace.sh - real PyTorch on the null GPU: each recording must equal the allocator's own
# trace event by event, and replay exactly. TORCH_ENVS: folders with a bin/python that has a CUDA
# build of PyTorch; without any, one skip. What was seen to pass is remembered in build/.
. tests/tracer/lib.sh
build=${BUILD:-build}
[ -n "$TORCH_ENVS" ] || { skip "recordings against PyTorch's own trace" "TORCH_ENVS names no Python with a CUDA build of PyTorch"; finish; }
exact='import json,sys; f = json.load(sys.stdin)["fidelity"]; print(f["exact"], f["first_divergence"] or "")'
stamp=$(cat "$build/libvramcast_trace.so" "$build/vramcast" tests/tracer/torch_*.py | cksum | tr ' ' '-')
mkdir -p "$build/torch-trace"
go() { timeout 200 "$VRAMCAST" dryrun -q -g rtx4090 "$@" -- "$env/bin/python" tests/tracer/torch_run.py $mode "$TMP/ref" > "$TMP/log" 2>&1; }
for env in $TORCH_ENVS; do
	version=$(sed -n "s/^__version__ = '\(.*\)'/\1/p" "$env"/lib/python3*/site-packages/torch/version.py)
	for mode in plain graph; do
		for conf in "" expandable_segments:True; do
			name="$version $mode ${conf:-native}"
			case $version:$conf in 2.[0-2].*:exp*)
				skip "$name" "up to 2.2 PyTorch's table of driver functions cannot be reached: no mappings"
				continue ;;
			esac
			seen=$build/torch-trace/$stamp-$(echo "$name" | tr ' :+' '---')
			[ -e "$seen" ] && { pass "$name: $(cat "$seen") (before)"; continue; }
			export PYTORCH_CUDA_ALLOC_CONF=$conf
			if ! go -o "$TMP/t.vct"; then
				if go --no-record; then fail "$name: runs" "$(tail -n 3 "$TMP/log")"
				else skip "$name" "this PyTorch does not run on the null GPU without the tracer either"; fi
				continue
			fi
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
# The CPU allocator: events against PyTorch's own memory profiler, one for one.
for env in $TORCH_ENVS; do
	name="$(basename "$env") CPU"
	CUDA_VISIBLE_DEVICES= timeout 200 "$VRAMCAST" dryrun -q -g rtx4090 -o "$TMP/n.vct" -- "$env/bin/python" \
		tests/tracer/torch_count.py > "$TMP/log" 2> /dev/null || { skip "$name" "PyTorch does not run"; continue; }
	got=$("$VRAMCAST" dump "$TMP/n.vct" | awk '/count from here/ { on = 1 } /count to here/ { on = 0 } on { n[$3]++ }
		END { print "asked", n["alloc"] + 0, n["free"] + 0 }')
	if [ "$got" = "$(grep asked "$TMP/log")" ]; then pass "$name: $got, one event each"
	else fail "$name: one event for each request" "$got" "$(cat "$TMP/log")"; fi
	marks=$("$VRAMCAST" dump "$TMP/n.vct" | awk '/ mark .*label=step/ { n++ } END { print n + 0 }')
	[ "$marks" = 21 ] && pass "$name: 21 optimizer steps marked" || fail "$name: 21 optimizer steps marked" "$marks"
done
# The driver's own pool: its calls are the tensors, once each although CUPTI shows them too.
for env in $TORCH_ENVS; do
	name="$(basename "$env") cudaMallocAsync"
	PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync timeout 200 "$VRAMCAST" dryrun -q -g rtx4090 -o "$TMP/y.vct" -- \
		"$env/bin/python" tests/tracer/torch_async.py > "$TMP/log" 2>&1 || { skip "$name" "PyTorch does not run: $(tail -n 1 "$TMP/log" | cut -c 1-100)"; continue; }
	got=$("$VRAMCAST" dump "$TMP/y.vct" | awk '{ n[$3]++ } / outside_.*other libraries/ { twice++ } END { print (n["alloc"] > 100 && n["free"] > 100), twice + 0, n["oom"] + 0 }')
	if [ "$got" = "1 0 1" ]; then pass "$name: each tensor once, and the refusal"
	else fail "$name: each tensor once, and the refusal" "$got"; fi
done
# A profiler in the recorded program: it sees what it sees alone, and the recording has every kernel.
for env in $TORCH_ENVS; do
	name="$(basename "$env") torch.profiler"
	profiled() { timeout 200 "$VRAMCAST" dryrun -q -g rtx4090 "$@" 2> "$TMP/log" | grep '^profiled'; }
	alone=$(profiled --no-record -- "$env/bin/python" tests/tracer/torch_profile.py)
	[ -n "$alone" ] || { skip "$name" "PyTorch does not run: $(tail -n 1 "$TMP/log" | cut -c 1-100)"; continue; }
	both=$(profiled -o "$TMP/p.vct" -- "$env/bin/python" tests/tracer/torch_profile.py)
	with=$("$VRAMCAST" dump "$TMP/p.vct" | grep -cE ' (kernel|copy) ')
	profiled -o "$TMP/p.vct" -- "$env/bin/python" tests/tracer/torch_profile.py off > "$TMP/off"
	without=$("$VRAMCAST" dump "$TMP/p.vct" | grep -cE ' (kernel|copy) ')
	if [ "$both" = "$alone" ] && [ "${alone#profiled 0}" = "$alone" ]; then pass "$name: $both, as without the tracer"
	else fail "$name: it sees what it sees alone" "$both, alone $alone" "$(tail -n 3 "$TMP/log")"; fi
	if [ "$with" = "$without" ]; then pass "$name: the recording has the same $with kernels and copies as without the profiler"
	else fail "$name: the recording has every kernel" "$with, without the profiler $without"; fi
done
# What a program changes while it runs: each once, in place, and the replay follows.
for env in $TORCH_ENVS; do
	name="$(basename "$env") settings"
	timeout 200 "$VRAMCAST" dryrun -q -g rtx4090 --stacks py:2 -o "$TMP/c.vct" -- "$env/bin/python" tests/tracer/torch_settings.py \
		> "$TMP/log" 2>&1 || { skip "$name" "PyTorch does not run: $(tail -n 1 "$TMP/log" | cut -c 1-100)"; continue; }
	"$VRAMCAST" dump "$TMP/c.vct" > "$TMP/dump"
	got=$(awk '$3 == "configure" || $3 == "fraction" || $3 == "trim" || $3 == "oom" { printf "%s ", $3 }' "$TMP/dump")
	replay=$("$VRAMCAST" sim --json "$TMP/c.vct" | python3 -c "$exact")
	case "$got$replay" in
	"configure trim fraction oom True"*) pass "$name: set, emptied, limited, out of memory: each once, in this order; the replay is exact" ;;
	*) fail "$name: set, emptied, limited, out of memory: each once, in this order; the replay is exact" "$got" "$replay" ;;
	esac
	at=$(awk '$3 == "alloc" || $3 == "oom" { on = / at=/ ? "with" : "without"; n[$3 " " on]++ } END { print (n["alloc with"] > 0), (n["alloc without"] > 0), n["oom with"] + 0 }' "$TMP/dump")
	equal "$name, --stacks py:2: the failure is the program's" "$(grep -cE ' oom .*torch_settings.py:[0-9]*:<module>' "$TMP/dump")" 1
	equal "$name, --stacks py:2: the first two steps have call stacks, and the failure has" "$at" "1 1 1"
done
# A version the tracer has no table for: what cannot be known is absent, what is recorded is right.
mode=plain; export PYTORCH_CUDA_ALLOC_CONF=
runs=
for env in $TORCH_ENVS; do go --no-record && { runs=yes; break; }; done
[ -n "$runs" ] || { skip "an unknown version" "none of these runs on the null GPU"; finish; }
as="import os,sys; os.environ['VC_OPTIONS'] += ',torch=99'; os.execv(sys.executable, [sys.executable] + sys.argv[1:])"
timeout 200 "$VRAMCAST" dryrun -g rtx4090 -o "$TMP/u.vct" -- "$env/bin/python" -c "$as" tests/tracer/torch_run.py plain "$TMP/ref" > "$TMP/log" 2>&1
if grep -q 'recorded: requests.*streams' "$TMP/log" && ! grep -q 'recorded:.* uses' "$TMP/log"; then pass "an unknown version: capabilities are off"
else fail "an unknown version: capabilities are off" "$(grep -A9 vramcast: "$TMP/log")"; fi
finish
