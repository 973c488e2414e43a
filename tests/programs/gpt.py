# SPDX-License-Identifier: Apache-2.0
"""A GPT that is trained and never evaluated."""
import torch
import torch.nn.functional as F
from torch import nn

from common import Block, arguments, call, place, train, words

a = arguments(width=256, layers=6, vocabulary=4000)


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(a.vocabulary, a.width), nn.Embedding(2048, a.width)
        self.blocks = nn.ModuleList(Block(a.width, 8) for _ in range(a.layers))
        self.norm, self.head = nn.LayerNorm(a.width), nn.Linear(a.width, a.vocabulary, bias=False)

    def forward(self, t):
        x = self.wte(t) + self.wpe(torch.arange(t.shape[1], device=t.device))
        for block in self.blocks:
            x = call(a, block, x)
        return self.head(self.norm(x))


model = place(a, Gpt(), leave=("head",))


def loss_of(n):
    t = words(n, a.seq + 1, a.vocabulary)
    return F.cross_entropy(model(t[:, :-1]).flatten(0, 1), t[:, 1:].flatten())


train(a, model, loss_of)
