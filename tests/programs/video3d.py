# SPDX-License-Identifier: Apache-2.0
"""3-D convolutions over short films, batch norms; the films of the evaluation are twice as long."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, call, evaluate, place, train

a = arguments(width=24, side=56, frames=8, optimizer="momentum")


class Step(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.c1, self.b1 = nn.Conv3d(i, o, 3, (1, stride, stride), 1, bias=False), nn.BatchNorm3d(o)
        self.c2, self.b2 = nn.Conv3d(o, o, 3, 1, 1, bias=False), nn.BatchNorm3d(o)
        self.short = nn.Conv3d(i, o, 1, (1, stride, stride), bias=False)

    def forward(self, x):
        return F.relu(self.b2(self.c2(F.relu(self.b1(self.c1(x))))) + self.short(x))


class Video(nn.Module):
    def __init__(self):
        super().__init__()
        w = a.width
        self.steps = nn.ModuleList([Step(3, w, 2), Step(w, w, 1), Step(w, 2 * w, 2), Step(2 * w, 4 * w, 2)])
        self.head = nn.Linear(4 * w, 60)

    def forward(self, x):
        for step in self.steps:
            x = call(a, step, x)
        return self.head(x.mean((2, 3, 4)))


model = place(a, Video(), leave=("head",))


def loss_of(n, frames=0):
    x = torch.randn(n, 3, frames or a.frames, a.side, a.side, device="cuda")
    return F.cross_entropy(model(x), torch.randint(0, 60, (n,)).cuda())


opt = train(a, model, loss_of)
evaluate(a, model, lambda n: loss_of(n, 2 * a.frames), batch=a.eval_batch or 2 * a.batch)
train(a, model, loss_of, opt, steps=1)
