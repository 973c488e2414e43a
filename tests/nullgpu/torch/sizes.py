# SPDX-License-Identifier: Apache-2.0
"""sizes.py - operations whose results' sizes a library reads back from the device: on the null GPU no
kernel has written them, so what the memory held before must not decide. Prints TAP lines."""
import sys

import torch
from torch import nn

device = "cuda"
most = 64 << 20  # bytes that any of these may need
failed = 0


def case(function):
    global failed
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    try:
        stale = [torch.full((n,), 0x7f7f7f7f, dtype=torch.int32, device=device)
                 for n in (64, 1000, 16000, 200000)]
        del stale  # what a size must not be taken from
        function()
        good = torch.cuda.max_memory_allocated() - before < most
        why = "%d bytes" % (torch.cuda.max_memory_allocated() - before)
    except Exception as e:
        good, why = False, "%s: %.200s" % (type(e).__name__, str(e).replace("\n", " "))
    failed |= not good
    print("%s - %s%s" % ("ok" if good else "not ok", function.__doc__, "" if good else ": " + why))


@case
def coo():
    """sparse matrices are coalesced and multiplied"""
    at = torch.randint(0, 100, (2, 500), device=device)
    m = torch.sparse_coo_tensor(at, torch.ones(500, device=device), (100, 100)).coalesce()
    w = torch.randn(100, 8, device=device, requires_grad=True)
    torch.sparse.mm(m, w).sum().backward()


@case
def csr():
    """compressed rows are made and multiplied"""
    (torch.eye(64, device=device).to_sparse_csr() @ torch.randn(64, 8, device=device)).sum().item()


@case
def embeddings():
    """SparseAdam steps over sparse gradients"""
    table = nn.Embedding(1000, 16, sparse=True).to(device)
    optimizer = torch.optim.SparseAdam(table.parameters())
    for _ in range(2):
        table(torch.randint(0, 1000, (8, 4), device=device)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


@case
def linear_algebra():
    """factorisations, solvers and their checks pass"""
    a = torch.randn(4, 16, 16, device=device)
    q = a @ a.mT + 16 * torch.eye(16, device=device)
    for f in (torch.linalg.cholesky, torch.linalg.svd, torch.linalg.eigh, torch.linalg.qr,
              torch.linalg.inv, torch.linalg.det):
        f(q)
    torch.linalg.solve(q, a)
    torch.linalg.lstsq(q, a)


@case
def counts():
    """histograms, unique values, order statistics"""
    x = torch.randn(100000, device=device)
    torch.bincount(torch.randint(0, 10, (1000,), device=device))
    torch.histc(x, 10, min=-1, max=1)
    torch.unique(torch.randint(0, 9, (100,), device=device), return_counts=True)
    x.median(), x.kthvalue(5), x.sort(), x.topk(5), x.quantile(0.5)


@case
def transposed():
    """transposed convolutions, two and three dimensions, forward and backward"""
    nn.ConvTranspose2d(16, 4, 2, 2).to(device)(
        torch.randn(2, 16, 32, 32, device=device, requires_grad=True)).sum().backward()
    nn.ConvTranspose3d(16, 4, 2, 2).to(device)(
        torch.randn(2, 16, 8, 16, 16, device=device, requires_grad=True)).sum().backward()


@case
def recurrent():
    """packed sequences through a GRU"""
    rnn = nn.GRU(16, 32, 2, batch_first=True, dropout=0.1).to(device)
    packed = nn.utils.rnn.pack_padded_sequence(torch.randn(4, 10, 16, device=device),
                                               torch.tensor([10, 8, 5, 2]), batch_first=True)
    out, _ = rnn(packed)
    nn.utils.rnn.pad_packed_sequence(out, batch_first=True)[0].sum().backward()


@case
def matrices():
    """decompositions that read back whether they worked, or look for infinities first"""
    a = torch.randn(64, 64, device=device)
    s = a @ a.T + torch.eye(64, device=device)
    for f in (torch.linalg.svd, torch.linalg.qr, torch.linalg.eigh, torch.linalg.eig, torch.linalg.inv,
              torch.linalg.cholesky, torch.linalg.det, torch.linalg.pinv, torch.linalg.matrix_exp):
        f(s)
    torch.linalg.lstsq(s, a), torch.linalg.solve(s, a), torch.linalg.matrix_rank(s).item()


sys.exit(failed)
