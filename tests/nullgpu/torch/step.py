# SPDX-License-Identifier: Apache-2.0
"""step.py - what a training step costs the host on the null GPU: GPT-2 small, batch 8, 1024 tokens,
AdamW, single precision. Written in plain PyTorch, or that of transformers. Prints a line of
medians over the later steps: milliseconds of CPU and of wall time, the least of both, resident MiB."""
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2)
                   for y in self.qkv(self.ln_1(x)).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1, is_causal=True)
        x = x + F.dropout(self.proj(y.transpose(1, 2).reshape(b, t, c)), 0.1)
        return x + F.dropout(self.down(F.gelu(self.up(self.ln_2(x)))), 0.1)


class Plain(nn.Module):
    def __init__(self, vocabulary=50257, positions=1024, width=768, heads=12, layers=12):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, tokens):
        x = F.dropout(self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1],
                                                               device=tokens.device)), 0.1)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln(x))
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def transformers_model():
    from transformers import GPT2Config, GPT2LMHeadModel
    model = GPT2LMHeadModel(GPT2Config()).cuda()
    return lambda x: model(input_ids=x, labels=x).loss, model


def plain_model():
    model = Plain().cuda()
    return model, model


def resident():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) >> 10 for line in f if line.startswith("VmRSS"))


def main():
    loss_of, model = transformers_model() if "hf" in sys.argv[1:] else plain_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    tokens = torch.randint(0, 50257, (8, 1024), device="cuda")
    cpu, wall = [], []
    for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 25):
        t, w = time.process_time(), time.perf_counter()
        loss = loss_of(tokens)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
        cpu.append(time.process_time() - t)
        wall.append(time.perf_counter() - w)
    cpu, wall = cpu[4:], wall[4:]
    print("step cpu %.2f wall %.2f least %.2f %.2f rss %d" % (
        1e3 * statistics.median(cpu), 1e3 * statistics.median(wall), 1e3 * min(cpu), 1e3 * min(wall),
        resident()))


main()
