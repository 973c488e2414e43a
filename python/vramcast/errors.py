# SPDX-License-Identifier: Apache-2.0
"""errors.py - what goes wrong, as exceptions. Their text is the sentence that the program says."""
from __future__ import annotations


class VramcastError(Exception):
    """Something could not be done: a file cannot be read, its content is damaged.

    >>> vramcast.sim("nope.vct")
    Traceback (most recent call last):
    vramcast.errors.VramcastError: cannot open nope.vct: No such file or directory
    """


class UsageError(VramcastError, ValueError):
    """An option, a name or a value is not understood.

    >>> vramcast.sim("run.vct", gpu="rtx40900")
    Traceback (most recent call last):
    vramcast.errors.UsageError: no gpu 'rtx40900', did you mean rtx4090? (`vramcast gpus` lists them; --capacity takes bytes)
    """


class DoesNotFit(VramcastError):
    """Raised by require_fit(): the run does not fit, or may not.

    >>> vramcast.sim("run.vct", capacity="1GiB").require_fit()
    Traceback (most recent call last):
    vramcast.errors.DoesNotFit: 1.00 GiB: Runs out of memory at event 428: 0.93 of 1 GiB in use, 9 MiB asked for
    """
