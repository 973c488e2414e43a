# SPDX-License-Identifier: Apache-2.0
"""A bidirectional LSTM over packed sentences of random lengths."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from common import arguments, evaluate, place, train

a = arguments(width=256, vocabulary=8000, steps=6)


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(a.vocabulary, a.width), nn.Linear(2 * a.width, 12)
        self.lstm = nn.LSTM(a.width, a.width, 2, batch_first=True, bidirectional=True)

    def forward(self, t, lengths):
        x = pack_padded_sequence(self.words(t), lengths, batch_first=True, enforce_sorted=False)
        y, _ = pad_packed_sequence(self.lstm(x)[0], batch_first=True)
        return self.head(y)


model = place(a, Lstm())


def loss_of(n):
    lengths = torch.randint(a.seq // 4, a.seq + 1, (n,))
    t = torch.randint(0, a.vocabulary, (n, int(lengths.max()))).cuda()
    y = model(t, lengths)
    return F.cross_entropy(y.flatten(0, 1), torch.randint(0, 12, (y.shape[0] * y.shape[1],)).cuda())


train(a, model, loss_of)
evaluate(a, model, loss_of, batch=a.eval_batch or 3 * a.batch)
