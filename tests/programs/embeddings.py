# SPDX-License-Identifier: Apache-2.0
"""Words from their neighbours: sparse gradients of two tables, negatives for every pair, SGD."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, optimizer, place

a = arguments(width=128, vocabulary=30000, batch=1024, negatives=10, optimizer="sgd")
left, right = (place(a, nn.Embedding(a.vocabulary, a.width, sparse=True)) for _ in range(2))
opt = optimizer(a, [*left.parameters(), *right.parameters()])
for _ in range(a.steps):
    p, q = torch.randint(0, a.vocabulary, (2, a.batch)).cuda()
    n = torch.randint(0, a.vocabulary, (a.batch, a.negatives)).cuda()
    x = left(p)
    good = F.logsigmoid((x * right(q)).sum(-1))
    bad = F.logsigmoid(-(right(n) @ x[..., None]).squeeze(-1)).sum(-1)
    (-(good + bad).mean()).backward()
    opt.step()
    opt.zero_grad()
