# SPDX-License-Identifier: Apache-2.0
"""Images made four times as large: small pieces in training, whole images in evaluation."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, call, evaluate, place, train

a = arguments(width=48, layers=6, side=24, whole=160)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(a.width, a.width, 3, padding=1), nn.Conv2d(a.width, a.width, 3, padding=1)

    def forward(self, x):
        return x + 0.2 * self.c2(F.leaky_relu(self.c1(x), 0.2))


class Larger(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(3, a.width, 3, padding=1), nn.Conv2d(a.width, 3, 3, padding=1)
        self.layers = nn.ModuleList(Residual() for _ in range(a.layers))
        self.up = nn.ModuleList(nn.Conv2d(a.width, 4 * a.width, 3, padding=1) for _ in range(2))

    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            x = call(a, layer, x)
        for up in self.up:
            x = F.leaky_relu(F.pixel_shuffle(up(x), 2), 0.2)
        return self.last(x)


model = place(a, Larger())


def loss_of(n, side=0):
    s = side or a.side
    kind = torch.bfloat16 if a.bf16 else None
    return F.l1_loss(model(torch.randn(n, 3, s, s, device="cuda", dtype=kind)),
                     torch.randn(n, 3, 4 * s, 4 * s, device="cuda", dtype=kind))


opt = train(a, model, loss_of, steps=4)
evaluate(a, model, lambda n: loss_of(n, a.whole), batch=1)
train(a, model, loss_of, opt, steps=2)
