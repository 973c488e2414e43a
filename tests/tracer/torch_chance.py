# SPDX-License-Identifier: Apache-2.0
"""torch_chance.py READY END [SEED]: allocations by chance on four streams, with blocks that wait for another stream and an
empty cache once in a while, until the file END is there; prints how many turns. The file READY says that it has begun."""
import os
import random
import sys

import torch

ready, end, chance = sys.argv[1], sys.argv[2], random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
streams = [torch.cuda.Stream() for _ in range(3)]
sizes = [100, 3000, 70000, 600000, 1100000, 3 << 20, 11 << 20, 30 << 20]
live, n = [], 0
while not os.path.exists(end):
    with torch.cuda.stream(chance.choice([None, None] + streams)):
        live.append(torch.empty(chance.choice(sizes) + chance.randrange(5000), dtype=torch.uint8, device="cuda"))
        live[-1].fill_(n % 256)
    if chance.random() < 0.3:
        block = chance.choice(live)
        with torch.cuda.stream(chance.choice(streams)):
            block.add_(1)
            block.record_stream(torch.cuda.current_stream())
    while len(live) > 60 or (live and chance.random() < 0.45):
        live.pop(chance.randrange(len(live)))
    if chance.random() < 0.002:
        torch.cuda.empty_cache()
    n += 1
    if n == 500:
        open(ready, "w").close()
print(n)
