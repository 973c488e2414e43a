# SPDX-License-Identifier: Apache-2.0
"""A WaveNet: dilated convolutions with gates; every layer adds to what the end sees."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, call, place, train

a = arguments(width=48, layers=10, seq=2048)


class Gate(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.look = nn.Conv1d(a.width, 2 * a.width, 2, dilation=1 << k % 8)
        self.out, self.past = nn.Conv1d(a.width, 2 * a.width, 1), 1 << k % 8

    def forward(self, x):
        p, q = self.look(F.pad(x, (self.past, 0))).chunk(2, 1)
        y, skip = self.out(p.tanh() * q.sigmoid()).chunk(2, 1)
        return x + y, skip


class Wavenet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Embedding(256, a.width), nn.Conv1d(a.width, 256, 1)
        self.gates = nn.ModuleList(Gate(k) for k in range(a.layers))

    def forward(self, t):
        x, seen = self.first(t).transpose(1, 2), 0
        for gate in self.gates:
            x, skip = call(a, gate, x)
            seen = seen + skip
        return self.last(F.relu(seen))


model = place(a, Wavenet())


def loss_of(n):
    t = torch.randint(0, 256, (n, a.seq + 1)).cuda()
    return F.cross_entropy(model(t[:, :-1]), t[:, 1:])


train(a, model, loss_of)
