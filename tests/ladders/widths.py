#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""widths.py - rows of simulator/session/uncertainty.c from what calibration -o wrote.

A row: for each family the score below which 99 % of its truths lie, and of all families the largest.
Behind it: how many truths of a family lie inside when the row is made from the other families only.
usage: widths.py FILE...
"""
import collections
import math
import sys

FEW = 0.01  # misses below say nothing: least is calibrated on them


def read(paths):
    for path in paths:
        for line in open(path):
            c = line.rstrip("\n").split("\t")
            if c[-1] == "same":
                continue
            truth, low, high, missed = float(c[4]), float(c[-3]), float(c[-2]), float(c[-4])
            yield c[-1], c[0].split()[0], math.log(truth / high), math.log(low / truth), missed


def quantile(values):
    values = sorted(values)
    return max(0.0, values[min(len(values) - 1, math.ceil(0.99 * (len(values) + 1)) - 1)]) if values else 0.0


def row(ladders):
    up = down = least_up = least_down = 0.0
    for rows in ladders.values():
        with_miss = [r for r in rows if r[2] >= FEW]
        least_up = max(least_up, quantile([r[0] for r in rows if r[2] < FEW]))
        least_down = max(least_down, quantile([r[1] for r in rows if r[2] < FEW]))
        up = max(up, quantile([r[0] / r[2] for r in with_miss]))
        down = max(down, quantile([r[1] / r[2] for r in with_miss]))
    return up, down, least_up, least_down


def inside(rows, r):
    return sum(u <= max(r[0] * m, r[2]) + 1e-9 and d <= max(r[1] * m, r[3]) + 1e-9 for u, d, m in rows)


kinds = collections.defaultdict(lambda: collections.defaultdict(list))
for kind, ladder, up, down, missed in read(sys.argv[1:]):
    kinds[kind][ladder].append((up, down, missed))
for kind in sorted(kinds):
    ladders = kinds[kind]
    r = row(ladders)
    total = sum(len(v) for v in ladders.values())
    other = sum(inside(v, row({k: w for k, w in ladders.items() if k != ladder})) for ladder, v in ladders.items())
    all_in = sum(inside(v, r) for v in ladders.values())
    print('{ "%s", %.2f, %.2f, %.3f, %.3f }, /* %d ladders, %d predictions: %.1f %% inside, %.1f %% by the others */'
          % (kind, *r, len(ladders), total, 100 * all_in / total, 100 * other / total))
