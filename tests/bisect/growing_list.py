# SPDX-License-Identifier: Apache-2.0
"""Training, then an evaluation whose scores are collected: on the card, or in the host's memory."""
import torch

model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 8000)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(2):
    for step in range(3):
        x, y = torch.randn(1024, 256, device="cuda"), torch.randint(0, 8000, (1024,), device="cuda")
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
    scores = []
    with torch.no_grad():
        for batch in range(8):
            out = model(torch.randn(1024, 256, device="cuda"))
            scores.append(out.cpu())  # good
            scores.append(out)  # bad
    print(torch.cat([s.cpu() for s in scores]).shape)
