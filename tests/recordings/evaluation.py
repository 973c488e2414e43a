# SPDX-License-Identifier: Apache-2.0
"""A small network trained and evaluated with batches of their own, written as a flat loop: the variables of one
step live until the next overwrites them. Usage: evaluation.py TRAIN_BATCH EVAL_BATCH"""
import sys

import torch
from torch import nn

train, evaluate = int(sys.argv[1]), int(sys.argv[2])
model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.Flatten(),
                      nn.Linear(32 * 32 * 32, 256), nn.ReLU(), nn.Linear(256, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for epoch in range(2):
    model.train()
    for step in range(3):
        x, y = torch.zeros(train, 3, 64, 64).cuda(), torch.zeros(train, dtype=torch.long).cuda()
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        for step in range(2):
            x, y = torch.zeros(evaluate, 3, 64, 64).cuda(), torch.zeros(evaluate, dtype=torch.long).cuda()
            out = model(x)
            loss = nn.functional.cross_entropy(out, y)
