# SPDX-License-Identifier: Apache-2.0
"""Speech: convolutions over the waveform, a transformer, CTC; recordings have random lengths within a batch."""
import torch
import torch.nn.functional as F
from torch import nn

from common import Block, arguments, call, evaluate, place, train

a = arguments(width=192, layers=4, seq=160)


class Speech(nn.Module):
    def __init__(self):
        super().__init__()
        w = a.width
        self.ear = nn.Sequential(nn.Conv1d(1, w, 10, 5), nn.GroupNorm(1, w), nn.GELU(), nn.Conv1d(w, w, 8, 4),
                                 nn.GELU(), nn.Conv1d(w, w, 4, 4), nn.GELU())
        self.layers = nn.ModuleList(Block(w, 4, causal=False) for _ in range(a.layers))
        self.norm, self.head = nn.LayerNorm(w), nn.Linear(w, 40)

    def forward(self, x):
        x = self.ear(x[:, None]).transpose(1, 2)
        for layer in self.layers:
            x = call(a, layer, x)
        return self.head(self.norm(x))


model = place(a, Speech(), leave=("head",))


def loss_of(n):
    longest = int(torch.randint(a.seq // 2, a.seq + 1, (n,)).max()) * 80
    scores = model(torch.randn(n, longest, device="cuda"))
    said = torch.randint(1, 40, (n, 12)).cuda()
    return F.ctc_loss(scores.float().log_softmax(-1).transpose(0, 1), said, [scores.shape[1]] * n, [12] * n)


opt = train(a, model, loss_of, steps=5)
evaluate(a, model, loss_of, batch=a.eval_batch or 2 * a.batch)
