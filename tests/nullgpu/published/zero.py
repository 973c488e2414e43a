# SPDX-License-Identifier: Apache-2.0
"""zero.py zero|adam - PyTorch's recipe for ZeroRedundancyOptimizer, one of its two processes: twenty linear layers
under DistributedDataParallel, one step of Adam (a loop over the parameters, as then); prints the peaks on the way."""
import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
peaks = {}


def note(name):
    peaks[name] = torch.cuda.max_memory_allocated()


model = torch.nn.Sequential(*[torch.nn.Linear(2000, 2000).to(0) for _ in range(20)])
note("model")
net = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])
note("wrapped")
if sys.argv[1] == "zero":
    from torch.distributed.optim import ZeroRedundancyOptimizer
    optimizer = ZeroRedundancyOptimizer(net.parameters(), optimizer_class=torch.optim.Adam, lr=0.01, foreach=False)
else:
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, foreach=False)
out = net(torch.randn(20, 2000).to(0))
torch.nn.MSELoss()(out, torch.randn(20, 2000).to(0)).backward()
note("before")
optimizer.step()
note("after")
print("published", *(word for pair in peaks.items() for word in pair))
