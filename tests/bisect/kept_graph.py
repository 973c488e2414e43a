# SPDX-License-Identifier: Apache-2.0
"""A small GPT whose losses are kept for a mean: with their graphs, or as numbers."""
import torch

model = torch.nn.Sequential(torch.nn.Embedding(4000, 256), *(torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
                                                             for _ in range(4)), torch.nn.Linear(256, 4000)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
losses = []
for step in range(6):
    tokens = torch.randint(0, 4000, (8, 256), device="cuda")
    loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    loss.backward(retain_graph=True)
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())  # good
    losses.append(loss)  # bad
print(sum(losses) / len(losses))
