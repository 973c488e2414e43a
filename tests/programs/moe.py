# SPDX-License-Identifier: Apache-2.0
"""A mixture of experts: each word goes to the two experts that a router names, so their shares vary."""
import torch
import torch.nn.functional as F
from torch import nn

from common import Attention, arguments, call, evaluate, place, train, words

a = arguments(width=256, layers=3, vocabulary=4000, experts=6, steps=5)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2, self.attention = nn.LayerNorm(a.width), nn.LayerNorm(a.width), Attention(a.width, 4)
        self.router = nn.Linear(a.width, a.experts, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(a.width, 768), nn.GELU(), nn.Linear(768, a.width))
                                     for _ in range(a.experts))

    def forward(self, x):
        x = x + self.attention(self.n1(x))
        y = self.n2(x).flatten(0, 1)
        share, who = (self.router(y) + torch.rand(y.shape[0], a.experts).cuda()).softmax(-1).topk(2)
        out = torch.zeros_like(y)
        who = torch.rand(y.shape[0], a.experts).topk(2).indices.cuda()  # nothing has been learnt: anybody
        for k, expert in enumerate(self.experts):
            row, place_ = torch.where(who == k)
            part = expert(y[row]) * share[row, place_, None]
            out = out.index_add(0, row, part.to(out.dtype))
        return x + out.view_as(x)


class Moe(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(a.vocabulary, a.width)
        self.layers = nn.ModuleList(Layer() for _ in range(a.layers))
        self.head = nn.Linear(a.width, a.vocabulary)

    def forward(self, t):
        x = self.words(t)
        for layer in self.layers:
            x = call(a, layer, x)
        return self.head(x)


model = place(a, Moe(), leave=("head",))


def loss_of(n):
    t = words(n, a.seq + 1, a.vocabulary)
    return F.cross_entropy(model(t[:, :-1]).flatten(0, 1), t[:, 1:].flatten())


opt = train(a, model, loss_of)
evaluate(a, model, loss_of)
