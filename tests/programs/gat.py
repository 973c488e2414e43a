# SPDX-License-Identifier: Apache-2.0
"""Attention over the edges of sampled neighbourhoods: each step has other seeds and so another graph."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, place, train

a = arguments(width=64, heads=4, nodes=4000, steps=6, batch=64)


class Gat(nn.Module):
    def __init__(self, i):
        super().__init__()
        self.value = nn.Linear(i, a.width * a.heads)
        self.left, self.right = (nn.Parameter(torch.randn(a.heads, a.width) * 0.1) for _ in range(2))

    def forward(self, x, source, target):
        v = self.value(x).view(-1, a.heads, a.width)
        score = F.leaky_relu((v * self.left).sum(-1)[source] + (v * self.right).sum(-1)[target], 0.2)
        weight = (score - score.max()).exp()
        norm = torch.zeros(x.shape[0], a.heads, device=x.device).index_add(0, target, weight)
        y = v[source] * (weight / (norm[target] + 1e-9))[..., None]
        return F.elu(torch.zeros_like(v).index_add(0, target, y)).flatten(1)


table = torch.randn(a.nodes, 64).cuda()
model = place(a, nn.ModuleList([Gat(64), Gat(a.width * a.heads), nn.Linear(a.width * a.heads, 20)]))


def loss_of(n):
    reached, edges = torch.randint(0, a.nodes, (n,)), []
    for most in (12, 6):  # neighbours of neighbours; how many each has is random
        count = torch.randint(1, most, (reached.numel(),))
        target = reached.repeat_interleave(count)
        source = torch.randint(0, a.nodes, (target.numel(),))
        edges.append(torch.stack([source, target]))
        reached = torch.cat([reached, source]).unique()
    place_of = torch.zeros(a.nodes, dtype=torch.long)
    place_of[reached] = torch.arange(reached.numel())
    source, target = place_of[torch.cat(edges, 1)].cuda()
    x = table[reached.cuda()]
    for layer in model[:2]:
        x = layer(x, source, target)
    return F.cross_entropy(model[2](x[:n]), torch.randint(0, 20, (n,)).cuda())


train(a, model, loss_of)
