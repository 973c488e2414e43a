# SPDX-License-Identifier: Apache-2.0
"""lightning.py - for the Trainer of Lightning:

    from vramcast.lightning import VramcastCallback
    trainer = Trainer(..., callbacks=[VramcastCallback()])
"""
from __future__ import annotations

from typing import Any, Optional

from lightning.pytorch import Callback  # type: ignore[import-not-found,unused-ignore]

from .phases import Phases


class VramcastCallback(Callback):  # type: ignore[misc,unused-ignore]
    """Tells the recorder of training, validation, steps and batch size. With `gpu="rtx4090"` the
    script is dry-run on that card before it trains, and raises DoesNotFit instead of training into
    an out-of-memory."""

    def __init__(self, gpu: Optional[str] = None) -> None:
        self.phases = Phases(gpu)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        loader = getattr(trainer, "train_dataloader", None)
        self.phases.begin({"batch": getattr(loader, "batch_size", None),
                           "accumulate": getattr(trainer, "accumulate_grad_batches", None)})

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self.phases.enter("train")

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any,
                           batch_idx: int) -> None:
        self.phases.step()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self.phases.enter("evaluate")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self.phases.enter(None)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self.phases.enter(None)
