# SPDX-License-Identifier: Apache-2.0
"""saver.py torch|preload|none - what a server would hold, in regions of torch_memory_saver (or not), and a trainer."""
import contextlib
import subprocess
import sys

import torch
from torch_memory_saver import torch_memory_saver as saver
from torch_memory_saver.hooks.mode_preload import configure_subprocess

mode = sys.argv[1]
if mode == "preload":
    with configure_subprocess():
        sys.exit(subprocess.run([sys.executable, __file__, "preloaded"]).returncode)
if mode == "torch":
    saver.hook_mode = "torch"
sleeps = mode != "none"
region = saver.region if sleeps else lambda **rest: contextlib.nullcontext()
with region(tag="weights", enable_cpu_backup=True):
    server = [torch.empty(1024, 4096, device="cuda", dtype=torch.bfloat16) for _ in range(24)]
    norms = [torch.empty(4096, device="cuda", dtype=torch.bfloat16) for _ in range(24)]
with region(tag="kv"):
    cache = [torch.empty(64 << 20, device="cuda", dtype=torch.uint8) for _ in range(20)]
layers = [torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024))
          for _ in range(8)]
model = torch.nn.Sequential(*layers).to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(4):
    torch.cuda.nvtx.range_push("generate")
    out = [torch.empty(n, 1024, device="cuda") for n in (100 + 37 * step, 333, 1000)]
    del out
    torch.cuda.nvtx.range_pop()
    if sleeps:
        saver.pause("kv")
        saver.pause("weights")
    torch.cuda.nvtx.range_push("train")
    x = torch.randn(4096 + 512 * step, 1024, device="cuda")
    model(x).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    del x
    torch.cuda.nvtx.range_pop()
    torch.cuda.empty_cache()
    if sleeps:
        saver.resume("weights")
        saver.resume("kv")
if sleeps:
    saver._impl._mem_pools.clear()  # as long as there is a Python: its pools outlive their allocator
