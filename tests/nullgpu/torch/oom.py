# SPDX-License-Identifier: Apache-2.0
"""oom.py MODE SEED SNAPSHOT - random requests on three streams until memory is out (or 700 of them were
served); prints PyTorch's message and writes its own record of the run.

MODE: eager, or graph: all but the first 100 are captured, in two graphs that share a pool."""
import pickle
import random
import sys

import torch

SIZES = (1000, 70_000, 300_000, 900_000, 5_000_000, 11_000_000, 20_000_000, 60_000_000)


def serve(live, n, streams, trim):
    for _ in range(n):
        if live and random.random() < 0.42:
            live.pop(random.randrange(len(live)))
        if trim and random.random() < 0.01:
            torch.cuda.empty_cache()
        with torch.cuda.stream(random.choice(streams)):
            size = int(random.choice(SIZES) * random.uniform(0.5, 1.5))
            live.append(torch.empty(size, device="cuda", dtype=torch.uint8))


def run(mode, live, graphs):
    current = torch.cuda.current_stream()
    streams = [current, current, torch.cuda.Stream(), torch.cuda.Stream()]
    serve(live, 700 if mode == "eager" else 100, streams, True)
    if mode == "eager":
        return
    pool = None
    for _ in range(2):
        graphs.append(torch.cuda.CUDAGraph())
        with torch.cuda.graph(graphs[-1], pool=pool):
            serve(live, 300, [torch.cuda.current_stream()], False)
        pool = graphs[-1].pool()


def main():
    mode, seed, path = sys.argv[1:4]
    random.seed(int(seed))
    torch.cuda.memory._record_memory_history(max_entries=100000)
    live, graphs, failed = [], [], 0
    try:
        run(mode, live, graphs)
    except torch.cuda.OutOfMemoryError as e:
        print("message:", str(e))
        failed = 3
    with open(path, "wb") as f:
        pickle.dump(torch.cuda.memory._snapshot(), f)
    sys.exit(failed)


main()
