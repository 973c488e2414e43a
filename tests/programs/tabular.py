# SPDX-License-Identifier: Apache-2.0
"""Numbers in columns: linear layers with batch norms and dropout, evaluated on very large batches."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, evaluate, place, train

a = arguments(width=512, columns=200, batch=512)
model = place(a, nn.Sequential(*(m for i, o in ((a.columns, a.width), (a.width, a.width), (a.width, a.width)) for m in (
    nn.Linear(i, o), nn.BatchNorm1d(o), nn.ReLU(), nn.Dropout(0.2))), nn.Linear(a.width, 10)), leave=("12",))


def loss_of(n):
    x = torch.randn(n, a.columns, device="cuda", dtype=torch.bfloat16 if a.bf16 else None)
    return F.cross_entropy(model(x), torch.randint(0, 10, (n,)).cuda())


opt = train(a, model, loss_of)
evaluate(a, model, loss_of, batch=a.eval_batch or 24 * a.batch)
train(a, model, loss_of, opt, steps=2)
