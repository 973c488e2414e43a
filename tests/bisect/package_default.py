# SPDX-License-Identifier: Apache-2.0
"""A package of layers that computes them twice by default, until a release in which it does not. The file is the package, too."""
import torch


class Stack(torch.nn.Module):
    def __init__(self, recompute=True):  # good
    def __init__(self, recompute=False):  # bad
        super().__init__()
        self.recompute = recompute
        self.layer = torch.nn.ModuleList(torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True) for _ in range(6))

    def forward(self, x):
        for layer in self.layer:
            x = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False) if self.recompute else layer(x)
        return x
