#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make.py DIR - recordings made for the findings: leaks, streams that lag, several devices, pools, and runs that die of
demand, of fragmentation and of a leak. Prints one line each: FILE OPTIONS of sim."""
import json
import os
import pickle
import sys

MIB = 1 << 20


class Snapshot:
    """A memory snapshot of PyTorch with nothing but requests: no addresses of segments, so the replay is not verified."""
    def __init__(self, devices=1):
        self.events, self.at, self.next, self.device, self.live = [[] for _ in range(devices)], 0, 1 << 40, 0, {}

    def put(self, action, addr, size, site, stream):
        frames = [{"name": site.split(":")[0], "filename": "train.py", "line": int(site.split(":")[1])}]
        self.events[self.device].append({"action": action, "addr": addr, "size": size, "stream": stream, "frames": frames,
                                         "time_us": self.at})
        self.at += 100

    def alloc(self, mib, site="forward:10", stream=0):
        addr, self.next = self.next, self.next + (1 << 32)
        self.put("alloc", addr, int(mib * MIB), site, stream)
        self.live[addr] = (int(mib * MIB), site, stream)
        return addr

    def free(self, addr, lag=0):
        size, site, stream = self.live.pop(addr)
        self.put("free_requested", addr, size, site, stream)
        self.at += lag
        self.put("free_completed", addr, size, site, stream)

    def save(self, path):
        with open(path, "wb") as f:
            pickle.dump({"segments": [], "device_traces": self.events}, f, 4)


class Profile:
    """A profile with [memory] events and marks of steps."""
    def __init__(self):
        self.events, self.at, self.next, self.live, self.total = [], 1000, 1 << 40, {}, 0

    def memory(self, addr, size):
        self.total += size
        self.events.append({"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": self.at, "args": {
            "Device Type": 1, "Device Id": 0, "Addr": addr, "Bytes": size, "Total Allocated": self.total,
            "Total Reserved": 1 << 40}})
        self.at += 100

    def alloc(self, mib, *_, **__):
        addr, self.next = self.next, self.next + (1 << 32)
        self.live[addr] = int(mib * MIB)
        self.memory(addr, int(mib * MIB))
        return addr

    def free(self, addr):
        self.memory(addr, -self.live.pop(addr))

    def step(self, n):
        self.events.append({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d" % n, "ts": self.at, "dur": 10})
        self.at += 100

    def kernel(self, us):
        self.events.append({"ph": "X", "cat": "kernel", "name": "gemm", "ts": self.at, "dur": us, "args": {"device": 0, "stream": 7}})

    def save(self, path):
        for e in self.events: # what was reserved is not known: as much as was allocated
            if "Bytes" in e.get("args", {}):
                e["args"]["Total Reserved"] = e["args"]["Total Allocated"]
        with open(path, "w") as f:
            json.dump({"traceEvents": self.events}, f)


def leak(steps, keeps, works=200, kind=Profile):
    p = kind()
    p.alloc(64, "init:1")
    for n in range(steps):
        a = [p.alloc(works / 4, "forward:10") for _ in range(4)]
        if keeps:
            p.alloc(keeps, "log:12")
        for x in a:
            p.free(x)
        if kind is Profile:
            p.step(n)
    return p


def holes(piece, n, last):
    """Every other block goes, and one is asked for that no hole is large enough for."""
    s = Snapshot()
    all_ = [s.alloc(piece, "forward:%d" % (10 + i % 5)) for i in range(n)]
    for a in all_[::2]:
        s.free(a)
    s.alloc(last, "backward:30")
    return s


def streams(n, lag):
    s = Snapshot()
    for i in range(n):
        a = s.alloc(40, "forward:10", stream=i % 3)
        b = s.alloc(24, "backward:20", stream=(i + 1) % 3)
        s.free(a, lag)
        s.free(b, lag)
        s.alloc(2, "keep:5")
    return s


def in_turn(n):
    """Two streams take turns with more than half of the card: the cache is emptied for each of them."""
    s = Snapshot()
    for i in range(n):
        s.free(s.alloc(500, "forward:10", stream=i % 2))
    return s


def devices(n):
    s = Snapshot(n)
    for d in range(n):
        s.device = d
        for i in range(10):
            s.alloc(20 * (d + 1), "forward:%d" % (10 + d))
    return s


def varying(n):
    p = Profile()
    for i in range(n):
        a = [p.alloc(16 + (7 * i + k) % 13) for k in range(6)]
        for x in a:
            p.free(x)
        p.step(i)
    return p


def main(to):
    made = []

    def save(name, what, *options):
        path = os.path.join(to, name)
        what.save(path)
        made.extend((path,) + tuple([o] if isinstance(o, str) else o) for o in (options or ("",)))

    save("leak.json", leak(8, 150), "", "-g t4", "--capacity 1600MiB --context 0", "--capacity 1GiB --context 0")
    save("leak-small.json", leak(20, 8), "", "-g rtx4090")
    save("leak-snapshot.pickle", leak(12, 64, kind=Snapshot), "-g t4")
    save("steady.json", leak(8, 0), "", "-g t4", "--capacity 300MiB --context 0", "--capacity 260MiB --context 0")
    save("varying.json", varying(14), "", "-g t4", "--capacity 150MiB --context 0")
    late = leak(4, 0)
    late.kernel(30000) # goes on long after the last allocation
    save("late.json", late, "-g t4")
    save("holes.pickle", holes(24, 40, 60), "", "--capacity 1000MiB --context 0", "--capacity 1100MiB --context 0",
         "--capacity 1000MiB --context 0 --conf expandable_segments:True")
    save("holes-large.pickle", holes(100, 30, 250), "-g t4", "--capacity 3200MiB --context 0")
    save("split.pickle", holes(8, 60, 30), "--capacity 610MiB --context 0", "--capacity 600MiB --context 0 --conf max_split_size_mb:21")
    save("split-more.pickle", holes(6, 300, 60), "--capacity 2000MiB --context 0", "-g t4")
    save("demand.pickle", holes(200, 60, 30), "-g t4", "--capacity 8GiB --context 100MiB", "--capacity 4GiB")
    save("giant.pickle", holes(10, 4, 40000), "-g t4", "-g a100-80g-sxm")
    save("lag.pickle", streams(30, 5000), "", "-g t4", "--capacity 200MiB --context 0")
    save("lag-none.pickle", streams(30, 0), "-g t4", "--capacity 160MiB --context 0")
    save("two.pickle", devices(2), "-g t4", "--device 0 -g t4", "--capacity 300MiB --context 0")
    save("four.pickle", devices(4), "-g t4", "--device 2 -g t4")
    for mib in (1, 20, 300):
        save("one-%d.pickle" % mib, holes(mib, 3, mib), "", "-g t4")
    save("limit.pickle", holes(100, 40, 100), "--capacity 6GiB --context 0 --fraction 0.5")
    save("beside.pickle", holes(100, 40, 100), "--capacity 6GiB --context 0 --used 2500MiB")
    save("flush.pickle", holes(30, 40, 700), "--capacity 1400MiB --context 0", "--capacity 1900MiB --context 0")
    save("often.pickle", in_turn(1200), "--capacity 700MiB --context 0")
    for line in made:
        print(" ".join(line).rstrip())


main(sys.argv[1])
