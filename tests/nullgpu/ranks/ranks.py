# SPDX-License-Identifier: Apache-2.0
"""ranks.py [CASE]... - a job of several ranks on the null GPU, started by `vramcast dryrun --ranks N`: what
the ranks tell each other, and the ways to spread a model over cards. Rank 0 prints TAP lines; "held"
is what a rank holds after the last step, which sharding must make smaller."""
import gc
import os
import sys
import traceback

import torch
import torch.distributed as dist
from torch import nn

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
WIDTH, LAYERS = 1024, 4
MODEL = LAYERS * (2 * 4 * WIDTH * WIDTH + 5 * WIDTH) * 4  # bytes of the parameters
# What cases before this one left behind. FSDP1 on one rank (NO_SHARD) leaves its parameters and gradients:
# in 2.6 and 2.15 hooks of autograd keep them alive through C++, where Python's collector does not look,
# with tensors of the CPU as well.
LEFT = [0]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.leave = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.leave(torch.relu(self.enter(x)))


def body():
    return nn.Sequential(*[Block() for _ in range(LAYERS)])


def train(model, optimizer, steps=8):
    for _ in range(steps):
        loss = model(torch.randn(8, WIDTH, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    value = loss.item()
    assert value == value, "the loss is %r" % value
    return torch.cuda.memory_allocated() - LEFT[0]


def adam(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3)


def close_to(held, copies, what):
    """`copies` of the parameters, at most a quarter more."""
    want = copies * MODEL
    assert 0.95 * want <= held <= 1.25 * want + (2 << 20), \
        "%s holds %.1f MiB, wanted %.1f" % (what, held / 2**20, want / 2**20)


# ---- what ranks tell each other ----

def values():
    mine = torch.tensor([RANK + 1.0, 7.0], device="cuda")
    dist.all_reduce(mine)
    assert mine.tolist() == [WORLD * (WORLD + 1) / 2, 7.0 * WORLD], mine.tolist()
    most = torch.tensor([RANK], device="cuda")
    dist.all_reduce(most, dist.ReduceOp.MAX)
    assert most.item() == WORLD - 1
    average = torch.tensor([float(RANK)], device="cuda", dtype=torch.bfloat16)
    dist.all_reduce(average, dist.ReduceOp.AVG)
    assert average.item() == (WORLD - 1) / 2
    all_ = [torch.zeros(2, dtype=torch.long, device="cuda") for _ in range(WORLD)]
    dist.all_gather(all_, torch.tensor([RANK, 5], device="cuda"))
    assert [a.tolist() for a in all_] == [[r, 5] for r in range(WORLD)], all_
    flat = torch.zeros(WORLD, dtype=torch.long, device="cuda")
    dist.all_gather_into_tensor(flat, torch.tensor([RANK], device="cuda"))
    assert flat.tolist() == list(range(WORLD))
    part = torch.zeros(1, device="cuda")
    dist.reduce_scatter_tensor(part, torch.arange(float(WORLD), device="cuda"))
    assert part.item() == RANK * WORLD
    said = torch.tensor([42 if RANK == WORLD - 1 else 0], device="cuda")
    dist.broadcast(said, WORLD - 1)
    assert said.item() == 42
    turned = torch.zeros(WORLD, dtype=torch.long, device="cuda")
    dist.all_to_all_single(turned, torch.arange(WORLD, device="cuda") + 100 * RANK)
    assert turned.tolist() == [100 * r + RANK for r in range(WORLD)], turned.tolist()
    dist.barrier()


def objects():
    got = [None] * WORLD
    dist.all_gather_object(got, {"rank": RANK, "text": "x" * (100 * RANK)})
    assert [len(g["text"]) for g in got] == [100 * r for r in range(WORLD)]
    told = [{"seed": 1234} if RANK == 0 else None]
    dist.broadcast_object_list(told, 0)
    assert told == [{"seed": 1234}], told


def messages():
    if WORLD < 2:
        return
    right, left = (RANK + 1) % WORLD, (RANK - 1) % WORLD
    got = torch.zeros(3, dtype=torch.long, device="cuda")
    sent = torch.tensor([RANK, 1, 2], device="cuda")
    ops = [dist.P2POp(dist.irecv, got, left), dist.P2POp(dist.isend, sent, right)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert got.tolist() == [left, 1, 2], got.tolist()


def split():
    """A grid of ranks: rows of two (or of one), columns across."""
    from torch.distributed.device_mesh import init_device_mesh
    rows = 2 if WORLD % 2 == 0 else 1
    mesh = init_device_mesh("cuda", (WORLD // rows, rows), mesh_dim_names=("across", "within"))
    for name, size in (("across", WORLD // rows), ("within", rows)):
        group = mesh.get_group(name)
        n = torch.ones(1, device="cuda")
        dist.all_reduce(n, group=group)
        assert n.item() == size == dist.get_world_size(group), (name, n.item(), size)
    uneven = dist.new_group([0]) if WORLD < 3 else dist.new_group([0, WORLD - 1])
    if RANK in (0, WORLD - 1) and dist.get_rank(uneven) >= 0:
        n = torch.ones(1, device="cuda")
        dist.all_reduce(n, group=uneven)
        assert n.item() == dist.get_world_size(uneven)


# ---- ways to spread a model ----

def ddp():
    model = nn.parallel.DistributedDataParallel(body().cuda(), device_ids=[torch.cuda.current_device()])
    held = train(model, adam(model.parameters()))
    close_to(held, 1 + 2 + 1, "DDP")  # parameters, two moments, the buckets of the gradients


def zero1():
    from torch.distributed.optim import ZeroRedundancyOptimizer
    model = nn.parallel.DistributedDataParallel(body().cuda(), device_ids=[torch.cuda.current_device()])
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-3)
    held = train(model, optimizer)
    # whole layers are dealt out, so nobody has less than the largest share of them
    share = max(-(-LAYERS * 2 // WORLD), 1) / (LAYERS * 2)
    close_to(held, 1 + 1 + 2 * share, "ZeRO-1")


def fsdp1():
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    model = FullyShardedDataParallel(body(), auto_wrap_policy=ModuleWrapPolicy({Block}),
                                     device_id=torch.cuda.current_device(), use_orig_params=True)
    held = train(model, adam(model.parameters()))
    close_to(held, 4 / WORLD, "FSDP")  # the flat gradients stay


def fsdp2():
    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        from torch.distributed._composable.fsdp import fully_shard
    model = body().cuda()
    for block in model:
        fully_shard(block)
    fully_shard(model)
    held = train(model, adam(model.parameters()))
    close_to(held, 3 / WORLD, "FSDP2")


def tensor_parallel():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    mesh = init_device_mesh("cuda", (WORLD,))
    model = body().cuda()
    for block in model:
        parallelize_module(block, mesh, {"enter": ColwiseParallel(), "leave": RowwiseParallel()})
    torch.manual_seed(1)
    held = train(model, torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False))
    close_to(held, 3 / WORLD, "tensor parallel")


def pipeline():
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
    blocks = list(body())
    per = max(LAYERS // WORLD, 1)
    if WORLD > LAYERS:
        return
    device = torch.device("cuda", torch.cuda.current_device())
    mine = nn.Sequential(*blocks[RANK * per:(RANK + 1) * per]).to(device)
    stage = PipelineStage(mine, RANK, WORLD, device)
    schedule = ScheduleGPipe(stage, n_microbatches=4, loss_fn=nn.functional.mse_loss)
    optimizer = adam(mine.parameters())
    for _ in range(2):
        x, y = torch.randn(8, WIDTH, device=device), torch.randn(8, WIDTH, device=device)
        losses = []
        if RANK == 0 and WORLD == 1:
            schedule.step(x, target=y, losses=losses)
        elif RANK == 0:
            schedule.step(x)
        elif RANK == WORLD - 1:
            schedule.step(target=y, losses=losses)
        else:
            schedule.step()
        optimizer.step()
        optimizer.zero_grad()
    close_to(torch.cuda.memory_allocated() - LEFT[0], 3 * per / LAYERS, "a stage")
    dist.barrier()


CASES = {
    "ranks tell each other small numbers": values,
    "ranks exchange objects": objects,
    "ranks send and receive": messages,
    "sub-communicators have their own size": split,
    "DDP": ddp,
    "ZeRO-1 (ZeroRedundancyOptimizer)": zero1,
    "FSDP1 holds a share": fsdp1,
    "FSDP2 holds a share": fsdp2,
    "tensor parallel holds a share": tensor_parallel,
    "a pipeline holds its stage": pipeline,
}


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    failed = 0
    for case in sys.argv[1:] or list(CASES):
        said = ""
        torch.manual_seed(0)
        LEFT[0] = torch.cuda.memory_allocated()
        try:
            CASES[case]()
        except Exception:
            said = traceback.format_exc()
        everyone = [None] * WORLD
        dist.all_gather_object(everyone, said)
        bad = [(r, s) for r, s in enumerate(everyone) if s]
        failed |= bool(bad)
        if RANK == 0:
            print("%s - %s" % ("not ok" if bad else "ok", case))
            for r, s in bad:
                print("\n".join("# rank %d: %s" % (r, line) for line in s.splitlines()[-8:]))
            sys.stdout.flush()
        gc.collect()
        torch.cuda.empty_cache()
    dist.destroy_process_group()  # on purpose without a synchronisation before
    if RANK == 0:
        print("ok - the process group ends")
    sys.exit(failed)


if __name__ == "__main__":
    main()
