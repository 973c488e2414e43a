# SPDX-License-Identifier: Apache-2.0
"""Collectives with a gradient that several trainings of this folder need."""
import torch
import torch.distributed as dist


class Swap(torch.autograd.Function):
    """All-to-all of equal parts of the first dimension."""
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        y = torch.empty_like(x)
        dist.all_to_all_single(y, x.contiguous(), group=group)
        return y

    @staticmethod
    def backward(ctx, g):
        y = torch.empty_like(g)
        dist.all_to_all_single(y, g.contiguous(), group=ctx.group)
        return y, None
