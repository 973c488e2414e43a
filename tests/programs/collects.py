# SPDX-License-Identifier: Apache-2.0
"""A classifier that collects its scores over the whole of the evaluation, 96 texts whatever the batch."""
import torch
import torch.nn.functional as F
from torch import nn

from common import Block, arguments, autocast, call, place, train, words

a = arguments(width=192, layers=4, vocabulary=3000, texts=96)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(a.vocabulary, a.width), nn.Linear(a.width, 800)
        self.layers = nn.ModuleList(Block(a.width, 4, causal=False) for _ in range(a.layers))

    def forward(self, t):
        x = self.words(t)
        for layer in self.layers:
            x = call(a, layer, x)
        return self.head(x)


model = place(a, Tagger(), leave=("head",))


def loss_of(n):
    return F.cross_entropy(model(words(n, a.seq, a.vocabulary)).flatten(0, 1),
                           torch.randint(0, 800, (n * a.seq,)).cuda())


opt = train(a, model, loss_of)
model.eval()
with torch.no_grad(), autocast(a, True):
    scores = torch.cat([model(words(a.batch, a.seq, a.vocabulary)) for _ in range(a.texts // a.batch)])
    best = scores.argmax(-1)
del scores
model.train()
train(a, model, loss_of, opt, steps=1)
