# SPDX-License-Identifier: Apache-2.0
"""Contrast with a queue: a second model follows the first, and what it said of the last 512 images is kept."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, autocast, optimizer, place

a = arguments(width=32, side=64, queue=512, steps=6, batch=16, optimizer="momentum")
w = a.width
model = place(a, nn.Sequential(nn.Conv2d(3, w, 3, 2, 1), nn.BatchNorm2d(w), nn.ReLU(), nn.Conv2d(w, 2 * w, 3, 2, 1),
                               nn.BatchNorm2d(2 * w), nn.ReLU(), nn.Conv2d(2 * w, 4 * w, 3, 2, 1), nn.ReLU(),
                               nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * w, 128)))
slow, opt, queue = copy.deepcopy(model), optimizer(a, model), []
for _ in range(a.steps):
    x, y = (torch.randn(a.batch, 3, a.side, a.side, device="cuda") for _ in range(2))
    with autocast(a):
        q = F.normalize(model(x), dim=1)
        with torch.no_grad():
            for p, r in zip(slow.parameters(), model.parameters()):
                p.mul_(0.99).add_(r, alpha=0.01)
            k = F.normalize(slow(y), dim=1)
        others = torch.cat(queue) if queue else k
        scores = torch.cat([(q * k).sum(1, keepdim=True), q @ others.t()], 1) / 0.1
        loss = F.cross_entropy(scores, torch.zeros(a.batch, dtype=torch.long, device="cuda"))
    loss.backward()
    opt.step()
    opt.zero_grad()
    queue = (queue + [k])[-max(1, a.queue // a.batch):]
