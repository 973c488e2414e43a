# SPDX-License-Identifier: Apache-2.0
"""workload.py MODE SNAPSHOT [BATCH] - a small training with everything an allocator can meet: growth and
shrinkage, several streams, empty_cache, captured graphs; writes PyTorch's own record of it.

MODE: eager, graph, streams, grow (doubles the batch until memory is out; prints the error)."""
import pickle
import sys

import torch
from torch import nn


def model():
    torch.manual_seed(0)
    body = [nn.Sequential(nn.LayerNorm(512), nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512))
            for _ in range(4)]
    return nn.Sequential(*body, nn.Linear(512, 1000)).cuda()


def step(net, optimizer, batch):
    x = torch.randn(batch, 512, device="cuda")
    y = torch.randint(0, 1000, (batch,), device="cuda")
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


def eager(batch):
    net = model()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for size in (batch, batch // 3, 2 * batch, batch + 17, batch):
        step(net, optimizer, size)
    torch.cuda.empty_cache()
    for _ in range(2):
        step(net, optimizer, batch)


def graph(batch):
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    x = torch.randn(batch, 512, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            net(x).sum().backward()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(captured):
        loss = net(x).square().mean()
        loss.backward()
    for _ in range(3):
        captured.replay()
        optimizer.step()
    second = torch.cuda.CUDAGraph()
    with torch.cuda.graph(second, pool=captured.pool()):
        y = net(x).relu()
    second.replay()
    del y, second


def streams(batch):
    side = torch.cuda.Stream()
    kept = []
    for i in range(40):
        x = torch.randn(batch, 512, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                y = x @ x.t()
            x.record_stream(side)
        if i % 3 == 0:
            kept.append(y)
        del x, y
    torch.cuda.synchronize()
    torch.randn(batch, 512, device="cuda")


def grow(batch):
    net = model()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    while True:
        try:
            step(net, optimizer, batch)
        except torch.OutOfMemoryError as e:
            print("message:", str(e))
            return
        batch *= 2


def main():
    mode, path = sys.argv[1], sys.argv[2]
    batch = int(sys.argv[3]) if len(sys.argv) > 3 else 256
    if path != "-":
        torch.cuda.memory._record_memory_history(max_entries=10000000, stacks="python")
    failed, kept = 0, None
    try:
        {"eager": eager, "graph": graph, "streams": streams, "grow": grow}[mode](batch)
        torch.cuda.synchronize()
    except torch.OutOfMemoryError as e:
        print("message:", str(e))
        failed, kept = 3, e  # its frames hold the graph: a snapshot does not tell of pools that are gone
    if path != "-":
        with open(path, "wb") as f:
            pickle.dump(torch.cuda.memory._snapshot(), f)
    del kept
    print("peak", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
    sys.exit(failed)


main()
