#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What changes make of a training step: predicted by vramcast, and measured by steps.py (its JSON lines).

changes.py MEASURED, with VRAMCAST, PYTHON and CACHE: CACHE/PROGRAM.vct are recordings of the unchanged programs with their
kernels; one that is missing is dry-run on CARD. A row a program and change: time of a step as a multiple of the unchanged one,
predicted with its ends and measured, and the time of its kernels likewise.
"""
import json
import os
import subprocess
import sys

ASKED = {"autocast": ["precision:to=amp"], "bf16": ["precision:to=bf16"], "checkpoint": ["checkpoint"],
         "accumulate2": ["accumulate:micro=2"], "sgd": ["optimizer:to=sgd"], "fused": ["optimizer:to=adamw,step=fused"],
         "x2": 2, "half": 0.5, "autocast+checkpoint": ["precision:to=amp", "checkpoint"], "autocast+x2": ["precision:to=amp"]}
VRAMCAST, CACHE = os.environ["VRAMCAST"], os.environ["CACHE"]


def find(tree, key):
    """The first object called `key` in a JSON document."""
    if isinstance(tree, list):
        tree = dict(enumerate(tree))
    if not isinstance(tree, dict):
        return None
    return tree[key] if key in tree else next(filter(None, (find(x, key) for x in tree.values())), None)


def recording(program, batch):
    path = os.path.join(CACHE, program + ".vct")
    if not os.path.exists(path):
        here = os.path.dirname(os.path.abspath(__file__))
        subprocess.run([VRAMCAST, "dryrun", "-q", "-g", os.environ.get("CARD", "h100-80g-sxm"), "--stacks", "py", "-o", path, "--",
                        os.environ.get("PYTHON", "python3"), here + "/steps.py", "--plain", "--steps", "3", "--change", "base", "--program",
                        program], stdin=subprocess.DEVNULL, capture_output=True)
    return "%s@batch=%d" % (path, batch)


def predicted(program, batch, change):
    how = []
    if isinstance(ASKED[change], list):
        for x in ASKED[change]:
            how += ["-x", x]
    if isinstance(ASKED[change], float) or "x2" in change:
        how += ["--set", "batch=%d" % (batch * (2 if "x2" in change else 0.5))]
    run = subprocess.run([VRAMCAST, "sim", recording(program, batch), *how, "--no-verify", "--no-advice", "--json"],
                         capture_output=True, text=True)
    return find(json.loads(run.stdout), "time") if run.stdout else {}


def main():
    measured = {}
    for line in open(sys.argv[1]):
        d = json.loads(line)
        if "busy_ms" in d:
            measured.setdefault(d["program"], {})[d["change"]] = d
    rows = close = inside = worked = 0
    print("| program | change | step, predicted | measured | off | kernels, predicted | measured | off |\n|---|---|---|--:|--:|--:|--:|--:|")
    for program, changes in measured.items():
        base = changes.get("base")
        for change in [c for c in changes if base and c in ASKED]:
            said, seen = predicted(program, base["batch"], change), changes[change]
            if not said.get("step_ns"):
                print(f"| {program} | {change} | not known: {said.get('why')} | | | | | |")
                continue
            whole = said["recorded_step_ns"]
            low, high = said["interval_ns"] or (said["step_ns"],) * 2
            low, step, high = (x / whole for x in (low, said["step_ns"], high))
            real = seen["ms"] / base["ms"]
            work, done = said["step_ns"] * said["gpu_busy"] / 1e6, seen["busy_ms"]
            rows += 1
            close += abs(step / real - 1) <= 0.15
            inside += 0.95 * low <= real <= 1.05 * high
            worked += abs(work / done - 1) <= 0.15
            print(f"| {program} | {change} | {step:.2f} ({low:.2f} .. {high:.2f}) | {real:.2f} | {100 * (step / real - 1):+.0f} % | "
                  f"{work:.1f} ms | {done:.1f} ms | {100 * (work / done - 1):+.0f} % |")
    print(f"# {rows} rows: steps within 15 % {close}, inside their ends (5 % wider) {inside}; kernels within 15 % {worked}")


main()
