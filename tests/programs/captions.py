# SPDX-License-Identifier: Apache-2.0
"""Captions of images: a convolution network that is frozen but for its end, a decoder with cross-attention."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, evaluate, place, train, words

a = arguments(width=192, layers=2, side=96, seq=24, vocabulary=5000, batch=8)


class Captions(nn.Module):
    def __init__(self):
        super().__init__()
        w = a.width
        self.eye = nn.Sequential(nn.Conv2d(3, 48, 7, 4, 3), nn.BatchNorm2d(48), nn.ReLU(), nn.Conv2d(48, 96, 3, 2, 1),
                                 nn.BatchNorm2d(96), nn.ReLU()).requires_grad_(False)
        self.end, self.words, self.head = nn.Conv2d(96, w, 1), nn.Embedding(a.vocabulary, w), nn.Linear(w, a.vocabulary)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(w, 4, 4 * w, batch_first=True), a.layers)

    def forward(self, x, t):
        memory = self.end(self.eye(x)).flatten(2).transpose(1, 2)
        mask = nn.Transformer.generate_square_subsequent_mask(t.shape[1], device=t.device)
        return self.head(self.decoder(self.words(t), memory, tgt_mask=mask))


model = place(a, Captions())


def loss_of(n):
    t = words(n, a.seq + 1, a.vocabulary)
    y = model(torch.randn(n, 3, a.side, a.side, device="cuda"), t[:, :-1])
    return F.cross_entropy(y.flatten(0, 1), t[:, 1:].flatten())


train(a, model, loss_of)
evaluate(a, model, loss_of, batch=a.eval_batch or 4 * a.batch)
