# SPDX-License-Identifier: Apache-2.0
"""An MLP-Mixer: layers over places and layers over channels in turn."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, call, place, train

a = arguments(width=256, layers=6, side=112, optimizer="rmsprop")


class Mix(nn.Module):
    def __init__(self):
        super().__init__()
        n = (a.side // 8) ** 2
        self.n1, self.n2 = nn.LayerNorm(a.width), nn.LayerNorm(a.width)
        self.places = nn.Sequential(nn.Linear(n, 2 * n), nn.GELU(), nn.Linear(2 * n, n))
        self.channels = nn.Sequential(nn.Linear(a.width, 4 * a.width), nn.GELU(), nn.Linear(4 * a.width, a.width))

    def forward(self, x):
        x = x + self.places(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.n2(x))


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.cut, self.head = nn.Conv2d(3, a.width, 8, 8), nn.Linear(a.width, 100)
        self.layers = nn.ModuleList(Mix() for _ in range(a.layers))

    def forward(self, x):
        x = self.cut(x).flatten(2).transpose(1, 2)
        for layer in self.layers:
            x = call(a, layer, x)
        return self.head(x.mean(1))


model = place(a, Mixer(), leave=("head",))
train(a, model, lambda n: F.cross_entropy(model(torch.randn(n, 3, a.side, a.side, device="cuda")),
                                          torch.randint(0, 100, (n,)).cuda()))
