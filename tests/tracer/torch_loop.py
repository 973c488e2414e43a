# SPDX-License-Identifier: Apache-2.0
"""torch_loop.py cpu|cuda STEPS READY END: trains until so many steps are done (0: until the file END is there) and prints
how many, and a digest of all losses. The file READY says that it has begun. Batches vary, blocks wait for another
stream, and one in a while is kept long."""
import hashlib
import os
import sys

import torch
import torch.nn as nn

device, steps, ready, end = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
torch.manual_seed(0)
torch.set_num_threads(1)
layer = nn.TransformerEncoderLayer(64, 4, 256, batch_first=True)
model = nn.TransformerEncoder(layer, 2).to(device)
optimizer = torch.optim.AdamW(model.parameters())
side = torch.cuda.Stream() if device == "cuda" else None
digest, kept, n = hashlib.sha256(), [], 0
while n < steps if steps else not os.path.exists(end):
    x = torch.randn(4 + n % 5, 32, 64).to(device)
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if side:
        with torch.cuda.stream(side):
            y = torch.empty(1234567 + n % 7, device="cuda", dtype=torch.uint8)
        y.record_stream(torch.cuda.current_stream())
    if n % 3 == 0:
        kept.append(torch.zeros(1000 + 37 * (n % 50), device=device))
        del kept[:-20]
    digest.update(loss.detach().cpu().numpy().tobytes())
    n += 1
    if n == 2:
        open(ready, "w").close()
print(n, digest.hexdigest())
