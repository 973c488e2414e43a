# SPDX-License-Identifier: Apache-2.0
"""torch_run.py MODE OUT: trains a small transformer on the GPU and writes PyTorch's own trace of its
allocator beside the recording, one line an entry. MODE: plain or graph."""
import sys

import torch
import torch.nn as nn

mode, out = sys.argv[1:3]
torch.cuda.init()
record = torch.cuda.memory._record_memory_history
try:
    record(max_entries=1000000, stacks="python")
except TypeError:  # 2.0
    record(True, trace_alloc_max_entries=1000000)
layer = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
model = nn.TransformerEncoder(layer, 4).cuda()
optimizer = torch.optim.AdamW(model.parameters())
side = torch.cuda.Stream()
for i in range(5):
    x = torch.randn(8, 128, 256, device="cuda")
    model(x).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.stream(side):
        z = torch.empty(1234567 + i, device="cuda", dtype=torch.uint8)
    z.record_stream(torch.cuda.current_stream())
    if i == 2:
        torch.cuda.empty_cache()
if mode == "graph":
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x)
        w = torch.empty(3000000, device="cuda")
    del y
    graph.replay()
torch.cuda.synchronize()
snapshot = torch.cuda.memory._snapshot()
with open(out, "w") as f:
    for e in snapshot["device_traces"][0]:
        f.write("%s %x %d %s\n" % (e["action"], e["addr"], e["size"], e.get("stream", 0)))
