# SPDX-License-Identifier: Apache-2.0
"""A GRU encoder and a decoder that goes word by word with attention: a loop whose turns follow --seq."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, place, train, words

a = arguments(width=192, vocabulary=3000, seq=24, optimizer="adam")


class Translate(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(a.vocabulary, a.width), nn.Linear(2 * a.width, a.vocabulary)
        self.encoder, self.cell = nn.GRU(a.width, a.width, batch_first=True), nn.GRUCell(a.width, a.width)
        self.ask = nn.Linear(a.width, a.width)

    def forward(self, s, t):
        memory, h = self.encoder(self.words(s))
        h, loss = h[0], 0.0
        for k in range(t.shape[1] - 1):
            h = self.cell(self.words(t[:, k]), h)
            weight = torch.einsum("bd,bsd->bs", self.ask(h), memory).softmax(-1)
            seen = torch.einsum("bs,bsd->bd", weight, memory)
            loss = loss + F.cross_entropy(self.head(torch.cat([h, seen], -1)), t[:, k + 1])
        return loss / t.shape[1]


model = place(a, Translate())
train(a, model, lambda n: model(words(n, 2 * a.seq, a.vocabulary), words(n, a.seq, a.vocabulary)), clip=1.0)
