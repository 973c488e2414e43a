# SPDX-License-Identifier: Apache-2.0
"""pipeline.py MODEL [MICRO]: one rank trains on micro-batches of 8 as they are; several ranks split the layers
between them (torch.distributed.pipelining, 1F1B) and take MICRO such micro-batches in a step."""
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, WORDS, LENGTH, LAYERS = {"gpt": (512, 8192, 512, 8), "wide": (1024, 4096, 256, 12)}[sys.argv[1]]
RANK, RANKS = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.fc, self.out = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, 8, c // 8).transpose(1, 2) for y in self.qkv(self.n1(x)).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.out(F.gelu(self.fc(self.n2(x))))


class Stage(nn.Module):
    """The layers of one rank: the first has the words, the last the head."""
    def __init__(self, rank, ranks):
        super().__init__()
        each = LAYERS // ranks
        self.words = nn.Embedding(WORDS, WIDTH) if rank == 0 else None
        self.blocks = nn.ModuleList(Block() for _ in range(each))
        self.head = nn.Linear(WIDTH, WORDS, bias=False) if rank == ranks - 1 else None

    def forward(self, x):
        if self.words is not None:
            x = self.words(x)
        for block in self.blocks:
            x = block(x)
        return x if self.head is None else self.head(x)


def loss_of(out, target):
    return F.cross_entropy(out.flatten(0, 1), target.flatten())


micro = int(sys.argv[2]) if len(sys.argv) > 2 else 1
device = torch.device("cuda", RANK)
torch.cuda.set_device(device)
model = Stage(RANK, RANKS).to(device)
optimizer = torch.optim.AdamW(model.parameters())
if RANKS > 1:
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B
    torch.distributed.init_process_group("nccl", device_id=device)
    # Shapes are said, not asked for: a null GPU carries no data between ranks.
    words = torch.empty(8, LENGTH, dtype=torch.int64, device="meta")
    between, logits = (torch.empty(8, LENGTH, n, device="meta") for n in (WIDTH, WORDS))
    stage = PipelineStage(model, RANK, RANKS, device, input_args=(words if RANK == 0 else between,),
                          output_args=(logits if RANK == RANKS - 1 else between,))
    schedule = Schedule1F1B(stage, micro, loss_fn=loss_of)
for _ in range(3):
    tokens = torch.randint(0, WORDS, (8 * micro, LENGTH), device=device)
    if RANKS == 1:
        loss_of(model(tokens), tokens).backward()
    elif RANK == 0:
        schedule.step(tokens)
    elif RANK == RANKS - 1:
        schedule.step(target=tokens)
    else:
        schedule.step()
    optimizer.step()
    optimizer.zero_grad()
print("done", torch.cuda.max_memory_allocated() >> 20, torch.cuda.max_memory_reserved() >> 20)
if RANKS > 1:
    torch.cuda.synchronize()
    torch.distributed.destroy_process_group()
