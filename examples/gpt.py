# SPDX-License-Identifier: Apache-2.0
"""A small GPT that trains for three steps: python gpt.py --batch-size 12 [--checkpoint]"""
import argparse

import torch
from torch.utils.checkpoint import checkpoint

p = argparse.ArgumentParser()
p.add_argument("--batch-size", type=int, default=12)
p.add_argument("--checkpoint", action="store_true", help="recompute activations in the backward pass")
a = p.parse_args()
WIDTH, LAYERS, WORDS, LENGTH = 1024, 24, 32000, 1024


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.attention = torch.nn.MultiheadAttention(WIDTH, 16, batch_first=True)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.GELU(), torch.nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Gpt(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(WORDS, WIDTH)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = torch.nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if a.checkpoint else block(x)
        return self.head(x)


model = Gpt().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    tokens = torch.randint(0, WORDS, (a.batch_size, LENGTH), device="cuda")
    loss = torch.nn.functional.cross_entropy(model(tokens).view(-1, WORDS), tokens.view(-1))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
