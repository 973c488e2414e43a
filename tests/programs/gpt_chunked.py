# SPDX-License-Identifier: Apache-2.0
"""A GPT whose loss is computed a chunk of tokens at a time, so that all scores never exist at once."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from common import Block, arguments, call, place, train, words

a = arguments(width=256, layers=4, vocabulary=16000, chunk=384)


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(a.vocabulary, a.width), nn.Embedding(2048, a.width)
        self.blocks = nn.ModuleList(Block(a.width, 8) for _ in range(a.layers))
        self.norm, self.head = nn.LayerNorm(a.width), nn.Linear(a.width, a.vocabulary, bias=False)

    def part(self, x, target):
        return F.cross_entropy(self.head(x), target, reduction="sum")

    def forward(self, t, target):
        x = self.wte(t) + self.wpe(torch.arange(t.shape[1], device=t.device))
        for block in self.blocks:
            x = call(a, block, x)
        x, target = self.norm(x).flatten(0, 1), target.flatten()
        total = x.new_zeros(())
        for p, q in zip(x.split(a.chunk), target.split(a.chunk)):
            total = total + checkpoint(self.part, p, q, use_reentrant=False)
        return total / target.numel()


model = place(a, Gpt(), leave=("head",))


def loss_of(n):
    t = words(n, a.seq + 1, a.vocabulary)
    return model(t[:, :-1], t[:, 1:])


train(a, model, loss_of)
