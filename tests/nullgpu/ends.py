# SPDX-License-Identifier: Apache-2.0
"""ends.py FOLDER [PROGRAM]... - do the ends that dry runs name hold what an H100 took (tests/recordings/h100)?

`vramcast` and a `python` with PyTorch 2.11.0 come from PATH; its cuDNN 9.19 is the installed one, or
VRAMCAST_NULL_CUDNN_LIBRARY. With XDG_CACHE_HOME=FOLDER and no cuDNN, convolutions go by rule. Reports stay in FOLDER."""
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
REAL = os.path.join(HERE, "../recordings/h100")
PROGRAMS = "gpt llama lstm_packed moe resnet style superres t5 transformer_xl unet vit".split()


def run_of(*command):
    return json.loads(subprocess.run(["vramcast", *command], capture_output=True, text=True, check=True).stdout)["runs"][0]


def main():
    folder, *programs = sys.argv[1:]
    inside, equal, widths = {}, {}, {}
    points = [(p, b) for p in programs or PROGRAMS for b in ("4", "12", "24")]
    for p, b in points:
        report = os.path.join(folder, "%s-%s.json" % (p, b))
        subprocess.run(["vramcast", "dryrun", "-q", "-g", "h100-80g-sxm", "--stacks", "off", "-o", report[:-4] + "vct", "--report",
                        report, "--", "python", os.path.join(HERE, "../programs", p + ".py"), "--batch", b], capture_output=True)
        with open(report) as file:
            dry = json.load(file)["runs"][0]
        real = run_of("sim", "--json", "--no-advice", os.path.join(REAL, "%s-%s.vct" % (p, b)))
        line = "%-16s %3s" % (p, b)
        for what in "allocated", "reserved":
            truth, said = real["peak_" + what], dry[what]
            holds = said["low"] is not None and said["low"] <= truth <= said["high"]
            inside[what] = inside.get(what, 0) + holds
            equal[what] = equal.get(what, 0) + (truth == said["peak"])
            widths.setdefault(what, []).append(100 * ((said["high"] or 0) - (said["low"] or 0)) / said["peak"])
            line += "  %s %8.1f MiB, %+6.2f %%, width %5.1f %%%s" % (
                what, truth / 2**20, 100 * (said["peak"] / truth - 1), widths[what][-1], "" if holds else " OUTSIDE")
        print(line, flush=True)
    for what, w in widths.items():
        print("%s: %d points, %d equal, %d inside, width %.1f %% in the middle, %.1f %% in nine of ten" % (
            what, len(w), equal[what], inside[what], statistics.median(w), sorted(w)[-(-9 * len(w) // 10) - 1]))


main()
