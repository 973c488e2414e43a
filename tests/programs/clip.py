# SPDX-License-Identifier: Apache-2.0
"""Two towers, images and words, and a loss over every pair of the batch."""
import torch
import torch.nn.functional as F
from torch import nn

from common import Block, arguments, call, evaluate, place, train, words

a = arguments(width=128, layers=3, side=64, seq=32, vocabulary=4000, batch=32)


class Clip(nn.Module):
    def __init__(self):
        super().__init__()
        self.cut, self.words = nn.Conv2d(3, a.width, 8, 8), nn.Embedding(a.vocabulary, a.width)
        self.sees, self.reads = (nn.ModuleList(Block(a.width, 4, causal=False) for _ in range(a.layers)) for _ in "ab")
        self.p, self.q = nn.Linear(a.width, 64, bias=False), nn.Linear(a.width, 64, bias=False)

    def forward(self, x, t):
        x, y = self.cut(x).flatten(2).transpose(1, 2), self.words(t)
        for layer in self.sees:
            x = call(a, layer, x)
        for layer in self.reads:
            y = call(a, layer, y)
        x, y = F.normalize(self.p(x.mean(1)), dim=-1), F.normalize(self.q(y.mean(1)), dim=-1)
        return 20 * x @ y.t()


model = place(a, Clip(), leave=("p", "q"))


def loss_of(n):
    x = torch.randn(n, 3, a.side, a.side, device="cuda", dtype=torch.bfloat16 if a.bf16 else None)
    s = model(x, words(n, a.seq, a.vocabulary))
    target = torch.arange(n, device="cuda")
    return F.cross_entropy(s, target) + F.cross_entropy(s.t(), target)


train(a, model, loss_of)
evaluate(a, model, loss_of)
