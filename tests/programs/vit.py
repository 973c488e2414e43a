# SPDX-License-Identifier: Apache-2.0
"""A vision transformer, evaluated on batches eight times as large between two stretches of training."""
import torch
import torch.nn.functional as F
from torch import nn

from common import Block, arguments, call, evaluate, place, train

a = arguments(width=256, layers=6, side=112)


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.cut = nn.Conv2d(3, a.width, 8, 8)
        self.token, self.at = (nn.Parameter(torch.zeros(1, n, a.width)) for n in (1, (a.side // 8) ** 2 + 1))
        self.blocks = nn.ModuleList(Block(a.width, 4, causal=False) for _ in range(a.layers))
        self.norm, self.head = nn.LayerNorm(a.width), nn.Linear(a.width, 100)

    def forward(self, x):
        x = self.cut(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.at
        for block in self.blocks:
            x = call(a, block, x)
        return self.head(self.norm(x)[:, 0])


model = place(a, Vit(), leave=("head",))


def loss_of(n):
    x = torch.randn(n, 3, a.side, a.side, device="cuda", dtype=torch.bfloat16 if a.bf16 else None)
    return F.cross_entropy(model(x), torch.randint(0, 100, (n,)).cuda())


opt = train(a, model, loss_of)
evaluate(a, model, loss_of, batch=a.eval_batch or 8 * a.batch)
train(a, model, loss_of, opt, steps=2)
