# SPDX-License-Identifier: Apache-2.0
"""Style transfer: the network is frozen, what is learnt is the image."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, autocast, place

a = arguments(width=32, side=128, batch=2, steps=5)
w = a.width
net = place(a, nn.Sequential(nn.Conv2d(3, w, 3, padding=1), nn.ReLU(), nn.Conv2d(w, w, 3, padding=1), nn.ReLU(),
                             nn.MaxPool2d(2), nn.Conv2d(w, 2 * w, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                             nn.Conv2d(2 * w, 4 * w, 3, padding=1), nn.ReLU())).requires_grad_(False)


def gram(x):
    b, c, h, v = x.shape
    x = x.view(b, c, h * v)
    return x @ x.transpose(1, 2) / (c * h * v)


with torch.no_grad():
    wanted = [gram(y) for y in [net[:2](torch.randn(1, 3, a.side, a.side, device="cuda"))]]
image = torch.randn(a.batch, 3, a.side, a.side, device="cuda", requires_grad=True)
opt = torch.optim.Adam([image], 0.01)
for _ in range(a.steps):
    with autocast(a):
        x, loss = image, 0.0
        for k, layer in enumerate(net):
            x = layer(x)
            if k == 1:
                loss = loss + F.mse_loss(gram(x), wanted[0].expand(a.batch, -1, -1))
        loss = loss + x.pow(2).mean()
    loss.backward()
    opt.step()
    opt.zero_grad()
