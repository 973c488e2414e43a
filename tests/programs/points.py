# SPDX-License-Identifier: Apache-2.0
"""Clouds of points: nearest neighbours from all distances, features of edges, a maximum over neighbours."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, call, evaluate, place, train

a = arguments(width=64, seq=256, near=12)


class Edge(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.f, self.g, self.norm = nn.Linear(2 * i, o), nn.Linear(o, o), nn.LayerNorm(o)

    def forward(self, x):
        near = torch.cdist(x, x).topk(a.near, largest=False).indices
        y = torch.gather(x[:, None].expand(-1, x.shape[1], -1, -1), 2, near[..., None].expand(-1, -1, -1, x.shape[2]))
        y = torch.cat([y - x[:, :, None], x[:, :, None].expand_as(y)], -1)
        return self.norm(self.g(F.relu(self.f(y))).amax(2))


class Cloud(nn.Module):
    def __init__(self):
        super().__init__()
        self.edges = nn.ModuleList([Edge(3, a.width), Edge(a.width, a.width), Edge(a.width, a.width)])
        self.head = nn.Linear(a.width, 40)

    def forward(self, x):
        for edge in self.edges:
            x = call(a, edge, x)
        return self.head(x.amax(1))


model = place(a, Cloud(), leave=("head",))


def loss_of(n):
    return F.cross_entropy(model(torch.randn(n, a.seq, 3, device="cuda")), torch.randint(0, 40, (n,)).cuda())


train(a, model, loss_of)
evaluate(a, model, loss_of)
