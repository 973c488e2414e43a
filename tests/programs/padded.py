# SPDX-License-Identifier: Apache-2.0
"""A GPT whose sentences are padded to a multiple of 64 words before they reach the card, as kernels like them."""
import torch.nn.functional as F

from common import Gpt, arguments, evaluate, place, train, words

a = arguments(width=192, layers=4, vocabulary=3000, multiple=64)
model = place(a, Gpt(a, 6), leave=("head",))


def loss_of(n):
    t = F.pad(words(n, a.seq, a.vocabulary), (0, -a.seq % a.multiple))
    return F.cross_entropy(model(t).flatten(0, 1)[:-1], t.flatten()[1:], ignore_index=0)


train(a, model, loss_of)
evaluate(a, model, loss_of)
