# SPDX-License-Identifier: Apache-2.0
"""lowbit.py NET KIND OPTIMIZER [compile] [offload|offload-gradients] - the fine-tuning of torchao's page on low-bit
optimizers with random images (224 x 224, 45 classes): NET of timm with KIND amp (8 images) or bf16 (32 images,
activation checkpointing, as is amp there); prints the peak."""
import os
import sys
from functools import partial

os.environ.setdefault("TIMM_REENTRANT_CKPT", "1")  # as timm made checkpoints when the page was written
import timm  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

net, kind, optimizer, *more = sys.argv[1:]
giant = "giant" in net
batch = 32 if giant else 8
model = timm.create_model(net, num_classes=45, **({"img_size": 224} if giant else {}))
if giant:
    model.set_grad_checkpointing()
if kind == "bf16":
    model.bfloat16()
model.cuda()
if "compile" in more:
    model.compile(fullgraph=True)

if optimizer == "torch":
    make = partial(torch.optim.AdamW, fused=True)
elif optimizer == "bnb8":
    import bitsandbytes
    make = bitsandbytes.optim.AdamW8bit
else:
    import torchao.optim
    make = getattr(torchao.optim, {"ao8": "AdamW8bit", "aofp8": "AdamWFp8", "ao4": "AdamW4bit"}[optimizer])
if "offload" in more or "offload-gradients" in more:
    import torchao.optim
    make = partial(torchao.optim.CPUOffloadOptimizer, optimizer_class=make,
        offload_gradients="offload-gradients" in more)
optim = make(model.parameters(), lr=1e-4, weight_decay=0)

model.train()
for _ in range(3):
    images = torch.randn(batch, 3, 224, 224)
    labels = torch.randint(45, (batch,))
    if kind == "bf16":
        images = images.bfloat16()
    with torch.autocast("cuda", torch.bfloat16, enabled=kind == "amp"):
        loss = F.cross_entropy(model(images.cuda()), labels.cuda())
    loss.backward()
    optim.step()
    optim.zero_grad()
torch.cuda.synchronize()
print("published peak", torch.cuda.max_memory_allocated())
