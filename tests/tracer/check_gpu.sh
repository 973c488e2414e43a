#!/bin/sh
# check_gpu.sh - what only a GPU can show; appends its findings to docs/fidelity.md.
# TORCH_ENV: a folder with bin/python that has a CUDA build of PyTorch (default: python3 of PATH).
. tests/tracer/lib.sh
what="the tracer on a GPU"
[ -e /dev/nvidiactl ] || [ -e /dev/dxg ] || { skip "$what" "this machine has no NVIDIA GPU"; finish; }
python=${TORCH_ENV:+$TORCH_ENV/bin/}python3
"$python" -c 'import torch; torch.zeros(1, device="cuda")' 2> /dev/null || { skip "$what" "$python has no PyTorch that reaches the GPU"; finish; }
notes=$TMP/notes; : > "$notes"
say() { printf '%s\n' "* $*" >> "$notes"; }
count() { "$VRAMCAST" dump "$TMP/t.vct" | grep -cE "$1"; }
seconds() { date +%s.%N; }

for mode in plain graph; do
	for conf in "" expandable_segments:True; do
		name="$mode ${conf:-native}"
		PYTORCH_CUDA_ALLOC_CONF=$conf run record -o "$TMP/t.vct" -- "$python" tests/tracer/torch_run.py $mode "$TMP/ref"
		[ "$rc" = 0 ] || { fail "$name: runs" "$err"; continue; }
		"$VRAMCAST" dump "$TMP/t.vct" > "$TMP/dump"
		if verdict=$(python3 tests/tracer/torch_compare.py "$TMP/dump" "$TMP/ref"); then pass "$name: $verdict"; else fail "$name: equal to PyTorch's own trace" "$verdict"; fi
		say "$name: $verdict; $(count ' kernel ') kernels, $(count ' copy ') copies, $(count ' outside_alloc ') allocations outside the allocator, dropped $(field "$TMP/t.vct" dropped)"
		replay=$("$VRAMCAST" sim --json "$TMP/t.vct" | python3 -c 'import json,sys; print(json.load(sys.stdin)["fidelity"]["exact"])')
		say "$name: replay exact: $replay"
		equal "$name: the replay is exact" "$replay" True
		[ "$(count ' kernel ')" -gt 0 ] && pass "$name: kernels are timed" || fail "$name: kernels are timed" "$err"
	done
done
# Cost: the same loop bare, with memory only, with kernels; in turn, medians of five.
for i in 1 2 3 4 5; do
	for how in bare "record -q --kernels off -o $TMP/o.vct --" "record -q -o $TMP/o.vct --"; do
		a=$(seconds)
		# shellcheck disable=SC2086
		if [ "$how" = bare ]; then "$python" tests/tracer/torch_run.py plain "$TMP/ref" > /dev/null 2>&1
		else "$VRAMCAST" $how "$python" tests/tracer/torch_run.py plain "$TMP/ref" > /dev/null 2>&1; fi
		b=$(seconds); echo "$a $b" | awk '{ print $2 - $1 }' >> "$TMP/time.$(echo "$how" | cksum | cut -c1-6)"
	done
done
for f in "$TMP"/time.*; do say "whole runs, median of five (bare, memory only, kernels; in the order of size): $(sort -n "$f" | sed -n 3p) s"; done
# Killed while the GPU is busy: what was in the journal is in the trace.
run record -q -o "$TMP/k.vct" -- "$python" -c '
import os, signal, torch
x = torch.randn(4096, 4096, device="cuda")
for i in range(200): x = (x @ x).clamp(-1, 1)
os.kill(os.getpid(), signal.SIGKILL)'
equal "killed while the GPU is busy: exit code" "$rc" 137
[ "$(field "$TMP/k.vct" events)" -ge 600 ] && pass "killed while the GPU is busy: no request is lost" || fail "killed while the GPU is busy: no request is lost" "$(field "$TMP/k.vct" events)"
# A profiler inside a recorded run must not notice, or be refused by CUPTI with its own words.
run record -q -o "$TMP/p.vct" -- "$python" -c '
import torch
from torch.profiler import profile, ProfilerActivity
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
    (torch.randn(512, 512, device="cuda") @ torch.randn(512, 512, device="cuda")).sum().item()
print("profiled", len(p.events()))'
equal "torch.profiler inside a recorded run: the program runs" "$rc" 0
say "torch.profiler inside a recorded run: exit code $rc, $out"
{
	printf '\n## The tracer, checked on %s, driver %s, PyTorch %s, %s\n\n' \
		"$(nvidia-smi --query-gpu=name --format=csv,noheader 2> /dev/null | head -n 1)" \
		"$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2> /dev/null | head -n 1)" \
		"$("$python" -c 'import torch; print(torch.__version__)')" "$(date -u +%Y-%m-%d)"
	cat "$notes"
	printf '\nCommand: `make check-gpu`.\n'
} >> docs/fidelity.md
finish
