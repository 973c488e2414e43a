#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check.py - make check-budget: the programs of programs.py below 50, 65 and 80 % of what they need as they are. VRAMCAST,
PYTHON, TMP; ONLY=REGEX, SHARES="50 65 80".

Of each choice: the dry run with it must stay below; so must one more, by `run --choice`; and on the processor, with values,
each loss with it must be that of the program as it is. A line of JSON a choice goes to $OUT, a table to standard output."""
import json
import os
import re
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from programs import NAMES  # noqa: E402

VRAMCAST, PYTHON, TMP = (os.environ[k] for k in ("VRAMCAST", "PYTHON", "TMP"))
CARD = ["-g", os.environ.get("CARD", "a100-80g-sxm")]
PROGRAM = [PYTHON, os.path.join(HERE, "programs.py")]


def call(*words, **environment):
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1", **environment})
    return done.returncode, done.stdout, done.stderr


def world(name):
    return ["--world", "2"] if name.startswith("fsdp") else []


def fit(name, *more):
    code, out, err = call(VRAMCAST, "fit", "--find", "budget", "--json", *CARD, *world(name), *more, "--", *PROGRAM, name)
    if code not in (0, 3):
        raise RuntimeError(err.strip().splitlines()[-1] if err.strip() else "code %d" % code)
    return json.loads(out)["cards"][0]


def applied(name, choice):
    """Once more, by the other door."""
    report = os.path.join(TMP, "report.json")
    code, _, err = call(VRAMCAST, "run", "--choice", choice, "--", VRAMCAST, "dryrun", "-q", "--no-record", "--report", report,
                        *CARD, *world(name), "--", *PROGRAM, name)
    if code:
        raise RuntimeError(err.strip().splitlines()[-1] if err.strip() else "code %d" % code)
    with open(report) as file:
        return json.load(file)["runs"][0]["peak_used"]


def losses(name, choice=None):
    """On the processor; of a job, of all its ranks."""
    program = [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *PROGRAM[1:]] if world(name) else PROGRAM
    words = [*program, name, "--device", "cpu"]
    code, out, err = call(*([VRAMCAST, "run", "--choice", choice, "--", *words] if choice else words), CUDA_VISIBLE_DEVICES="")
    lost = [line for line in err.splitlines() if "modules in" in line]
    return sorted(line for line in out.splitlines() if line.startswith("loss ")) if not code and not lost else [err[-300:]]


def share_of(name, share, needs):
    """What one choice comes to; None where none was found."""
    choice = os.path.join(TMP, "%s.%d.json" % (name, share))
    peak = needs * share // 100
    row = fit(name, "--peak", str(peak), "--save", choice)
    row.update({"program": name, "share": share, "kept": row["share"]})
    row["choice"] = choice if row["fits"] else None
    ways = [u["do"] for u in row.pop("units")]
    row["units"] = len(ways)
    row["ways"] = {w: ways.count(w) for w in sorted(set(ways))}
    row["over"] = row["fits"] and row["used"] > peak
    row["off"] = 100 * (row["predicted"] - row["used"]) / row["used"] if row["fits"] else None
    return row


def one(name, shares):
    needs, own = fit(name, "--peak", "1TiB")["needs"], None
    for share in shares:
        row = share_of(name, share, needs)
        if row["fits"]:
            row["again"] = applied(name, row["choice"])
            row["over"] |= row["again"] > row["peak"]
        if row["fits"]:
            own, chosen = own or losses(name), losses(name, row["choice"])
            row["equal"] = own == chosen and bool(own) and own[0].startswith("loss ")
            row["losses"] = None if row["equal"] else [own[-1:], chosen[-1:]]
        yield row


def say(row):
    mib = 1 << 20
    line = "%-20s %3d %% of %6d MiB" % (row["program"], row["share"], row["needs"] // mib)
    if not row["fits"]:
        return line + "  none found; least tried %d MiB" % (row["least"] // mib)
    line += "  %6d used, predicted %+.2f %%, %d dry runs, %s" % (row["used"] // mib, row["off"], len(row["tried"]),
                                                              " ".join("%s %d" % w for w in row["ways"].items()))
    if row.get("added_ns") is not None:
        line += ", %+.3g ms (%.3g .. %.3g)" % tuple(row[k] / 1e6 for k in ("added_ns", "added_low_ns", "added_high_ns"))
    if row["units"] and row["unit"] == "ns":
        line += ", counted %.3g" % (row["extra"] / 1e6) + (", at least %.3g" % (row["bound"] / 1e6) if row["bound"] is not None else "")
    if row.get("uniform"):
        line += ", uniform %.3g" % (row["uniform"] / 1e6)
    if "equal" in row:
        line += ", losses equal" if row["equal"] else ", LOSSES DIFFER"
    return line + (", OVER" if row["over"] else "")


def main():
    rows, failed = [], 0
    shares = [int(s) for s in os.environ.get("SHARES", "80 65 50").split()]
    out = open(os.environ.get("OUT") or os.path.join(TMP, "budget.jsonl"), "a")
    for name in NAMES:
        if not re.search(os.environ.get("ONLY", ""), name):
            continue
        try:
            for row in one(name, shares):
                rows.append(row)
                print(say(row), flush=True)
                print(json.dumps(row), file=out, flush=True)
        except RuntimeError as error:
            print("%-20s FAILED: %s" % (name, error), flush=True)
            failed += 1
    found = [r for r in rows if r["fits"]]
    off = [abs(r["off"]) for r in found] or [0]
    less = [100 * (1 - r["extra"] / r["uniform"]) for r in found if r.get("uniform")]
    over = sum(r["over"] for r in found)
    differ = sum(r.get("equal") is False for r in found)
    print("# %d of %d budgets met, %d over, %d with other losses, %d programs failed; predicted within %.2f %% in the median, "
          "%.2f %% at worst, %d below the truth" % (len(found), len(rows), over, differ, failed, statistics.median(off), max(off),
                                                    sum(r["off"] < 0 for r in found)))
    gaps = [r["gap"] for r in found if r.get("gap") is not None and r["extra"]]
    if gaps:
        print("# gap to the lower bound: %.1f %% in the median, %.1f %% at worst, of %d" % (statistics.median(gaps), max(gaps), len(gaps)))
    if less:
        print("# added time in the median %.0f %% below uniform checkpointing, of %d" % (statistics.median(less), len(less)))
    return over + differ + failed > 0


if __name__ == "__main__":
    sys.exit(main())
