# SPDX-License-Identifier: Apache-2.0
"""torch_settings.py: trains, changes the allocator's settings, empties its cache, lowers the limit of the
process and runs into it."""
import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512)).cuda()
optimizer = torch.optim.AdamW(model.parameters())


def steps(n):
    for i in range(n):
        model(torch.randn(512, 512, device="cuda")).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


steps(4)
torch.cuda.memory._set_allocator_settings("max_split_size_mb:21")
steps(2)
torch.cuda.empty_cache()
steps(2)
torch.cuda.set_per_process_memory_fraction(0.5)
try:
    torch.empty(20 << 30, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError:
    steps(2)
