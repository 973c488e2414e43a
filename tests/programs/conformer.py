# SPDX-License-Identifier: Apache-2.0
"""A conformer for speech: half steps, attention, and convolutions with a batch norm in one layer, losses by CTC."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, call, place, train

a = arguments(width=144, layers=6, frames=400)


class Half(nn.Sequential):
    def __init__(self):
        super().__init__(nn.LayerNorm(a.width), nn.Linear(a.width, 4 * a.width), nn.SiLU(), nn.Dropout(0.1),
                         nn.Linear(4 * a.width, a.width), nn.Dropout(0.1))


class Convolve(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.wide = nn.LayerNorm(a.width), nn.Conv1d(a.width, 2 * a.width, 1)
        self.deep = nn.Conv1d(a.width, a.width, 15, padding=7, groups=a.width)
        self.batch, self.out = nn.BatchNorm1d(a.width), nn.Conv1d(a.width, a.width, 1)

    def forward(self, x):
        x = F.glu(self.wide(self.norm(x).transpose(1, 2)), dim=1)
        return self.out(F.silu(self.batch(self.deep(x)))).transpose(1, 2)


class Conformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last, self.convolve = Half(), Half(), Convolve()
        self.norm, self.attend = nn.LayerNorm(a.width), nn.MultiheadAttention(a.width, 4, 0.1, batch_first=True)
        self.end = nn.LayerNorm(a.width)

    def forward(self, x):
        x = x + 0.5 * self.first(x)
        y = self.norm(x)
        x = x + self.attend(y, y, y, need_weights=False)[0]
        x = x + self.convolve(x)
        return self.end(x + 0.5 * self.last(x))


class Speech(nn.Module):
    def __init__(self):
        super().__init__()
        self.cut, self.head = nn.Conv1d(80, a.width, 3, 2, 1), nn.Linear(a.width, 100)
        self.layers = nn.ModuleList(Conformer() for _ in range(a.layers))

    def forward(self, x):
        x = self.cut(x).transpose(1, 2)
        for layer in self.layers:
            x = call(a, layer, x)
        return self.head(x).log_softmax(-1)


def loss(n):
    y = model(torch.randn(n, 80, a.frames, device="cuda")).transpose(0, 1)
    sizes = torch.full((n,), y.shape[0]), torch.full((n,), 20)
    return F.ctc_loss(y, torch.randint(1, 100, (n, 20)).cuda(), sizes[0], sizes[1])


model = place(a, Speech(), leave=("head",))
train(a, model, loss)
