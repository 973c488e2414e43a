# SPDX-License-Identifier: Apache-2.0
"""Residual layers of 3-D convolutions in place, with instance norms, for volumes; a head for each voxel."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, call, place, train

a = arguments(width=16, layers=6, side=24)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = (nn.Conv3d(a.width, a.width, 3, padding=1, bias=False) for _ in range(2))
        self.n1, self.n2 = (nn.InstanceNorm3d(a.width, affine=True) for _ in range(2))

    def forward(self, x):
        y = F.leaky_relu_(self.n1(self.one(x)), 0.01)
        y = self.n2(self.two(y))
        y += x
        return F.leaky_relu_(y, 0.01)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.head = nn.Conv3d(1, a.width, 3, padding=1), nn.Conv3d(a.width, 3, 1)
        self.layers = nn.ModuleList(Layer() for _ in range(a.layers))

    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            x = call(a, layer, x)
        return self.head(x)


model = place(a, Net(), leave=("head",))
train(a, model, lambda n: F.cross_entropy(model(torch.randn(n, 1, *[a.side] * 3, device="cuda")),
                                          torch.randint(0, 3, (n, *[a.side] * 3)).cuda()))
