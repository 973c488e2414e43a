# SPDX-License-Identifier: Apache-2.0
"""compare.py LIST MEASURED [MORE] - plans of the list (vcnull-cudnn-plans rows) against what PyTorch asked for, plan by plan
(python/probe_workspaces.py). MORE: the fallback list. Exit code 1 where a first plan differs."""
import sys


def rows(path):
    for line in open(path):
        field = line.split("#")[0].split()
        if len(field) == 12:
            yield " ".join(field[2:11]).replace("/fallback", ""), field[11].split(",")


def taken(plans, kind):
    """What PyTorch takes, one after the other, when it cannot have the memory of the one before. In fp32 it takes no engine
    that converts its inputs down (aten/src/ATen/native/cudnn/Conv_v8.cpp, filterEngineConfigs)."""
    out = []
    for plan in plans:
        size, _, notes = plan.partition(":")
        if "d" not in notes and (not out or int(size) < out[-1]):
            out.append(int(size))
    return out


def main():
    lists = {}
    for path in [sys.argv[1]] + sys.argv[3:]:
        for key, plans in rows(path):
            lists.setdefault(key, []).extend(plans)
    n = first = every = near = 0
    for key, plans in rows(sys.argv[2]):
        if key not in lists:
            continue
        want, have = taken(lists[key], key.split()[1]), [int(p) for p in plans]
        n += 1
        first += want[:1] == have[:1]
        near += bool(want) and abs(want[0] - have[0]) <= 1 << 20
        every += want[:len(have)] == have
        if want[:1] != have[:1] and n - first <= 5:
            print("  %s: %s of the list, %s asked for" % (key, want[:4], have), file=sys.stderr)
    print("%d convolutions, the first plan of %d, within 1 MiB of %d, every plan of %d" % (n, first, near, every))
    sys.exit(not n or first < n)


main()
