# SPDX-License-Identifier: Apache-2.0
"""conv3d.py TYPE - the convolution of pytorch/pytorch#166643 over one image of 96 channels; prints the peak."""
import sys

import torch

kind = getattr(torch, sys.argv[1])
image, weight, bias = (torch.randn(shape, device="cuda").type(kind)
                       for shape in ((1, 96, 6, 626, 626), (96, 96, 3, 3, 3), (96,)))
before = torch.cuda.max_memory_allocated()
for _ in range(3):
    out = torch.nn.functional.conv3d(image, weight, bias)
torch.cuda.synchronize()
print("published before", before, "peak", torch.cuda.max_memory_allocated())
