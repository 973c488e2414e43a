# SPDX-License-Identifier: Apache-2.0
"""__main__.py - `python -m vramcast` and the script `vramcast`: the program itself takes over."""
from __future__ import annotations

import os
import sys
from typing import NoReturn

from .errors import VramcastError
from .program import path


def main() -> NoReturn:
    try:
        program = path()
    except VramcastError as error:
        sys.exit(f"vramcast: {error}")
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
