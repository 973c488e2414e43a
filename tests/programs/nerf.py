# SPDX-License-Identifier: Apache-2.0
"""Rays through a small network: training on --batch hundred rays, a whole image in chunks for evaluation."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, evaluate, place, train

a = arguments(width=128, points=48, image=4096, chunk=2048)


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.near = nn.Sequential(nn.Linear(60, a.width), nn.ReLU(), *(m for _ in range(4) for m in (
            nn.Linear(a.width, a.width), nn.ReLU())))
        self.thick, self.colour = nn.Linear(a.width, 1), nn.Linear(a.width + 24, 3)

    def forward(self, rays):
        at = torch.linspace(0, 1, a.points, device="cuda")[None, :, None]
        p = rays[:, None, :3] + at * rays[:, None, 3:]
        waves = torch.cat([f(p * 2 ** k) for k in range(10) for f in (torch.sin, torch.cos)], -1)
        y = self.near(waves)
        thick = F.relu(self.thick(y)).squeeze(-1)
        way = torch.cat([f(rays[:, None, 3:] * 2 ** k) for k in range(4) for f in (torch.sin, torch.cos)], -1)
        c = self.colour(torch.cat([y, way.expand(-1, a.points, -1)], -1)).sigmoid()
        weight = (1 - (-thick).exp()) * torch.cumprod((-thick).exp(), 1)
        return (weight[..., None] * c).sum(1)


model = place(a, Field())


def loss_of(n):
    if not model.training:
        rays = torch.randn(a.image, 6, device="cuda")
        return torch.cat([model(part) for part in rays.split(a.chunk)])
    return F.mse_loss(model(torch.randn(100 * n, 6, device="cuda")), torch.rand(100 * n, 3, device="cuda"))


opt = train(a, model, loss_of)
evaluate(a, model, loss_of)
train(a, model, loss_of, opt, steps=2)
