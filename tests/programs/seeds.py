#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""seeds.py - by how much truths differ that differ in the seed of their data only, beside what is predicted for them.

FOLDER holds what record.sh seeds recorded; each FILE is what build/tests/calibration -o wrote for it.
"Spread" is the largest peak of reserved memory less the smallest, as a share of the middle one: an interval that holds
the truth of every seed is no narrower. "Own" is how many intervals hold the truth of the seed that they were predicted
with, "any" how many truths of all seeds each interval holds.
usage: VRAMCAST=build/vramcast seeds.py FOLDER FILE...
"""
import collections
import glob
import json
import os
import re
import statistics
import subprocess
import sys

MIB = 1 << 20


def peak(path):
    out = subprocess.run([os.environ.get("VRAMCAST", "build/vramcast"), "info", "--json", "--no-verify", path],
                         check=True, capture_output=True, text=True).stdout
    return max(d["peak_reserved"] for d in json.loads(out)["devices"])


if len(sys.argv) < 2:
    sys.exit(__doc__)
truth = collections.defaultdict(list)
for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.vct"))):
    program, name, digits = re.fullmatch(r"(.*)-s\d+_([a-z]+)(\d+)\.vct", os.path.basename(path)).groups()
    truth[program, name, float(digits)].append(peak(path) / MIB)
said = collections.defaultdict(list)
for path in sys.argv[2:]:
    for line in open(path):
        c = line.rstrip("\n").split("\t")
        program, name = c[0].split()[:2]
        said[re.sub(r"-s\d+$", "", program), name, float(c[3])].append([float(v) / MIB for v in (c[4], *c[6:9])])
print("| program | at | seeds | peaks, MiB | spread | predictions | width: least, middle, most | own | any |")
print("|---|---|--:|---|--:|--:|---|--:|--:|")
for key in sorted(truth):
    t, s = sorted(truth[key]), said[key]
    width = sorted(100 * (high - low) / best for _, best, low, high in s)
    own = [low <= v <= high for v, _, low, high in s]
    any_ = [low <= v <= high for _, _, low, high in s for v in t]
    print("| `%s` | %s %g | %d | %.0f to %.0f | %.0f %% | %d | %s |" % (
        *key, len(t), t[0], t[-1], 100 * (t[-1] - t[0]) / statistics.median(t), len(s),
        "%.0f, %.0f, %.0f %% | %d of %d | %.0f %%" % (
            width[0], statistics.median(width), width[-1], sum(own), len(own), 100 * sum(any_) / len(any_))
        if s else "| |"))
