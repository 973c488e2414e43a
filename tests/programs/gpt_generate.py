# SPDX-License-Identifier: Apache-2.0
"""Inference: a prompt of --seq words, then 48 more, one at a time, with a cache that grows by one each."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, autocast, place, words

a = arguments(width=512, layers=6, vocabulary=8000, new=48, heads=8)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(a.width), nn.LayerNorm(a.width)
        self.qkv, self.out = nn.Linear(a.width, 3 * a.width), nn.Linear(a.width, a.width)
        self.up, self.down = nn.Linear(a.width, 4 * a.width), nn.Linear(4 * a.width, a.width)

    def forward(self, x, past):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, a.heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, -1))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.norm2(x)))), (k, v)


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(a.vocabulary, a.width)
        self.layers = nn.ModuleList(Layer() for _ in range(a.layers))
        self.head = nn.Linear(a.width, a.vocabulary, bias=False)

    def forward(self, t, cache):
        x, new = self.wte(t), []
        for layer, past in zip(self.layers, cache):
            x, kv = layer(x, past)
            new.append(kv)
        return self.head(x[:, -1]), new


model = place(a, Gpt()).eval()
for _ in range(2):
    t, cache = words(a.batch, a.seq, a.vocabulary), [None] * a.layers
    with torch.no_grad(), autocast(a, True):
        for _ in range(a.new):
            scores, cache = model(t, cache)
            t = scores.argmax(-1, keepdim=True)
    del cache
