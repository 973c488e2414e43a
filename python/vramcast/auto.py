# SPDX-License-Identifier: Apache-2.0
"""auto.py - `import vramcast.auto` as the first line of a script records the whole script: it starts
again under `vramcast record`. $VRAMCAST_OUTPUT names the recording (vramcast.vct). Workers that the
script starts import it too; they are recorded already, and go on."""
import os
import sys

from .program import path
from .recording import is_recorded


def _again() -> None:
    line = getattr(sys, "orig_argv", None)  # from Python 3.10 on
    if line is None:
        line = [sys.executable, *sys.argv]
    if sys.argv[:1] in ([""], ["-c"]) and len(line) < 2:
        return  # a prompt, not a script
    output = os.environ.get("VRAMCAST_OUTPUT", "vramcast.vct")
    sys.stdout.flush()
    os.environ["VRAMCAST_AUTO"] = "1"
    program = path()
    os.execv(program, [program, "record", "-o", output, "--", sys.executable, *line[1:]])


if not is_recorded() and "VRAMCAST_AUTO" not in os.environ:
    _again()
