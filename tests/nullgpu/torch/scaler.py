# SPDX-License-Identifier: Apache-2.0
"""scaler.py - two steps in float16 with a GradScaler."""
import torch

model = torch.nn.Linear(8, 8).cuda()
optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), torch.amp.GradScaler("cuda")
for _ in range(2):
    with torch.autocast("cuda", torch.float16):
        loss = model(torch.ones(4, 8, device="cuda")).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
