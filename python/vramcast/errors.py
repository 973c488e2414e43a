# SPDX-License-Identifier: Apache-2.0
"""errors.py - what goes wrong, as exceptions. Their text is the sentence that the program says."""
from __future__ import annotations


class VramcastError(Exception):
    """Something could not be done: a file cannot be read, its content is damaged."""


class UsageError(VramcastError, ValueError):
    """An option, a name or a value is not understood."""


class DoesNotFit(VramcastError):
    """Raised by require_fit(): the run does not fit, or may not."""
