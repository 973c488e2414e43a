# SPDX-License-Identifier: Apache-2.0
"""program.py - finds the program and runs it. Nothing else of the package starts a process of it."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from .errors import UsageError, VramcastError

Document = Dict[str, Any]
Paths = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]
Names = Union[None, str, Sequence[str]]
Values = Optional[Mapping[str, object]]


def path() -> str:
    """The program: $VRAMCAST, else the one in the wheel, else that of a build tree around this
    file, else the one on PATH."""
    here = Path(__file__).resolve().parent
    given = os.environ.get("VRAMCAST")
    for place in (given, str(here / "native" / "vramcast"),
                  str(here.parent.parent / "build" / "vramcast"), shutil.which("vramcast")):
        # A script that only calls this package would call itself for ever.
        if place and os.access(place, os.X_OK) and not _is_script(place):
            return str(Path(place).resolve())
    raise VramcastError("the program vramcast is not here; install a wheel that has it, or let "
                        "VRAMCAST name it")


def _is_script(place: str) -> bool:
    with open(place, "rb") as file:
        return file.read(2) == b"#!"


def sentence(stderr: str) -> str:
    """What the program says last, without its name in front."""
    lines = [line for line in stderr.splitlines() if line.startswith("vramcast")]
    last = lines[-1] if lines else stderr.strip()
    head, colon, rest = last.partition(": ")
    return rest if colon and head.startswith("vramcast") else last


def run(words: Sequence[str], text: Optional[str] = None,
        answers: Sequence[int] = (0, 3, 4, 5, 6)) -> str:
    """Runs `vramcast WORDS...` and returns what it writes. A code that is no answer is raised."""
    done = subprocess.run([path(), *words], input=text, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL if text is None else None)
    if done.returncode in answers:
        return done.stdout
    what = sentence(done.stderr) or f"vramcast {words[0]} ended with code {done.returncode}"
    raise (UsageError if done.returncode == 2 else VramcastError)(what)


def ask(words: Sequence[str], text: Optional[str] = None) -> Document:
    """The same for a command that has --json."""
    document = json.loads(run([words[0], "-q", "--json", *words[1:]], text))
    if not isinstance(document, dict):
        raise VramcastError(f"vramcast {words[0]} wrote no JSON object")
    return document


def paths(given: Paths) -> List[str]:
    if isinstance(given, (str, os.PathLike)):
        return [os.fspath(given)]
    return [os.fspath(p) for p in given]


def options(given: Mapping[str, object], set: Optional[Mapping[str, object]] = None,  # noqa: A002
            ) -> List[str]:
    """Keyword arguments as options: capacity="24GiB" is --capacity 24GiB; True is a flag; a list
    repeats the option; None leaves it out."""
    words: List[str] = []
    for name, value in given.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, (list, tuple)):
            for one in value:
                words += [option, str(one)]
        else:
            words += [option, str(value)]
    for key, number in (set or {}).items():
        words += ["--set", f"{key}={number}"]
    return words
