# SPDX-License-Identifier: Apache-2.0
"""torch_truth.py TRUTH VRAMCAST TRACE...: recordings of windows of one run against what torch.profiler saw in the same
process (torch_loop.py wrote it). Compared are, for each window: every event of the CPU's allocator, its kind, address, size
and place in the order; behind each one the bytes that the replay holds, with PyTorch's own total; the blocks that were
there when the window began, with those that were live then; at each step the replay with the program's account of its
tensors. Prints a line of sums; what differs goes to standard error, and the exit code is 1."""
import csv
import io
import subprocess
import sys

MARK, SPAN = 1 << 20, 16  # as in torch_loop.py; so many events find a window
vramcast = sys.argv[2]
account, events = {}, []  # of the program, of the profiler
for line in open(sys.argv[1]):
    word = [int(w) for w in line.split()[1:]]
    if line.startswith("step"):
        account[word[0]] = word[1]
    else:
        events.append(tuple(word))
pairs = [e[:2] for e in events]
places = {}
for i in range(len(pairs) - SPAN + 1):
    places.setdefault(tuple(pairs[i:i + SPAN]), []).append(i)


def said(*words):
    return subprocess.run([vramcast, *words], capture_output=True, text=True, check=True).stdout


def recorded(path):
    """(size, address) of each event, a free's size less than 0; its number; and how many blocks were there before."""
    blocks, out, number = {}, [], []
    for line in said("dump", path).splitlines():
        word = line.split()
        field = dict(x.split("=", 1) for x in word[3:] if "=" in x)
        if word[2] == "alloc":
            blocks[field["id"]] = int(field["size"]), int(field["addr"], 16)
            out.append((int(word[1]),) + blocks[field["id"]])
        elif word[2] == "free":
            size, at = blocks[field["id"]]
            out.append((int(word[1]), -size, at))
        if word[2] in ("alloc", "free"):
            number.append(int(word[0]))
    before = next(i for i, e in enumerate(out) if e[0] != out[0][0])
    return [e[1:] for e in out], number, before


def replayed(path, number):
    """Bytes behind each event, by the lives of the replay's blocks; and is nothing else reserved?"""
    change = [0] * (number[-1] + 1)
    for row in csv.DictReader(io.StringIO(said("export", path, "--to", "csv:what=blocks", "-o", "-"))):
        change[int(row["born"])] += int(row["size"])
        if row["died"]:
            change[int(row["died"])] -= int(row["size"])
    for i in range(1, len(change)):
        change[i] += change[i - 1]
    curve = list(csv.DictReader(io.StringIO(said("export", path, "--to", "csv", "-o", "-"))))
    same = all(row["allocated_" + end] == row["reserved_" + end] for row in curve for end in ("min", "max"))
    return [change[i] for i in number], same and max(int(row["allocated_max"]) for row in curve) == max(change)


def live_before(i):
    live = {}
    for size, at, _ in events[:i]:
        if size > 0:
            live[at] = size
        else:
            live.pop(at, None)
    return live


def find(mine, since):
    """Where the window lies in what the profiler saw: the place behind `since` with the fewest differences."""
    least, best = len(mine) + 1, None
    for at in range(0, min(len(mine) - SPAN, 64), 8):  # an event that is missing spoils some of them
        for i in places.get(tuple(mine[at:at + SPAN]), []):
            i -= at
            wrong = sum(m != p for m, p in zip(mine, pairs[max(i, 0):i + len(mine)]))
            if i >= since and wrong < least:
                least, best = wrong, i
    return best


total = {"windows": 0, "events": 0, "old blocks": 0, "steps": 0}
bad, since = [], 0
for path in sys.argv[3:]:
    name = path.rsplit("/", 1)[-1]
    mine, number, before = recorded(path)
    i = find(mine[before:], since)
    if i is None:
        bad.append("%s: the profiler saw nothing like it" % name)
        continue
    live, kept = live_before(i), {at: size for size, at in mine[:before]}
    if kept != live:
        bad.append("%s: %d blocks there before, the profiler knows %d; not in both: %s"
                   % (name, len(kept), len(live), sorted(set(kept.items()) ^ set(live.items()))[:3]))
    held, same = replayed(path, number)
    if not same:
        bad.append("%s: the replay reserves other bytes than it allocates" % name)
    for k in range(before, len(mine)):
        size, at, sum_ = events[i + k - before] if i + k - before < len(events) else (0, 0, 0)
        if mine[k] != (size, at):
            bad.append("%s: event %d is %s, the profiler saw %s" % (name, k, mine[k], (size, at)))
            break
        if held[k] != sum_:
            bad.append("%s: behind event %d the replay holds %d bytes, PyTorch %d" % (name, k, held[k], sum_))
            break
        step = size - MARK
        if step in account and k > 0:
            total["steps"] += 1
            if held[k - 1] != account[step]:
                bad.append("%s: step %d holds %d bytes, by the program's account %d" % (name, step, held[k - 1], account[step]))
                break
    total["windows"] += 1
    total["events"] += len(mine) - before
    total["old blocks"] += before
    since = i + len(mine) - before
print(", ".join("%d %s" % (n, what) for what, n in total.items()) + ", %d differ" % len(bad))
print("\n".join(bad[:5]), file=sys.stderr)
sys.exit(bool(bad))
