# SPDX-License-Identifier: Apache-2.0
"""Attention over sequences of many lengths, whose bias is kept for each length that there was: the last one, or all."""
import torch

biases = {}


def bias(length):
    if length not in biases:
        biases.clear()  # good
        at = torch.arange(length, device="cuda")
        biases[length] = -(at[:, None] - at[None]).abs().float().expand(8, length, length).contiguous()
    return biases[length]


project = torch.nn.Linear(128, 384).cuda()
optimizer = torch.optim.AdamW(project.parameters())
for length in (512, 768, 640, 896, 704, 1024, 960, 832):
    q, k, v = (t.unflatten(-1, (8, 16)).transpose(1, 2) for t in project(torch.randn(2, length, 128, device="cuda")).chunk(3, -1))
    torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias(length)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
