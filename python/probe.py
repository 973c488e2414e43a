# SPDX-License-Identifier: Apache-2.0
"""What `vramcast probe` runs on a card and on the null GPU: kernels over a grid of sizes, a few times, in the same order.

Before each piece of work stands its number, in kernels of one element: which kernels of the two runs are of the same piece is then
known, whatever a library makes of it on the card."""
import torch
import torch.nn.functional as F

REPETITIONS = 4
SIZES = (128, 256, 512, 1024, 2048, 4096, 8192)
TYPES = (torch.bfloat16, torch.float16, torch.float32)


class Pieces:
    """piece(WORK, ARGUMENT...) calls WORK behind the number of this piece."""

    def __init__(self):
        self.n = 0
        self.one = torch.full((1,), 0.5, device="cuda")

    def __call__(self, work, *arguments, **named):
        for bit in range(9):
            (torch.erfinv if self.n >> bit & 1 else torch.lgamma)(self.one)
        self.n += 1
        return work(*arguments, **named)


def products(piece, x):
    for t in TYPES:
        for n in SIZES:
            a = x[:n * n].view(n, n).to(t)
            piece(torch.mm, a, a)
            piece(torch.mm, a, a.t())
            piece(torch.mm, a[:, :128], a[:128, :])
            piece(torch.mm, a[:128, :], a)
            piece(F.linear, a[:n // 4].view(1, -1, n), a, a[0])
            if n <= 1024:
                b = x[:16 * n * n].view(16, n, n).to(t)
                piece(torch.bmm, b, b.transpose(1, 2))


def attention(piece, x):
    for t in TYPES[:2]:
        for heads, n, width in ((16, 256, 64), (64, 512, 64), (16, 1024, 64), (32, 2048, 128), (32, 8192, 128)):
            q = x[:heads * n * width].view(1, heads, n, width).to(t).requires_grad_()
            for causal in (False, True):
                y = piece(F.scaled_dot_product_attention, q, q, q, is_causal=causal)
                piece(y.backward, y.detach())
                q.grad = None


def moved(piece, x):
    for t in TYPES:
        for power in range(12, 28, 2):
            a = x[:1 << power].to(t)
            rows = a.view(-1, 1024)
            b = torch.empty_like(a)
            piece(b.copy_, a)
            piece(torch.add, a, b)
            piece(F.gelu, a)
            piece(torch.sum, rows, -1)
            piece(rows.t().contiguous)
            piece(torch.softmax, rows, -1)
            piece(F.layer_norm, rows, (1024,))
            piece(torch.cat, (rows, rows))
            piece(rows.index_select, 0, torch.arange(0, len(rows), 2, device="cuda"))
            piece(a.float if t != torch.float32 else a.half)


def main():
    torch.manual_seed(0)
    x = torch.randn(1 << 27, device="cuda")
    weights = [torch.nn.Parameter(x[:1 << p].clone()) for p in (10, 14, 18, 20, 22, 24, 26)]
    for w in weights:
        w.grad = torch.ones_like(w)
    optimizer = torch.optim.AdamW(weights, fused=True)
    for _ in range(REPETITIONS):
        piece = Pieces()
        products(piece, x)
        attention(piece, x)
        moved(piece, x)
        optimizer.step()
        torch.cuda.synchronize()


main()
