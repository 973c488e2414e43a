# SPDX-License-Identifier: Apache-2.0
"""torch_async.py: a training loop under backend:cudaMallocAsync, then more than any device has."""
import torch
import torch.nn as nn

model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(4)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for i in range(5):
    model(torch.randn(8, 64, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
try:
    torch.empty(1 << 40, device="cuda", dtype=torch.uint8)
except torch.cuda.OutOfMemoryError:
    print("out of memory")
