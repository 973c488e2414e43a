# SPDX-License-Identifier: Apache-2.0
"""Windows of 7 x 7 that are shifted in every second block, patches merged between two stages."""
import torch
import torch.nn.functional as F
from torch import nn

from common import Attention, arguments, call, evaluate, place, train

a = arguments(width=64, side=112)


class Shifted(nn.Module):
    def __init__(self, c, shift):
        super().__init__()
        self.n1, self.n2, self.attention = nn.LayerNorm(c), nn.LayerNorm(c), Attention(c, c // 32, False)
        self.mlp, self.shift = nn.Sequential(nn.Linear(c, 4 * c), nn.GELU(), nn.Linear(4 * c, c)), shift

    def forward(self, x):
        b, h, w, c = x.shape
        y = torch.roll(self.n1(x), (-self.shift, -self.shift), (1, 2)) if self.shift else self.n1(x)
        y = y.view(b, h // 7, 7, w // 7, 7, c).transpose(2, 3).reshape(-1, 49, c)
        y = self.attention(y).view(b, h // 7, w // 7, 7, 7, c).transpose(2, 3).reshape(b, h, w, c)
        x = x + (torch.roll(y, (self.shift, self.shift), (1, 2)) if self.shift else y)
        return x + self.mlp(self.n2(x))


class Swin(nn.Module):
    def __init__(self):
        super().__init__()
        w = a.width
        self.cut = nn.Conv2d(3, w, 4, 4)
        self.first = nn.ModuleList(Shifted(w, 3 * (k % 2)) for k in range(2))
        self.merge = nn.Linear(4 * w, 2 * w, bias=False)
        self.second = nn.ModuleList(Shifted(2 * w, 3 * (k % 2)) for k in range(4))
        self.head = nn.Linear(2 * w, 50)

    def forward(self, x):
        x = self.cut(x).permute(0, 2, 3, 1)
        for block in self.first:
            x = call(a, block, x)
        x = self.merge(torch.cat([x[:, i::2, j::2] for i in (0, 1) for j in (0, 1)], -1))
        for block in self.second:
            x = call(a, block, x)
        return self.head(x.mean((1, 2)))


model = place(a, Swin(), leave=("head",))


def loss_of(n):
    x = torch.randn(n, 3, a.side, a.side, device="cuda", dtype=torch.bfloat16 if a.bf16 else None)
    return F.cross_entropy(model(x), torch.randint(0, 50, (n,)).cuda())


train(a, model, loss_of)
evaluate(a, model, loss_of)
