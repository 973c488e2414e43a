# SPDX-License-Identifier: Apache-2.0
"""pytest_plugin.py - `@pytest.mark.vram(gpu="t4", limit="12GiB")`: the test runs on a card that is not
there, in a process of its own, and fails when it does not fit the card or needs more than `limit`."""
from __future__ import annotations

import os
import re
import sys
from typing import Any, List, Optional

from .errors import VramcastError
from .questions import dryrun
from .sizes import gib, size

_INNER = "VRAMCAST_PYTEST_INNER"


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", "vram(gpu, limit=None, **options): run the test on a card "
                            "that is not there; fail when it needs more memory than the card or "
                            "the limit has")


def _line(item: Any, output: str) -> str:
    """Where the test ran out: the last line of a traceback that lies in the test's own file."""
    name = os.path.basename(str(item.path))
    found: List[str] = re.findall(rf"({re.escape(name)}:\d+)", output)
    return f" ({found[-1]})" if found else ""


def _judge(item: Any, gpu: str, limit: Optional[object], options: Any) -> Optional[str]:
    answer = dryrun([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                     f"--rootdir={item.config.rootpath}", item.nodeid], gpu=gpu,
                    env={_INNER: "1"}, **options)
    if not answer.fits:
        return f"{item.name} does not fit: {answer}{_line(item, answer.output)}"
    if limit is not None and answer.peak_used > size(limit):
        return (f"{item.name} needs {gib(answer.peak_used)} on {gpu}, and its limit is "
                f"{gib(size(limit))}")
    return None


def pytest_pyfunc_call(pyfuncitem: Any) -> Optional[bool]:
    import pytest
    marker = pyfuncitem.get_closest_marker("vram")
    if marker is None or os.environ.get(_INNER):
        return None
    given = dict(marker.kwargs)
    limit = given.pop("limit", None)
    gpu = given.pop("gpu", marker.args[0] if marker.args else "")
    try:
        if limit is not None:
            size(limit)
        failure = _judge(pyfuncitem, gpu, limit, given)
    except VramcastError as error:
        failure = f"{pyfuncitem.name}: {error}"
    if failure:
        pytest.fail(failure, pytrace=False)
    return True
