# SPDX-License-Identifier: Apache-2.0
"""torch_compare.py DUMP REFERENCE: the recording against PyTorch's own trace, event by event. The
recording may go on longer (the reference ends before the program does). Prints a verdict."""
import sys

KINDS = {"alloc": "alloc", "free": "free_requested", "free_done": "free_completed",
         "segment_alloc": "segment_alloc", "segment_free": "segment_free",
         "segment_map": "segment_map", "segment_unmap": "segment_unmap"}


def recorded(path):
    blocks, out = {}, []
    for line in open(path):
        word = line.split()
        field = dict(x.split("=", 1) for x in word[3:] if "=" in x)
        if word[2] not in KINDS or "label" in field:
            continue
        if word[2] == "alloc":
            blocks[field["id"]] = (int(field["addr"], 16), int(field["size"]), field.get("stream", "0"))
        if word[2] in ("free", "free_done"):
            entry = blocks[field["id"]]
        else:
            entry = (int(field["addr"], 16), int(field["size"]), field.get("stream", "0"))
        out.append((KINDS[word[2]],) + entry)
    return out


def reference(path):
    return [(w[0], int(w[1], 16), int(w[2]), w[3]) for w in (x.split() for x in open(path))
            if w[0] in KINDS.values()]


def deferred_only(trace):
    """PyTorch notes each free twice; the recording says when it came through only if that was later."""
    out = []
    for e in trace:
        if e[0] == "free_completed" and out and out[-1][:2] == ("free_requested", e[1]):
            continue
        out.append(e)
    return out


mine, theirs = deferred_only(recorded(sys.argv[1])), deferred_only(reference(sys.argv[2]))
streams, bad = {}, []
for i, (m, r) in enumerate(zip(mine, theirs)):
    if m[:3] != r[:3] or (r[0] == "alloc" and streams.setdefault(m[3], r[3]) != r[3]):
        bad.append((i, m, r))
if bad or len(mine) < len(theirs) or len(theirs) < 1000:
    print("DIFFERENT", len(mine), len(theirs), bad[:3])
    sys.exit(1)
print("%d of %d equal (order, address, size, stream)" % (len(theirs), len(theirs)))
