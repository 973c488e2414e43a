# SPDX-License-Identifier: Apache-2.0
"""rev.py LAYERS: PyTorch Geometric's examples/rev_gnn.py on parts as its RandomNodeLoader makes them of ogbn-products, a tenth
of the nodes and a hundredth of the edges at random, with loops; prints the peak of training."""
import sys

import torch
import torch.nn.functional as F
from torch.nn import LayerNorm, Linear
from torch_geometric.nn import GroupAddRev, SAGEConv

NODES, EDGES = 2449029 // 10, 123718280 // 100


class Block(torch.nn.Module):
    def __init__(self, wide):
        super().__init__()
        self.norm, self.conv = LayerNorm(wide), SAGEConv(wide, wide)

    def forward(self, x, edges, mask=None):
        return self.conv(self.norm(x).relu() * mask, edges)


class Net(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.lin1, self.lin2, self.norm = Linear(100, 160), Linear(160, 47), LayerNorm(160)
        self.convs = torch.nn.ModuleList(GroupAddRev(Block(80), num_groups=2) for _ in range(layers))

    def forward(self, x, edges):
        x = self.lin1(x)
        mask = torch.zeros_like(x).bernoulli_(0.5).requires_grad_(False) / 0.5
        for conv in self.convs:
            x = conv(x, edges, mask)
        return self.lin2(F.dropout(self.norm(x).relu(), p=0.5, training=True))


torch.manual_seed(0)
model = Net(int(sys.argv[1])).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
for _ in range(3):
    edges = torch.cat([torch.randint(NODES, (2, EDGES)), torch.arange(NODES).expand(2, -1)], 1).cuda()
    x, y = torch.zeros(NODES, 100).cuda(), torch.zeros(NODES, 1, dtype=torch.long).cuda()
    taught = (torch.rand(NODES) < 0.08).cuda()
    optimizer.zero_grad()
    rows, order = edges[1].sort()  # what SparseTensor keeps: the transposed graph in compressed rows
    starts = torch.cat([rows.new_zeros(1), torch.bincount(rows, minlength=NODES).cumsum(0)])
    graph = torch.sparse_csr_tensor(starts, edges[0][order], torch.ones(len(rows), device="cuda"), (NODES, NODES))
    loss = F.cross_entropy(model(x, graph)[taught], y[taught].view(-1))
    loss.backward()
    optimizer.step()
print("published peak", torch.cuda.max_memory_allocated())
