# SPDX-License-Identifier: Apache-2.0
"""phases.py - what trainers tell the recorder: phases, parameters, steps. Shared by their callbacks."""
from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from typing import Mapping, Optional

from .questions import check
from .recording import is_recorded, mark, region, step


class Phases:
    """One phase at a time: the next one ends the one before."""

    def __init__(self, gpu: Optional[str] = None) -> None:
        self._gpu = gpu
        self._name: Optional[str] = None
        self._open: Optional[AbstractContextManager[None]] = None

    def begin(self, values: Mapping[str, object]) -> None:
        """A training begins with these parameters (batch, seq). With a card, the whole script is
        dry-run first, and a training that does not fit is not begun."""
        if self._gpu is not None:
            check(self._gpu)
        known = [f"{k}={v}" for k, v in values.items() if v is not None]
        if known and is_recorded():
            mark("parameters " + ",".join(known))
        self.enter("train")

    def enter(self, name: Optional[str]) -> None:
        if name == self._name:
            return
        if self._open is not None:
            self._open.__exit__(None, None, None)
        self._name, self._open = name, None
        if name is not None:
            self._open = region(name)
            self._open.__enter__()

    def step(self) -> None:
        """A step of the optimizer; PyTorch's own optimizers are seen by the recorder itself."""
        if not hasattr(sys, "_vramcast_marks"):
            step()
