# SPDX-License-Identifier: Apache-2.0
"""A masked language model: the output layer sees only the words that were masked, about 15 % of them."""
import torch
import torch.nn.functional as F
from torch import nn

from common import Block, arguments, call, evaluate, place, train, words

a = arguments(width=256, layers=5, vocabulary=12000)


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(a.vocabulary, a.width), nn.Embedding(2048, a.width)
        self.layers = nn.ModuleList(Block(a.width, 8, causal=False) for _ in range(a.layers))
        self.turn, self.norm = nn.Linear(a.width, a.width), nn.LayerNorm(a.width)
        self.head = nn.Linear(a.width, a.vocabulary)

    def forward(self, t, masked):
        x = self.words(t.masked_fill(masked, 0)) + self.places(torch.arange(t.shape[1], device=t.device))
        for layer in self.layers:
            x = call(a, layer, x)
        return self.head(self.norm(F.gelu(self.turn(x[masked]))))


model = place(a, Masked(), leave=("head",))


def loss_of(n):
    t = words(n, a.seq, a.vocabulary)
    masked = (torch.rand(n, a.seq) < 0.15).cuda()
    return F.cross_entropy(model(t, masked), t[masked])


opt = train(a, model, loss_of, steps=5)
evaluate(a, model, loss_of)
train(a, model, loss_of, opt, steps=2)
