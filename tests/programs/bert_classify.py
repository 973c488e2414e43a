# SPDX-License-Identifier: Apache-2.0
"""A BERT classifier; sentences are padded to the longest of their batch. Evaluation comes after the training."""
import torch
import torch.nn.functional as F
from torch import nn

from common import Block, Written, arguments, call, evaluate, place, train

a = arguments(width=256, layers=6, vocabulary=8000, optimizer="adamw")


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(a.vocabulary, a.width), nn.Embedding(2048, a.width)
        self.norm = nn.LayerNorm(a.width)
        self.layers = nn.ModuleList(Block(a.width, 8, Written, causal=False) for _ in range(a.layers))
        self.pool, self.head = nn.Linear(a.width, a.width), nn.Linear(a.width, 4)

    def forward(self, t):
        mask = (t > 0)[:, None, None]
        x = self.norm(self.words(t) + self.places(torch.arange(t.shape[1], device=t.device)))
        for layer in self.layers:
            x = call(a, layer, x, mask)
        return self.head(torch.tanh(self.pool(x[:, 0])))


model = place(a, Bert(), leave=("head",))


def sentences(n):
    lengths = torch.randint(a.seq // 4, a.seq + 1, (n,)).tolist()
    rows = [torch.randint(1, a.vocabulary, (k,)) for k in lengths]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True).cuda()


def loss_of(n):
    return F.cross_entropy(model(sentences(n)), torch.randint(0, 4, (n,)).cuda())


train(a, model, loss_of)
evaluate(a, model, loss_of, batch=a.eval_batch or 2 * a.batch)
