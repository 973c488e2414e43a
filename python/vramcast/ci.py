# SPDX-License-Identifier: Apache-2.0
"""ci.py - budgets of memory in CI: `python -m vramcast.ci measure` dry-runs what .vramcast.toml
names, `python -m vramcast.ci compare BASE HEAD` says what a change costs.

    [[run]]
    name = "train"
    command = "python train.py --batch 8"   # or trace = "run.vct", a recording that is kept
    gpu = "t4"
    limit = "12GiB"                         # of the card at most; or a percentage of it
    tolerance = "2%"                        # how much more than before a change may need
    torch = ["2.10", "2.11"]                # each of them (a version, or the file of a wheel); else the one that is installed

Nothing here depends on a clock, a GPU or the load of a machine: the same two commits give the same
answer each time."""
from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, List, Optional
from xml.sax.saxutils import escape, quoteattr

from .answers import Diff, Sim
from .errors import UsageError, VramcastError
from .questions import diff, dryrun, sim
from .sizes import gib, percent, size

BUDGETS = ".vramcast.toml"
FIELDS = ("name", "command", "trace", "gpu", "limit", "tolerance", "params", "torch")


@dataclass(frozen=True)
class Budget:
    name: str
    gpu: str
    command: Optional[str]
    trace: Optional[str]
    limit: Optional[str]
    tolerance: float
    params: Dict[str, object]
    torch: Optional[str] = None
    of: Optional[str] = None  # its name before the release; None: one alone

    def limit_of(self, capacity: int) -> Optional[int]:
        if self.limit is None:
            return None
        if self.limit.strip().endswith("%"):
            return int(percent(self.limit, "limit") * capacity)
        return size(self.limit)


def _toml(path: Path) -> Dict[str, Any]:
    try:
        import tomllib as reader
    except ImportError:  # before Python 3.11
        try:
            import tomli as reader  # type: ignore[import-not-found,no-redef,unused-ignore]
        except ImportError:
            raise VramcastError(f"reading {path} takes Python 3.11, or the package tomli") from None
    try:
        with open(path, "rb") as file:
            return dict(reader.load(file))
    except OSError as error:
        raise VramcastError(f"cannot open {path}: {error.strerror}") from None
    except ValueError as error:
        raise VramcastError(f"{path}: {error}") from None


def budgets(path: Path) -> List[Budget]:
    """What the file asks for; every mistake is one sentence."""
    rows = _toml(path).get("run")
    if not isinstance(rows, list) or not rows:
        raise UsageError(f"{path}: no [[run]] in it")
    out: List[Budget] = []
    for number, row in enumerate(rows, 1):
        name = str(row.get("name", f"run {number}"))
        strange = [k for k in row if k not in FIELDS]
        if strange:
            raise UsageError(f"{path}: {name}: there is no field '{strange[0]}'; there are "
                             + ", ".join(FIELDS))
        if ("command" in row) == ("trace" in row):
            raise UsageError(f"{path}: {name}: wants a command or a trace, and one of the two")
        if "gpu" not in row:
            raise UsageError(f"{path}: {name}: wants a gpu ('vramcast gpus' lists them)")
        budget = Budget(name, str(row["gpu"]), row.get("command"), row.get("trace"),
                        None if row.get("limit") is None else str(row["limit"]),
                        percent(row.get("tolerance", "2%")), dict(row.get("params", {})))
        budget.limit_of(1)
        if any(b.name == name for b in out) or "/" in name:
            raise UsageError(f"{path}: {name}: names differ, and have no slash")
        releases = row.get("torch", [])
        if not isinstance(releases, list) or (releases and "trace" in row):
            raise UsageError(f"{path}: {name}: torch is a list of versions, and goes with a command")
        out += [replace(budget, name=f"{name} torch {Path(str(v)).name}", torch=str(v), of=name) for v in releases] or [budget]
    return out


def _known_before(root: Path, file: Path) -> List[str]:
    """The runs that the tree before the change has. A file of budgets that it cannot read names none."""
    old = root / file
    try:
        return [b.name for b in budgets(old)] if not file.is_absolute() and old.exists() else []
    except VramcastError:
        return []


def measure(root: Path, out: Path, file: Path, before: bool = False) -> None:
    """A recording of each run of the tree at `root`, in the folder `out`. The card that a dry run
    plays has room for everything, so that the recording is whole; what fits is said later. `before`: the tree is that
    before the change, which may lack a run."""
    out.mkdir(parents=True, exist_ok=True)
    known = _known_before(root, file) if before else None
    for budget in budgets(file):
        if known is not None and budget.name not in known:
            print(f"{budget.name} is new")
            continue
        to = out / f"{budget.name}.vct"
        if budget.trace is not None:
            shutil.copyfile(root / budget.trace, to)
            continue
        dryrun(budget.command or "", gpu=budget.gpu, capacity="1TiB", stacks="py", output=to,
               cwd=root, torch=budget.torch, param=[f"{k}={v}" for k, v in budget.params.items()])


@dataclass(frozen=True)
class Finding:
    """What is to be said of one run; `code` is the exit code that it wants."""
    budget: Budget
    head: Sim
    change: Optional[Diff]
    code: int
    sentence: str


def grew(change: Diff) -> str:
    """What grew most, by kind, and the convolution with more workspace: "" where nothing did."""
    more = max(change.json["kinds"], key=lambda k: k["b"] - k["a"], default=None)
    words = f" ({more['kind']})" if more and more["b"] > more["a"] else ""
    for one in change.json["convolutions"]:
        if (one["workspace_b"] or 0) > (one["workspace_a"] or 0):
            return f"{words}; convolution {one['convolution']}: workspace {gib(one['workspace_b'])}"
    return words


def source(change: Diff) -> str:
    """The line that holds most of what is new, and its kind; "" where there is none."""
    return f"; most of what is new comes from {change.line}{grew(change)}" if change.line else ""


def releases(head: Path, rows: List[Budget]) -> List[str]:
    """What each release of PyTorch needs more of a run than the one before it, if that is more than may be."""
    out = []
    for one, other in zip(rows, rows[1:]):
        if one.of is None or one.of != other.of:
            continue
        change = diff(head / f"{one.name}.vct", head / f"{other.name}.vct")
        if change.growth > other.tolerance * change.a_reserved:
            out.append(f"{other.name} needs {gib(change.growth)} more than {one.name} "
                       f"(+{100 * change.growth / change.a_reserved:.1f} %){source(change)}")
    return out


def judge(budget: Budget, base: Path, head: Path) -> Finding:
    """The worst that there is to say, in one sentence that names the line."""
    answer = sim(head, gpu=budget.gpu, no_advice=True)
    run = answer.runs[0]
    change = diff(base, head) if base.exists() else None
    limit = budget.limit_of(run.capacity)
    where = source(change) if change else ""
    needs = f"{budget.name} needs {gib(run.peak_used)} on {budget.gpu}"
    if run.undecided:
        return Finding(budget, answer, change, 6, f"{budget.name} may not fit {budget.gpu}{where}")
    if not run.fits:
        return Finding(budget, answer, change, 3,
                       f"{budget.name} runs out of memory on {budget.gpu}{where}")
    if limit is not None and run.peak_used > limit:
        return Finding(budget, answer, change, 4, f"{needs}, and its limit is {gib(limit)}{where}")
    if change and change.growth > budget.tolerance * change.a_reserved:
        share = 100 * change.growth / change.a_reserved
        return Finding(budget, answer, change, 4,
                       f"{budget.name} needs {gib(change.growth)} more than before (+{share:.1f} %, "
                       f"{100 * budget.tolerance:g} % are allowed){where}")
    return Finding(budget, answer, change, 0, f"{needs}, and fits")


def markdown(findings: List[Finding], between: List[str]) -> str:
    bad = [f for f in findings if f.code]
    lines = ["### GPU memory", ""]
    lines += [f"- :x: {f.sentence}" for f in bad] or ["All runs fit their budgets."]
    lines += ["", *(f"- {sentence}" for sentence in between)] if between else []
    lines += ["", "| run | card | before | now | change | of the card | verdict |",
              "|---|---|--:|--:|--:|--:|---|"]
    for f in findings:
        run, change = f.head.runs[0], f.change
        before = gib(change.a_reserved) if change else "new"
        grew = f"{100 * change.growth / change.a_reserved:+.1f} %" if change and change.a_reserved \
            else ""
        lines.append(f"| {f.budget.name} | {f.budget.gpu} | {before} | {gib(run.peak_reserved)} | "
                     f"{grew} | {100 * run.peak_used / run.capacity:.1f} % | {run.verdict} |")
    for f in findings:
        rows = [r for r in f.change.rows() if r["live_a"] != r["live_b"]] if f.change else []
        if rows:
            lines += ["", f"<details><summary>{f.budget.name}: what holds the memory at the peak"
                      "</summary>", "", "| where | before | now |", "|---|--:|--:|"]
            lines += [f"| `{r['site'] or 'no call site recorded'}` | {gib(r['live_a'])} | "
                      f"{gib(r['live_b'])} |" for r in rows]
            lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def junit(findings: List[Finding]) -> str:
    cases = []
    for f in findings:
        name = f'<testcase classname="vramcast.{escape(f.budget.gpu)}" name={quoteattr(f.budget.name)}'
        cases.append(f"  {name}><failure message={quoteattr(f.sentence)}/></testcase>" if f.code
                     else f"  {name}/>")
    bad = sum(1 for f in findings if f.code)
    return ('<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<testsuite name="vramcast" tests="{len(findings)}" failures="{bad}">\n'
            + "\n".join(cases) + "\n</testsuite>\n")


def badge(findings: List[Finding]) -> str:
    """What shields.io draws from a file of its form "endpoint"."""
    worst = max(findings, key=lambda f: f.head.runs[0].peak_used / f.head.runs[0].capacity)
    run = worst.head.runs[0]
    return json.dumps({"schemaVersion": 1, "label": f"memory on {worst.budget.gpu}",
                       "message": f"{gib(run.peak_used)} of {gib(run.capacity)}",
                       "color": "red" if any(f.code for f in findings) else "green"}) + "\n"


def compare(base: Path, head: Path, file: Path) -> List[Finding]:
    return [judge(b, base / f"{b.name}.vct", head / f"{b.name}.vct") for b in budgets(file)]


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m vramcast.ci", description=(__doc__ or "").split("\n")[0])
    commands = parser.add_subparsers(dest="what", required=True)
    one = commands.add_parser("measure", help="record every run of a tree")
    one.add_argument("out", type=Path, help="the folder for the recordings")
    one.add_argument("--tree", type=Path, default=Path("."), help="the tree to run in [.]")
    one.add_argument("--before", action="store_true", help="leave out the runs that its own budgets do not name")
    two = commands.add_parser("compare", help="say what a change costs; exit 3, 4 or 6 when too much")
    two.add_argument("base", type=Path)
    two.add_argument("head", type=Path)
    for name in ("markdown", "junit", "badge"):
        two.add_argument("--" + name, type=Path, metavar="FILE")
    for command in (one, two):
        command.add_argument("--budgets", type=Path, metavar="FILE", default=Path(BUDGETS))
    return parser


def main(words: Optional[List[str]] = None) -> int:
    given = _arguments().parse_args(words)
    try:
        if given.what == "measure":
            measure(given.tree, given.out, given.budgets, given.before)
            return 0
        findings = compare(given.base, given.head, given.budgets)
        between = releases(given.head, budgets(given.budgets))
    except VramcastError as error:
        print(f"vramcast: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    for name, text in (("markdown", lambda f: markdown(f, between)), ("junit", junit), ("badge", badge)):
        path = getattr(given, name)
        if path is not None:
            path.write_text(text(findings))
    for f in findings:
        if f.code and os.environ.get("GITHUB_ACTIONS"):
            print(f"::error title=GPU memory::{f.sentence}")
        else:
            print(f.sentence)
    print("\n".join(between), end="\n" if between else "")
    return max((f.code for f in findings), default=0, key=[0, 6, 4, 3].index)


if __name__ == "__main__":
    sys.exit(main())
