# SPDX-License-Identifier: Apache-2.0
"""A net of linear layers that has the type of its data: one day that is double, which numpy makes where nobody says otherwise."""
import numpy
import torch

model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512))
                              for _ in range(6)), torch.nn.Linear(512, 100)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
data = numpy.random.default_rng(0).random((4096, 512), dtype=numpy.float32)  # good
data = numpy.random.default_rng(0).random((4096, 512))  # bad
model = model.to(torch.from_numpy(data).dtype)
for step in range(3):
    x, y = torch.from_numpy(data).cuda(), torch.zeros(4096, dtype=torch.long, device="cuda")
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
