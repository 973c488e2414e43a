# SPDX-License-Identifier: Apache-2.0
"""The table of every published figure that was held against a dry run, docs/measurements/published.tsv.

table.py FILE - < ROWS: puts rows (as below, without "off" and the date) into FILE, each in place of its last one.
table.py FILE: says how far off they are, by kind, and by whether anything had been changed for them."""
import datetime
import os
import statistics
import sys

COLUMNS = "kind what card PyTorch published dry_run off ends seen date source".split()
HEAD = "\t".join(COLUMNS).replace("_", " ").replace("off", "off (%)").replace("ends", "ends (%)")
HEAD = HEAD.replace("published", "published (MiB)").replace("dry run", "dry run (MiB)")


def read(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [dict(zip(COLUMNS, line.rstrip("\n").split("\t"))) for line in file.readlines()[1:]]


def key(row):
    return row["kind"], row["what"], row["card"], row["PyTorch"]


def put(path, lines):
    rows = {key(row): row for row in read(path)}
    given = [c for c in COLUMNS if c not in ("off", "date")]
    for line in lines:
        row = dict(zip(given, line.rstrip("\n").split("\t")))
        truth, ours = float(row["published"]), float(row["dry_run"])
        row.update(published=f"{truth:.1f}", dry_run=f"{ours:.1f}", off=f"{100 * (ours - truth) / truth:+.2f}",
                   date=datetime.date.today().isoformat())
        rows[key(row)] = row
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(HEAD + "\n")
        for _, row in sorted(rows.items()):
            file.write("\t".join(row[c] for c in COLUMNS) + "\n")
    os.replace(path + ".new", path)


def nine_in_ten(values):
    return sorted(values)[-(-9 * len(values) // 10) - 1]  # at least nine in ten are no larger


def ends(row):
    """The ends between which the dry run expects a card, and what was published, in percent of what it named."""
    low, high = map(float, row["ends"].split())
    return low, high, 100 * (float(row["published"]) / float(row["dry_run"]) - 1)


def tell(rows):
    print("| kind | rows | median | nine in ten | worst |\n|---|--:|--:|--:|--:|")
    names = sorted({row["kind"] for row in rows})
    parts = [(n, [r for r in rows if r["kind"] == n]) for n in names]
    parts += [(f"all, {n}", [r for r in rows if r["seen"] == n]) for n in sorted({row["seen"] for row in rows})]
    for name, some in parts + [("all", rows)]:
        errors = sorted((abs(float(r["off"])), r["off"]) for r in some)
        print(f"| {name} | {len(some)} | {statistics.median(e for e, _ in errors):.2f} | {nine_in_ten(errors)[0]:.2f} | {errors[-1][1]} |")
    told = [ends(r) for r in rows if r["ends"] != "-"]
    widths = [high - low for low, high, _ in told]
    print(f"\nInside the ends: {sum(low <= at <= high for low, high, at in told)} of {len(told)}. Their width: "
          f"{statistics.median(widths):.1f} % in the middle, {nine_in_ten(widths):.1f} % in nine of ten.")


if sys.argv[2:] == ["-"]:
    put(sys.argv[1], sys.stdin)
else:
    tell(read(sys.argv[1]))
