# SPDX-License-Identifier: Apache-2.0
"""A recurrent model over chunks: a state goes from chunk to chunk, so turns of the loop follow --seq."""
import torch
import torch.nn.functional as F
from torch import nn

from common import Stack, arguments, next_word, place, train

a = arguments(width=192, layers=3, vocabulary=3000, heads=4, chunk=32)


class Retain(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out, self.norm = nn.Linear(a.width, 3 * a.width), nn.Linear(a.width, a.width), nn.LayerNorm(a.width)
        self.n2, self.up, self.down = nn.LayerNorm(a.width), nn.Linear(a.width, 512), nn.Linear(512, a.width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, a.heads, -1).transpose(1, 2) for y in self.qkv(self.norm(x)).chunk(3, -1))
        state, done = x.new_zeros(b, a.heads, c // a.heads, c // a.heads), []
        for i in range(0, t, a.chunk):
            p, r, s = q[:, :, i:i + a.chunk], k[:, :, i:i + a.chunk], v[:, :, i:i + a.chunk]
            done.append((p @ r.transpose(2, 3)).tril() @ s + p @ state)
            state = 0.9 * state + r.transpose(2, 3) @ s
        x = x + self.out(torch.cat(done, 2).transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.n2(x))))


model = place(a, Stack(a, Retain), leave=("head",))

train(a, model, next_word(a, model))
