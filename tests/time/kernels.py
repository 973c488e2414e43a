# SPDX-License-Identifier: Apache-2.0
"""kernels.py FOLDER [BATCH]... - kernels of a step: on the H100 (tests/recordings/h100), by dry runs in FOLDER (PROGRAM-BATCH.vct, made
where they are missing), and by these with a table of speeds that `vramcast probe` makes of the other half of the programs. `vramcast` and
a `python` with PyTorch come from PATH."""
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
REAL = os.path.join(HERE, "../recordings/h100")
PROGRAMS = "gpt llama lstm_packed moe resnet style superres t5 transformer_xl unet vit".split()


def step(path, *options):
    out = subprocess.run(["vramcast", "sim", path, "--json", "--no-verify", "--no-advice", *options], capture_output=True, text=True)
    t = json.loads(out.stdout)["runs"][0]["time"]
    if not t["step_ns"]:
        return None, t["why"]
    low, high = t["interval_ns"] or (t["step_ns"], t["step_ns"])
    return t["step_ns"] * t["gpu_busy"] / 1e6, (low / 1e6, high / 1e6, t["step_ns"] / 1e6)


def main():
    folder, *batches = sys.argv[1:]
    points = []
    for p in PROGRAMS:
        for b in batches or ("4", "12", "24"):
            dry = os.path.join(folder, "%s-%s.vct" % (p, b))
            if not os.path.exists(dry):
                subprocess.run(["vramcast", "dryrun", "-q", "-g", "h100-80g-sxm", "--stacks", "off", "-o", dry, "--",
                                "python", os.path.join(HERE, "../programs", p + ".py"), "--batch", b], capture_output=True)
            points.append((p, b, os.path.join(REAL, "%s-%s.vct" % (p, b)), dry))
    tables = []
    for half in 0, 1:
        pairs = [f for i, (p, _, real, dry) in enumerate(points) if PROGRAMS.index(p) % 2 == half for f in (real, dry)]
        tables.append(os.path.join(folder, "half%d.speed" % half))
        subprocess.run(["vramcast", "probe", *pairs, "-o", tables[half]], stdout=subprocess.DEVNULL, check=True)
    errors = [], []
    for p, b, real, dry in points:
        ms, _ = step(real)
        line = "%-16s %4s  %8.3f" % (p, b, ms)
        for k, options in enumerate(((), ("--speed", tables[1 - PROGRAMS.index(p) % 2]))):
            said, more = step(dry, *options)
            if said is None:
                line += "  unknown: " + more
                continue
            errors[k].append(100 * (said / ms - 1))
            line += "  %8.3f %+6.1f %%" % (said, errors[k][-1])
        print(line, flush=True)
    for k, name in enumerate(("without a table", "with the other half's")):
        off = sorted(abs(e) for e in errors[k])
        if off:
            print("%s: %d points, median %.1f %%, nine in ten below %.1f %%, worst %.1f %%, mean of the signed %+.1f %%" % (
                name, len(off), statistics.median(off), off[max(0, -(-9 * len(off) // 10) - 1)], off[-1], statistics.mean(errors[k])))


main()
