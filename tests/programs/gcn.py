# SPDX-License-Identifier: Apache-2.0
"""Graph convolutions on batches of random graphs: their nodes and edges differ from step to step."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, call, evaluate, place, train

a = arguments(width=128, layers=4, steps=7, batch=16)


class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.own, self.other, self.norm = nn.Linear(a.width, a.width), nn.Linear(a.width, a.width), nn.LayerNorm(a.width)

    def forward(self, x, source, target):
        got = torch.zeros_like(x).index_add(0, target, self.other(x)[source].to(x.dtype))
        return x + F.relu(self.norm(self.own(x) + got))


class Gcn(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.head = nn.Linear(32, a.width), nn.Linear(a.width, 1)
        self.layers = nn.ModuleList(Convolution() for _ in range(a.layers))

    def forward(self, x, source, target, graph, n):
        x = self.first(x)
        for layer in self.layers:
            x = call(a, layer, x, source, target)
        return self.head(x.new_zeros(n, a.width).index_add(0, graph, x))


model = place(a, Gcn())


def loss_of(n):
    nodes = torch.randint(20, 200, (n,))
    total, edges = int(nodes.sum()), int((nodes * 4 + torch.randint(0, 60, (n,))).sum())
    source, target = torch.randint(0, total, (2, edges)).cuda()
    graph = torch.arange(n).repeat_interleave(nodes).cuda()
    return F.l1_loss(model(torch.randn(total, 32).cuda(), source, target, graph, n), torch.randn(n, 1).cuda())


opt = train(a, model, loss_of)
evaluate(a, model, loss_of, steps=3)
