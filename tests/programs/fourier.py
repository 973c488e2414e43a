# SPDX-License-Identifier: Apache-2.0
"""Long convolutions by Fourier's transform: it is computed over the next power of two, everything else over --seq."""
import torch
import torch.nn.functional as F
from torch import nn

from common import Stack, arguments, next_word, place, train

a = arguments(width=192, layers=4, vocabulary=3000)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(a.width), nn.LayerNorm(a.width)
        self.filter = nn.Parameter(torch.randn(a.width, 32) / 32)
        self.up, self.down = nn.Linear(a.width, 4 * a.width), nn.Linear(4 * a.width, a.width)

    def forward(self, x):
        size = 1 << (2 * x.shape[1] - 1).bit_length()
        y = torch.fft.rfft(self.n1(x).transpose(1, 2), n=size) * torch.fft.rfft(self.filter, n=size)
        x = x + torch.fft.irfft(y, n=size)[..., :x.shape[1]].transpose(1, 2)
        return x + self.down(F.gelu(self.up(self.n2(x))))


model = place(a, Stack(a, Layer), leave=("head",))

train(a, model, next_word(a, model))
