# SPDX-License-Identifier: Apache-2.0
"""A GPT with a fixed batch of 48 sequences a step: micro-batches of --batch, 48 / batch of them."""
import torch.nn.functional as F

from common import Gpt, arguments, evaluate, place, train, words

a = arguments(width=256, layers=4, vocabulary=4000, sequences=48)
a.accumulate = max(1, a.sequences // a.batch)
model = place(a, Gpt(a, 8, tied=True), leave=("head",))


def loss_of(n):
    t = words(n, a.seq + 1, a.vocabulary)
    return F.cross_entropy(model(t[:, :-1]).flatten(0, 1), t[:, 1:].flatten())


train(a, model, loss_of)
evaluate(a, model, loss_of)
