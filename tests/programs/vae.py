# SPDX-License-Identifier: Apache-2.0
"""A variational autoencoder of images; the evaluation decodes many samples for each image."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, evaluate, place, train

a = arguments(width=32, side=64, latent=64, samples=12)
w, s = a.width, a.side // 8


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, w, 4, 2, 1), nn.ReLU(), nn.Conv2d(w, 2 * w, 4, 2, 1), nn.ReLU(),
                                     nn.Conv2d(2 * w, 4 * w, 4, 2, 1), nn.ReLU(), nn.Flatten(),
                                     nn.Linear(4 * w * s * s, 2 * a.latent))
        self.decoder = nn.Sequential(nn.Linear(a.latent, 4 * w * s * s), nn.Unflatten(1, (4 * w, s, s)), nn.ReLU(),
                                     nn.ConvTranspose2d(4 * w, 2 * w, 4, 2, 1), nn.ReLU(),
                                     nn.ConvTranspose2d(2 * w, w, 4, 2, 1), nn.ReLU(),
                                     nn.ConvTranspose2d(w, 3, 4, 2, 1))

    def forward(self, x, samples):
        mean, log = self.encoder(x).chunk(2, 1)
        z = mean + torch.randn(samples, *mean.shape, device="cuda") * (0.5 * log).exp()
        y = self.decoder(z.flatten(0, 1))
        kl = -0.5 * (1 + log - mean ** 2 - log.exp()).sum(1).mean()
        return F.mse_loss(y, x.repeat(samples, 1, 1, 1)) + 1e-3 * kl


model = place(a, Vae())


def loss_of(n):
    return model(torch.randn(n, 3, a.side, a.side, device="cuda"), 1 if model.training else a.samples)


opt = train(a, model, loss_of)
evaluate(a, model, loss_of)
train(a, model, loss_of, opt, steps=1)
