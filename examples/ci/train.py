# SPDX-License-Identifier: Apache-2.0
"""A network that trains for three steps: what CI looks after."""
import argparse

import torch

p = argparse.ArgumentParser()
p.add_argument("--batch", type=int, default=64)
a = p.parse_args()


class Net(torch.nn.Module):
    def __init__(self, width=1024, layers=6):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(layers))
        self.head = torch.nn.Linear(width, 1000)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.head(x)


model = Net().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    x = torch.randn(a.batch * 128, 1024, device="cuda")
    y = torch.randint(0, 1000, (a.batch * 128,), device="cuda")
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
