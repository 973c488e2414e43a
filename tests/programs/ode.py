# SPDX-License-Identifier: Apache-2.0
"""A neural differential equation: 12 steps of Runge-Kutta, all of which the backward pass goes through."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, evaluate, place, train

a = arguments(width=64, side=16, turns=12)


class Slope(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(a.width, a.width, 3, padding=1), nn.Conv2d(a.width, a.width, 3, padding=1)
        self.norm = nn.GroupNorm(8, a.width)

    def forward(self, x):
        return self.c2(F.relu(self.norm(self.c1(x))))


class Ode(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.slope, self.head = nn.Conv2d(3, a.width, 4, 2, 1), Slope(), nn.Linear(a.width, 10)

    def forward(self, x):
        x, h = self.first(x), 1 / a.turns
        for _ in range(a.turns):
            k1 = self.slope(x)
            k2 = self.slope(x + h / 2 * k1)
            k3 = self.slope(x + h / 2 * k2)
            k4 = self.slope(x + h * k3)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return self.head(x.mean((2, 3)))


model = place(a, Ode())


def loss_of(n):
    x = torch.randn(n, 3, 2 * a.side, 2 * a.side, device="cuda")
    return F.cross_entropy(model(x), torch.randint(0, 10, (n,)).cuda())


train(a, model, loss_of)
evaluate(a, model, loss_of, batch=a.eval_batch or 8 * a.batch)
