# SPDX-License-Identifier: Apache-2.0
"""A Transformer-XL: each layer attends to what it saw before too, up to 512 places back."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, call, optimizer, autocast, place, words

a = arguments(width=256, layers=4, vocabulary=5000, memory=512, heads=4, steps=6)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv = nn.Linear(a.width, a.width), nn.Linear(a.width, 2 * a.width)
        self.o, self.n1, self.n2 = nn.Linear(a.width, a.width), nn.LayerNorm(a.width), nn.LayerNorm(a.width)
        self.up, self.down = nn.Linear(a.width, 4 * a.width), nn.Linear(4 * a.width, a.width)

    def forward(self, x, memory):
        b, t, c = x.shape
        y = self.n1(torch.cat([memory, x], 1))
        q = self.q(y[:, -t:]).view(b, t, a.heads, -1).transpose(1, 2)
        k, v = (z.view(b, y.shape[1], a.heads, -1).transpose(1, 2) for z in self.kv(y).chunk(2, -1))
        mask = torch.ones(t, y.shape[1], dtype=torch.bool, device=x.device).tril(y.shape[1] - t)
        z = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.o(z.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.n2(x))))


embed, head = place(a, nn.Embedding(a.vocabulary, a.width)), place(a, nn.Linear(a.width, a.vocabulary))
layers = place(a, nn.ModuleList(Layer() for _ in range(a.layers)))
opt = optimizer(a, [*embed.parameters(), *layers.parameters(), *head.parameters()])
memory = [torch.zeros(a.batch, 0, a.width, device="cuda") for _ in layers]
for _ in range(a.steps):
    t = words(a.batch, a.seq + 1, a.vocabulary)
    with autocast(a):
        x, seen = embed(t[:, :-1]), []
        for layer, m in zip(layers, memory):
            seen.append(torch.cat([m, x.detach()], 1)[:, -a.memory:])
            x = call(a, layer, x, m)
        loss = F.cross_entropy(head(x).flatten(0, 1), t[:, 1:].flatten())
    loss.backward()
    opt.step()
    opt.zero_grad()
    memory = seen
