# SPDX-License-Identifier: Apache-2.0
"""A language model of three LSTM layers, evaluated after each epoch; its gradients are kept between steps."""
import torch
from torch import nn

WORDS, WIDTH, LENGTH, BATCH = 4000, 512, 64, 32


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.drop = nn.Embedding(WORDS, WIDTH), nn.Dropout(0.2)
        self.lstm = nn.LSTM(WIDTH, WIDTH, 3, batch_first=True, dropout=0.2)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, x):
        return self.head(self.drop(self.lstm(self.drop(self.embed(x)))[0]))


def main():
    model = Words().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(2):
        model.train()
        for _ in range(3):
            x = torch.randint(0, WORDS, (BATCH, LENGTH), device="cuda")
            optimizer.zero_grad(set_to_none=False)
            nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten()).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        model.eval()
        with torch.no_grad():
            x = torch.randint(0, WORDS, (2 * BATCH, LENGTH), device="cuda")
            nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten())


main()
