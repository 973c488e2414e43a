# SPDX-License-Identifier: Apache-2.0
"""A GPT whose sentences are padded to a multiple of 64 words before they reach the card, as kernels like them."""
import torch
import torch.nn.functional as F
from torch import nn

from common import Block, arguments, call, evaluate, place, train, words

a = arguments(width=192, layers=4, vocabulary=3000, multiple=64)


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(a.vocabulary, a.width), nn.Embedding(2048, a.width)
        self.blocks = nn.ModuleList(Block(a.width, 6) for _ in range(a.layers))
        self.norm, self.head = nn.LayerNorm(a.width), nn.Linear(a.width, a.vocabulary, bias=False)

    def forward(self, t):
        x = self.wte(t) + self.wpe(torch.arange(t.shape[1], device=t.device))
        for block in self.blocks:
            x = call(a, block, x)
        return self.head(self.norm(x))


model = place(a, Gpt(), leave=("head",))


def loss_of(n):
    t = F.pad(words(n, a.seq, a.vocabulary), (0, -a.seq % a.multiple))
    return F.cross_entropy(model(t).flatten(0, 1)[:-1], t.flatten()[1:], ignore_index=0)


train(a, model, loss_of)
evaluate(a, model, loss_of)
