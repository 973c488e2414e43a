#!/bin/bash
# fit_trials.sh - fit of a program learns from its own trial runs, and says when they are used up.
. tests/support/tap.sh
P=${TRANSFORMS_PYTHON:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast/torch-2.11.0/bin/python}
has_cuda_torch "$P" || { skip "trial runs" "no PyTorch built for CUDA"; finish; }

# From 13 on it keeps something more, which trial runs at 4 and 6 cannot show. The card has 7.63 GiB.
# Half of the time of a trial run is the import of PyTorch: without a collector of garbage it takes a tenth less.
export OPENBLAS_NUM_THREADS=1
cat > "$TMP/jump.py" <<'PY'
import gc
import sys
gc.disable()
import torch
n = int(sys.argv[1])
kept = torch.empty(3 << 30 if n > 12 else 4096, dtype=torch.uint8, device="cuda")
x = torch.empty(n << 28, dtype=torch.uint8, device="cuda")
PY
run fit -g rtx4060-8g -- "$P" "$TMP/jump.py" {batch}
expect "the largest that ran and the smallest that did not are neighbours" 0 'largest that fits +1[0-9] \(proved by trial runs\)'
largest=$(sed -n 's/.*largest that fits *\([0-9]*\).*/\1/p' <<< "$out")
check "the trial runs show it" grep -q "trial run at $largest *ran$" <<< "$out"
check "and that one more does not run" grep -q "trial run at $((largest + 1)) *ran out of memory" <<< "$out"
run fit -g rtx4060-8g --trials 3 --at 4,5 -- "$P" "$TMP/jump.py" {batch}
expect "used up before that it is undecided" 6 'or more, [0-9]+ does not: the trial runs are used up \(--trials\)'
check "two recordings and one trial run are three" test "$(grep -c 'trial run at' <<< "$out")" = 1
finish
