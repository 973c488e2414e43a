# SPDX-License-Identifier: Apache-2.0
"""A small text model whose batches are padded to their longest sample. Usage: lengths.py BATCH"""
import sys

import torch
from torch import nn

batch = int(sys.argv[1])
model = nn.Sequential(nn.Embedding(8000, 256), nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256), nn.Linear(256, 1024), nn.GELU(),
                      nn.Linear(1024, 64)).cuda()
optimizer = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9)
lengths = torch.Generator().manual_seed(3)
for step in range(8):
    longest = int(torch.randn(batch, generator=lengths).mul(0.4).add(4.2).exp().clamp(8, 400).max())
    x = torch.zeros(batch, longest, dtype=torch.long).cuda()
    model(x).logsumexp(-1).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
