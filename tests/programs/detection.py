# SPDX-License-Identifier: Apache-2.0
"""A detector: each image has a random number of boxes; features are cut out for the chosen ones and classified."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, evaluate, place, train

a = arguments(width=32, side=160, steps=6)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        w = a.width
        self.body = nn.Sequential(*(layer for i, o in ((3, w), (w, 2 * w), (2 * w, 4 * w)) for layer in
                                    (nn.Conv2d(i, o, 3, 2, 1), nn.BatchNorm2d(o), nn.ReLU())))
        self.propose = nn.Conv2d(4 * w, 15, 3, padding=1)
        self.classify = nn.Sequential(nn.Linear(4 * w * 49, 512), nn.ReLU(), nn.Linear(512, 25))

    def forward(self, x, boxes):
        y = self.body(x)
        cut = [F.adaptive_max_pool2d(y[i:i + 1, :, t:t + h, l:l + w], 7)
               for i, rows in enumerate(boxes) for t, l, h, w in rows]
        return self.propose(y), self.classify(torch.cat(cut).flatten(1))


model = place(a, Detector())


def loss_of(n):
    boxes = [[(int(t), int(l), int(h), int(w)) for t, l, h, w in torch.randint(1, 8, (int(k), 4))]
             for k in torch.randint(8, 48, (n,))]
    p, c = model(torch.randn(n, 3, a.side, a.side, device="cuda"), boxes)
    return p.sigmoid().mean() + F.cross_entropy(c, torch.randint(0, 25, (c.shape[0],)).cuda())


opt = train(a, model, loss_of)
evaluate(a, model, loss_of)
train(a, model, loss_of, opt, steps=2)
