# SPDX-License-Identifier: Apache-2.0
"""vae.py decode|encode HEIGHT WIDTH - an image through the autoencoder of Qwen-Image in fp16, a process of its own each,
as InvokeAI's calibration does it; prints the peaks, the reserved one less what the weights took."""
import sys

import torch
from diffusers import AutoencoderKLQwenImage

for name in ("kaiming_uniform_", "uniform_", "ones_", "zeros_"):
    setattr(torch.nn.init, name, lambda t, *a, **k: t)  # values do not matter, time does
height, width = map(int, sys.argv[2:])
size = (3, 1, height, width) if sys.argv[1] == "encode" else (16, 1, height // 8, width // 8)
with torch.inference_mode():
    vae = AutoencoderKLQwenImage().half().to("cuda")
    x = torch.randn(1, *size, device="cuda", dtype=torch.float16)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_reserved()
    if sys.argv[1] == "encode":
        vae.encode(x).latent_dist.mode()
    else:
        vae.decode(x, return_dict=False)
    torch.cuda.synchronize()
print("published peak", torch.cuda.max_memory_allocated(), "reserved", torch.cuda.max_memory_reserved() - before)
