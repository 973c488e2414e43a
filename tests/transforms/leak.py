# SPDX-License-Identifier: Apache-2.0
"""leak.py KIND STEPS: a training that keeps something of each step. KIND: logits, graph (an evaluation
whose loss is kept with its graph), maps (a convolution net whose features are kept every step)."""
import sys
import torch
from torch import nn
import torch.nn.functional as F
kind, steps = sys.argv[1], int(sys.argv[2])
torch.manual_seed(0)
width = 256


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.a, self.b = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.b(F.gelu(self.a(self.norm(x))))


class Maps(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(*[m for a, b in ((3, 32), (32, 64), (64, 128)) for m in
                                    (nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.ReLU())])
        self.head = nn.Linear(128, 1000)

    def forward(self, x):
        self.seen = self.body(x)
        return self.head(self.seen.mean((2, 3)))


if kind == "maps":
    model = Maps().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
else:
    model = nn.Sequential(nn.Linear(64, width), *[Block() for _ in range(6)], nn.Linear(width, 1000)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
kept = []
for step in range(steps):
    print("step", step, flush=True)
    x = torch.randn(*((16, 3, 96, 96) if kind == "maps" else (512, 64)), device="cuda")
    y = torch.randint(0, 1000, (len(x),), device="cuda")
    out = model(x)
    loss = F.cross_entropy(out, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if kind == "logits":
        kept.append(out)
    elif kind == "graph":
        x = torch.randn(256, 64, device="cuda")
        kept.append(F.cross_entropy(model(x), y[:256]))
    elif kind == "maps":
        kept.append(model.seen)
