# SPDX-License-Identifier: Apache-2.0
"""A diffusion model: noise predicted by a small U-Net that knows the time, a moving average, sampling at the end."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, autocast, call, place, train

a = arguments(width=64, side=32, samples=0)


class Residual(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.n1, self.c1, self.time = nn.GroupNorm(8, i), nn.Conv2d(i, o, 3, padding=1), nn.Linear(128, o)
        self.n2, self.c2 = nn.GroupNorm(8, o), nn.Conv2d(o, o, 3, padding=1)
        self.short = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x, t):
        y = self.c1(F.silu(self.n1(x))) + self.time(F.silu(t))[:, :, None, None]
        return self.short(x) + self.c2(F.silu(self.n2(y)))


class Attend(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm, self.qkv, self.out = nn.GroupNorm(8, c), nn.Conv2d(c, 3 * c, 1), nn.Conv2d(c, c, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, 3, c, h * w).unbind(1)
        return x + self.out((v @ (q.transpose(1, 2) @ k * c ** -0.5).softmax(-1).transpose(1, 2)).view(b, c, h, w))


class Noise(nn.Module):
    def __init__(self):
        super().__init__()
        w = a.width
        self.time = nn.Sequential(nn.Linear(64, 128), nn.SiLU(), nn.Linear(128, 128))
        self.first, self.last = nn.Conv2d(3, w, 3, padding=1), nn.Conv2d(w, 3, 3, padding=1)
        self.r1, self.r2, self.r3 = Residual(w, w), Residual(w, 2 * w), Residual(2 * w, 2 * w)
        self.attend, self.r4, self.r5 = Attend(2 * w), Residual(4 * w, 2 * w), Residual(3 * w, w)

    def forward(self, x, t):
        f = t[:, None].float() * torch.exp(-torch.arange(32, device=x.device) / 4)
        t = self.time(torch.cat([f.sin(), f.cos()], -1))
        x0 = call(a, self.r1, self.first(x), t)
        x1 = call(a, self.r2, F.avg_pool2d(x0, 2), t)
        x2 = self.attend(call(a, self.r3, x1, t))
        y = call(a, self.r4, torch.cat([x2, x1], 1), t)
        return self.last(call(a, self.r5, torch.cat([F.interpolate(y, scale_factor=2.0), x0], 1), t))


model = place(a, Noise())
average = copy.deepcopy(model)


def loss_of(n):
    x, noise = (torch.randn(n, 3, a.side, a.side, device="cuda") for _ in range(2))
    t = torch.randint(0, 1000, (n,)).cuda()
    share = (t.float() / 1000).cos()[:, None, None, None]
    loss = F.mse_loss(model(share * x + (1 - share ** 2).sqrt() * noise, t), noise)
    with torch.no_grad():
        for p, q in zip(average.parameters(), model.parameters()):
            p.lerp_(q, 0.01)
    return loss


train(a, model, loss_of)
with torch.no_grad(), autocast(a, True):
    x = torch.randn(a.samples or 4 * a.batch, 3, a.side, a.side, device="cuda")
    for t in range(6):
        x = x - 0.1 * average(x, torch.full((x.shape[0],), 1000 - t).cuda())
