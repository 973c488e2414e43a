# SPDX-License-Identifier: Apache-2.0
"""compare.py VRAMCAST TRACE TRUTH - the categories vramcast finds, against labels written by label.py.

At the moment most is requested: bytes of each category by the labels and by vramcast, and the bytes of labelled
blocks that it calls something else. Blocks without a label (temporaries, workspaces, inputs) are 'rest'."""
import bisect
import subprocess
import sys

vramcast, trace, truth = sys.argv[1:4]
KINDS = ("parameter", "gradient", "optimizer_state", "activation", "rest")
ORDER = {"parameter": 3, "gradient": 2, "optimizer_state": 2, "activation": 1}

size, given, death, by_address, of_id = [], [], [], {}, {}
for line in subprocess.run([vramcast, "dump", "--anatomy", trace], capture_output=True, text=True,
                           check=True).stdout.splitlines():
    word = line.split()
    field = dict(w.split("=", 1) for w in word[3:] if "=" in w)
    if field.get("device", "0") != "0":
        continue
    if word[2] == "alloc":
        of_id[field["id"]] = len(size)
        by_address.setdefault(field["addr"], []).append(len(size))
        size.append(int(field.get("size", 0)))
        given.append((field["is"] if field["is"] in KINDS else "rest", field["phase"], field["is"]))
        death.append(None)
    elif word[2] == "free" and field["id"] in of_id:
        death[of_id[field["id"]]] = len(size)

label = ["rest"] * len(size)
with open(truth, encoding="ascii") as lines:
    for line in lines:
        made, address, nbytes, what = line.split()
        what = "optimizer_state" if what == "state" else what
        at = by_address.get(address, [])
        k = bisect.bisect_left(at, int(made)) - 1
        if k >= 0 and ORDER[what] > ORDER.get(label[at[k]], 0):
            label[at[k]] = what

ends = {}
for i, d in enumerate(death):
    if d is not None:
        ends.setdefault(d, []).append(i)
live, top, best, alive = 0, 0, set(), set()
for i, n in enumerate(size):
    for j in ends.get(i, []):
        live -= size[j]
        alive.discard(j)
    alive.add(i)
    live += n
    if live > top:
        top, best = live, set(alive)

wrong = sum(size[i] for i in best if given[i][0] != label[i])
print(f"{trace}: peak {top / 2**20:.1f} MiB, {100 * wrong / top if top else 0:.2f} % of it called something else")
for kind in KINDS:
    t = sum(size[i] for i in best if label[i] == kind)
    g = sum(size[i] for i in best if given[i][0] == kind)
    print(f"  {kind:16} labelled {t / 2**20:9.2f} MiB  found {g / 2**20:9.2f} MiB")
pairs = {}
for i in best:
    if given[i][0] != label[i]:
        key = (label[i], given[i][2], given[i][1])
        pairs[key] = pairs.get(key, 0) + size[i]
for (is_, said, phase), n in sorted(pairs.items(), key=lambda p: -p[1])[:6]:
    print(f"    {n / 2**20:9.2f} MiB labelled {is_}, called {said}, born in {phase}")
everywhere = sum(n for i, n in enumerate(size) if given[i][0] != label[i])
print(f"  over the whole run {100 * everywhere / max(sum(size), 1):.2f} % of the bytes asked for")
