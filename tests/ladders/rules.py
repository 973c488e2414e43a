#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rules.py - an ablation: each rule of predictions is left out, and what that changes is counted by families.

A family (all recordings of one program) is helped by a rule when without it fewer of its values get a number, more truths
lie outside, or numbers are farther off; hurt when it is the other way round.
usage: rules.py CALIBRATION MOST DIR...
"""
import collections
import os
import subprocess
import sys
import tempfile

TOLD = 0.2     # as vc_answer_cannot: no number where the interval is wider, of the best guess
WORSE = 0.0005 # of the truth: what rounding to a segment makes
program, most, folders = sys.argv[1], sys.argv[2], sys.argv[3:]


def family(ladder):
    return ladder.split()[0].replace("-expandable", "")


def run(rule):
    """By family: values, of these with a number, outside, unsafe, and the sum of errors of the numbers."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "lines")
        subprocess.run([program, "-n", most, "-o", path] + (["-w", rule] if rule else []) + folders, stdout=subprocess.DEVNULL)
        with open(path) as lines:
            rows = [line.rstrip("\n").split("\t") for line in lines]
    out = collections.defaultdict(lambda: [0, 0, 0, 0, 0.0])
    for c in rows:
        truth, _, best, low, high = map(float, c[4:9])
        f = out[family(c[0])]
        f[0] += 1
        if high - low <= TOLD * best:
            f[1] += 1
            f[2] += not low <= truth <= high
            f[3] += truth > high
            f[4] += abs(best - truth) / truth
    return out


def better(a, b):
    """Is a better than b?"""
    if (a[3], a[2]) != (b[3], b[2]):
        return (a[3], a[2]) < (b[3], b[2])
    if a[1] != b[1]:
        return a[1] > b[1]
    return bool(a[1]) and a[4] / a[1] < b[4] / b[1] - WORSE


rules = subprocess.run([program, "-w", ""], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.split("\n")
base = run(None)
values = sum(f[0] for f in base.values())
print("%d families, %d values, %d with a number, %d of these outside, %d unsafe"
      % (len(base), values, *(sum(f[i] for f in base.values()) for i in (1, 2, 3))))
print("%-26s %6s %6s %8s %8s %7s  %s" % ("without", "helped", "hurt", "numbers", "outside", "unsafe", "helped families"))
for rule in filter(None, rules):
    other = run(rule)
    names = sorted(set(base) | set(other))
    helped = [n for n in names if better(base[n], other[n])]
    hurt = [n for n in names if better(other[n], base[n])]
    print("%-26s %6d %6d %8d %8d %7d  %s" % (rule, len(helped), len(hurt), *(sum(f[i] for f in other.values()) for i in (1, 2, 3)),
                                              " ".join(helped)), flush=True)
