# SPDX-License-Identifier: Apache-2.0
"""A Wasserstein GAN with a gradient penalty: the critic's loss has a gradient in it, whose graph is kept."""
import torch
from torch import nn

from common import arguments, autocast, place

a = arguments(width=48, critic=2, batch=8)
w = a.width
maker = place(a, nn.Sequential(
    nn.ConvTranspose2d(64, 4 * w, 4), nn.BatchNorm2d(4 * w), nn.ReLU(),
    nn.ConvTranspose2d(4 * w, 2 * w, 4, 2, 1), nn.BatchNorm2d(2 * w), nn.ReLU(),
    nn.ConvTranspose2d(2 * w, w, 4, 2, 1), nn.BatchNorm2d(w), nn.ReLU(),
    nn.ConvTranspose2d(w, 3, 4, 2, 1), nn.Tanh()))
critic = place(a, nn.Sequential(
    nn.Conv2d(3, w, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(w, 2 * w, 4, 2, 1), nn.InstanceNorm2d(2 * w, affine=True),
    nn.LeakyReLU(0.2), nn.Conv2d(2 * w, 4 * w, 4, 2, 1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(64 * w, 1)))
opt_m, opt_c = (torch.optim.Adam(m.parameters(), 1e-4, betas=(0.5, 0.9)) for m in (maker, critic))
for _ in range(a.steps):
    for _ in range(a.critic):
        real, z = torch.randn(a.batch, 3, 32, 32, device="cuda"), torch.randn(a.batch, 64, 1, 1, device="cuda")
        with autocast(a):
            made = maker(z).detach()
            between = (0.5 * real + 0.5 * made).requires_grad_()
            slope, = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
            loss = critic(made).mean() - critic(real).mean() + 10 * ((slope.flatten(1).norm(2, 1) - 1) ** 2).mean()
        loss.backward()
        opt_c.step()
        opt_c.zero_grad()
    with autocast(a):
        loss = -critic(maker(torch.randn(a.batch, 64, 1, 1, device="cuda"))).mean()
    loss.backward()
    opt_m.step()
    opt_m.zero_grad()
    opt_c.zero_grad()
