# SPDX-License-Identifier: Apache-2.0
"""sizes.py - sizes as the program takes and writes them."""
from __future__ import annotations

import re
from typing import Optional

from .errors import UsageError

_UNITS = " KMGT"


def size(text: object, name: str = "limit") -> int:
    """12GiB, 12G, 12GB (powers of 1000), 12884901888."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(iB|B|)", str(text).strip())
    if found is None:
        raise UsageError(f"{name} = {text!r}: wants a size such as 12GiB")
    number, unit, ending = found.groups()
    base = 1000 if unit and ending == "B" else 1024
    return int(float(number) * base ** _UNITS.index(unit or " "))


def percent(text: object, name: str = "tolerance") -> float:
    """5% or 5 %, as a share: 0.05."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", str(text).strip())
    if found is None:
        raise UsageError(f"{name} = {text!r}: wants a percentage such as 5%")
    return float(found.group(1)) / 100


def gib(amount: Optional[int]) -> str:
    """1.25 GiB, as the program writes it."""
    if amount is None:
        return "unknown"
    value = float(amount)
    if abs(value) < 1024:
        return f"{amount} bytes"
    for unit in ("KiB", "MiB"):
        value /= 1024
        if abs(value) < 1024:
            return f"{value:.2f} {unit}"
    return f"{value / 1024:.2f} GiB"
