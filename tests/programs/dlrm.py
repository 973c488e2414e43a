# SPDX-License-Identifier: Apache-2.0
"""A recommender: tables of many sizes, a product of all pairs, layers above and below; Adagrad."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, evaluate, place, train

a = arguments(width=64, batch=256, optimizer="adagrad")
tables = (40000, 20000, 10000, 5000, 2000, 500, 100, 20)


class Dlrm(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(n, a.width, mode="sum") for n in tables)
        self.below = nn.Sequential(nn.Linear(13, 256), nn.ReLU(), nn.Linear(256, a.width), nn.ReLU())
        self.above = nn.Sequential(nn.Linear(a.width + 36, 512), nn.ReLU(), nn.Linear(512, 1))

    def forward(self, numbers, kinds):
        x = self.below(numbers)
        z = torch.stack([x, *(t(k) for t, k in zip(self.tables, kinds))], 1)
        pairs = z @ z.transpose(1, 2)
        i, j = torch.triu_indices(9, 9, 1, device=x.device)
        return self.above(torch.cat([x, pairs[:, i, j]], 1)).squeeze(1)


model = place(a, Dlrm())


def loss_of(n):
    kinds = [torch.randint(0, k, (n, 3)).cuda() for k in tables]
    return F.binary_cross_entropy_with_logits(model(torch.randn(n, 13, device="cuda"), kinds), torch.rand(n).cuda())


opt = train(a, model, loss_of)
evaluate(a, model, loss_of, batch=a.eval_batch or 16 * a.batch)
train(a, model, loss_of, opt, steps=2)
