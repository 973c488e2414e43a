# SPDX-License-Identifier: Apache-2.0
"""accelerate.py - a tracker for Accelerate:

    from vramcast.accelerate import VramcastTracker
    accelerator = Accelerator(log_with=[VramcastTracker()])
    accelerator.init_trackers("run", config={"batch": 8, "seq": 512})
"""
from __future__ import annotations

from typing import Any, Dict, Optional

from accelerate.tracking import GeneralTracker  # type: ignore[import-not-found,import-untyped,unused-ignore]

from .phases import Phases


class VramcastTracker(GeneralTracker):  # type: ignore[misc,unused-ignore]
    """Tells the recorder of the parameters in `config` that are numbers, of training and of its end, and of a step with each
    `accelerator.log()`. With `gpu="rtx4090"` the script is dry-run on that card first, and raises DoesNotFit instead of
    training into an out-of-memory."""

    name = "vramcast"
    requires_logging_directory = False

    def __init__(self, gpu: Optional[str] = None) -> None:
        super().__init__()
        self.phases = Phases(gpu)

    @property
    def tracker(self) -> Phases:
        return self.phases

    def store_init_configuration(self, values: Dict[str, Any]) -> None:
        numbers = {k: v for k, v in values.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}
        self.phases.begin(numbers)

    def log(self, values: Dict[str, Any], step: Optional[int] = None, **kwargs: Any) -> None:
        self.phases.step()

    def finish(self) -> None:
        self.phases.enter(None)
