# SPDX-License-Identifier: Apache-2.0
"""A long-text encoder that attends within windows of 64 and to what lies on either side of them."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, call, evaluate, place, train, words

a = arguments(width=192, layers=4, vocabulary=4000, window=64, heads=6, seq=512)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(a.width, 3 * a.width), nn.Linear(a.width, a.width)
        self.n1, self.n2 = nn.LayerNorm(a.width), nn.LayerNorm(a.width)
        self.up, self.down = nn.Linear(a.width, 3 * a.width), nn.Linear(3 * a.width, a.width)

    def forward(self, x):
        b, t, c = x.shape
        short = -t % a.window
        y = F.pad(self.n1(x), (0, 0, 0, short))
        q, k, v = (z.view(b, -1, a.window, a.heads, c // a.heads) for z in self.qkv(y).chunk(3, -1))
        k, v = (torch.cat([F.pad(z, (0, 0) * 3 + (1, 0))[:, :-1], z, F.pad(z, (0, 0) * 3 + (0, 1))[:, 1:]], 2)
                for z in (k, v))
        scores = torch.einsum("bwqhd,bwkhd->bwhqk", q, k) * (c // a.heads) ** -0.5
        y = torch.einsum("bwhqk,bwkhd->bwqhd", scores.softmax(-1), v).reshape(b, t + short, c)[:, :t]
        x = x + self.out(y)
        return x + self.down(F.relu(self.up(self.n2(x))) ** 2)


class Longformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(a.vocabulary, a.width), nn.Linear(a.width, 20)
        self.layers = nn.ModuleList(Layer() for _ in range(a.layers))

    def forward(self, t):
        x = self.words(t)
        for layer in self.layers:
            x = call(a, layer, x)
        return self.head(x.mean(1))


model = place(a, Longformer(), leave=("head",))


def loss_of(n):
    return F.cross_entropy(model(words(n, a.seq, a.vocabulary)), torch.randint(0, 20, (n,)).cuda())


train(a, model, loss_of)
evaluate(a, model, loss_of, batch=a.eval_batch or 8 * a.batch)
