# SPDX-License-Identifier: Apache-2.0
"""stacks.py SNAPSHOT [kill] - allocations from everywhere Python code can ask for memory, with PyTorch's
own history of them. kill: 20,000 more, then the recorder and this process are killed."""
import os
import pickle
import signal
import sys
import threading

import torch

Error = torch.cuda.OutOfMemoryError


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):  # called from autograd's own thread
        return g * torch.ones_like(g)


def deep(n):
    if n:
        return deep(n - 1)
    return torch.empty(1234, device="cuda")


def several(n):
    yield from (torch.empty(i + 1, device="cuda") for i in range(n))


class Holder:
    def __init__(self):
        self.value = [(lambda: torch.zeros(7, device="cuda"))() for _ in range(2)]

    def __del__(self):
        self.value = torch.ones(9, device="cuda")


def train():
    net = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(3)]).cuda()
    net[1].register_full_backward_hook(lambda *a: [torch.empty(55, device="cuda")] and None)
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(2):
        Twice.apply(net(torch.randn(8, 64, device="cuda"))).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def main():
    torch.cuda.init()
    torch.cuda.memory._record_memory_history(max_entries=1000000, stacks="python")
    train()
    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    sum(x.numel() for x in several(5))
    Holder()
    deep(100)
    deep(700)
    exec(compile("torch.empty(3, device='cuda')", "<made up>", "exec"))
    try:
        torch.empty(1 << 45, device="cuda", dtype=torch.uint8)
    except Error:
        pass
    for i in range(20000 if sys.argv[2:] else 0):
        x = torch.empty(100, device="cuda") if i % 2 else deep(i % 7)
        del x
    with open(sys.argv[1], "wb") as f:
        pickle.dump(torch.cuda.memory._snapshot(), f)
    if sys.argv[2:]:
        os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


main()
