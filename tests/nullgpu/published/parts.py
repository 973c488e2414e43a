# SPDX-License-Identifier: Apache-2.0
"""parts.py NAME... - short programs of issues, each with the figure that was printed there."""
import sys

import torch


def linear():  # pytorch/pytorch#104604
    layer = torch.nn.Linear(1024, 1024, bias=False).cuda()
    out = layer(torch.rand(1, 512, 1024).cuda())
    return torch.cuda.max_memory_allocated(), out


def radam(compiled=False):  # pytorch/pytorch#125511
    with torch.device("cuda"):
        params = [torch.ones(32, 32) for _ in range(10)]
        for p in params:
            p.grad = torch.ones_like(p)
        opt = torch.optim.RAdam(params, lr=0.1, capturable=True, foreach=True)
        step = torch.compile(opt.step, backend="eager") if compiled else opt.step
        torch.cuda.reset_peak_memory_stats()
        step()
    return torch.cuda.max_memory_allocated(), params


def radam_compiled():
    return radam(True)


def split():  # pytorch/pytorch#66923
    x = torch.arange(2 ** 27, dtype=torch.float16, device="cuda").requires_grad_(True)
    x.grad = torch.zeros_like(x)
    torch.split(x, 2 ** 20)[0].sum().backward()
    return torch.cuda.max_memory_allocated(), x


def fused():  # pytorch/pytorch#138685
    from triton.testing import do_bench

    @torch.compile
    def f(a, b, c):
        return (a @ c).sum(dim=-1) + (b @ c).sum(dim=-1)

    args = [torch.randn(2 ** 15, 16, device="cuda") for _ in range(2)] + [torch.randn(16, 2 ** 15, device="cuda")]
    f(*args)
    torch.cuda.reset_peak_memory_stats()
    do_bench(lambda: f(*args))
    return torch.cuda.max_memory_allocated(), args


for name in sys.argv[1:]:
    peak, kept = globals()[name]()
    print("published", name, peak)
    del kept
