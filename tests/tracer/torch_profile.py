# SPDX-License-Identifier: Apache-2.0
"""torch_profile.py [off]: trains with torch.profiler on in the middle (twice, once with a schedule) and
prints what it saw on the device. off: the same without the profiler."""
import collections
import sys

import torch
import torch.nn as nn
from torch.profiler import ProfilerActivity, profile, schedule

on = sys.argv[1:] != ["off"]
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
seen = collections.Counter()


def step():
    x = torch.randn(32, 64).cuda()
    model(x).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def count(p):
    for e in p.profiler.kineto_results.events():
        if str(e.device_type()).endswith("CUDA"):
            seen[e.name()] += 1


def steps(n):
    for _ in range(n):
        step()
    torch.cuda.synchronize()


both = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
steps(3)
if on:
    with profile(activities=both) as p:
        steps(4)
    count(p)
else:
    steps(4)
steps(3)
if on:
    with profile(activities=both, schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=count) as p:
        for _ in range(4):
            steps(1)
            p.step()
else:
    steps(4)
steps(3)
print("profiled", sum(seen.values()), "of", len(seen), "names")
