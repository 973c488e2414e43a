# SPDX-License-Identifier: Apache-2.0
"""roundtrip.py - compares two PyTorch memory snapshots field by field; only what both layouts have.
Usage: roundtrip.py ORIGINAL WRITTEN"""
import gzip, pickle, pickletools, sys


def load(path):
    data = open(path, "rb").read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


ALLOWED = set("PROTO MARK EMPTY_DICT EMPTY_LIST SETITEMS APPENDS BININT BININT1 BININT2 LONG1 BINFLOAT "
              "NEWTRUE NEWFALSE SHORT_BINUNICODE BINUNICODE MEMOIZE BINGET LONG_BINGET TUPLE2 STOP".split())
def frames(block):
    """Of what lives; torch 2.0 has them in the first entry of the block's history."""
    if "history" in block:
        block = block["history"][0] if block["history"] else {}
    return [] if block.get("state") == "inactive" else [
        (f["name"], f["line"], f["filename"]) for f in block.get("frames", [])]


raw = load(sys.argv[2])
items = [0]  # values above each mark
for op, arg, _ in pickletools.genops(raw):
    if op.name == "MARK":
        items.append(0)
    elif op.name in ("APPENDS", "SETITEMS"):
        assert items[-1] <= 1000, "%d items in one batch: viewers overflow" % items[-1]
        items.pop()
    elif op.name not in ("PROTO", "MEMOIZE", "STOP"):
        items[-1] += -1 if op.name == "TUPLE2" else 1
    assert op.name in ALLOWED, "opcode %s is not for every viewer" % op.name
    assert op.name != "LONG1" or abs(arg) < 2 ** 53, "a number that JavaScript cannot hold"
a, b = pickle.loads(load(sys.argv[1])), pickle.loads(raw)
if isinstance(a, list):
    a = {"segments": a, "device_traces": []}
key = ("address", "total_size", "stream", "device", "segment_type", "segment_pool_id", "is_expandable",
       "allocated_size", "active_size")
sa = sorted(a["segments"], key=lambda s: (s["device"], s["address"]))
sb = sorted(b["segments"], key=lambda s: (s["device"], s["address"]))
assert len(sa) == len(sb), "%d segments, written %d" % (len(sa), len(sb))
for x, y in zip(sa, sb):
    for k in key:
        assert k not in x or k not in y or x[k] == y[k], "segment %x: %s %r, written %r" % (x["address"], k, x[k], y[k])
    assert len(x["blocks"]) == len(y["blocks"]), "segment %x: blocks" % x["address"]
    at = x["address"]
    for p, q in zip(x["blocks"], y["blocks"]):
        state = p["state"].replace("awaiting", "pending")
        assert (at, p["size"], state) == (q.get("address", at), q["size"], q["state"]), "block %x" % at
        if state != "inactive" and "requested_size" in p and "requested_size" in q:
            assert p["requested_size"] == q["requested_size"], "block %x: requested %d, written %d" % (
                at, p["requested_size"], q["requested_size"])
        assert frames(p) == frames(q), "frames of %x" % at
        at += p["size"]
    assert at == y["address"] + y["total_size"], "blocks do not fill segment %x" % y["address"]
n = 0
for x, y in zip(a["device_traces"], b["device_traces"]):
    x = [e for e in x if e["action"] != "snapshot"]
    assert len(x) == len(y), "%d events, written %d" % (len(x), len(y))
    for i, (p, q) in enumerate(zip(x, y)):
        for k in ("action", "addr", "device_free", "size", "stream"):
            assert p.get(k) == q.get(k), "event %d: %s %r, written %r (%s)" % (i, k, p.get(k), q.get(k), p["action"])
        assert frames(p) == frames(q), "frames of event %d" % i
        if p["action"] != "free_completed" and "time_us" in p and "time_us" in q:
            assert p["time_us"] == q["time_us"], "time of event %d" % i
        n += 1
print("%d segments, %d events the same" % (len(sa), n))
