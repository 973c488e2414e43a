# SPDX-License-Identifier: Apache-2.0
"""torch_windows.py SEED [pool]: allocations by chance on four streams, of which windows by chance are
recorded; at last it runs out of memory (without a pool), goes on, and is dumped."""
import ctypes
import random
import sys

import torch

recorder, chance = ctypes.CDLL(None), random.Random(int(sys.argv[1]))
pool = torch.cuda.MemPool() if "pool" in sys.argv else None
streams = [torch.cuda.Stream() for _ in range(3)]
sizes = [100, 3000, 70000, 600000, 1100000, 3 << 20, 11 << 20, 30 << 20]
live, pooled = [], []
on = False


def turn(often):
    global on
    if chance.random() < often:
        (recorder.vramcast_stop if on else recorder.vramcast_start)()
        on = not on


def ask():
    return torch.empty(chance.choice(sizes) + chance.randrange(5000), dtype=torch.uint8, device="cuda")


for i in range(600):
    turn(0.04)
    if pool and chance.random() < 0.3:
        with torch.cuda.use_mem_pool(pool):
            turn(0.1)
            pooled.append(ask())
    else:
        stream = chance.choice([None, None] + streams)
        with torch.cuda.stream(stream):
            live.append(ask())
        if not pool and chance.random() < 0.3:
            live[-1].record_stream(chance.choice(streams))
    for tensors in live, pooled:
        while len(tensors) > 40 or (tensors and chance.random() < 0.45):
            tensors.pop(chance.randrange(len(tensors)))
    if chance.random() < 0.01:
        torch.cuda.empty_cache()
    if i % 20 == 0:
        recorder.vramcast_step()
if on:
    recorder.vramcast_stop()
try:
    if pool:
        raise torch.cuda.OutOfMemoryError
    live.append(torch.empty(1 << 40, dtype=torch.uint8, device="cuda"))
except torch.cuda.OutOfMemoryError:
    live.append(ask())
recorder.vramcast_dump()
