# SPDX-License-Identifier: Apache-2.0
"""leak_blocks.py STEPS [MIB] - a small network whose every step keeps 150 MiB (or so many) for ever."""
import sys

import torch

model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(6)]).cuda()
optimizer = torch.optim.Adam(model.parameters())
kept = []
size = int(sys.argv[2]) << 20 if len(sys.argv) > 2 else 150 << 20
for _ in range(int(sys.argv[1])):
    model(torch.randn(64, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    kept.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
