#!/bin/sh
# bench_step.sh - what a training step of GPT-2 small costs on the null GPU with values and recording on,
# what stays resident, and how much longer than PyTorch's own import a program takes to its first tensor.
# TORCH_ENV: a folder with bin/python that has a CUDA build of PyTorch, and transformers for two more lines.
[ -n "$TORCH_ENV" ] || { echo "# nullgpu.step: TORCH_ENV names no Python with PyTorch"; exit 0; }
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
dry() { "$VRAMCAST" dryrun -q "$@" 2> "$tmp/err"; }
step() { dry -g "$1" -o "$tmp/a.vct" -- "$TORCH_ENV/bin/python" tests/nullgpu/torch/step.py "$2" 40 | grep '^step'; }

# CPU time of the process, median of the steps; the least says what it is when nobody else computes.
report() { # SUFFIX
	awk -v s="$1" '{ printf "bench nullgpu.step%s.ms %s ms\nbench nullgpu.step%s.least.ms %s ms\nbench nullgpu.rss%s.mib %s MiB\n", s, $3, s, $7, s, $10 }'
}
step rtx4090 plain | report ""
step h200-141g plain | report .h200
if dry -g rtx4090 --no-record -- "$TORCH_ENV/bin/python" -c 'import transformers'; then
	step rtx4090 hf | report .hf
else
	echo "# nullgpu.step.hf: $TORCH_ENV has no transformers"
fi

# Start-up: wall time of the command up to its first tensor, less PyTorch's import when nothing is added
# to it. Medians of runs in turn.
cat > "$tmp/start.py" << 'EOF'
import time
t = time.perf_counter()
import torch
t = time.perf_counter() - t
torch.ones(1, device="cuda").item()
print("%.3f %.3f" % (t, time.time()))
EOF
now() { date +%s.%N; }
for i in $(seq "${ROUNDS:-7}"); do
	begin=$(now)
	echo "$begin $(dry -g rtx4090 -o "$tmp/a.vct" -- "$TORCH_ENV/bin/python" "$tmp/start.py")" >> "$tmp/whole"
	dry -g rtx4090 --values off --no-record -- "$TORCH_ENV/bin/python" "$tmp/start.py" >> "$tmp/import"
done
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
whole=$(awk '{ print $3 - $1 }' "$tmp/whole" | median)
own=$(awk '{ print $1 }' "$tmp/import" | median)
awk -v a="$whole" -v b="$own" 'BEGIN { printf "bench nullgpu.startup.s %.2f s\nbench nullgpu.import.s %.2f s\n", a - b, b }'
