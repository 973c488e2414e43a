# SPDX-License-Identifier: Apache-2.0
"""leak_blocks.py STEPS - a small network whose every step keeps 150 MiB for ever."""
import sys

import torch

model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(6)]).cuda()
optimizer = torch.optim.Adam(model.parameters())
kept = []
for _ in range(int(sys.argv[1])):
    model(torch.randn(64, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    kept.append(torch.empty(150 << 20, dtype=torch.uint8, device="cuda"))
