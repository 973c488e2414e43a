# SPDX-License-Identifier: Apache-2.0
"""torch_cpu.py: trains a small transformer on the CPU with a DataLoader whose workers are forked, and
prints the seconds of the loop, the resident memory and the loop's CPU seconds."""
import os
import sys
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
torch.manual_seed(0)


class Data(Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, i):
        return torch.randn(64, 128)


def main():
    workers = int(os.environ.get("WORKERS", "2"))
    layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
    model = nn.TransformerEncoder(layer, 3)
    optimizer = torch.optim.AdamW(model.parameters())
    loader = DataLoader(Data(), batch_size=8, num_workers=workers)
    for warm in range(2):
        start, cpu = time.perf_counter(), time.process_time()
        for x in loader:
            model(x).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    pages = int(open("/proc/self/statm").read().split()[1])
    print("seconds %.4f rss %d cpu %.4f" % (seconds, pages * 4096, cpu))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
