# SPDX-License-Identifier: Apache-2.0
"""torch_workers.py HOW: trains a little on the CPU with two DataLoader workers, started by HOW (fork, spawn,
forkserver), or none (HOW = rank: as one rank of torchrun, gradients over gloo). Each process counts what
its allocator is asked between its marks by PyTorch's own memory profiler, and prints "PID allocs frees"."""
import ctypes
import os
import sys
import tempfile

import torch
import torch.nn as nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.data import DataLoader, Dataset

library = ctypes.CDLL(None)


class Counted:
    """Between two marks; sums up in the file of its process."""
    def __enter__(self):
        self.profile = profile(activities=[ProfilerActivity.CPU], profile_memory=True)
        self.profile.__enter__()
        library.vramcast_mark(b"count from here")

    def __exit__(self, *what):
        library.vramcast_mark(b"count to here")
        self.profile.__exit__(*what)
        sizes = [e.nbytes() for e in self.profile.profiler.kineto_results.events() if e.name() == "[memory]"]
        with open(os.path.join(os.environ["COUNTS"], str(os.getpid())), "a") as f:
            print(sum(n > 0 for n in sizes), sum(n < 0 for n in sizes), file=f)


class Data(Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, i):
        with Counted():
            x = torch.randn(64, 128)
            return x.mul(2).add(1)


def train(how):
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 10))
    if how == "rank":
        torch.distributed.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters())
    work = dict(num_workers=0) if how == "rank" else dict(num_workers=2, multiprocessing_context=how)
    for x in DataLoader(Data(), batch_size=8, **work):
        model(x).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    if how != "rank":
        with Counted(): # the batches come as memory that a worker shares
            for x in DataLoader(Data(), batch_size=8, **work):
                model(x).pow(2).mean().backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            del x
    else:
        torch.distributed.destroy_process_group()


def main():
    folder = os.environ.setdefault("COUNTS", tempfile.mkdtemp())
    train(sys.argv[1])
    if sys.argv[1] == "rank":
        folder, names = folder, [str(os.getpid())]
    else:
        names = os.listdir(folder)
    for name in names:
        rows = [[int(w) for w in line.split()] for line in open(os.path.join(folder, name))]
        print(name, *[sum(column) for column in zip(*rows)], flush=True)


if __name__ == "__main__":
    main()
