# SPDX-License-Identifier: Apache-2.0
"""programs.py - short training programs for `vramcast run`, each in a way of its own.

programs.py NAME: runs it on the null GPU and prints what the test compares: losses that are computed,
and PyTorch's own statistics.
"""
import sys

import torch
from torch import nn


def model(width=1024, layers=6):
    return nn.Sequential(*[m for _ in range(layers) for m in (nn.Linear(width, width), nn.GELU())]).cuda()


def train(net, batches, opt=None, checkpoint=False):
    opt = opt or torch.optim.AdamW(net.parameters())
    for x in batches:
        if checkpoint:
            from torch.utils.checkpoint import checkpoint_sequential
            y = checkpoint_sequential(net, 3, x.requires_grad_(), use_reentrant=False)
        else:
            y = net(x)
        loss = y.square().mean()
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)


def fixed():
    train(model(), (torch.randn(4096, 1024, device="cuda") for _ in range(8)))


def lengths():
    sizes = [1000, 3100, 2048, 517, 4096, 2500, 3100, 888, 1900, 4000]
    train(model(), (torch.randn(n, 1024, device="cuda") for n in sizes * 2))


def checkpointing():
    train(model(layers=9), (torch.randn(8192, 1024, device="cuda") for _ in range(8)), checkpoint=True)


def evaluation():
    net = model()
    opt = torch.optim.AdamW(net.parameters())
    for _ in range(3):
        train(net, (torch.randn(4096, 1024, device="cuda") for _ in range(3)), opt)
        with torch.no_grad():
            for n in (6000, 7000):
                net(torch.randn(n, 1024, device="cuda"))


def accumulation():
    net = model()
    opt = torch.optim.SGD(net.parameters(), momentum=0.9)
    for _ in range(5):
        for _ in range(3):
            net(torch.randn(3000, 1024, device="cuda")).square().mean().backward()
        opt.step()
        opt.zero_grad(set_to_none=True)


def amp():
    net = model()
    opt = torch.optim.AdamW(net.parameters())
    for _ in range(8):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = net(torch.randn(6000, 1024, device="cuda")).float().square().mean()
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)


def convolutions():
    net = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1),
                        nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).cuda()
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(6):
        nn.functional.cross_entropy(net(torch.randn(32, 3, 128, 128, device="cuda")),
                                    torch.zeros(32, dtype=torch.long, device="cuda")).backward()
        opt.step()
        opt.zero_grad(set_to_none=True)


def transformer():
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True), 6).cuda()
    train(net, (torch.randn(16, 512, 512, device="cuda") for _ in range(6)))


def streams():
    net = model()
    opt = torch.optim.AdamW(net.parameters())
    side = torch.cuda.Stream()
    for _ in range(8):
        with torch.cuda.stream(side):
            x = torch.randn(4096, 1024, device="cuda")
        torch.cuda.current_stream().wait_stream(side)
        x.record_stream(torch.cuda.current_stream())
        net(x).square().mean().backward()
        opt.step()
        opt.zero_grad(set_to_none=True)


def graphs():
    net = model()
    x = torch.randn(4096, 1024, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            net(x).square().mean().backward()
    torch.cuda.current_stream().wait_stream(side)
    for p in net.parameters():
        p.grad = None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        net(x).square().mean().backward()
    for _ in range(5):
        x.copy_(torch.randn(4096, 1024, device="cuda"))
        graph.replay()


def values():
    """Small enough to be computed on the null GPU: the losses must be the same."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1)).cuda()
    opt = torch.optim.SGD(net.parameters(), 0.05)
    x = torch.linspace(-1, 1, 64).reshape(4, 16).cuda()
    for _ in range(12):
        loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        print("loss %.7g" % loss.item())


def fsdp():
    import os
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29512")
    dist.init_process_group("nccl", rank=0, world_size=1)
    net = model()
    for m in net:
        if isinstance(m, nn.Linear):
            fully_shard(m)
    fully_shard(net)
    train(net, (torch.randn(4096, 1024, device="cuda") for _ in range(6)))
    dist.destroy_process_group()


if __name__ == "__main__":
    name = sys.argv[1]
    globals()[name]()
    torch.cuda.synchronize()
    s = torch.cuda.memory_stats()
    print("stats", s["allocated_bytes.all.current"], torch.cuda.max_memory_allocated(),
          torch.cuda.max_memory_reserved(), s["allocation.all.current"])
