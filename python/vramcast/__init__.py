# SPDX-License-Identifier: Apache-2.0
"""vramcast: does a PyTorch training run fit into the memory of a GPU?

    import vramcast
    answer = vramcast.sim("run.vct", gpu="rtx4090")
    print(answer.fits, answer.peak_reserved, answer.interval)
"""
from . import program as _program
from .answers import Advice, Changes, Diff, Dryrun, Explanation, Fit, OutOfMemory, Run, Sim
from .errors import DoesNotFit, UsageError, VramcastError
from .questions import check, diff, dryrun, explain, fit, sim
from .recording import dump, is_recorded, mark, record, region, start, step, stop
from .tables import Table, table
from .trackers import log

__all__ = [
    "Advice", "Changes", "Diff", "DoesNotFit", "Dryrun", "Explanation", "Fit", "OutOfMemory", "Run", "Sim",
    "Table", "UsageError", "VramcastError", "check", "diff", "dryrun", "dump", "explain", "fit",
    "is_recorded", "log", "mark", "record", "region", "sim", "start", "step", "stop", "table",
]


def __getattr__(name: str) -> str:
    """`__version__` is that of the program which answers."""
    if name != "__version__":
        raise AttributeError(f"module 'vramcast' has no attribute {name!r}")
    return _program.run(["--version"]).split()[-1]
