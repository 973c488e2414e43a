# SPDX-License-Identifier: Apache-2.0
"""A mixture of experts: each word goes to the two experts that a router names, so their shares vary."""
import torch
import torch.nn.functional as F
from torch import nn

from common import Attention, Stack, arguments, evaluate, next_word, place, train

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


model = place(a, Stack(a, Layer), leave=("head",))
loss_of = next_word(a, model)
opt = train(a, model, loss_of)
evaluate(a, model, loss_of)
