# SPDX-License-Identifier: Apache-2.0
"""gpu_train.py MODEL SECONDS - trains on the GPU and prints what it cost: seconds of a step in the median,
CPU seconds of a step at the beginning and at the end, free device memory.

MODEL: launches (small layers: bound by launches), compute (large ones), compiled (torch.compile with
graphs), loader (the first, fed by two forked workers)."""
import sys
import time

import torch
from torch import nn


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        return torch.randn(128, 256)


def main():
    kind, seconds = sys.argv[1], float(sys.argv[2])
    width = 2048 if kind == "compute" else 256
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True, dropout=0.0)
    model = nn.TransformerEncoder(layer, 4).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    run = torch.compile(model, mode="reduce-overhead") if kind == "compiled" else model
    data = iter(torch.utils.data.DataLoader(Data(), batch_size=8, num_workers=2)) if kind == "loader" else None
    steps, start = [], time.perf_counter()
    while time.perf_counter() - start < seconds or len(steps) < 20:
        a, c = time.perf_counter(), time.process_time()
        x = next(data).cuda() if data else torch.randn(8, 128, width, device="cuda")
        run(x).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        steps.append((time.perf_counter() - a, time.process_time() - c))
    steps = steps[5:]
    part = max(1, len(steps) // 10)
    print("step %.6f cpu %.6f %.6f free %d steps %d" % (
        sorted(s for s, _ in steps)[len(steps) // 2], sum(c for _, c in steps[:part]) / part,
        sum(c for _, c in steps[-part:]) / part, torch.cuda.mem_get_info()[0], len(steps)))


main()
