# SPDX-License-Identifier: Apache-2.0
"""compare.py - what the checks with a real PyTorch compare. Prints one sentence; exit code 0 = as it
should be.

    compare.py same DUMP DUMP              PyTorch's own record and a recording, by `vramcast dump`
    compare.py oom SNAPSHOT OUTPUT SIM DUMP  a run that ran out against what `vramcast sim --json` says of
                                       the recording in DUMP
    compare.py exact SIM                   replay under the recorded settings reproduced every address
    compare.py deferred SNAPSHOT           frees were deferred by other streams
    compare.py stacks SNAPSHOT EXPORTED  call stacks of PyTorch's own history and of a recording
    compare.py rerun RECORDED SNAPSHOT     a rerun of a recording from a real card"""
import json
import pickle
import re
import sys

# action of PyTorch's trace -> kind in a dump
KINDS = {"alloc": "alloc", "free_requested": "free", "free_completed": "free_done",
         "segment_alloc": "segment_alloc", "segment_free": "segment_free",
         "segment_map": "segment_map", "segment_unmap": "segment_unmap", "oom": "oom"}


class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError("a snapshot holds plain data only")


def load(path):
    with open(path, "rb") as f:
        return Plain(f).load()


def trace(snapshot):
    return [e for e in snapshot["device_traces"][0] if e["action"] in KINDS]


def finish(good, sentence):
    print(sentence)
    sys.exit(0 if good else 1)


def dumped(path, events=None):
    """(kind, size, address) of the first lines of `vramcast dump`."""
    out = []
    for line in list(open(path))[:events]:
        words = line.split()
        fields = dict(w.split("=", 1) for w in words if "=" in w)
        kind = next((w for w in words if w in KINDS.values()), None)
        if kind:
            out.append((kind, int(fields.get("size", 0)), int(fields.get("addr", "0"), 16)))
    return out


def plain(path):
    """Without what only one side has: sizes of frees, and a completion right behind its request."""
    out = []
    for kind, n, at in dumped(path):
        n = n if kind in ("alloc", "segment_alloc", "segment_map") else 0
        if kind != "oom" and not (kind == "free_done" and out[-1:] == [("free", 0, at)]):
            out.append((kind, n, at))
    return out


def same(snapshot, recording):
    """Both as dumps. Frees carry no size in a recording; a pass over the heap is no event."""
    want, have = plain(snapshot), plain(recording)
    n = next((i for i, (a, b) in enumerate(zip(want, have)) if a != b), min(len(want), len(have)))
    if n == len(want) == len(have):
        finish(n > 0, "%d events, all alike" % n)
    finish(False, "%d and %d events, alike up to %d: %s / %s" %
           (len(want), len(have), n, want[n:n + 2], have[n:n + 2]))


def requests(kinds):
    """Requests up to the failure: what else is in a trace differs between a big card and a small one."""
    kinds = list(kinds)
    kinds = kinds[:kinds.index("oom")] if "oom" in kinds else kinds
    return sum(k in ("alloc", "free", "free_requested") for k in kinds)


def oom(snapshot, output, sim, dump):
    before = requests(e["action"] for e in trace(load(snapshot)))
    message = re.search("^message: (.*)$", open(output).read(), re.M)
    run = json.load(open(sim))["runs"][0]
    if not message or not run["oom"]:
        finish(not message and not run["oom"], "ran out: %s, predicted: %s" %
               (bool(message), run["verdict"]))
    if message[1] != run["oom"]["message"]:
        finish(False, "message: %s; predicted: %s" % (message[1], run["oom"]["message"]))
    said = requests(k for k, _, _ in dumped(dump, run["oom"]["event"]))
    finish(before == said, "out of memory after %d requests, predicted %d" % (before, said))


def exact(sim):
    f = json.load(open(sim))["fidelity"]
    finish(f["checked"] and f["exact"], "%s events compared, %s address mismatches, first: %s" %
           (f["events_compared"], f["address_mismatches"], f["first_divergence"]))


def deferred(snapshot):
    last, n = None, 0
    for e in trace(load(snapshot)):
        n += e["action"] == "free_completed" and last != ("free_requested", e["addr"])
        last = (e["action"], e["addr"])
    finish(n > 0, "%d frees came through later" % n)


def programs(frames):
    """Without what the null GPU adds: a recording leaves out the Python that computes values, below the
    operation that the program called, and PyTorch's way into it (2.15 on)."""
    ours = [f[0].endswith("/vramcast_null_values.py") for f in frames]
    cut = [i for i, f in enumerate(frames) if ours[i] and f[2] == "__torch_dispatch__"]
    at = cut[-1] + 1 if cut else 0
    while cut and at < len(frames) and frames[at][0].endswith(("/torch/_compile.py", "/torch/_dynamo/eval_frame.py")):
        at += 1
    return [f for i, f in enumerate(frames) if i >= at and not ours[i]]


def stacks(snapshot, exported):
    want, have = ([(e["action"], [(f["filename"], f["line"], f["name"]) for f in e.get("frames", [])])
                   for e in trace(load(s)) if e["action"] in ("alloc", "oom")] for s in (snapshot, exported))
    want = [(action, programs(frames)) for action, frames in want]
    n = next((i for i, (a, b) in enumerate(zip(want, have)) if a != b), min(len(want), len(have)))
    if n < max(len(want), len(have)):
        finish(False, "%d and %d stacks, alike up to %d: %s / %s" %
               (len(want), len(have), n, str(want[n:n + 1])[:600], str(have[n:n + 1])[:600]))
    frames = [f for _, s in want for f in s]
    finish(frames and want[-1], "%d stacks, %d frames, the deepest %d, all alike" %
           (n, len(frames), max(len(s) for _, s in want)))


def curve(snapshot):
    """Peak of allocated bytes while the trace ran, from the blocks at its end backwards."""
    rounded = [(e["action"], (e["size"] + 511) // 512 * 512) for e in trace(snapshot)
               if e["action"] in ("alloc", "free_requested")]
    end = sum(b["size"] for s in snapshot["segments"] for b in s["blocks"]
              if b["state"] == "active_allocated")
    now = end - sum(n if a == "alloc" else -n for a, n in rounded)
    peak = now
    for action, n in rounded:
        now += n if action == "alloc" else -n
        peak = max(peak, now)
    return peak


def rerun(recorded, mine):
    a, b = load(recorded), load(mine)
    x, y = ([(e["action"], e["size"]) for e in trace(s)
             if e["action"] in ("alloc", "free_requested")] for s in (a, b))
    n = next((i for i, (u, v) in enumerate(zip(x, y)) if u != v), min(len(x), len(y)))
    peaks = curve(a), curve(b)
    reserved = [sum(s["total_size"] for s in d["segments"]) for d in (a, b)]
    off = abs(peaks[1] - peaks[0]) / peaks[0]
    finish(n == len(x) == len(y) and off <= 0.01,
           "%d of %d events alike, peak %.1f / %.1f MiB (%.2f %%), reserved %.0f / %.0f MiB" %
           (n, len(x), peaks[0] / 2**20, peaks[1] / 2**20, 100 * off, reserved[0] / 2**20,
            reserved[1] / 2**20))


{"same": same, "oom": oom, "exact": exact, "deferred": deferred, "stacks": stacks,
 "rerun": rerun}[sys.argv[1]](*sys.argv[2:])
