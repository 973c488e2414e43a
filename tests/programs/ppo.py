# SPDX-License-Identifier: Apache-2.0
"""Proximal policy optimisation: 64 episodes are played, then learnt from in batches of --batch, twice."""
import torch
import torch.nn.functional as F
from torch import nn

from common import arguments, autocast, optimizer, place

a = arguments(batch=8, episodes=64, seq=64, steps=3)


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.eye = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Flatten(),
                                 nn.Linear(64 * 36, 256), nn.ReLU())
        self.act, self.value = nn.Linear(256, 6), nn.Linear(256, 1)

    def forward(self, x):
        y = self.eye(x)
        return self.act(y), self.value(y).squeeze(-1)


agent = place(a, Agent())
opt = optimizer(a, agent)
for _ in range(a.steps):
    seen = torch.zeros(a.seq, a.episodes, 4, 64, 64, device="cuda", dtype=torch.uint8)
    did, said, got = [], [], []
    with torch.no_grad(), autocast(a, True):
        for t in range(0, a.seq, 8):
            scores, value = agent(seen[t].float() / 255)
            did.append(torch.randint(0, 6, (a.episodes,)).cuda())
            said.append(scores.log_softmax(-1).gather(1, did[-1][:, None]).squeeze(1))
            got.append(value)
    for _ in range(2):
        for part in torch.randperm(a.episodes).split(a.batch):
            part = part.cuda()
            with autocast(a):
                scores, value = agent(seen[::8, part].flatten(0, 1).float() / 255)
                p = scores.log_softmax(-1).gather(1, torch.stack(did)[:, part].flatten()[:, None]).squeeze(1)
                ratio = (p - torch.stack(said)[:, part].flatten()).exp()
                loss = -torch.min(ratio, ratio.clamp(0.8, 1.2)).mean() + F.mse_loss(value, torch.ones_like(value))
            loss.backward()
            opt.step()
            opt.zero_grad()
