#!/bin/bash
# fit_plan.sh - fit --find plan: the ways to spread a program over cards, each a dry run.
. tests/support/tap.sh
run fit --find plan --world 8 -g rtx4060-8g -- python train.py --tp 2
expect "a program that is told no plan" 2 '' 'write \{tp\}, \{cp\}, \{pp\} or \{ep\} into its arguments'
run fit --find plan -g rtx4060-8g -- python train.py --tp {tp}
expect "over how many cards" 2 '' '--world N, from 2 to'
run fit --find plan --world 8 -- python train.py --tp {tp}
expect "on which card" 2 '' 'say which one with -g'
run fit --find plan --world 8 -g rtx4060-8g --trials 0 -- python train.py --tp {tp}
expect "no dry run at all" 2 '' '--trials starts at 1'
run fit --find plan --world 8 -g rtx4060-8g --vary micro=1,2 -- python train.py --tp {tp}
expect "a value that stands nowhere" 2 '' '\{micro\} stands nowhere in the command line'
run fit --find plan --world 8 -g rtx4060-8g --vary micro -- python train.py --tp {tp} {micro}
expect "no values" 2 '' '--vary micro: write NAME=A,B'
run fit --find plan --world 8 -g rtx4060-8g -- python train.py --tp {tp} --global-batch {global-batch}
expect "how many samples" 2 '' 'how many samples has a step\? --global-batch N'
run fit --find plan --world 8 -g rtx4060-8g --global-batch 64 -- python train.py --tp {tp}
expect "samples that stand nowhere" 2 '' 'neither \{global-batch\} nor \{microbatches\} stands'
run fit --find plan --world 8 -g rtx4060-8g --global-batch 0 -- python train.py --tp {tp} {microbatches}
expect "no samples" 2 '' 'how many samples has a step'
run fit --find plan --world 8 -g rtx4060-8g --global-batch 7 --vary micro=2 -- python train.py --tp {tp} {microbatches} {micro}
expect "samples that nothing divides" 2 '' '--global-batch 7 is no multiple'
# What training on so many tokens costs.
printf 'h100-80g-sxm,2.5\n' > "$TMP/prices.csv"
run fit --find batch -g rtx4060-8g --tokens 1B -- python train.py --batch {batch}
expect "tokens of something else" 2 '' '--tokens goes with --find plan'
run fit --find plan --world 8 -g rtx4060-8g --prices "$TMP/prices.csv" -- python train.py --tp {tp}
expect "prices of nothing" 2 '' '--prices goes with -g all, or with --tokens'
run fit --find plan --world 8 -g rtx4060-8g --tokens 1B -- python train.py --tp {tp}
expect "tokens, and no samples" 2 '' '--tokens: how many samples has a step\? --global-batch N'
tokens() { run fit --find plan --world 8 -g rtx4060-8g --global-batch 64 "$@" -- python train.py --tp {tp} --batch {global-batch} $also; }
tokens --tokens 0; expect "no tokens" 2 '' '--tokens: from 1 to'
tokens --tokens some; expect "no number of tokens" 2 '' some
tokens --tokens 1B; expect "tokens of a sample" 2 '' '--tokens: how many has a sample\? --seq N'
tokens --tokens 1B --seq 0; expect "none of a sample" 2 '' '--tokens: how many has a sample\? --seq N'
also="--seq-len=64 --eval-seq-len 128"
tokens --tokens 1B; expect "the program's arguments differ" 2 '' '--tokens: how many has a sample\? --seq N'
also="--seq-len 64"
tokens --tokens 1B --prices "$TMP/prices.csv"; expect "a card without a price" 2 '' 'prices.csv: no price of rtx4060-8g'

P=${TRANSFORMS_PYTHON:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast/torch-2.11.0/bin/python}
has_cuda_torch "$P" || { skip "plans" "no PyTorch built for CUDA"; finish; }
# 9 GiB shared by the cards of a plan, on a card that has 7.63; four cards are too many for it.
export OPENBLAS_NUM_THREADS=1
cat > "$TMP/spread.py" <<'PY'
import gc
import os
import sys
gc.disable()
tp, dp = map(int, sys.argv[1].split("x"))
assert tp * dp == int(os.environ["WORLD_SIZE"]) and tp < 4
import torch
x = torch.empty((9 << 30) // tp, dtype=torch.uint8, device="cuda")
PY
run fit --find plan --world 4 -g rtx4060-8g -- "$P" "$TMP/spread.py" {tp}x{dp}
expect "a plan fits" 0 'rtx4060|RTX 4060'
check "the one that fits comes first" grep -Eq '^ +2 +2 +- +4\.[0-9]+ GiB .* fits$' <(sed -n 3p <<< "$out")
check "then the one that does not" grep -Eq '^ +1 +4 .* out of memory$' <(sed -n 4p <<< "$out")
check "last what did not run" grep -Eq '^ +4 +1 +- .* did not run$' <(sed -n 5p <<< "$out")
check "each is told as it ends" grep -Eq '^vramcast: tp=2 dp=2: fits, 4\.[0-9]+ GiB' <<< "$err"
# one waits for the other, and counts its steps
cat > "$TMP/long.py" <<'PY'
import os
import sys
import time
import torch
at, tp = sys.argv[1:]
p = torch.nn.Parameter(torch.zeros(8, device="cuda"))
o = torch.optim.SGD([p], 0.1)
with open(f"{at}/began.{tp}", "w"):
    pass
end = time.monotonic() + 100
while not os.path.exists(f"{at}/began.{3 - int(tp)}"):
    assert time.monotonic() < end
    time.sleep(0.1)
for _ in range(50):
    p.sum().backward()
    with open(f"{at}/steps.{tp}", "a") as f:
        print("step", file=f)
    o.step()
PY
mkdir "$TMP/long"
run fit --find plan --world 2 -g rtx4060-8g -j 2 --steps 2 --trials 2 -- "$P" "$TMP/long.py" "$TMP/long" {tp}
expect "two at a time" 0
check "each for two steps" test "$(cat "$TMP/long/steps.1" "$TMP/long/steps.2" | wc -l)" = 4
# 1 GiB a sample, half of it computed again: on 7.63 GiB less the context, and what a dry run may be off by
cat > "$TMP/samples.py" <<'PY'
import sys
import torch
micro, again = int(sys.argv[2]), sys.argv[3] == "full"
x = torch.empty((1 << 30) * micro // (1 + again), dtype=torch.uint8, device="cuda")
PY
run fit --find plan --world 2 -g rtx4060-8g --vary micro=1,2 --vary recompute=none,full --json -- "$P" "$TMP/samples.py" {tp} {micro} {recompute}
rows() { printf '%s' "$out" | python3 -c "import json, sys; print(*[$1 for p in json.load(sys.stdin)['plans']])"; }
check "each value with each layout" test "$(rows "p['with']['micro'] + p['with']['recompute']" | tr ' ' '\n' | sort | uniq -c | xargs)" = "2 1full 2 1none 2 2full 2 2none"
check "so many more samples fit" test "$(rows "p['more_samples']" | tr ' ' '\n' | sort -n | uniq -c | xargs)" = "2 5 2 6 2 12 2 13"
run fit --find plan --world 2 -g rtx4060-8g --vary micro=8,9 -- "$P" "$TMP/samples.py" 1{tp} {micro} none
expect "none where it runs out" 3 '^ +1 +2 +8 +.* - +.* out of memory'
run fit --find plan --world 4 -g rtx4060-8g --trials 1 --json -- "$P" "$TMP/spread.py" {tp}x{dp}
expect "none of those tried fits" 3 '"untried": 2'
# Few micro-batches show what all of them need and take; where each leaves something behind, all run.
cat > "$TMP/few.py" <<'PY'
import sys
import torch
tp, count, keep = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "keep"
layers = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048, device="cuda") for _ in range(3)])
optimizer = torch.optim.AdamW(layers.parameters(), fused=True)
for _ in range(3):
    kept = []
    for _ in range(count):
        y = layers(torch.randn(512, 2048, device="cuda"))
        y.sum().backward()
        kept += [y.detach()] * keep
    optimizer.step()
PY
few() { run fit --find plan --world 2 -g h100-80g-sxm --trials 1 --json "${@:3}" -- "$P" "$TMP/few.py" {tp} "$1" "$2"; }
for keep in drop keep; do
	few 32 $keep
	whole=$(rows "(p['step_ns'], p['peak_used'])")
	few {microbatches} $keep --global-batch 64
	check "few micro-batches show what all take: $keep" test "$(rows "(p['step_ns'], p['peak_used'])")" = "$whole"
	check "so many were played: $keep" test "$(rows "p['played']")" = $([ $keep = keep ] && echo 32 || echo 4)
done
check "of as many" grep -q '"microbatches": 32' <<< "$out"
few {microbatches} drop --global-batch 64 --tokens 1B --seq 512 --prices "$TMP/prices.csv"
check "days and cost" python3 -c '
import json, math, sys
d = json.load(sys.stdin)
p = d["plans"][0]
assert d["tokens"] == 10 ** 9 and d["price"] == 2.5 and p["step_tokens"] == 64 * 512
for end in "", "_low", "_high":
    days = math.ceil(10 ** 9 / p["step_tokens"]) * p["step" + end + "_ns"] / 86400e9
    assert abs(p["days" + end] / days - 1) < 1e-4, (p, days)
    assert abs(p["cost" + end] / (days * 24 * 2 * 2.5) - 1) < 1e-4, p
assert p["days_low"] < p["days"] < p["days_high"]' <<< "$out"
run fit --find plan --world 2 -g h100-80g-sxm --trials 1 --global-batch 64 --tokens 1B --prices "$TMP/prices.csv" -- "$P" "$TMP/few.py" {tp} {microbatches} drop --seq 512
expect "so for people" 0 '^ +tp +dp +a step +days +cost +peak'
expect "each with its interval" 0 '^ +1 +2 +[0-9.]+ ms +0\.[0-9]+ \([0-9.]+ \.\. [0-9.]+\) +[0-9.]+ \([0-9.]+ \.\. [0-9.]+\) '
expect "of how many tokens a step" 0 '^Days and cost of 1,000,000,000 tokens, 64 samples a step, each of 512\.$'
# Of a pipeline each stage is played, and no other rank.
cat > "$TMP/stages.py" <<'PY'
import os
import sys
import torch
import torch.distributed as dist
pp = int(sys.argv[1])
assert os.nice(0) >= 0 # of each rank, though the recorder goes first
dist.init_process_group("nccl")
n = dist.get_world_size() // pp
lines = [list(range(i, n * pp, n)) for i in range(n)]
groups = [dist.new_group(line) for line in lines] if n > 1 else [None]
rank = dist.get_rank()
line, group = lines[rank % n], groups[rank % n]
layer = torch.nn.Linear(1024, 1024, device="cuda")
optimizer = torch.optim.SGD(layer.parameters(), 0.1)
for _ in range(3):
    x = torch.randn(256, 1024, device="cuda")
    if rank != line[0]:
        dist.recv(x, rank - n, group=group)
    y = layer(x)
    if rank != line[-1]:
        dist.send(y.detach(), rank + n, group=group)
    y.sum().backward()
    optimizer.step()
PY
run fit --find plan --world 4 -g h100-80g-sxm --trials 3 --json -- "$P" "$TMP/stages.py" {pp}
expect "pipelines run" 0
check "each stage is played" test "$(rows "(p['pp'], p['roles'])" | tr -d ' ' | sed 's/)(/\n/g' | tr -d '()' | sort | xargs)" = "1,1 2,2 4,4"
# As many products either way; over two cards the step is longer.
cat > "$TMP/slow.py" <<'PY'
import sys
import torch
tp = int(sys.argv[1])
layer = torch.nn.Linear(4096, 8192 // tp, device="cuda")
optimizer = torch.optim.SGD(layer.parameters(), 0.1)
x = torch.randn(2048 * tp, 4096, device="cuda")
for _ in range(4):
    y = layer(x)
    for _ in range(40 * (tp - 1)):
        y = y * 2
    y.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
PY
run fit --find plan --world 2 -g h100-80g-sxm -- "$P" "$TMP/slow.py" {tp}
expect "what cannot be faster is not tried" 0 '^1 more need not be tried: by what those above compute, none takes less than [0-9.]+ ms'
run fit --find plan --world 2 -g h100-80g-sxm --trials 2 -- "$P" "$TMP/slow.py" {tp}
expect "both fit" 0
check "the faster one comes first" grep -Eq '^ +1 +2 +[0-9.]+ ms .* fits$' <(sed -n 3p <<< "$out")
check "then the slower one" grep -Eq '^ +2 +1 +[0-9.]+ ms .* fits$' <(sed -n 4p <<< "$out")
# What joins samples is not in what others take at least; what a role shows of memory ends its layout.
cat > "$TMP/joins.py" <<'PY'
import sys
import torch
import torch.distributed as dist
pp, tp = map(int, sys.argv[1:])
dist.init_process_group("nccl")
if pp > 1:
    torch.empty(9 << 30, dtype=torch.uint8, device="cuda")
layer = torch.nn.Linear(8192, 8192 // tp, device="cuda")
optimizer = torch.optim.SGD(layer.parameters(), 0.1)
x = torch.randn(256 * tp, 8192, device="cuda")
for _ in range(4):
    layer(x).sum().backward()
    if tp == 1:
        dist.all_reduce(layer.weight.grad)
    optimizer.step()
    optimizer.zero_grad()
PY
run fit --find plan --world 2 -g rtx4060-8g --trials 3 --json -- "$P" "$TMP/joins.py" {pp} {tp}
expect "two run" 0
shown=$(rows "(p['tp'], p['pp'], p['step_ns'], p['least_ns'], p['roles'])")
check "what joins samples is left out" python3 - "$shown" <<'PY'
import re, sys
rows = {r[:2]: r[2:] for r in eval("[" + re.sub(r"\) \(", "), (", sys.argv[1]) + "]")}
assert 0 < rows[2, 1][1] < 0.8 * rows[1, 1][0], rows
PY
check "the first role that runs out is the last" grep -Eq "\(1, 2, [^)]*, 1\)" <<< "$shown"
run fit --find plan --world 4 -g rtx4060-8g -- "$P" "$TMP/spread.py" {tp}
expect "a program that runs with no plan" 1 '' 'ran with none of 3 layouts'
finish
