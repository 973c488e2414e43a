# SPDX-License-Identifier: Apache-2.0
"""A diffusion transformer: layers whose norms are scaled by the time step, which each of them gets beside x."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, call, place, train

a = arguments(width=256, layers=8, side=64)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = (nn.LayerNorm(a.width, elementwise_affine=False) for _ in range(2))
        self.qkv, self.out = nn.Linear(a.width, 3 * a.width), nn.Linear(a.width, a.width)
        self.up, self.down = nn.Linear(a.width, 4 * a.width), nn.Linear(4 * a.width, a.width)
        self.scales = nn.Sequential(nn.SiLU(), nn.Linear(a.width, 6 * a.width))

    def forward(self, x, time):
        s1, b1, g1, s2, b2, g2 = self.scales(time).unsqueeze(1).chunk(6, dim=-1)
        y = self.n1(x) * (1 + s1) + b1
        q, k, v = (z.unflatten(2, (8, -1)).transpose(1, 2) for z in self.qkv(y).chunk(3, dim=-1))
        x = x + g1 * self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        y = self.n2(x) * (1 + s2) + b2
        return x + g2 * self.down(F.gelu(self.up(y), approximate="tanh"))


class Dit(nn.Module):
    def __init__(self):
        super().__init__()
        self.cut, self.head = nn.Conv2d(4, a.width, 4, 4), nn.Linear(a.width, 64)
        self.time = nn.Sequential(nn.Linear(64, a.width), nn.SiLU(), nn.Linear(a.width, a.width))
        self.layers = nn.ModuleList(Layer() for _ in range(a.layers))

    def forward(self, x, t):
        x, time = self.cut(x).flatten(2).transpose(1, 2), self.time(t)
        for layer in self.layers:
            x = call(a, layer, x, time)
        return self.head(x)


model = place(a, Dit(), leave=("head",))
train(a, model, lambda n: model(torch.randn(n, 4, a.side, a.side, device="cuda"), torch.randn(n, 64).cuda()).square().mean())
