# SPDX-License-Identifier: Apache-2.0
"""torch_turns.py: what a recording costs a training loop, on a machine that others use too.

  torch_turns.py work             a small transformer on the CPU: for each line that comes in, five steps;
                                  answers with their seconds, CPU seconds and the resident memory
  torch_turns.py turns N COMMAND  starts two of these alone and two recorded (COMMAND before "work"), lets
                                  them work N times in turn, in random order, one at a time, and prints the
                                  difference, and how much the two that are alike differ
  torch_turns.py tools N DIR VRAMCAST  the same with two alone and one under each of: record, record --stacks py,
                                  memray (MEMRAY: the folder it was installed to) and heaptrack (HEAPTRACK: its
                                  library to preload), where there; prints the ratios of CPU and of wall time"""
import os
import random
import statistics
import subprocess
import sys
import time


def work():
    import torch
    import torch.nn as nn
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(128, 4, 512, batch_first=True), 3)
    optimizer = torch.optim.AdamW(model.parameters())
    for line in sys.stdin:
        start, cpu = time.perf_counter(), time.process_time()
        for i in range(5):
            model(torch.randn(8, 64, 128)).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        pages = int(open("/proc/self/statm").read().split()[1])
        print(seconds, cpu, pages * 4096, flush=True)


class Worker:
    def __init__(self, command, run=(), env=None):
        self.times, self.cpus, self.memory = [], [], 0
        self.process = subprocess.Popen(command + [sys.executable, *run, __file__, "work"], text=True,
                                        env=dict(os.environ, **(env or {})),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def turn(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        seconds, cpu, self.memory = (float(x) for x in self.process.stdout.readline().split())
        self.times.append(seconds)
        self.cpus.append(cpu)


def percent(a, b):
    """The median of the turns of b against those of a, each turn beside the one it stood next to."""
    return 100 * (statistics.median(y / x for x, y in zip(a, b)) - 1)


def turns(n, command):
    where = command.index("OUT")
    workers = [Worker([]), Worker([])] + [
        Worker(command[:where] + [command[where + 1] + ".%d.vct" % i] + command[where + 2:]) for i in range(2)]
    for k in range(n + 3):
        order = list(range(4))
        random.shuffle(order)
        for i in order:
            workers[i].turn()
    for w in workers:
        w.process.stdin.close()
        w.process.wait()
    a, b, c, d = workers
    for name, which in (("", "times"), (".cpu", "cpus")):
        t = [getattr(w, which)[3:] for w in workers]
        print("bench record.overhead%s %.2f %%" % (name, percent(t[0] + t[1], t[2] + t[3])))
        print("bench record.overhead%s.noise %.2f %%" % (name, abs(percent(t[0], t[1]))))
    print("bench record.rss %.1f MiB" % ((c.memory + d.memory - a.memory - b.memory) / 2 / 1048576))


def tools(n, folder, vramcast):
    record, memray, heaptrack = [vramcast, "record", "-q"], os.environ.get("MEMRAY"), os.environ.get("HEAPTRACK")
    workers = {"alone": Worker([]), "noise": Worker([]),
               "record": Worker(record + ["-o", folder + "/plain.vct", "--"]),
               "stacks_py": Worker(record + ["--stacks", "py", "-o", folder + "/py.vct", "--"])}
    if memray:
        path = memray + ":" + os.environ.get("PYTHONPATH", "")
        workers["memray"] = Worker([], ["-m", "memray", "run", "-q", "-f", "-o", folder + "/memray.bin"],
                                   {"PYTHONPATH": path})
    if heaptrack:
        workers["heaptrack"] = Worker([], [], {"LD_PRELOAD": heaptrack + ":" + os.environ.get("LD_PRELOAD", ""),
                                               "DUMP_HEAPTRACK_OUTPUT": folder + "/heaptrack.raw"})
    for k in range(n + 3):
        order = list(workers.values())
        random.shuffle(order)
        for w in order:
            w.turn()
    for w in workers.values():
        w.process.stdin.close()
        w.process.wait()
    for name, w in workers.items():
        if name != "alone":
            for suffix, which in (("", "cpus"), (".clock", "times")):
                ratio = 1 + percent(getattr(workers["alone"], which)[3:], getattr(w, which)[3:]) / 100
                print("bench record.tools.%s%s %.3f x" % (name, suffix, ratio))


if sys.argv[1] == "work":
    work()
elif sys.argv[1] == "tools":
    tools(int(sys.argv[2]), sys.argv[3], sys.argv[4])
else:
    turns(int(sys.argv[2]), sys.argv[3:])
