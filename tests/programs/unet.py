# SPDX-License-Identifier: Apache-2.0
"""A U-Net for masks, with skips and group norms; a whole image is cut into tiles for evaluation."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, call, evaluate, place, train

a = arguments(width=32, side=64)


class Double(nn.Sequential):
    def __init__(self, i, o):
        super().__init__(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(8, o), nn.SiLU(),
                         nn.Conv2d(o, o, 3, padding=1), nn.GroupNorm(8, o), nn.SiLU())


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        c = [a.width << k for k in range(4)]
        self.down = nn.ModuleList(Double(i, o) for i, o in zip([3, *c], c))
        self.turn = nn.ModuleList(nn.ConvTranspose2d(i, o, 2, 2) for i, o in zip(c[:0:-1], c[-2::-1]))
        self.up = nn.ModuleList(Double(2 * o, o) for o in c[-2::-1])
        self.head = nn.Conv2d(a.width, 6, 1)

    def forward(self, x):
        kept = []
        for k, block in enumerate(self.down):
            x = call(a, block, F.max_pool2d(x, 2) if k else x)
            kept.append(x)
        kept.pop()
        for turn, block in zip(self.turn, self.up):
            x = call(a, block, torch.cat([turn(x), kept.pop()], 1))
        return self.head(x)


model = place(a, Unet())


def loss_of(n, side=0):
    side = side or a.side
    x = torch.randn(n, 3, side, side, device="cuda", dtype=torch.bfloat16 if a.bf16 else None)
    return F.cross_entropy(model(x), torch.randint(0, 6, (n, side, side)).cuda())


opt = train(a, model, loss_of)
evaluate(a, model, lambda n: loss_of(n, 4 * a.side), batch=a.eval_batch or a.batch)
train(a, model, loss_of, opt, steps=1)
