# SPDX-License-Identifier: Apache-2.0
"""What uses the package of layers, with the settings that it has by itself."""
import layers
import torch

model = layers.Stack().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    model(torch.randn(8, 256, 256, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
