# SPDX-License-Identifier: Apache-2.0
"""A gated linear recurrence, scanned in log steps in plain PyTorch: no attention, many small operations."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, call, place, train

a = arguments(width=256, layers=8, seq=256, words=2000)


def scan(decay, x):
    """h[t] = decay[t] * h[t - 1] + x[t], by doubling."""
    d = 1
    while d < x.shape[1]:
        x = x + decay * F.pad(x, (0, 0, d, 0))[:, :-d]
        decay = decay * F.pad(decay, (0, 0, d, 0), value=1.0)[:, :-d]
        d *= 2
    return x


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.into = nn.RMSNorm(a.width), nn.Linear(a.width, 3 * a.width, bias=False)
        self.out = nn.Linear(a.width, a.width, bias=False)

    def forward(self, x):
        v, gate, decay = self.into(self.norm(x)).chunk(3, dim=-1)
        decay = torch.sigmoid(decay + 2.0)
        return x + self.out(F.silu(gate) * scan(decay, (1 - decay) * v))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.norm = nn.Embedding(a.words, a.width), nn.RMSNorm(a.width)
        self.layers, self.head = nn.ModuleList(Gate() for _ in range(a.layers)), nn.Linear(a.width, a.words, bias=False)

    def forward(self, t):
        x = self.words(t)
        for layer in self.layers:
            x = call(a, layer, x)
        return self.head(self.norm(x))


def loss(n):
    t = torch.randint(0, a.words, (n, a.seq + 1)).cuda()
    return F.cross_entropy(model(t[:, :-1]).flatten(0, 1), t[:, 1:].flatten())


model = place(a, Net(), leave=("head",))
train(a, model, loss)
