# SPDX-License-Identifier: Apache-2.0
"""formats.py - reads what vramcast writes for other programs, with nothing but the standard library,
and compares it with the numbers of `vramcast sim --json`. Usage: formats.py FORMAT FILE SIM.json"""
import csv, gzip, io, json, re, sys


def wire(data):
    """(field, value) of a protocol buffer message: int for varints, bytes for the rest."""
    at = 0

    def varint():
        nonlocal at
        v = shift = 0
        while True:
            b = data[at]
            at += 1
            v |= (b & 0x7F) << shift
            shift += 7
            if b < 0x80:
                return v

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 2:
            n = varint()
            assert at + n <= len(data), "a field runs over the end"
            at += n
            yield key >> 3, data[at - n:at]
        else:
            raise AssertionError("wire type %d" % (key & 7))


def fields(data):
    out = {}
    for k, v in wire(data):
        out.setdefault(k, []).append(v)
    return out


def packed(data):
    out = []
    at = 0
    while at < len(data):
        v = shift = 0
        while True:
            b = data[at]
            at += 1
            v |= (b & 0x7F) << shift
            shift += 7
            if b < 0x80:
                break
        out.append(v)
    return out


def same(what, got, want):
    assert got == want, "%s: %r, expected %r" % (what, got, want)


def check_csv(path, run):
    rows = list(csv.DictReader(open(path, newline="")))
    assert rows, "no rows"
    for key, column in (("peak_allocated", "allocated_max"), ("peak_reserved", "reserved_max"),
                        ("peak_active", "active_max"), ("peak_requested", "requested_max")):
        same(key, max(int(r[column]) for r in rows), run[key])
    at = 0
    for r in rows:
        same("events of the buckets join", int(r["first_event"]), at)
        at = int(r["last_event"]) + 1
        layers = sum(int(r[k]) for k in ("persistent", "step", "phase", "short"))
        assert layers <= int(r["allocated_max"]), "layers above the total"
    same("flushes", sum(int(r["flushes"]) for r in rows), run["flushes"])


def check_blocks(path, run):
    rows = list(csv.DictReader(open(path, newline="")))
    same("largest moment of the blocks", live_peak(rows), run["peak_active"])


def live_peak(rows):
    """Sum of sizes of what lives, highest over time; only right without deferred frees."""
    change = []
    for r in rows:
        change.append((int(r["born"]) if r["at_start"] in ("0", False) else -1, 1, int(r["size"])))
        if r["died"] not in ("", None):
            change.append((int(r["died"]), 0, -int(r["size"])))
    now = top = 0
    for _, _, size in sorted(change):
        now += size
        top = max(top, now)
    return top


def check_jsonl(path, run):
    rows = [json.loads(line) for line in open(path)]
    same("first line", (rows[0]["kind"], rows[0]["schema"]), ("run", "vramcast.jsonl/1"))
    same("peak", rows[0]["peak_reserved"], run["peak_reserved"])
    buckets = [r for r in rows if r["kind"] == "bucket"]
    blocks = [r for r in rows if r["kind"] == "block"]
    same("peak of the curve", max(b["reserved_max"] for b in buckets), run["peak_reserved"])
    same("largest moment of the blocks", live_peak(blocks), run["peak_active"])


def check_json(path, run):
    doc = json.load(open(path))
    same("schema", doc["schema"], "vramcast.result/1")
    got = doc["runs"][0]
    shared = [k for k in run if k in got and k != "gpu"]
    must = {"model", "torch", "conf", "capacity", "limit", "verdict", "peak_requested", "peak_allocated",
            "peak_active", "peak_reserved", "peak_used", "final_reserved", "segments_peak",
            "segment_allocs", "segment_frees", "flushes", "ooms", "peak_event", "stranded_at_peak",
            "unused_at_peak", "lower_bound", "interval", "oom"}
    assert must <= set(shared), "missing: %s" % sorted(must - set(shared))
    for k in shared:
        a, b = got[k], run[k]
        if k == "oom" and a:
            a, b = dict(a), dict(b)
            same("holders", [(h.get("site"), h["bytes"]) for h in a.pop("holders")],
                 [(h.get("site"), h["bytes"]) for h in b.pop("holders")])
        same(k, a, b)
    same("peak of the curve", max(c["reserved_max"] for c in got["curve"]), run["peak_reserved"])


def check_chrome(path, run):
    doc = json.load(open(path))
    ev = doc["traceEvents"]
    c = [e["args"] for e in ev if e["ph"] == "C"]
    same("allocated", max(a["allocated"] for a in c), run["peak_allocated"])
    same("reserved", max(a["allocated"] + a["cached"] for a in c), run["peak_reserved"])
    ts = [e["ts"] for e in ev if e["ph"] == "C"]
    assert ts == sorted(ts), "counters are not in order of time"
    depth = 0
    for e in ev:
        depth += {"B": 1, "E": -1}.get(e["ph"], 0)
        assert depth >= 0, "an end without a begin"
    same("an instant for the refusal", any(e["name"] == "out of memory" for e in ev), run["ooms"] > 0)


def check_perfetto(path, run):
    tracks, counters, depth = {}, {}, {}
    trouble = 0
    for k, packet in wire(open(path, "rb").read()):
        same("field of the trace", k, 1)
        p = fields(packet)
        same("sequence", p[10], [1])
        if 60 in p:
            d = fields(p[60][0])
            tracks[d[1][0]] = d[2][0].decode() if 2 in d else "process"
        if 11 in p:
            e = fields(p[11][0])
            assert e[11][0] in tracks, "an event on an undeclared track"
            name = tracks[e[11][0]]
            if e[9] == [4]:
                counters.setdefault(name, []).append((p[8][0], e[30][0]))
            elif e[9][0] in (1, 2):
                depth[name] = depth.get(name, 0) + (1 if e[9] == [1] else -1)
                assert depth[name] >= 0, "an end without a begin"
            trouble += e.get(23) == [b"out of memory"]
    same("allocated", max(v for _, v in counters["allocated"]), run["peak_allocated"])
    same("reserved", max(v for _, v in counters["reserved"]), run["peak_reserved"])
    ts = [t for t, _ in counters["allocated"]]
    assert ts == sorted(ts), "counters are not in order of time"
    same("an instant for the refusal", trouble, 1 if run["ooms"] else 0)


def check_schema(path, run):
    """The same file through the message definitions of the perfetto project (PyPI: perfetto)."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
    t = pb.Trace()
    t.ParseFromString(open(path, "rb").read())
    name = {p.track_descriptor.uuid: p.track_descriptor.name for p in t.packet if p.HasField("track_descriptor")}
    c = [(name[p.track_event.track_uuid], p.track_event.counter_value) for p in t.packet
         if p.HasField("track_event") and p.track_event.type == pb.TrackEvent.TYPE_COUNTER]
    same("reserved", max(v for n, v in c if n == "reserved"), run["peak_reserved"])
    same("allocated", max(v for n, v in c if n == "allocated"), run["peak_allocated"])


def check_processor(path, run):
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig
    import shutil
    tp = TraceProcessor(trace=path, config=TraceProcessorConfig(bin_path=shutil.which("trace_processor_shell")))
    q = "select t.name as n, max(c.value) as v from counter c join counter_track t on c.track_id = t.id group by 1"
    top = {r.n: int(r.v) for r in tp.query(q)}
    same("reserved", top["reserved"], run["peak_reserved"])
    same("allocated", top["allocated"], run["peak_allocated"])
    tp.close()


def in_use(run):
    return run["peak_reserved"] - run["stranded_at_peak"]


def check_folded(path, run):
    total = 0
    for line in open(path, encoding="utf-8"):
        m = re.fullmatch(r"([^;\n]+(?:;[^;\n]+)*) (\d+)\n", line)
        assert m, "not a folded stack: %r" % line
        total += int(m.group(2))
    if not run["ooms"]:
        same("bytes in use at the peak", total, in_use(run))


def check_pprof(path, run):
    p = fields(gzip.open(path).read())
    text = [s.decode() for s in p[6]]
    same("first string", text[0], "")
    types = [text[fields(t)[1][0]] for t in p[1]]
    functions = {fields(f)[1][0]: text[fields(f)[2][0]] for f in p[5]}
    locations = {fields(x)[1][0]: fields(fields(x)[4][0])[1][0] for x in p[4]}
    same("ids of functions", sorted(functions), list(range(1, len(functions) + 1)))
    total = [0] * len(types)
    for s in p[2]:
        s = fields(s)
        for x in packed(s[1][0]):
            assert locations[x] in functions
        values = packed(s[2][0])
        same("values of a sample", len(values), len(types))
        total = [a + b for a, b in zip(total, values)]
    total = dict(zip(types, total))
    if not run["ooms"]:
        same("bytes in use at the peak", total["inuse_space"], in_use(run))
    assert total["alloc_space"] >= total["inuse_space"]
    assert text[p[14][0]] == "inuse_space"


def check_openmetrics(path, run):
    text = open(path).read()
    assert text.endswith("# EOF\n"), "no EOF"
    value = {}
    for line in text.splitlines():
        if line.startswith("#"):
            assert re.match(r"# (TYPE|UNIT|HELP) vramcast_[a-z_]+ .+|# EOF$", line), line
            continue
        m = re.fullmatch(r'(vramcast_[a-z_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\.)*",?)+)\} (\d+)', line)
        assert m, "not a sample: " + line
        value[m.group(1), dict(re.findall(r'([a-z]+)="((?:[^"\\]|\\.)*)"', m.group(2))).get("verdict")] = int(m.group(3))
    same("reserved", value["vramcast_peak_reserved_bytes", None], run["peak_reserved"])
    same("used", value["vramcast_peak_used_bytes", None], run["peak_used"])
    same("verdict", [k[1] for k, v in value.items() if k[1] and v], [run["verdict"]])
    if run["capacity"]:
        same("headroom", value["vramcast_headroom_bytes", None], max(0, run["capacity"] - run["peak_used"]))


def check_markdown(path, run):
    text = open(path, encoding="utf-8").read()
    tables = [re.findall(r"(?<!\\)\|", line) for line in text.splitlines() if line.startswith("|")]
    assert len(tables) >= 3 and len(set(map(len, tables[:3]))) == 1, "rows of different width"
    word = {"fits": "fits" if run["capacity"] else "no card given", "flushes": "flush", "oom": "out of memory"}[run["verdict"]]
    assert re.search(r"\*\*[^*]*%s[^*]*\*\*" % word, text), "no verdict " + word
    if run["oom"]:
        assert "```\n%s\n```" % run["oom"]["message"] in text, "the message is not there word for word"


run = json.load(open(sys.argv[3]))["runs"][0]
globals()["check_" + sys.argv[1]](sys.argv[2], run)
