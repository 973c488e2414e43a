# SPDX-License-Identifier: Apache-2.0
"""host.py - weights that are initialised on the host take none of its memory where they are left
untouched, the card sees the same requests, and data keeps its values. Prints TAP lines."""
import resource
import sys

import torch
from torch import nn

failed = 0


def ok(good, name):
    global failed
    failed |= not good
    print("%s - %s" % ("ok" if good else "not ok", name))


def held():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(30000, 2048, padding_idx=0)
        self.layers = nn.ModuleList(nn.Linear(2048, 8192) for _ in range(6))
        self.place = nn.Parameter(torch.randn(1, 2048, 2048))
        self.register_buffer("cache", torch.zeros(2048, 2048))
        for p in self.parameters():
            nn.init.trunc_normal_(p, std=0.02)
        nn.init.orthogonal_(self.layers[0].weight)

    def forward(self, x):
        return sum(layer(self.table(x)).mean() for layer in self.layers)


before = held()
net = Net().to(torch.bfloat16).cuda()
bytes_ = sum(p.nbytes for p in net.parameters()) * 2 >> 20
grown = held() - before
ok(grown < bytes_ / 4, "weights of %d MiB take %d MiB of the host" % (bytes_, grown))
ok(next(net.parameters()).dtype == torch.bfloat16 and net.layers[0].weight.is_cuda and
   net.layers[0].weight.requires_grad, "they are moved and cast")
net(torch.zeros(4, 8, dtype=torch.long, device="cuda")).backward()
ok(net.layers[0].weight.grad is not None and held() - before < bytes_ / 4, "and trained")
data = torch.arange(1000000.0)
ok(data.mul_(2)[7].item() == 14 and data.half().float()[7].item() == 14 and data.clone()[-1].item() == 1999998,
   "data keeps its values")
ok(torch.zeros(1000, 1000).sum().item() == 0 and torch.ones(1000, 1000).add_(1).sum().item() == 2e6,
   "zeros are zeros, ones are ones")
ok(nn.Linear(8, 8).weight.abs().sum().item() > 0, "small weights are initialised")
weight = torch.empty(1000, 1000)
weight.copy_(torch.ones(1000, 1000))
ok(weight.normal_(std=0.02).std().item() > 0.01, "what was written before is written again")
x = torch.zeros(1000, 1000, requires_grad=True)
(x.clone() * 2).sum().backward()
ok(x.grad[0, 0].item() == 2, "gradients pass")
ok(torch.from_numpy(__import__("numpy").ones((600, 600))).double().sum().item() == 360000,
   "memory of others is left alone")
ok(torch.func.grad(lambda x: (x.clone() * 2).sum())(torch.ones(1000, 1000))[0, 0].item() == 2,
   "gradients of torch.func pass")
with torch.device("cuda"):
    ok(all(make(*size).is_cuda for make in (torch.rand, torch.randn, torch.zeros) for size in ((3,), (1000, 1000))),
       "what is made where the card is the default device is made there")


@torch.jit.script
def scripted(n: int):
    return torch.zeros(n).sum() + torch.rand(n).numel()


ok(scripted(3).item() == 3, "a script makes zeros and random numbers")
sys.exit(failed)
