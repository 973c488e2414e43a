# SPDX-License-Identifier: Apache-2.0
"""huggingface.py - for the Trainer of transformers:

    from vramcast.huggingface import VramcastCallback
    trainer = Trainer(..., callbacks=[VramcastCallback()])
"""
from __future__ import annotations

from typing import Any, Optional

from transformers import TrainerCallback  # type: ignore[import-not-found,unused-ignore]

from .phases import Phases


class VramcastCallback(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Tells the recorder of training, evaluation, steps, batch size and length. With
    `gpu="rtx4090"` the script is dry-run on that card before it trains, and raises DoesNotFit
    instead of training into an out-of-memory."""

    def __init__(self, gpu: Optional[str] = None) -> None:
        self.phases = Phases(gpu)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.phases.begin({"batch": args.per_device_train_batch_size,
                           "accumulate": args.gradient_accumulation_steps,
                           "eval_batch": args.per_device_eval_batch_size})

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.phases.enter("train")

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.phases.step()

    def on_prediction_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.phases.enter("evaluate")

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.phases.enter(None)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.phases.enter(None)
