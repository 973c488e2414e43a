# SPDX-License-Identifier: Apache-2.0
"""masked.py BATCH - a masked language model that predicts only the masked words: as many as the data
has. Recorded as tests/recordings/masked-BATCH.vct."""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

batch, words, width, vocabulary = int(sys.argv[1]), 128, 256, 8000
torch.manual_seed(0)
body = nn.Sequential(nn.Embedding(vocabulary, width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
head = nn.Linear(width, vocabulary)
model = nn.ModuleList([body, head]).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
for step in range(8):
    text = torch.randint(0, vocabulary, (batch, words))
    mask = (torch.rand(batch, words) < 0.15).nonzero().to("cuda")
    text = text.to("cuda")
    hidden = body(text)[mask[:, 0], mask[:, 1]]
    loss = F.cross_entropy(head(hidden), text[mask[:, 0], mask[:, 1]])
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    del loss, hidden, text, mask
