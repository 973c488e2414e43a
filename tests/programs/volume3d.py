# SPDX-License-Identifier: Apache-2.0
"""A 3-D U-Net over volumes, instance norms and leaky rectifiers, dice loss; never evaluated."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, call, place, train

a = arguments(width=16, side=32, batch=2)


class Pair(nn.Sequential):
    def __init__(self, i, o):
        super().__init__(nn.Conv3d(i, o, 3, padding=1), nn.InstanceNorm3d(o, affine=True), nn.LeakyReLU(0.01, True),
                         nn.Conv3d(o, o, 3, padding=1), nn.InstanceNorm3d(o, affine=True), nn.LeakyReLU(0.01, True))


class Volume(nn.Module):
    def __init__(self):
        super().__init__()
        w = a.width
        self.d = nn.ModuleList([Pair(1, w), Pair(w, 2 * w), Pair(2 * w, 4 * w)])
        self.t = nn.ModuleList([nn.ConvTranspose3d(4 * w, 2 * w, 2, 2), nn.ConvTranspose3d(2 * w, w, 2, 2)])
        self.u, self.head = nn.ModuleList([Pair(4 * w, 2 * w), Pair(2 * w, w)]), nn.Conv3d(w, 4, 1)

    def forward(self, x):
        x0 = call(a, self.d[0], x)
        x1 = call(a, self.d[1], F.max_pool3d(x0, 2))
        x2 = call(a, self.d[2], F.max_pool3d(x1, 2))
        y = call(a, self.u[0], torch.cat([self.t[0](x2), x1], 1))
        return self.head(call(a, self.u[1], torch.cat([self.t[1](y), x0], 1)))


model = place(a, Volume())


def loss_of(n):
    x = torch.randn(n, 1, a.side, a.side, a.side, device="cuda")
    y = F.one_hot(torch.randint(0, 4, (n, a.side, a.side, a.side)).cuda(), 4).movedim(-1, 1).float()
    p = model(x).softmax(1)
    return 1 - (2 * (p * y).sum((2, 3, 4)) / ((p + y).sum((2, 3, 4)) + 1)).mean()


train(a, model, loss_of)
