# SPDX-License-Identifier: Apache-2.0
"""train_lightning.py - two epochs of a linear layer with validation, by the Trainer of Lightning."""
import torch

from lightning.pytorch import LightningModule, Trainer
from vramcast.lightning import VramcastCallback


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(256, 256)

    def training_step(self, batch, index):
        return self.layer(batch).pow(2).mean()

    def validation_step(self, batch, index):
        self.layer(batch)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


def data():
    return torch.utils.data.DataLoader(torch.randn(64, 256), batch_size=16)


Trainer(max_epochs=2, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
        callbacks=[VramcastCallback()]).fit(Model(), data(), data())
