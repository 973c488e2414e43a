# SPDX-License-Identifier: Apache-2.0
"""A small net for pictures, BATCH of them: three steps, and an evaluation of four times as many."""
import sys

import torch
from torch import nn


def block(inside, out, stride=1, groups=1):
    return nn.Sequential(nn.Conv2d(inside, out, 3, stride, 1, groups=groups, bias=False),
                         nn.BatchNorm2d(out), nn.ReLU())


batch = int(sys.argv[1])
net = nn.Sequential(nn.Conv2d(3, 32, 7, 2, 3), nn.ReLU(), block(32, 64), block(64, 64, groups=64),
                    nn.Conv2d(64, 96, 1), block(96, 192, 2), nn.ConvTranspose2d(192, 96, 2, 2),
                    block(96, 128, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                    nn.Linear(128, 10)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
pictures = torch.zeros(4 * batch, 3, 160, 160)
classes = torch.zeros(batch, dtype=torch.long)
for _ in range(3):
    with torch.autocast("cuda", torch.float16):
        loss = nn.functional.cross_entropy(net(pictures[:batch].cuda()), classes.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
net.eval()
with torch.no_grad():
    net(pictures.cuda())
