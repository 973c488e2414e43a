# SPDX-License-Identifier: Apache-2.0
"""torch_count.py: an independent count of what PyTorch's CPU allocator was asked, by its own memory
profiler, between two marks in the recording. Prints allocations and frees."""
import ctypes

import torch
import torch.nn as nn
from torch.profiler import ProfilerActivity, profile

library = ctypes.CDLL(None)
if torch.__version__.startswith("2.0."):  # its CUDA 11 is not at hand, and it asks even on the CPU
    torch.optim.Optimizer._cuda_graph_capture_health_check = lambda self: None
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.AdamW(model.parameters())


def step():
    model(torch.randn(32, 64)).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


step()
with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as p:
    library.vramcast_mark(b"count from here")
    for _ in range(20):
        step()
    library.vramcast_mark(b"count to here")
sizes = [e.nbytes() for e in p.profiler.kineto_results.events() if e.name() == "[memory]"]
print("asked %d %d" % (sum(n > 0 for n in sizes), sum(n < 0 for n in sizes)))
