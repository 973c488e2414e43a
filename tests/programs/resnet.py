# SPDX-License-Identifier: Apache-2.0
"""A residual network with batch norms, SGD with momentum; evaluated on batches six times as large."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, call, evaluate, place, train

a = arguments(width=32, side=96, optimizer="momentum")


class Basic(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o)
        self.c2, self.b2 = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
        self.short = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o)) if i != o else None

    def forward(self, x):
        y = self.b2(self.c2(F.relu(self.b1(self.c1(x)), inplace=True)))
        return F.relu(y + (self.short(x) if self.short is not None else x), inplace=True)


class Resnet(nn.Module):
    def __init__(self):
        super().__init__()
        w = a.width
        self.stem = nn.Sequential(nn.Conv2d(3, w, 7, 2, 3, bias=False), nn.BatchNorm2d(w), nn.ReLU(True))
        self.blocks = nn.ModuleList([Basic(w, w, 1), Basic(w, w, 1), Basic(w, 2 * w, 2), Basic(2 * w, 2 * w, 1),
                                     Basic(2 * w, 4 * w, 2), Basic(4 * w, 4 * w, 1), Basic(4 * w, 8 * w, 2)])
        self.head = nn.Linear(8 * w, 100)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = call(a, block, x)
        return self.head(x.mean((2, 3)))


model = place(a, Resnet(), leave=("head",))


def loss_of(n):
    x = torch.randn(n, 3, a.side, a.side, device="cuda", dtype=torch.bfloat16 if a.bf16 else None)
    return F.cross_entropy(model(x), torch.randint(0, 100, (n,)).cuda())


opt = train(a, model, loss_of)
evaluate(a, model, loss_of, batch=a.eval_batch or 6 * a.batch)
train(a, model, loss_of, opt, steps=2)
