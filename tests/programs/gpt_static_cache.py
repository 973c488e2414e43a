# SPDX-License-Identifier: Apache-2.0
"""Inference in bf16 with a cache that is made once for the longest answer, filled in place."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, place, words

a = arguments(width=512, layers=6, vocabulary=8000, new=32, heads=8, bf16=1)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(a.width), nn.LayerNorm(a.width)
        self.qkv, self.out = nn.Linear(a.width, 3 * a.width), nn.Linear(a.width, a.width)
        self.up, self.down = nn.Linear(a.width, 4 * a.width), nn.Linear(4 * a.width, a.width)

    def forward(self, x, cache, at):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, a.heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, -1))
        cache[0][:, :, at:at + t], cache[1][:, :, at:at + t] = k, v
        y = F.scaled_dot_product_attention(q, cache[0][:, :, :at + t], cache[1][:, :, :at + t], is_causal=t > 1)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


wte = place(a, nn.Embedding(a.vocabulary, a.width))
layers = place(a, nn.ModuleList(Layer() for _ in range(a.layers)))
for _ in range(2):
    shape = (a.batch, a.heads, a.seq + a.new, a.width // a.heads)
    caches = [[torch.zeros(shape, device="cuda", dtype=torch.bfloat16) for _ in "kv"] for _ in range(a.layers)]
    t, at = words(a.batch, a.seq, a.vocabulary), 0
    with torch.no_grad():
        for _ in range(a.new):
            x = wte(t)
            for layer, cache in zip(layers, caches):
                x = layer(x, cache, at)
            at += t.shape[1]
            t = (x[:, -1] @ wte.weight.t()).argmax(-1, keepdim=True)
