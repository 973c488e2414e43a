# SPDX-License-Identifier: Apache-2.0
"""A ConvNeXt: depthwise convolutions, norms over channels, layer scale, stages of four widths."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, call, evaluate, place, train

a = arguments(width=48, side=128)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.dw, self.norm = nn.Conv2d(c, c, 7, padding=3, groups=c), nn.LayerNorm(c)
        self.up, self.down = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)
        self.gamma = nn.Parameter(1e-6 * torch.ones(c))

    def forward(self, x):
        y = self.norm(self.dw(x).permute(0, 2, 3, 1))
        return x + (self.gamma * self.down(F.gelu(self.up(y)))).permute(0, 3, 1, 2)


class Norm2d(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Convnext(nn.Module):
    def __init__(self):
        super().__init__()
        w, self.stages = a.width, nn.ModuleList()
        for k, depth in enumerate((2, 2, 4, 2)):
            c = w << k
            first = nn.Sequential(nn.Conv2d(3, w, 4, 4), Norm2d(w)) if not k else \
                nn.Sequential(Norm2d(c // 2), nn.Conv2d(c // 2, c, 2, 2))
            self.stages.append(nn.ModuleList([first, *(Block(c) for _ in range(depth))]))
        self.norm, self.head = nn.LayerNorm(8 * w), nn.Linear(8 * w, 100)

    def forward(self, x):
        for first, *blocks in self.stages:
            x = first(x)
            for block in blocks:
                x = call(a, block, x)
        return self.head(self.norm(x.mean((2, 3))))


model = place(a, Convnext(), leave=("head",))


def loss_of(n):
    x = torch.randn(n, 3, a.side, a.side, device="cuda", dtype=torch.bfloat16 if a.bf16 else None)
    return F.cross_entropy(model(x), torch.randint(0, 100, (n,)).cuda(), label_smoothing=0.1)


train(a, model, loss_of)
evaluate(a, model, loss_of, batch=a.eval_batch or 8 * a.batch)
