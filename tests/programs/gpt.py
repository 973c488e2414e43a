# SPDX-License-Identifier: Apache-2.0
"""A GPT that is trained and never evaluated."""
import torch.nn.functional as F

from common import Gpt, arguments, place, train, words

a = arguments(width=256, layers=6, vocabulary=4000)
model = place(a, Gpt(a, 8), leave=("head",))


def loss_of(n):
    t = words(n, a.seq + 1, a.vocabulary)
    return F.cross_entropy(model(t[:, :-1]).flatten(0, 1), t[:, 1:].flatten())


train(a, model, loss_of)
