# SPDX-License-Identifier: Apache-2.0
"""A mixture of experts with a capacity: each expert takes at most ceil(1.25 words / experts), the rest is dropped."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from common import Attention, Stack, arguments, next_word, place, train

a = arguments(width=256, layers=3, vocabulary=4000, experts=8)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2, self.attention = nn.LayerNorm(a.width), nn.LayerNorm(a.width), Attention(a.width, 4)
        self.router = nn.Linear(a.width, a.experts, bias=False)
        self.w1 = nn.Parameter(torch.randn(a.experts, a.width, 512) * 0.02)
        self.w2 = nn.Parameter(torch.randn(a.experts, 512, a.width) * 0.02)

    def forward(self, x):
        x = x + self.attention(self.n1(x))
        y = self.n2(x).flatten(0, 1)
        capacity = math.ceil(1.25 * y.shape[0] / a.experts)
        gate = self.router(y).softmax(-1)
        share, row = gate.topk(capacity, dim=0)  # each expert chooses its words
        z = torch.einsum("ecd,edh->ech", y[row.t()], self.w1)
        z = torch.einsum("ech,ehd->ecd", F.gelu(z), self.w2) * share.t()[..., None]
        return x + torch.zeros_like(y).index_add(0, row.t().flatten(), z.flatten(0, 1).to(y.dtype)).view_as(x)


model = place(a, Stack(a, Layer), leave=("head",))

train(a, model, next_word(a, model))
