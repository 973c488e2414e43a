# SPDX-License-Identifier: Apache-2.0
"""Learning to learn: --batch tasks a step, each with two inner steps whose gradients are differentiated again."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

from common import arguments, autocast, optimizer, place

a = arguments(width=48, side=28, shots=5, optimizer="adam")
w = a.width
model = place(a, nn.Sequential(nn.Conv2d(1, w, 3, 2, 1), nn.GroupNorm(4, w), nn.ReLU(), nn.Conv2d(w, w, 3, 2, 1),
                               nn.GroupNorm(4, w), nn.ReLU(), nn.Flatten(), nn.Linear(49 * w, 5)))
opt = optimizer(a, model)


def examples():
    return torch.randn(5 * a.shots, 1, a.side, a.side, device="cuda"), torch.arange(5).repeat(a.shots).cuda()


for _ in range(a.steps):
    total = 0
    for _ in range(a.batch):
        fast = dict(model.named_parameters())
        with autocast(a):
            for _ in range(2):
                x, y = examples()
                loss = F.cross_entropy(functional_call(model, fast, x), y)
                slope = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
                fast = {k: v - 0.1 * g for (k, v), g in zip(fast.items(), slope)}
            x, y = examples()
            total = total + F.cross_entropy(functional_call(model, fast, x), y)
    (total / a.batch).backward()
    opt.step()
    opt.zero_grad()
