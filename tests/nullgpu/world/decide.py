# SPDX-License-Identifier: Apache-2.0
"""decide.py WAY - one rank of eight, in which other ranks decide how much is asked for. The last line says how many MiB
that are."""
import os
import sys

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional


def flag(r, n):
    """Megatron's: only the first of each four knows whether to train; rank 0 says it."""
    known = torch.tensor([int(r % 4 == 0)], device="cuda")
    dist.broadcast(known, 0)
    return 100 if known.item() else 1


def pair(r, n):
    """The first of each two knows it; that one is no role of rank 0's groups."""
    pairs = [dist.new_group([i, i + 1]) for i in range(0, n, 2)]
    known = torch.tensor([100 * (r % 2 == 0)], device="cuda")
    dist.broadcast(known, r - r % 2, group=pairs[r // 2])
    return known.item()


def same(r, n):
    return largest(0, n)


def largest(r, n):
    mine = torch.tensor([100 * (r + 1)], device="cuda")
    dist.all_reduce(mine, op=dist.ReduceOp.MAX)
    return mine.item()


def derived(r, n):
    mine = torch.tensor([100 * (r + 1)], device="cuda")
    dist.all_reduce(mine, op=dist.ReduceOp.MAX)
    return (mine * 2 + 1).tolist()[0]


def awaited(r, n):
    """What stands for a result until somebody asks for it."""
    return functional.all_gather_tensor(torch.tensor([10], device="cuda"), 0, dist.group.WORLD).sum().item()


def half(r, n):
    groups = [dist.new_group(list(range(i, i + n // 2))) for i in (0, n // 2)]
    mine = torch.tensor([100], device="cuda")
    dist.all_reduce(mine, group=groups[r // (n // 2)])
    return mine.item()


def host(r, n):
    mine = torch.tensor([100 * (r + 1)])
    dist.all_reduce(mine, op=dist.ReduceOp.MAX)
    return mine.item()


def loss(r, n):
    mine = torch.tensor([1.5], device="cuda")
    dist.all_reduce(mine, op=dist.ReduceOp.AVG)
    return 3 if mine.item() > 0 else 4


def objects(r, n):
    table = [None] * n
    dist.all_gather_object(table, 100 + r)
    return max(table)


def store(r, n):
    there = dist.distributed_c10d._get_default_store()
    if r == 0:
        there.set("size", "77")
    return int(there.get("size"))


def key(r, n):
    there = dist.distributed_c10d._get_default_store()
    there.set("from%d" % r, "77")
    return int(there.get("from5"))


def announced(r, n):
    """Each stage tells the next one the shape that it hands on."""
    shape = torch.tensor([4, 25], device="cuda")
    if r:
        got = torch.zeros_like(shape)
        dist.recv(got, r - 1)
        assert got.tolist() == [4, 25], got
        shape = got
    if r < n - 1:
        dist.send(shape, r + 1)
    return int(shape.prod())


def batched(r, n):
    shape, got, ops = torch.tensor([4, 25], device="cuda"), torch.zeros(2, dtype=torch.long, device="cuda"), []
    if r < n - 1:
        ops.append(dist.P2POp(dist.isend, shape, r + 1))
    if r:
        ops.append(dist.P2POp(dist.irecv, got, r - 1))
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return int((got if r else shape).prod())


def growing(r, n):
    """Stages that hand on different things."""
    size = torch.tensor([50], device="cuda")
    if r:
        dist.recv(size, r - 1)
    size += 10
    if r < n - 1:
        dist.send(size, r + 1)
    return size.item()


def backward(r, n):
    """Rank 0 goes by what a later one sends."""
    got = torch.zeros(1, dtype=torch.long, device="cuda")
    if r < n - 1:
        dist.recv(got, r + 1)
    if r:
        dist.send(torch.tensor([40], device="cuda"), r - 1)
    size = got.item() if r < n - 1 else 40
    assert size, "nothing was sent"
    return size


WAYS = {f.__name__: f for f in (flag, pair, same, largest, derived, awaited, half, host, loss, objects, store, key, announced,
                                batched, growing, backward)}
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("cpu:gloo,cuda:nccl")
mib = WAYS[sys.argv[1]](dist.get_rank(), dist.get_world_size())
x = torch.empty(int(mib) << 20, dtype=torch.uint8, device="cuda")
print("MiB", int(mib), flush=True)
dist.destroy_process_group()
