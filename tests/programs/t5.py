# SPDX-License-Identifier: Apache-2.0
"""An encoder-decoder with relative positions as T5 has them: RMS norms, a bias for every pair of places."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, call, evaluate, place, train, words

a = arguments(width=256, layers=3, vocabulary=5000, heads=4)


class Rms(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(a.width))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Relative(nn.Module):
    def __init__(self, cross=False):
        super().__init__()
        self.q, self.kv = nn.Linear(a.width, a.width, bias=False), nn.Linear(a.width, 2 * a.width, bias=False)
        self.o, self.bias = nn.Linear(a.width, a.width, bias=False), None if cross else nn.Embedding(64, a.heads)

    def forward(self, x, y, causal=False):
        (b, t, c), s = x.shape, y.shape[1]
        q = self.q(x).view(b, t, a.heads, -1).transpose(1, 2)
        k, v = (z.view(b, s, a.heads, -1).transpose(1, 2) for z in self.kv(y).chunk(2, -1))
        scores = q @ k.transpose(-2, -1)
        if self.bias is not None:
            far = torch.arange(s, device=x.device)[None] - torch.arange(t, device=x.device)[:, None]
            scores = scores + self.bias(far.clamp(-32, 31) + 32).permute(2, 0, 1)
            if causal:
                scores = scores.masked_fill(far > 0, -1e9)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))


class Layer(nn.Module):
    def __init__(self, decodes):
        super().__init__()
        self.self, self.cross = Relative(), Relative(True) if decodes else None
        self.n1, self.n2, self.n3 = Rms(), Rms(), Rms()
        self.wi, self.wo = nn.Linear(a.width, 3 * a.width, bias=False), nn.Linear(3 * a.width, a.width, bias=False)

    def forward(self, x, memory=None):
        y = self.n1(x)
        x = x + self.self(y, y, self.cross is not None)
        if self.cross is not None:
            x = x + self.cross(self.n2(x), memory)
        return x + self.wo(F.relu(self.wi(self.n3(x))))


class T5(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(a.vocabulary, a.width)
        self.encoder = nn.ModuleList(Layer(False) for _ in range(a.layers))
        self.decoder = nn.ModuleList(Layer(True) for _ in range(a.layers))
        self.head = nn.Linear(a.width, a.vocabulary, bias=False)

    def forward(self, source, target):
        x, y = self.words(source), self.words(target)
        for layer in self.encoder:
            x = call(a, layer, x)
        for layer in self.decoder:
            y = call(a, layer, y, x)
        return self.head(y)


model = place(a, T5(), leave=("head",))


def loss_of(n):
    s, t = words(n, a.seq, a.vocabulary), words(n, a.seq // 2 + 1, a.vocabulary)
    return F.cross_entropy(model(s, t[:, :-1]).flatten(0, 1), t[:, 1:].flatten())


train(a, model, loss_of)
evaluate(a, model, loss_of)
