# SPDX-License-Identifier: Apache-2.0
"""questions.py - the questions: sim, fit, explain, diff, dryrun. Each is one command of the program;
keyword arguments are its options, with `_` for `-` (`vramcast help sim` lists them)."""
from __future__ import annotations

import importlib
import json
import os
import pickle
import shlex
import subprocess
import sys
import tempfile
from typing import Any, Callable, Literal, Mapping, Optional, Sequence, Union, overload

from . import program
from .answers import Changes, Diff, Dryrun, Explanation, Fit, Sim
from .errors import UsageError, VramcastError
from .program import Names, Paths, Values


def sim(path: Paths, gpu: Names = None, set: Values = None,  # noqa: A002 - the option's name
        transform: Names = None, picture: bool = False, **options: object) -> Sim:
    """Does the recorded run fit, with anything changed?

    `path` is a recording, or several of one program at different values (`a.vct@batch=8`), which
    `set={"batch": 32}` extrapolates from. With `picture` the answer draws itself in a notebook.

    >>> answer = vramcast.sim("run.vct", gpu="t4")
    >>> answer.fits, answer.peak_reserved
    (True, 1897922560)
    >>> print(vramcast.sim(["gpt8.vct@batch=8", "gpt16.vct@batch=16"], gpu="l40s", set={"batch": 32}))
    l40s: Fits: 18.7 of 44.3 GiB used
    """
    words = program.options({"gpu": gpu, "transform": transform, **options}, set) + program.paths(path)
    if not picture:
        return Sim.read(program.ask(["sim", *words]))
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "picture.svg")
        document = program.ask(["sim", "-o", file, *words])
        with open(file, encoding="utf-8") as svg:
            return Sim.read(document, svg.read())


@overload
def fit(path: Paths, gpu: Names = None, *, find: Literal["anything", "checkpoint", "plan"],  # type: ignore[overload-overlap]
        set: Values = None, transform: Names = None, **options: object) -> Changes: ...  # noqa: A002


@overload
def fit(path: Paths, gpu: Names = None, find: str = "batch", set: Values = None,  # noqa: A002
        transform: Names = None, **options: object) -> Fit: ...


def fit(path: Paths, gpu: Names = None, find: str = "batch", set: Values = None,  # noqa: A002
        transform: Names = None, **options: object) -> Union[Fit, Changes]:
    """The largest value of a parameter that fits a card, from two or more recordings; with find="checkpoint", "anything"
    or "plan" what makes the run fit.

    >>> answer = vramcast.fit(["8.vct@batch=8", "16.vct@batch=16"], gpu="t4")
    >>> answer.certain <= answer.largest <= answer.possible
    True
    """
    words = program.options({"gpu": gpu, "transform": transform, "find": find, **options}, set) + program.paths(path)
    document = program.ask(["fit", *words])
    return Fit.read(document) if "find" in document else Changes.read(document)


def explain(text: Union[str, BaseException]) -> Explanation:
    """What an out-of-memory message means. Takes the text, a whole log, or the exception.

    >>> answer = vramcast.explain("CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity; "
    ...                           "9.50 GiB already allocated; 10.25 MiB free; 9.60 GiB reserved in total by PyTorch)")
    >>> answer.cause
    'fragmentation'
    """
    return Explanation.read(program.ask(["explain"], str(text) + "\n"))


def diff(a: Union[str, "os.PathLike[str]"], b: Union[str, "os.PathLike[str]"],
         **options: object) -> Diff:
    """What the run of recording `b` does differently from that of `a`.

    >>> print(vramcast.diff("8.vct", "16.vct"))
    188.00 MiB -> 206.00 MiB reserved at the peak (+9.6 %)
    """
    return Diff.read(program.ask(["diff", *program.options(options), os.fspath(a),
                                  os.fspath(b)]))


def dryrun(what: Union[str, Sequence[str], Callable[..., object]], gpu: str = "",
           args: Sequence[object] = (), kwargs: Optional[Mapping[str, object]] = None,
           output: Union[None, str, "os.PathLike[str]"] = None,
           env: Optional[Mapping[str, str]] = None,
           cwd: Union[None, str, "os.PathLike[str]"] = None, timeout: Optional[float] = None, **options: object) -> Dryrun:
    """Runs a program on a card that is not there, and says whether it fits.

    `what` is a command line, or a function that a fresh process can import: it is called there with
    `args` and `kwargs`. With `output` the recording is kept there. What the program prints is in
    `.output`; a program that fails for another reason than memory is a VramcastError.

    >>> answer = vramcast.dryrun("python train.py --batch 12", gpu="t4")
    >>> answer.fits, answer.gpu
    (True, 't4')
    >>> vramcast.dryrun("python train.py --batch 1200", gpu="t4").verdict
    'oom'
    """
    with tempfile.TemporaryDirectory() as folder:
        command = _command(what, args, dict(kwargs or {}), folder)
        report = os.path.join(folder, "report.json")
        words = [program.path(), "dryrun", *program.options({"gpu": gpu or None, **options}),
                 "--report", report]
        words += ["--output", os.path.abspath(output)] if output else ["--no-record"]
        done = subprocess.run([*words, "--", *command], stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout, cwd=cwd,
                              env=None if env is None else {**os.environ, **env})
        if not os.path.exists(report):
            kind = UsageError if done.returncode == 2 else VramcastError
            raise kind(program.sentence(done.stdout) or "the dry run wrote no verdict")
        with open(report, encoding="utf-8") as file:
            answer = Dryrun.read(json.load(file), done.stdout)
    if answer.exit_code and not answer.refused:
        last = [line for line in done.stdout.splitlines() if line.strip()][-12:]
        raise VramcastError(f"the program ended with code {answer.exit_code}, and not for lack of "
                            f"memory:\n" + "\n".join(last))
    return answer


def check(gpu: str, steps: int = 2) -> Optional[Dryrun]:
    """At the top of a script: the same script is dry-run first for a few steps, and DoesNotFit is
    raised when it would run out of memory on that card. Within a dry run it does nothing.

    >>> vramcast.check("t4").fits                                  # in train.py
    True
    """
    if "VRAMCAST_NULL_TOTAL" in os.environ:
        return None
    line = list(getattr(sys, "orig_argv", None) or [sys.executable, *sys.argv])  # from 3.10 on
    return dryrun([sys.executable, *line[1:]], gpu=gpu, steps=steps).require_fit()


# ---- a function, called in another process ----

_CALL = """import importlib, pickle, runpy, sys
file, module, name, given = sys.argv[1:5]
sys.argv[1:] = []
if file:
    space = runpy.run_path(file, run_name="__vramcast_dryrun__")
    found = space[name.split(".")[0]]
    rest = name.split(".")[1:]
else:
    found = importlib.import_module(module)
    rest = name.split(".")
for part in rest:
    found = getattr(found, part)
with open(given, "rb") as stream:
    args, kwargs = pickle.load(stream)
found(*args, **kwargs)
"""


def _command(what: Union[str, Sequence[str], Callable[..., object]], args: Sequence[object],
             kwargs: Any, folder: str) -> Sequence[str]:
    if isinstance(what, str):
        return shlex.split(what)
    if not callable(what):
        return list(what)
    module, name = getattr(what, "__module__", ""), getattr(what, "__qualname__", "")
    if not name or "<" in name:
        raise UsageError(f"dryrun cannot call {name or what!r} in another process; give it a "
                         f"function at the top level of a module, or a command line")
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None) if module == "__main__" else ""
    if file is None:
        raise UsageError(f"dryrun cannot import {name} from an interactive session; put it into a "
                         f"file and import it from there")
    if not file:
        importlib.import_module(module)
    given = os.path.join(folder, "arguments")
    with open(given, "wb") as stream:
        pickle.dump((tuple(args), kwargs), stream)
    search = os.pathsep.join([p or os.getcwd() for p in sys.path])
    return ["env", f"VRAMCAST_SEARCH={search}", sys.executable, "-c",
            "import os, sys\nsys.path[:] = os.environ.pop('VRAMCAST_SEARCH').split(os.pathsep)\n" +
            _CALL, file, module, name, given]
