# SPDX-License-Identifier: Apache-2.0
"""A GPT with attention written out, evaluated on batches four times as large."""
import torch.nn.functional as F

from common import Gpt, Written, arguments, evaluate, place, train, words

a = arguments(width=256, layers=4, vocabulary=6000)
model = place(a, Gpt(a, 4, Written, bias=True), leave=("head",))


def loss_of(n):
    t = words(n, a.seq + 1, a.vocabulary)
    return F.cross_entropy(model(t[:, :-1]).flatten(0, 1), t[:, 1:].flatten())


opt = train(a, model, loss_of, clip=1.0)
evaluate(a, model, loss_of, batch=a.eval_batch or 4 * a.batch)
train(a, model, loss_of, opt, clip=1.0, steps=2)
