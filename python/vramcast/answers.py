# SPDX-License-Identifier: Apache-2.0
"""answers.py - the answers as dataclasses. Sizes are bytes, times nanoseconds. Each has `.json`, the
whole document of `vramcast COMMAND --json`, whose fields are described in docs/reference/json.md."""
from __future__ import annotations

import html
import importlib
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple

from .errors import DoesNotFit, VramcastError
from .sizes import gib

Document = Dict[str, Any]
Interval = Tuple[int, int]
Row = Dict[str, Any]


def frame(rows: Any) -> Any:
    """A DataFrame of pandas, or of polars where pandas is not there, of rows or of columns."""
    for library in ("pandas", "polars"):
        try:
            return importlib.import_module(library).DataFrame(rows)
        except ImportError:
            continue
    raise VramcastError("to_frame() needs pandas or polars, and neither is installed")


def html_table(rows: List[Row]) -> str:
    """Rows as HTML, for a notebook; sizes in GiB and MiB."""
    if not rows:
        return "<p>nothing</p>"
    head = "".join(f"<th>{html.escape(str(k))}</th>" for k in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{html.escape(gib(v) if k in _SIZES else str(v))}</td>"
                                    for k, v in row.items()) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


_SIZES = {"bytes", "capacity", "high", "left", "live_a", "live_b", "low", "peak_allocated",
          "peak_reserved", "peak_used", "peak_used_high", "used", "used_high", "used_low"}


class _Short:
    """An answer shows itself in a line, the first of what print() would show."""

    def __repr__(self) -> str:
        first, *more = str(self).splitlines() or [""]
        return f"<{type(self).__name__}: {first}{' ...' if more else ''}>"


def _interval(pair: Any) -> Optional[Interval]:
    return (int(pair[0]), int(pair[1])) if pair else None


@dataclass(frozen=True)
class Advice:
    """A change that was simulated.

    >>> advice = vramcast.sim("big.vct", gpu="a100-40g-sxm").advice
    >>> [(a.text, a.verdict) for a in advice if a.paste][0]
    ('an optimizer with 8-bit states', 'undecided')
    """
    text: str
    how: Optional[str]
    paste: Optional[str]
    verdict: Optional[str]
    peak_reserved: Optional[int]


@dataclass(frozen=True)
class OutOfMemory:
    """The first request that was refused.

    >>> oom = vramcast.sim("run.vct", capacity="1GiB", no_advice=True).runs[0].oom
    >>> oom.request
    9437184
    """
    event: int
    request: int
    message: str
    holders: List[Row]


@dataclass(frozen=True, repr=False)
class Run(_Short):
    """One simulated run: one card, one version of PyTorch, one allocator, one setting.

    >>> [run.gpu for run in vramcast.sim("run.vct", gpu=["t4", "rtx4090"]).runs]
    ['t4', 'rtx4090']
    """
    verdict: str
    gpu: Optional[str]
    capacity: int
    peak_allocated: int
    peak_reserved: int
    peak_used: int
    interval: Optional[Interval]
    level: str
    oom: Optional[OutOfMemory]
    advice: List[Advice]
    json: Document = field(repr=False)

    @classmethod
    def read(cls, run: Document) -> "Run":
        """From a run of a document of `vramcast sim --json`.

        >>> answer = vramcast.sim("run.vct")
        >>> vramcast.Run.read(answer.json["runs"][0]) == answer.runs[0]
        True
        """
        oom = run.get("oom")
        return cls(
            run["verdict"], run["gpu"], run["capacity"], run["peak_allocated"],
            run["peak_reserved"], run["peak_used"], _interval(run.get("interval")), run["level"],
            oom and OutOfMemory(oom["event"], oom["request"], oom["message"], oom["holders"]),
            [Advice(a["text"], a.get("how"), a.get("paste"), a.get("verdict"),
                    a.get("peak_reserved")) for a in run.get("advice") or []], run)

    @property
    def fits(self) -> bool:
        """It fits, at both ends of its interval; also where only emptying the cache made it fit
        (`flushes` of the document says how often).

        >>> vramcast.sim("run.vct", gpu="t4").runs[0].fits
        True
        """
        return self.verdict in ("fits", "flushes")

    @property
    def undecided(self) -> bool:
        """One end of the interval fits and the other does not.

        >>> vramcast.sim("run.vct", gpu="t4").runs[0].undecided
        False
        """
        return self.verdict == "undecided"

    def row(self) -> Row:
        """The run as a row of a table.

        >>> vramcast.sim("run.vct", gpu="t4").runs[0].row()["verdict"]
        'fits'
        """
        low, high = self.interval or (self.peak_reserved, self.peak_reserved)
        return {"gpu": self.gpu, "torch": self.json["torch"], "model": self.json["model"],
                "conf": self.json["conf"], "verdict": self.verdict, "capacity": self.capacity,
                "peak_allocated": self.peak_allocated, "peak_reserved": self.peak_reserved,
                "low": low, "high": high, "peak_used": self.peak_used, "level": self.level}

    def __str__(self) -> str:
        said = self.json.get("cannot_tell") or self.json["findings"]["text"]["answer"]
        return f"{self.gpu or gib(self.capacity)}: {said}"


@dataclass(frozen=True, repr=False)
class Sim(_Short):
    """The answer of sim(): a Run for each combination of what was asked; the properties are those
    of the first. In a notebook it is a table, with the picture where sim() was asked for one.

    >>> vramcast.sim("run.vct", gpu="t4").trust["level"]
    'exact'
    """
    runs: List[Run]
    trust: Document
    json: Document = field(repr=False)
    picture: Optional[str] = field(default=None, repr=False)

    @classmethod
    def read(cls, document: Document, picture: Optional[str] = None) -> "Sim":
        """From a document of `vramcast sim --json`.

        >>> answer = vramcast.sim("run.vct")
        >>> vramcast.Sim.read(answer.json) == answer
        True
        """
        return cls([Run.read(r) for r in document["runs"]], document["trace"]["trust"], document,
                   picture)

    @property
    def verdict(self) -> str:
        """"fits", "flushes", "oom" or "undecided".

        >>> vramcast.sim("run.vct", capacity="1GiB").verdict
        'oom'
        """
        return self.runs[0].verdict

    @property
    def fits(self) -> bool:
        """Does the first run fit?

        >>> vramcast.sim("run.vct", gpu="t4").fits
        True
        """
        return self.runs[0].fits

    @property
    def undecided(self) -> bool:
        """Does one end of its interval fit, and the other not?

        >>> vramcast.sim("big.vct", gpu="a100-40g-sxm", transform="optimizer:to=adam8bit").undecided
        True
        """
        return self.runs[0].undecided

    @property
    def peak_reserved(self) -> int:
        """What PyTorch holds at the peak, in bytes.

        >>> vramcast.sim("run.vct").peak_reserved
        1897922560
        """
        return self.runs[0].peak_reserved

    @property
    def interval(self) -> Optional[Interval]:
        """The lowest and the highest peak that are possible, where the answer is a prediction.

        >>> vramcast.sim("run.vct").interval is None
        True
        """
        return self.runs[0].interval

    @property
    def advice(self) -> List[Advice]:
        """What would have helped, and what each would do.

        >>> vramcast.sim("run.vct", capacity="1GiB").advice[0].verdict
        'fits'
        """
        return self.runs[0].advice

    def require_fit(self) -> "Sim":
        """Raises DoesNotFit unless every run fits.

        >>> vramcast.sim("run.vct", gpu="t4").require_fit().fits
        True
        """
        for run in self.runs:
            if not run.fits:
                raise DoesNotFit(str(run))
        return self

    def to_frame(self) -> Any:
        """A row for each run, as a DataFrame of pandas or polars.

        >>> list(vramcast.sim("run.vct", gpu=["t4", "l4"]).to_frame()["gpu"])    # needs pandas
        ['t4', 'l4']
        """
        return frame([r.row() for r in self.runs])

    def __str__(self) -> str:
        return "\n".join(str(r) for r in self.runs)

    def _repr_html_(self) -> str:
        return (self.picture or "") + html_table([r.row() for r in self.runs])


@dataclass(frozen=True, repr=False)
class Fit(_Short):
    """The answer of fit(): the largest value that fits. `certain` fits in any case, `possible` perhaps; `why` says
    why it is no larger.

    >>> answer = vramcast.fit(["8.vct@batch=8", "16.vct@batch=16"], gpu="t4")
    >>> answer.find, answer.level
    ('batch', 'extrapolated')
    """
    find: str
    largest: Optional[int]
    certain: Optional[int]
    possible: Optional[int]
    recommended: Optional[int]
    why: Optional[str]
    level: Optional[str]
    json: Document = field(repr=False)

    @classmethod
    def read(cls, document: Document) -> "Fit":
        """From a document of `vramcast fit --json`.

        >>> answer = vramcast.fit(["8.vct@batch=8", "16.vct@batch=16"], gpu="t4")
        >>> vramcast.Fit.read(answer.json) == answer
        True
        """
        return cls(document["find"], document["largest"], document["certain"],
                   document["possible"], document["recommended"], document["why"],
                   document.get("level"), document)

    @property
    def gpu(self) -> Optional[str]:
        """The card, None for a capacity.

        >>> vramcast.fit(["8.vct@batch=8", "16.vct@batch=16"], gpu="t4").gpu
        't4'
        """
        return self.json.get("gpu")

    @property
    def cards(self) -> "List[Fit]":
        """An answer for each card that was asked about; the first is this one.

        >>> answer = vramcast.fit(["8.vct@batch=8", "16.vct@batch=16"], gpu=["t4", "l4"])
        >>> [one.gpu for one in answer.cards]
        ['t4', 'l4']
        """
        return [Fit.read({"find": self.find, **card}) for card in self.json.get("cards") or [self.json]]

    def __str__(self) -> str:
        where = self.gpu or gib(self.json["capacity"])
        if self.json.get("cannot_tell") and self.certain != self.possible:
            return (f"largest {self.find} that fits {where}: {self.json['cannot_tell']}; certain up "
                    f"to {self.certain}")
        return f"largest {self.find} that fits {where}: {self.largest}, recommended {self.recommended}"

    def rows(self) -> List[Row]:
        """What was tried: a dictionary for each value.

        >>> answer = vramcast.fit(["8.vct@batch=8", "16.vct@batch=16"], gpu="t4", among="8,16,32")
        >>> len(answer.rows()) > 0
        True
        """
        return list(self.json["runs"])

    def to_frame(self) -> Any:
        """The same as a DataFrame of pandas or polars.

        >>> answer = vramcast.fit(["8.vct@batch=8", "16.vct@batch=16"], gpu="t4", among="8,16,32")
        >>> len(answer.to_frame()) == len(answer.rows())    # needs pandas
        True
        """
        return frame(self.rows())

    def _repr_html_(self) -> str:
        return "".join(f"<p>{html.escape(str(one))}</p>" + html_table(one.rows()) for one in self.cards)


@dataclass(frozen=True, repr=False)
class Changes(_Short):
    """The answer of fit() with find="checkpoint", "anything" or "plan": what makes the run fit, the best first. What a
    suggestion holds is in docs/reference/json.md.

    >>> answer = vramcast.fit("small.vct", find="anything", capacity="20GiB", most=60)
    >>> answer.find, len(answer.rows()) > 0
    ('anything', True)
    """
    find: str
    json: Document = field(repr=False)

    @classmethod
    def read(cls, document: Document) -> "Changes":
        """From a document of `vramcast fit --find anything --json`, or one of the others.

        >>> answer = vramcast.fit("big.vct", find="checkpoint", gpu="t4")
        >>> vramcast.Changes.read(answer.json) == answer
        True
        """
        return cls(document["schema"].split("/")[0].split("-")[-1], document)

    def rows(self) -> List[Row]:
        """A dictionary for each suggestion, with the card that it is for.

        >>> rows = vramcast.fit("big.vct", find="checkpoint", gpu=["t4", "l4"]).rows()
        >>> sorted({row["card"] for row in rows})
        ['NVIDIA L4', 'Tesla T4']
        """
        rows: List[Row] = list(self.json.get("plans") or [])
        for card in self.json.get("cards") or []:
            for kind in ("front", "nothing", "rounding", "precision", "training", "cards"):
                for one in card.get(kind) or []:
                    changes = one.get("changes") or [one]
                    rows.append({"card": card["card"], **one, "results": kind,
                                 "changes": " + ".join(c["change"] for c in changes)})
        return rows

    def to_frame(self) -> Any:
        """The same as a DataFrame of pandas or polars.

        >>> answer = vramcast.fit("big.vct", find="checkpoint", gpu="t4")
        >>> len(answer.to_frame()) == len(answer.rows())    # needs pandas
        True
        """
        return frame(self.rows())

    def __str__(self) -> str:
        return f"{len(self.rows())} suggestions of fit --find {self.find}"

    def _repr_html_(self) -> str:
        return html_table(self.rows())


@dataclass(frozen=True, repr=False)
class Explanation(_Short):
    """The answer of explain(): what an out-of-memory message says.

    >>> answer = vramcast.explain(MESSAGE)
    >>> answer.format, answer.figures["request"]
    ('F2-reserved', 20971520)
    """
    format: str
    cause: Optional[str]
    meaning: List[str]
    advice: List[str]
    figures: Dict[str, Optional[int]]
    json: Document = field(repr=False)

    @classmethod
    def read(cls, document: Document) -> "Explanation":
        """From a document of `vramcast explain --json`.

        >>> answer = vramcast.explain(MESSAGE)
        >>> vramcast.Explanation.read(answer.json) == answer
        True
        """
        figures = {k: v and v["bytes"] for k, v in (document.get("figures") or {}).items()}
        tries = document.get("try") or []
        return cls(document["format"], document.get("cause"), list(document.get("meaning") or []),
                   [f"{t['setting']}: {t['text']}" if t.get("setting") else t["text"]
                    for t in tries], figures, document)

    def __str__(self) -> str:
        return "\n".join([*self.meaning, *("- " + a for a in self.advice)])

    def to_frame(self) -> Any:
        """The figures of the message, as a DataFrame of pandas or polars.

        >>> "capacity" in list(vramcast.explain(MESSAGE).to_frame()["figure"])    # needs pandas
        True
        """
        return frame([{"figure": k, "bytes": v} for k, v in self.figures.items()])

    def _repr_html_(self) -> str:
        return (f"<p>{html.escape(' '.join(self.meaning))}</p>" +
                html_table([{"try": a} for a in self.advice]))


@dataclass(frozen=True, repr=False)
class Diff(_Short):
    """The answer of diff(): what B does differently from A.

    >>> vramcast.diff("8.vct", "16.vct").same_requests
    False
    """
    a_reserved: int
    b_reserved: int
    same_requests: bool
    sites: List[Row]
    json: Document = field(repr=False)

    @classmethod
    def read(cls, document: Document) -> "Diff":
        """From a document of `vramcast diff --json`.

        >>> answer = vramcast.diff("8.vct", "16.vct")
        >>> vramcast.Diff.read(answer.json) == answer
        True
        """
        return cls(document["a"]["run"]["peak_reserved"], document["b"]["run"]["peak_reserved"],
                   document["same_requests"], list(document["sites"]), document)

    @property
    def growth(self) -> int:
        """Bytes that B reserves above A at its peak; negative when it needs less.

        >>> vramcast.diff("8.vct", "16.vct").growth
        18874368
        """
        return self.b_reserved - self.a_reserved

    @property
    def line(self) -> Optional[str]:
        """The line of code that holds most of what B has more at the peak, where the recordings
        have call stacks.

        >>> vramcast.diff("small.vct", "big.vct").line
        'optimizer.py:75 step'
        """
        def more(site: Row) -> Tuple[int, int]:
            live, asked = site["live_at_peak"], site["asked"]
            return live["b"] - live["a"], asked["b"] - asked["a"]
        named = [s for s in self.sites if s["site"] and max(more(s)) > 0]
        return str(max(named, key=more)["site"]) if named else None

    def rows(self) -> List[Row]:
        """A dictionary for each line of code that allocates: what it asked for and what it holds at the peak.

        >>> vramcast.diff("small.vct", "big.vct").rows()[0].keys()
        dict_keys(['site', 'asked_a', 'asked_b', 'live_a', 'live_b'])
        """
        return [{"site": s["site"], "asked_a": s["asked"]["a"], "asked_b": s["asked"]["b"],
                 "live_a": s["live_at_peak"]["a"], "live_b": s["live_at_peak"]["b"]}
                for s in self.sites]

    def __str__(self) -> str:
        share = 100 * self.growth / self.a_reserved if self.a_reserved else 0.0
        return (f"{gib(self.a_reserved)} -> {gib(self.b_reserved)} reserved at the peak "
                f"({share:+.1f} %)" + (f", most of it at {self.line}" if self.line else ""))

    def to_frame(self) -> Any:
        """The same as a DataFrame of pandas or polars.

        >>> answer = vramcast.diff("small.vct", "big.vct")
        >>> len(answer.to_frame()) == len(answer.rows())    # needs pandas
        True
        """
        return frame(self.rows())

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(str(self))}</p>" + html_table(self.rows())


@dataclass(frozen=True, repr=False)
class Dryrun(_Short):
    """The answer of dryrun(): the verdict of a run on a card that is not there.

    >>> answer = vramcast.dryrun("python train.py --batch 12", gpu="t4")
    >>> answer.exit_code, answer.refused
    (0, 0)
    """
    verdict: str
    gpu: str
    capacity: int
    peak_used: int
    refused: int
    exit_code: int
    trace: Optional[str]
    output: str = field(repr=False)
    json: Document = field(repr=False)

    @classmethod
    def read(cls, document: Document, output: str) -> "Dryrun":
        """From the report of `vramcast dryrun --report`, and what the program printed.

        >>> answer = vramcast.dryrun("python train.py --batch 12", gpu="t4")
        >>> vramcast.Dryrun.read(answer.json, answer.output) == answer
        True
        """
        run = document["runs"][0]
        return cls(run["verdict"], run["gpu"], run["capacity"], run["peak_used"], run["refused"],
                   run["exit_code"], run.get("trace"), output, document)

    @property
    def fits(self) -> bool:
        """It ran to its end, and no request was refused.

        >>> vramcast.dryrun("python train.py --batch 1200", gpu="t4").fits
        False
        """
        return self.verdict == "fits" and self.exit_code == 0

    def require_fit(self) -> "Dryrun":
        """Raises DoesNotFit unless it fits.

        >>> vramcast.dryrun("python train.py --batch 12", gpu="t4").require_fit().verdict
        'fits'
        """
        if not self.fits:
            raise DoesNotFit(str(self))
        return self

    def __str__(self) -> str:
        return (f"{self.verdict} on {self.gpu}: {gib(self.peak_used)} of {gib(self.capacity)} used "
                f"at the peak")

    def to_frame(self) -> Any:
        """A row for each process, as a DataFrame of pandas or polars.

        >>> len(vramcast.dryrun("python train.py --batch 12", gpu="t4").to_frame())    # needs pandas
        1
        """
        return frame(self.json["runs"])

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(str(self))}</p>"
