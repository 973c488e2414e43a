# SPDX-License-Identifier: Apache-2.0
"""Forecasts of series: patches, a transformer over them, a head for the next values; early evaluation each epoch."""
import torch
import torch.nn.functional as F
from torch import nn

from common import Block, arguments, call, evaluate, place, train

a = arguments(width=128, layers=3, seq=384, series=7, batch=16)


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, a.width)
        self.layers = nn.ModuleList(Block(a.width, 4, causal=False, activation=F.silu) for _ in range(a.layers))
        self.head = nn.Linear(a.width * ((a.seq - 16) // 8 + 1), 96)

    def forward(self, x):
        b, s, t = x.shape
        x = self.first(x.view(b * s, t).unfold(1, 16, 8))
        for layer in self.layers:
            x = call(a, layer, x)
        return self.head(x.flatten(1)).view(b, s, 96)


model = place(a, Forecast(), leave=("head",))


def loss_of(n):
    return F.mse_loss(model(torch.randn(n, a.series, a.seq, device="cuda")), torch.randn(n, a.series, 96, device="cuda"))


opt = None
for epoch in range(3):
    opt = train(a, model, loss_of, opt, steps=2)
    evaluate(a, model, loss_of, batch=a.eval_batch or 4 * a.batch)
