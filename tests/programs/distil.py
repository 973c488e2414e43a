# SPDX-License-Identifier: Apache-2.0
"""A small model learns from a large one that is frozen; both see each batch."""
import torch
import torch.nn.functional as F
from torch import nn

from common import Block, arguments, call, evaluate, place, train, words

a = arguments(width=192, layers=3, vocabulary=5000)


class Model(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.words, self.head = nn.Embedding(a.vocabulary, width), nn.Linear(width, a.vocabulary)
        self.layers = nn.ModuleList(Block(width, 4) for _ in range(layers))

    def forward(self, t):
        x = self.words(t)
        for layer in self.layers:
            x = call(a, layer, x)
        return self.head(x)


teacher, model = Model(512, 6).cuda().eval(), place(a, Model(a.width, a.layers), leave=("head",))


def loss_of(n):
    t = words(n, a.seq, a.vocabulary)
    with torch.no_grad():
        wanted = teacher(t)
    return F.kl_div((model(t) / 2).log_softmax(-1), (wanted / 2).softmax(-1), reduction="batchmean")


train(a, model, loss_of)
evaluate(a, model, loss_of)
