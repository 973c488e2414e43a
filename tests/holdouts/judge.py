#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""judge.py - programs that no rule was written beside: what is said of values that were not recorded, beside the truth.

LIST names the programs (tests/programs/strangers.txt), FOLDER holds what record.sh full made of it, NAME/NAME_OPTIONVALUE.vct.
A line NAME-sSEED/... is the same with another seed, for those whose sizes the data decide. A line of LIST that ends with a
command line is a script of another repository (scripts.txt).

recordings: from two and three of the values others, above, between and below (EVIDENCE).
rerun: from one recording and its program, at those of the values that ASKED numbers (4: the last). Where seeds matter the program draws anew in each run, and its truths are those
of two seeds. PYTHON runs the programs.

"Inside" is not a byte outside. "Unsafe" is a truth above the upper end. A verdict that is said for certain is wrong where "fits"
is said of a card too small by one segment, and "oom" of one that is just large enough. LINES gets one line for each.
usage: VRAMCAST=build/vramcast judge.py recordings|rerun FOLDER LIST [LINES]
"""
import glob
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

SEGMENT = 2 << 20  # segments grow in such steps
PLENTY = 1 << 40
EVIDENCE = (((0, 1), (2, 3, 4)), ((0, 1, 2), (3, 4)), ((0, 2), (1, 3, 4)), ((0, 4), (1, 2, 3)), ((2, 4), (0,)))
FROM, ASKED = 2, tuple(int(i) for i in os.environ.get("ASKED", "4").split(","))
HERE = os.path.dirname(os.path.abspath(__file__))


def vramcast(*words, **own):
    return subprocess.run([os.environ.get("VRAMCAST", "build/vramcast"), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, **own)


def peak(path):
    said = json.loads(vramcast("info", "--json", "--no-verify", path).stdout)
    return max(d["peak_reserved"] for d in said["devices"])


class Program:
    def __init__(self, line, folder):
        self.script, self.knob, values, _, decided, *own = (c.strip() for c in line.split("|"))
        self.script, self.name = self.script.rsplit(".", 1)
        self.own, self.values = own[0].split(None, 1) if own else None, [int(v) for v in values.split()]
        self.drawn = decided.startswith("data")
        self.folder = folder
        self.rungs = [self.rung(v) for v in self.values]
        self.truth = [peak(r) if os.path.exists(r) else None for r in self.rungs]

    def rung(self, value, other=""):
        name = self.name + other
        return os.path.join(self.folder, name, f"{name}_{self.knob}{value:04d}.vct")

    def named(self, i):
        return f"{self.rungs[i]}@{self.knob}={self.values[i]}"

    def others(self, i):
        """The truths of other seeds."""
        return [peak(p) for p in sorted(glob.glob(self.rung(self.values[i], "-s*")))]


def programs(folder, path):
    for line in open(path):
        if line.strip() and not line.startswith("#"):
            p = Program(line, folder)
            if any(p.truth):
                yield p


def one(p, evidence, i, truth, run, **own):
    """What was said of value number i: a row."""
    best = run["peak_reserved"]
    low, high = run["interval"] or (best, best)
    return dict(program=p.name, drawn=p.drawn, evidence=evidence, value=p.values[i], truth=truth, best=best, low=low, high=high,
                cannot=bool(run.get("cannot_tell")), refused="", wrong=0, **own)


def refusal(p, evidence, i, truth, why):
    return dict(program=p.name, drawn=p.drawn, evidence=evidence, value=p.values[i], truth=truth, best=0, low=0, high=0,
                cannot=True, refused=" ".join(why.split())[:200] or "no answer", wrong=0)


def from_recordings(p):
    for known, asked in EVIDENCE:
        asked = [i for i in asked if i < len(p.values) and p.truth[i]]
        if not asked or not all(p.truth[i] for i in known):
            continue
        evidence = ",".join(str(p.values[i]) for i in known)
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
            for i in asked:
                for k, card in enumerate((PLENTY, p.truth[i] - SEGMENT, p.truth[i])):
                    f.write(json.dumps({"id": 10 * i + k, p.knob: p.values[i], "capacity": card}) + "\n")
            f.flush()
            done = vramcast("sweep", *(p.named(i) for i in known), "--context", "0", "--json", "--scenarios", f.name)
        said = {run.get("id"): run for run in (json.loads(line) for line in done.stdout.splitlines())}
        for i in asked:
            free, small, just = (said.get(10 * i + k, {}) for k in range(3))
            if "verdict" not in free:
                yield refusal(p, evidence, i, p.truth[i], free.get("error") or done.stderr)
                continue
            row = one(p, evidence, i, p.truth[i], free)
            row["wrong"] = (small.get("verdict") == "fits") + (just.get("verdict") == "oom")
            yield row


def by_rerun(p):
    script = os.path.join(HERE, "..", "programs", ("stand_in" if p.own else p.script) + ".py")
    command = f"{os.environ.get('PYTHON', 'python3')} {os.path.normpath(script)} "
    if p.own:
        command += f"{p.own[0]} {p.script.split('@')[0].replace('/', '+')}/{p.own[1]}"
    else:
        command += f"--model {p.name} --{p.knob} {{{p.knob}}}"
    command += " --seed 0" if p.drawn else ""
    for i in ASKED:
        truths = [t for t in (p.truth[i], *p.others(i)) if t]
        if not p.truth[FROM] or not truths:
            continue
        start = time.monotonic()
        done = vramcast("sim", p.named(FROM), "--set", f"{p.knob}={p.values[i]}", "--by", "rerun", "--program", command,
                        "--context", "0", "--capacity", "1TiB", "--no-advice", "--json")
        took = time.monotonic() - start
        try:
            said = json.loads(done.stdout)
            run = said["runs"][0]
        except (ValueError, KeyError, IndexError):
            yield refusal(p, str(p.values[FROM]), i, truths[0], done.stderr)
            continue
        for truth in truths:
            yield one(p, str(p.values[FROM]), i, truth, run, seconds=took, level=run["level"])


def share(n, of):
    return f"{100 * n / of:.1f} %" if of else ""


def quantile(values, q):
    return sorted(values)[int(q * (len(values) - 1))] if values else math.nan


def is_number(r):
    return not r["cannot"]


def summary(name, rows):
    told = [r for r in rows if not r["refused"]]
    width = [(r["high"] - r["low"]) / r["best"] for r in told]
    number = sum(is_number(r) for r in rows)
    inside = sum(r["low"] <= r["truth"] <= r["high"] for r in told)
    error = [abs(r["best"] - r["truth"]) / r["truth"] for r in told]
    both = ["%.2f %%, %.1f %%" % (100 * quantile(v, 0.5), 100 * quantile(v, 0.9)) if v else "" for v in (width, error)]
    print("| %s | %d | %s | %s | %d | %d | %s | %s |" % (
        name, len(rows), share(number, len(rows)), share(inside, len(told)), sum(r["truth"] > r["high"] for r in told),
        sum(r["wrong"] for r in told), *both))


def tell(rows):
    print("| | asked | a number | inside | unsafe | wrong for certain | width: middle, ninth tenth | error: middle, ninth tenth |")
    print("|---|--:|--:|--:|--:|--:|---|---|")
    names = dict.fromkeys(r["program"] for r in rows)
    for name in names:
        summary(f"`{name}`", [r for r in rows if r["program"] == name])
    for drawn, what in ((False, "sizes are fixed"), (True, "the data decide")):
        some = [r for r in rows if r["drawn"] == drawn]
        if some:
            summary(f"{what}, {len({r['program'] for r in some})} programs", some)
    summary(f"all {len(names)}", rows)
    summary("those that get a number", [r for r in rows if is_number(r)])
    took = [r["seconds"] for r in rows if "seconds" in r]
    if took:
        print("\nan answer took %.0f s in the middle, %.0f s at most" % (statistics.median(took), max(took)))
    for r in rows:
        if r["refused"]:
            print("refused: %(program)s from %(evidence)s at %(value)d: %(refused)s" % r)
        elif not r["low"] <= r["truth"] <= r["high"]:
            print("%s: %s from %s at %d: %.1f MiB, said %.1f (%.1f to %.1f)" % (
                "unsafe" if r["truth"] > r["high"] else "below", r["program"], r["evidence"], r["value"],
                *(r[k] / (1 << 20) for k in ("truth", "best", "low", "high"))))


def main():
    if len(sys.argv) < 4 or sys.argv[1] not in ("recordings", "rerun"):
        sys.exit(__doc__)
    judge = from_recordings if sys.argv[1] == "recordings" else by_rerun
    out = open(sys.argv[4], "w") if len(sys.argv) > 4 else None
    rows = []
    for p in programs(sys.argv[2], sys.argv[3]):
        if re.search(os.environ.get("ONLY", ""), p.name):
            for row in judge(p):
                rows.append(row)
                if out:
                    print(json.dumps(row), file=out, flush=True)
    if not rows:
        sys.exit(f"judge.py: {sys.argv[2]} holds no recordings of {sys.argv[3]}")
    tell(rows)


main()
