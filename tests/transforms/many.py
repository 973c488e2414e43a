# SPDX-License-Identifier: Apache-2.0
"""Many runs, one child each, so that the imports are paid for once.

python many.py LIST: lines "name [SCRIPT.py] argument...", without a script train.py beside this file; prints
"pid name" of each child that ended well. PRELOAD names further modules that they share."""
import os
import runpy
import sys

import torch
import torch.utils.checkpoint  # noqa: F401
for name in ("torch._dynamo", "torchvision.models", "transformers.models.llama.modeling_llama", "peft", "torch.optim",
             "transformers.optimization", *os.environ.get("PRELOAD", "").split()):
    try:
        __import__(name)
    except Exception as e:  # the runs that need it fail and say so
        print(f"# {name}: {e}", file=sys.stderr)
    if torch.cuda.is_initialized():  # a child cannot use it then
        sys.exit(f"many.py: importing {name} has initialised CUDA, so no child can: leave it out of PRELOAD")
here = os.path.dirname(os.path.abspath(__file__))
with open(sys.argv[1]) as f:
    runs = [line.split() for line in f if line.strip()]
for name, *args in runs:
    script = args.pop(0) if args[0].endswith(".py") else os.path.join(here, "train.py")
    pid = os.fork()
    if not pid:
        sys.argv = [script, *args]
        sys.path.insert(0, os.path.dirname(script))
        sys.stdout = sys.stderr
        runpy.run_path(script, run_name="__main__")
        sys.stderr.flush()
        sys.exit(0)
    if os.waitpid(pid, 0)[1] == 0:
        print(pid, name, flush=True)
    else:
        print(f"# {name} failed", file=sys.stderr)
