# SPDX-License-Identifier: Apache-2.0
"""A Llama-like model: RMS norms, rotated places, fewer keys than queries, a gated layer. Evaluated on long texts."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, call, evaluate, place, train, words

a = arguments(width=256, layers=5, vocabulary=8000, heads=8, keys=2)


class Rms(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(a.width))

    def forward(self, x):
        y = x.float()
        return self.weight * (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype)


def rotate(x, cos, sin):
    p, q = x.chunk(2, -1)
    return x * cos + torch.cat([-q, p], -1) * sin


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        d = a.width // a.heads
        self.q, self.k, self.v = (nn.Linear(a.width, d * n, bias=False) for n in (a.heads, a.keys, a.keys))
        self.o = nn.Linear(a.width, a.width, bias=False)
        self.gate, self.up = nn.Linear(a.width, 688, bias=False), nn.Linear(a.width, 688, bias=False)
        self.down, self.n1, self.n2 = nn.Linear(688, a.width, bias=False), Rms(), Rms()

    def forward(self, x, cos, sin):
        b, t, c = x.shape
        y = self.n1(x)
        q, k, v = (f(y).view(b, t, -1, c // a.heads).transpose(1, 2) for f in (self.q, self.k, self.v))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        k, v = (z.repeat_interleave(a.heads // a.keys, 1) for z in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, c))
        y = self.n2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.norm = nn.Embedding(a.vocabulary, a.width), Rms()
        self.layers = nn.ModuleList(Layer() for _ in range(a.layers))
        self.head = nn.Linear(a.width, a.vocabulary, bias=False)

    def forward(self, t):
        x, d = self.words(t), a.width // a.heads
        angle = torch.arange(t.shape[1], device=t.device)[:, None] / 10000 ** (
            torch.arange(0, d, 2, device=t.device) / d)
        cos, sin = torch.cat([angle, angle], -1).cos(), torch.cat([angle, angle], -1).sin()
        cos, sin = cos.to(x.dtype), sin.to(x.dtype)
        for layer in self.layers:
            x = call(a, layer, x, cos, sin)
        return self.head(self.norm(x))


model = place(a, Llama(), leave=("head",))


def loss_of(n, length=0):
    t = words(n, (length or a.seq) + 1, a.vocabulary)
    return F.cross_entropy(model(t[:, :-1]).flatten(0, 1).float(), t[:, 1:].flatten())


opt = train(a, model, loss_of, clip=1.0)
evaluate(a, model, lambda n: loss_of(n, 4 * a.seq))
train(a, model, loss_of, opt, clip=1.0, steps=2)
