# SPDX-License-Identifier: Apache-2.0
"""nets.py TABLE.csv CARD FOLDER [--first 20] [--every 60] [--nhwc] - the time of a step of nets of timm, beside what its tables say:
results/benchmark-infer-amp-*.csv and benchmark-train-amp-*.csv of huggingface/pytorch-image-models. Each runs as its benchmark.py
has it: autocast to fp16, cudnn.benchmark. Recordings stay in FOLDER and are not made again; those of another card of the same
FOLDER serve, too, with as many pictures as they have."""
import argparse
import csv
import ctypes
import json
import os
import statistics
import subprocess
import sys


def play(name, size, batch, train, nhwc):
    import timm
    import torch
    torch.backends.cudnn.benchmark = True
    form = torch.channels_last if nhwc else torch.contiguous_format
    try:
        net = timm.create_model(name, img_size=size)
    except TypeError:
        net = timm.create_model(name)
    net = net.cuda().to(memory_format=form).train(train)
    x = torch.randn(batch, 3, size, size, device="cuda").contiguous(memory_format=form)
    y = torch.zeros(batch, dtype=torch.long, device="cuda")
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9)
    for _ in range(4):
        with torch.inference_mode(not train), torch.autocast("cuda", torch.float16):
            out = net(x)
        if train:
            torch.nn.functional.cross_entropy(out.float(), y).backward()
            optimizer.step()
            optimizer.zero_grad()
        torch.cuda.synchronize()
        if not train:
            ctypes.CDLL(None).vramcast_step()


def said(path, card):
    run = subprocess.run(["vramcast", "sim", path, "-g", card, "--capacity", "900GiB", "--json"], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True)
    time = json.loads(run.stdout)["runs"][0]["time"] if run.stdout else {"step_ns": None}
    return time["step_ns"] and (time["step_ns"] / 1e6, [ns / 1e6 for ns in time["interval_ns"]])


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("table")
    p.add_argument("card")
    p.add_argument("folder")
    p.add_argument("--first", type=int, default=20)
    p.add_argument("--every", type=int, default=60)
    p.add_argument("--nhwc", action="store_true")
    a = p.parse_args()
    train, errors, inside = "-train-" in a.table, [], 0
    kind = "train" if train else "infer"
    for r in list(csv.DictReader(open(a.table)))[a.first::a.every]:
        name, size, batch, real = [r[k] for k in ("model", kind + "_img_size", kind + "_batch_size", kind + "_step_time")]
        path = os.path.join(a.folder, f"{name}.{size}.{kind}.{'nhwc' if a.nhwc else 'nchw'}.vct")
        if not os.path.exists(path):
            words = [name, size, batch, kind, "nhwc" if a.nhwc else "nchw"]
            subprocess.run(["vramcast", "dryrun", "-q", "--stacks", "off", "-g", a.card, "--capacity", "900GiB", "-o", path,
                            "--param", "batch=" + batch, "--", sys.executable, __file__, "--play", *words],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        told = os.path.exists(path) and said(path, a.card)
        if not told:
            print(f"{name:44s} no time")
            continue
        info = json.loads(subprocess.run(["vramcast", "info", "--json", "--no-verify", path], stdout=subprocess.PIPE).stdout)
        many = float(batch) / float(info["params"]["batch"])
        real = float(real) / many
        errors.append(100 * (told[0] / real - 1))
        inside += told[1][0] <= real <= told[1][1]
        print(f"{name:44s} {real:9.1f} ms {told[0]:9.1f} {errors[-1]:+7.1f} %", flush=True)
    size = sorted(map(abs, errors))
    print("%d nets: median error %.1f %%, nine in ten below %.1f, %d inside" % (
        len(size), statistics.median(size), size[int(0.9 * (len(size) - 1) + 0.5)], inside))


if len(sys.argv) > 6 and sys.argv[1] == "--play":
    play(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5] == "train", sys.argv[6] == "nhwc")
else:
    main()
