# SPDX-License-Identifier: Apache-2.0
"""Convolutions of three dimensions in 16 bit, with weights in the layout that cuDNN computes, or in the usual one."""
import torch

layers = [torch.nn.Conv3d(c, 64, 3, padding=1) for c in (3, 64, 64)]
model = torch.nn.Sequential(*layers).cuda().bfloat16()
model.to(memory_format=torch.channels_last_3d)  # good
with torch.no_grad():
    for step in range(3):
        model(torch.randn(2, 3, 16, 256, 256, device="cuda", dtype=torch.bfloat16))
