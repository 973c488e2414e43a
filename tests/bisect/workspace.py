# SPDX-License-Identifier: Apache-2.0
"""A net of convolutions: cuDNN is told to try its plans, and one of them wants more workspace."""
import torch

torch.backends.cudnn.benchmark = False  # good
torch.backends.cudnn.benchmark = True  # bad
layers = [torch.nn.Conv3d(c, 64, 3, padding=1) for c in (3, 64, 64)]
model = torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool3d(1), torch.nn.Flatten(), torch.nn.Linear(64, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for step in range(3):
    video, kind = torch.randn(2, 3, 16, 96, 96, device="cuda"), torch.randint(0, 10, (2,), device="cuda")
    torch.nn.functional.cross_entropy(model(video), kind).backward()
    optimizer.step()
    optimizer.zero_grad()
