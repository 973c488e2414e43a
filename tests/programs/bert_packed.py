# SPDX-License-Identifier: Apache-2.0
"""An encoder without padding: the sentences of a batch lie one behind the other, of random lengths."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, call, place, train

a = arguments(width=256, layers=4, vocabulary=6000, steps=6)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(a.width, 3 * a.width), nn.Linear(a.width, a.width)
        self.norm1, self.norm2 = nn.LayerNorm(a.width), nn.LayerNorm(a.width)
        self.up, self.down = nn.Linear(a.width, 4 * a.width), nn.Linear(4 * a.width, a.width)

    def forward(self, x, lengths):
        parts = []
        for qkv in self.qkv(self.norm1(x)).split(lengths):
            q, k, v = (y.view(1, -1, 8, a.width // 8).transpose(1, 2) for y in qkv.chunk(3, -1))
            parts.append(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(-1, a.width))
        x = x + self.out(torch.cat(parts))
        return x + self.down(F.relu(self.up(self.norm2(x))))


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(a.vocabulary, a.width)
        self.layers = nn.ModuleList(Layer() for _ in range(a.layers))
        self.head = nn.Linear(a.width, 16)

    def forward(self, t, lengths):
        x = self.words(t)
        for layer in self.layers:
            x = call(a, layer, x, lengths)
        return self.head(torch.stack([p.mean(0) for p in x.split(lengths)]))


model = place(a, Packed(), leave=("head",))


def loss_of(n):
    lengths = torch.randint(a.seq // 3, a.seq + 1, (n,)).tolist()
    t = torch.randint(0, a.vocabulary, (sum(lengths),)).cuda()
    return F.cross_entropy(model(t, lengths), torch.randint(0, 16, (n,)).cuda())


train(a, model, loss_of)
