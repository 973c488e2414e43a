# SPDX-License-Identifier: Apache-2.0
"""liger.py NAME... - losses and layers of Liger-Kernel's benchmark data and what they are compared with, forward and
backward, at the largest size there; prints the peak of each NAME."""
import gc
import sys

import torch

torch.set_default_device("cuda")
half = torch.bfloat16


def head(loss, rows, fused):
    weights = [torch.nn.Linear(4096, 128256, bias=False, dtype=half) for _ in range(2)]
    hidden, target = torch.randn(*rows, 4096, requires_grad=True, dtype=half), torch.randint(128256, rows)
    if fused:
        return lambda: loss(weights[0].weight, hidden, target).backward()
    return lambda: loss(weights[0](hidden), target).backward()


def linear_torch():
    return head(torch.nn.CrossEntropyLoss(), (32768,), False)


def linear_liger():
    from liger_kernel.ops.fused_linear_cross_entropy import LigerFusedLinearCrossEntropyFunction as F
    return head(lambda w, x, y: first(F.apply(x, w, y)), (32768,), True)


def first(out):
    return out[0] if isinstance(out, tuple) else out


def cross(loss):
    logits, target = torch.randn(16384, 131072, requires_grad=True), torch.randint(131072, (16384,))
    return lambda: loss(logits, target).backward()


def cross_torch():
    return cross(torch.nn.CrossEntropyLoss())


def cross_liger():
    from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction as F
    return cross(lambda x, y: first(F.apply(x, y, -100)))


def divergence(loss):
    given = torch.randn(16384, 131072, requires_grad=True).log_softmax(-1)
    target = torch.randn(16384, 131072).softmax(-1)
    return lambda: loss(given, target).backward(retain_graph=True)


def kl_torch():
    return divergence(torch.nn.KLDivLoss(reduction="batchmean"))


def kl_liger():
    from liger_kernel.ops.kl_div import LigerKLDivLossFunction as F
    return divergence(lambda x, y: F.apply(x, y, "batchmean"))


def groups(layer):
    x = torch.randn(128, 2048, 512)
    dy = torch.randn_like(x)
    x.requires_grad_(True)

    def step():
        out = layer(x)
        out.backward(dy, retain_graph=True)
    return step


def group_torch():
    return groups(torch.nn.GroupNorm(512, 2048, eps=1e-6))


def group_liger():
    from liger_kernel.ops.group_norm import LigerGroupNormFunction as F
    weight, bias = (torch.ones(2048, requires_grad=True) for _ in range(2))
    return groups(lambda x: F.apply(x, weight, bias, 2048, 512, 1e-6))


for name in sys.argv[1:]:
    step, peaks = globals()[name](), []
    for _ in range(10):
        torch.cuda.reset_peak_memory_stats()
        step()
        peaks.append(torch.cuda.max_memory_allocated())
    print("published", name, sorted(peaks)[5])
    del step
    gc.collect()
