# SPDX-License-Identifier: Apache-2.0
"""What `vramcast probe` runs on a card and on the null GPU: kernels over a grid of sizes, a few times, in the same order."""
import torch
import torch.nn.functional as F

REPETITIONS = 5
SIZES = (128, 256, 512, 1024, 2048, 4096, 8192)
TYPES = (torch.bfloat16, torch.float16, torch.float32)


def products(x):
    for t in TYPES:
        for n in SIZES:
            a = x[:n * n].view(n, n).to(t)
            a @ a
            if n <= 1024:
                b = x[:16 * n * n].view(16, n, n).to(t)
                torch.bmm(b, b.transpose(1, 2))
            a[:, :128] @ a[:128, :]
            a[:128, :] @ a


def attention(x):
    for t in TYPES[:2]:
        for heads, n, width in ((16, 256, 64), (16, 1024, 64), (32, 2048, 128), (32, 8192, 128)):
            q = x[:heads * n * width].view(1, heads, n, width).to(t).requires_grad_()
            for causal in (False, True):
                F.scaled_dot_product_attention(q, q, q, is_causal=causal).sum().backward()


def moved(x):
    for t in TYPES:
        for power in range(12, 28, 2):
            a = x[:1 << power].to(t)
            rows = a.view(-1, 1024)
            b = torch.empty_like(a)
            b.copy_(a)
            F.gelu(a + b * 2)
            rows.sum(-1)
            rows.t().contiguous()
            torch.softmax(rows, -1)
            F.layer_norm(rows, (1024,))
            torch.cat((rows, rows))
            rows.index_select(0, torch.arange(0, len(rows), 2, device="cuda"))


def main():
    torch.manual_seed(0)
    x = torch.randn(1 << 27, device="cuda")
    weights = [torch.nn.Parameter(x[:1 << p].clone()) for p in (10, 14, 18, 20, 22, 24, 26)]
    for w in weights:
        w.grad = torch.ones_like(w)
    optimizer = torch.optim.AdamW(weights, fused=True)
    for _ in range(REPETITIONS):
        products(x)
        attention(x)
        moved(x)
        optimizer.step()
        torch.cuda.synchronize()


main()
