# SPDX-License-Identifier: Apache-2.0
"""recording.py - what a program tells the recorder about itself. Under `vramcast record` and
`vramcast dryrun` these calls reach the tracer; elsewhere they do nothing, so they may stay."""
from __future__ import annotations

import ctypes
import functools
import importlib
import os
import sys
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Callable, Iterator, Optional, Type, TypeVar, Union

from . import program
from .errors import VramcastError

F = TypeVar("F", bound=Callable[..., Any])
_library: Optional[ctypes.CDLL] = None


def _tracer(name: str) -> Optional[Any]:
    """The function of the preloaded tracer, or None. Older ones lack some."""
    global _library
    if _library is None:
        _library = ctypes.CDLL(None)
    return getattr(_library, "vramcast_" + name, None)


def is_recorded() -> bool:
    """Is this process being recorded?

    >>> vramcast.is_recorded()
    False
    """
    return _tracer("mark") is not None


def step() -> None:
    """A training step ends here. PyTorch's own optimizers are seen without it.

    >>> vramcast.step()
    """
    call = _tracer("step")
    if call is not None:
        call()


def mark(name: str) -> None:
    """A named instant.

    >>> vramcast.mark("data loaded")
    """
    call = _tracer("mark")
    if call is not None:
        call(ctypes.c_char_p(name.encode()))


@contextmanager
def region(name: str) -> Iterator[None]:
    """A named range, as NVTX has them: `with region("forward"): ...`. PyTorch's own NVTX calls are
    used where PyTorch is there; the tracer sees them.

    >>> with vramcast.region("forward"):
    ...     pass
    """
    torch = sys.modules.get("torch")
    nvtx = getattr(getattr(torch, "cuda", None), "nvtx", None)
    pushed = False
    if nvtx is not None and is_recorded():
        try:
            nvtx.range_push(name)
            pushed = True
        except (RuntimeError, AttributeError):  # a build without NVTX
            pass
    if not pushed:
        mark(name)
    try:
        yield
    finally:
        if pushed and nvtx is not None:
            nvtx.range_pop()


def start() -> bool:
    """Recording goes on, where the tracer was told to wait. False: there is nobody to tell.

    >>> vramcast.start()
    False
    """
    call = _tracer("start")
    if call is not None:
        call()
    return call is not None


def stop() -> bool:
    """Recording pauses. False: there is nobody to tell.

    >>> vramcast.stop()
    False
    """
    call = _tracer("stop")
    if call is not None:
        call()
    return call is not None


def dump(path: Union[None, str, "os.PathLike[str]"] = None) -> bool:
    """What the tracer keeps is written now, to `path` where one is given. False: there is nobody to
    tell.

    >>> vramcast.dump("so-far.vct")
    False
    """
    call = _tracer("dump")
    if call is not None:
        call(None if path is None else ctypes.c_char_p(os.fsencode(path)))
    return call is not None


class record:
    """Records what is done inside: `with record("run.pickle"): train()`, or `@record("run.pickle")`.

    Under `vramcast record` the tracer records already: it is told where the part begins and ends.
    Elsewhere PyTorch's own memory history is switched on, and its snapshot is written to `path`,
    also when the part ends with an exception, and what the program is beside it. `how` says which it was: "tracer", "pytorch" or
    "nothing" (no CUDA here). Begin before the model is made, so that nothing of it is missed.

    >>> with vramcast.record("part.pickle") as part:
    ...     pass
    >>> part.how
    'nothing'
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"] = "vramcast.pickle",
                 max_entries: int = 1_000_000) -> None:
        self.path = os.fspath(path)
        self.max_entries = max_entries
        self.how = "nothing"

    def __enter__(self) -> "record":
        if is_recorded():
            self.how = "tracer"
            start()
            mark("record " + self.path)
            return self
        memory = _memory()
        if memory is not None:
            memory._record_memory_history(max_entries=self.max_entries)
            self.how = "pytorch"
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if self.how == "tracer":
            mark("end of " + self.path)
            stop()
        elif self.how == "pytorch":
            memory = _memory()
            if memory is None:
                raise VramcastError("CUDA went away while its memory was recorded")
            memory._dump_snapshot(self.path)
            memory._record_memory_history(enabled=None)
            _describe_program(self.path + ".program")

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            with record(self.path, self.max_entries):
                return function(*args, **kwargs)
        return recorded  # type: ignore[return-value]


def _describe_program(path: str) -> None:
    """A snapshot does not say what made it; `vramcast sim` runs that again. A console makes none."""
    line = getattr(sys, "orig_argv", None) or [sys.executable, *sys.argv]  # from Python 3.10 on
    if sys.argv[:1] in ([""], ["-c"]):
        return
    try:
        program.run(["record", "--describe", path, "--", sys.executable, *line[1:]])
    except (VramcastError, OSError):  # the run matters more
        pass


def _memory() -> Optional[Any]:
    """torch.cuda.memory, where there is a card."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return None
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_available():
        return None
    return cuda.memory
