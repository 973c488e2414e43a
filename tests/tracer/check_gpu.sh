#!/bin/sh
# check_gpu.sh - what only a GPU can show: the tracer on a card, point by point; appends its findings to
# docs/measurements/gpu.md, and writes the workspaces of this card's convolutions to build/gpu/workspaces.txt.
#
# TORCH_ENV: a folder with bin/python3 that has a CUDA build of PyTorch (default: python3 of PATH).
# LONG: seconds of the long run (60; an hour shows whether CUPTI's costs grow). ROUNDS: of each timing (5).
# CHECK_GPU_NULL=FILE: the same on the null GPU, to prove this script; findings go to FILE, marked as such.
. tests/tracer/lib.sh
what="the tracer on a GPU"
python=${TORCH_ENV:+$TORCH_ENV/bin/}python3
null=$CHECK_GPU_NULL; report=${null:-docs/measurements/gpu.md}
if [ -n "$null" ]; then
	[ -z "$TORCH_ENV" ] || { PATH=$TORCH_ENV/bin:$PATH; export PATH; }
	on() { "$VRAMCAST" dryrun -q --no-record --values off -g rtx4090 -- "$@"; }
else
	[ -e /dev/nvidiactl ] || [ -e /dev/dxg ] || { skip "$what" "this machine has no NVIDIA GPU"; finish; }
	on() { "$@"; }
fi
on "$python" -c 'import torch; torch.zeros(1, device="cuda")' 2> /dev/null || { skip "$what" "$python has no PyTorch that reaches the GPU"; finish; }
notes=$TMP/notes; : > "$notes"
say() { printf '%s\n' "* $*" >> "$notes"; }
topic() { printf '\n%s\n\n' "$*" >> "$notes"; }
count() { "$VRAMCAST" dump "$TMP/t.vct" | grep -cE "$1"; }
# record OPTION... -- PROGRAM: output in $out, messages in $err, code in $rc
record() { rm -f "$TMP"/t*.vct; on "$VRAMCAST" record -q -o "$TMP/t.vct" "$@" > "$TMP/out" 2> "$TMP/err"; rc=$?; out=$(cat "$TMP/out"); err=$(tail -n 5 "$TMP/err"); }
median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

topic "**1. Ways to get memory** (driver calls outside PyTorch; events the recording has for each)"
record -- "$python" tests/tracer/gpu_calls.py
equal "calls of the driver: the program runs" "$rc" 0
printf '%s\n' "$out" | while read -r line; do say "$line"; done
"$VRAMCAST" dump "$TMP/t.vct" | sort -s -n -k 2,2 | awk '$3 == "mark" && /label=/ { sub(/.*label=/, ""); now = $0; order[++k] = now; next }
	now && $3 != "mark" { at = $0; sub(/ label=.*/, "", at); sub(/.* size=/, "", at); sub(/ addr=/, "@", at); sub(/ .*/, "", at)
		n[now] = n[now] " " $3; f[now] = f[now] " " $3 (at ~ /@/ ? " " at : ""); if (/label=mapped/) f[now] = f[now] " mapped" }
	END { for (i = 1; i <= k; i++) { print order[i] ":" (n[order[i]] ? n[order[i]] : " nothing") > "'"$TMP/kinds"'"; print order[i] ":" (f[order[i]] ? f[order[i]] : " nothing") } }' |
	cut -c 1-300 | while read -r line; do say "recorded, $line"; done
# The null GPU calls managed memory device memory, and gives the same address to all of them: there such a record may stand elsewhere.
if [ -z "$null" ]; then
	for name in cuMemAlloc cuMemAllocManaged cuMemHostAlloc cuMemHostRegister cuMemAllocAsync cuMemMap "second context"; do
		equal "$name: allocated once and freed once" "$(sed -n "s/^$name://p" "$TMP/kinds" | grep -o 'outside_[a-z]*' | xargs)" "outside_alloc outside_free"
	done
else equal "cuMemMap: mapped once and unmapped once" "$("$VRAMCAST" dump "$TMP/t.vct" | grep -c ' outside_.*label=mapped')" 2; fi
# What CUPTI itself says, without the tracer. cuMemCreate: has its record the number of the call? cupti.c drops it by that.
on "$python" tests/tracer/gpu_cupti.py 2>&1 | cut -c 1-900 > "$TMP/raw"
while read -r line; do say "CUPTI, $line"; done < "$TMP/raw"
[ "$(count ' outside_alloc ')" -gt 0 ] && pass "memory outside PyTorch is recorded" || fail "memory outside PyTorch is recorded" "$err"

outside() { "$VRAMCAST" dump "$TMP/t.vct" | sed -n 's/.* outside_alloc .*label=//p' | sort | uniq -c | awk '{ n = $1; $1 = ""; printf "%s%d%s", c, n, $0; c = ", " } END { if (!NR) printf "none" }'; }
topic "**2. PyTorch's allocator** against its own trace"
for mode in plain graph; do
	for conf in "" expandable_segments:True; do
		name="$mode ${conf:-native}"
		export PYTORCH_CUDA_ALLOC_CONF=$conf
		record -- "$python" tests/tracer/torch_run.py $mode "$TMP/ref"
		[ "$rc" = 0 ] || { fail "$name: runs" "$err"; continue; }
		"$VRAMCAST" dump "$TMP/t.vct" > "$TMP/dump"
		if verdict=$("$python" tests/tracer/torch_compare.py "$TMP/dump" "$TMP/ref"); then pass "$name: $verdict"; else fail "$name: equal to PyTorch's own trace" "$verdict"; fi
		replay=$("$VRAMCAST" sim --json "$TMP/t.vct" | "$python" -c 'import json,sys; print(json.load(sys.stdin)["fidelity"]["exact"])')
		equal "$name: the replay is exact" "$replay" True
		[ "$(count ' kernel ')" -gt 0 ] && pass "$name: kernels are timed" || fail "$name: kernels are timed" "$err"
		say "$name: $verdict; replay exact: $replay; $(count ' kernel ') kernels, $(count ' copy ') copies, outside the allocator: $(outside); $(count ' segment_map ') mapped; dropped $(field "$TMP/t.vct" dropped)"
		[ -n "$conf" ] || native=$(count ' outside_alloc ')
		[ -z "$conf" ] || equal "$name: nothing that PyTorch maps is memory of others too" "$(count ' outside_alloc ')" "$native"
	done
done
unset PYTORCH_CUDA_ALLOC_CONF

topic "**3. Price** (seconds of a step, median of ${ROUNDS:-5} runs in turn; free device memory at the end)"
for model in launches compute compiled; do
	if [ $model = compiled ] && ! "$python" -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("triton"))'; then
		say "compiled: triton is not installed"
		continue
	fi
	rm -f "$TMP"/cost.*
	for i in $(seq "${ROUNDS:-5}"); do
		on "$python" tests/tracer/gpu_train.py $model 5 2> /dev/null > "$TMP/cost" && sed -n 's/^step \([^ ]*\).*/\1/p' "$TMP/cost" >> "$TMP/cost.bare" && cp "$TMP/cost" "$TMP/last.bare"
		for how in "memory only:--kernels off" "kernels:" "launches too:--launches"; do
			# shellcheck disable=SC2086
			record ${how#*:} -- "$python" tests/tracer/gpu_train.py $model 5
			printf '%s\n' "$out" | sed -n 's/^step \([^ ]*\).*/\1/p' >> "$TMP/cost.${how%:*}"
			printf '%s\n' "$out" > "$TMP/last.${how%:*}"
		done
	done
	[ -s "$TMP/cost.bare" ] || { say "$model: does not run here"; continue; }
	for how in bare "memory only" kernels "launches too"; do
		say "$model, $how: $(median "$TMP/cost.$how") s, $(grep -o 'free [0-9]*' "$TMP/last.$how")"
	done
	[ -s "$TMP/cost.kernels" ] && pass "$model: its price is measured" || fail "$model: runs under the tracer" "$err"
done

topic "**4. A profiler in the recorded program**"
alone=$(on "$python" tests/tracer/torch_profile.py 2> /dev/null | grep '^profiled')
record -- "$python" tests/tracer/torch_profile.py
seen=$(printf '%s\n' "$out" | grep '^profiled')
equal "torch.profiler sees what it sees alone" "$seen" "$alone"
with=$(count ' (kernel|copy) ')
record -- "$python" tests/tracer/torch_profile.py off
equal "the recording has every kernel beside a profiler" "$with" "$(count ' (kernel|copy) ')"
say "torch.profiler: $alone alone, $seen recorded; $with kernels and copies in the recording"

topic "**5. Ways to end** while the GPU is busy"
work='import os, signal, sys, torch
x = torch.randn(4096, 4096, device="cuda")
for i in range(200): x = (x @ x).clamp(-1, 1)
'
for end in "os.kill(os.getpid(), signal.SIGKILL):137" "os.kill(os.getpid(), signal.SIGTERM):143" "os._exit(7):7" "sys.exit(3):3" "os.abort():134"; do
	a=$(date +%s.%N); record -- "$python" -c "$work${end%:*}"; b=$(date +%s.%N)
	equal "${end%:*}: exit code" "$rc" "${end##*:}"
	kept=$(count ' (alloc|free) ')
	[ "$kept" -ge 600 ] && pass "${end%:*}: no request is lost" || fail "${end%:*}: no request is lost" "$kept events" "$err"
	say "${end%:*}: $kept requests, $(count ' kernel ') of about 400 kernels recorded, $(echo "$a $b" | awk '{ printf "%.1f", $2 - $1 }') s in all"
done
record -- "$python" tests/tracer/gpu_train.py loader 2
equal "DataLoader with forked workers: runs" "$rc" 0
if [ -z "$null" ]; then record -- "$python" -m torch.distributed.run --standalone --nproc-per-node 1 tests/tracer/gpu_train.py launches 2
else record -- "$python" -m torch.distributed.run --nproc-per-node 1 --master-port 29517 tests/tracer/gpu_train.py launches 2; fi
equal "torchrun: runs" "$rc" 0
worker=$(for f in "$TMP"/t*.vct; do "$VRAMCAST" dump "$f" | grep -cE ' mark .*label=step'; done | sort -n | tail -n 1)
[ "$worker" -gt 0 ] && pass "torchrun: its worker is recorded" || fail "torchrun: its worker is recorded" "$err"

topic "**6. A long run** (${LONG:-60} s)"
record -- "$python" tests/tracer/gpu_train.py launches "${LONG:-60}"
equal "the long run ends" "$rc" 0
equal "nothing was dropped" "$(field "$TMP/t.vct" dropped)" 0
say "$out; $(field "$TMP/t.vct" events) events in $(stat -c %s "$TMP/t.vct") bytes, dropped $(field "$TMP/t.vct" dropped) (cpu: seconds of a step in the first and the last tenth)"

topic "**7. Other frameworks**"
for f in jax tensorflow cupy; do
	"$python" -c "import $f" 2> /dev/null || { say "$f is not installed"; continue; }
	case $f in
	jax) code='import jax.numpy as n; x = n.ones((1024, 1024)); [(x @ x).block_until_ready() for _ in range(20)]' ;;
	tensorflow) code='import tensorflow as t; x = t.ones((1024, 1024)); [t.matmul(x, x) for _ in range(20)]' ;;
	cupy) code='import cupy; x = cupy.ones((1024, 1024)); [x @ x for _ in range(20)]' ;;
	esac
	TF_GPU_ALLOCATOR=cuda_malloc_async XLA_PYTHON_CLIENT_ALLOCATOR=platform record -- "$python" -c "$code"
	say "$f with one call of the driver for each array: exit code $rc, $(count ' outside_alloc ') allocations, $(count ' kernel ') kernels"
done

topic "**8. Workspaces of convolutions**"
mkdir -p "$BUILD/gpu"
if on "$python" python/probe_workspaces.py "$BUILD/gpu/workspaces.txt" > "$TMP/out" 2> "$TMP/err"; then
	rows=$(grep -vc '^#' "$BUILD/gpu/workspaces.txt")
	pass "workspaces of $rows convolutions are recorded"
	say "$rows convolutions in $BUILD/gpu/workspaces.txt; VRAMCAST_NULL_WORKSPACES, or ~/.cache/vramcast/workspaces.txt, gives them to dry runs (docs/reference/null-gpu.md)"
else
	fail "workspaces of convolutions are recorded" "$(tail -n 5 "$TMP/err")"
fi

facts=$(on "$python" -c 'import ctypes, torch
n = ctypes.c_int(); ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(n))
torch.zeros(1, device="cuda")
def cupti():
    for name in ("libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8"):
        try:
            v = ctypes.c_uint32(); ctypes.CDLL(name).cuptiGetVersion(ctypes.byref(v)); return "%s, API %d" % (name, v.value)
        except (OSError, AttributeError): pass
    return "none"
print("%s, CUDA driver API %d, PyTorch %s, CUPTI %s" % (torch.cuda.get_device_name(0), n.value, torch.__version__, cupti()))' 2> /dev/null)
driver=$([ -n "$null" ] || nvidia-smi --query-gpu=driver_version --format=csv,noheader 2> /dev/null | head -n 1)
{
	if [ -n "$null" ]; then printf '\n## check-gpu on the NULL GPU: proves the script, says nothing about a card. %s, %s\n' "$facts" "$(date -u +%Y-%m-%d)"
	else printf '\n## The tracer, checked on %s, driver %s, %s\n' "$facts" "$driver" "$(date -u +%Y-%m-%d)"; fi
	cat "$notes"
	printf '\nCommand: `make check-gpu`.\n'
} >> "$report"
finish
