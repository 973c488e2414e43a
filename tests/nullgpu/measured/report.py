# SPDX-License-Identifier: Apache-2.0
"""Prints errors and verdicts of the dry runs by family, then TAP. Modules that libraries load while
training are in the measured peaks and not in the runs: nothing is added for them."""
import statistics
import sys
# Limits: the goal for text and verdicts; what is reached today for convolutions (goal: 2 and 8).
LIMITS = {"text": (0.3, 1.0), "conv": (3.0, 12.0)}
rows = [line.split()[1:] for line in open(sys.argv[1])]
n, bad, right = 0, 0, 0
for family in ("text", "conv"):
    errors = []
    for f, model, optimizer, batch, peak, oom, ours, ours_oom in rows:
        right += f == family and oom == ours_oom
        if f != family or oom == "1" or ours_oom == "1":
            continue
        error = 100 * (int(ours) - int(peak)) / int(peak)
        errors.append(abs(error))
        print(f"# {model} {optimizer} {batch}: measured {peak} MiB, dry run {ours}, {error:+.1f} %")
    errors.sort()
    median, p90 = statistics.median(errors), errors[int(0.9 * len(errors))]
    n += 1
    good = median <= LIMITS[family][0] and p90 <= LIMITS[family][1]
    bad += not good
    print(f"{'ok' if good else 'not ok'} {n} - {family}: {len(errors)} runs, median {median:.2f} %, "
          f"p90 {p90:.2f} %, worst {errors[-1]:.2f} %")
n += 1
good = len(rows) > 60 and right >= 0.97 * len(rows)
bad += not good
print(f"{'ok' if good else 'not ok'} {n} - out-of-memory verdicts: {right} of {len(rows)} right")
print(f"1..{n}")
sys.exit(bad > 0)
