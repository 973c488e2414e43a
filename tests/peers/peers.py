# SPDX-License-Identifier: Apache-2.0
"""peers.py PEER FOLDER TRACE OPTION... - the files x.* in FOLDER, which vramcast wrote of TRACE, read by the program that they are
for, and its numbers held against those of `vramcast sim --json` (sim.json)."""
import base64
import importlib.util
import json
import os
import pickle
import re
import subprocess
import sys

PEER, FOLDER, TRACE = sys.argv[1:4]
OPTIONS = {sys.argv[i].lstrip("-"): sys.argv[i + 1] for i in range(4, len(sys.argv), 2)}


def path(name):
    return os.path.join(FOLDER, name)


with open(path("sim.json")) as stream:
    RUN = json.load(stream)["runs"][0]


def same(what, got, want):
    assert got == want, f"{what}: {got!r}, expected {want!r}"


def perfetto():
    import shutil

    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig
    config = TraceProcessorConfig(bin_path=shutil.which("trace_processor_shell"), load_timeout=120)
    processor = TraceProcessor(trace=path("x.perfetto"), config=config)
    try:
        top = {r.n: int(r.v) for r in processor.query(
            "select t.name as n, max(c.value) as v from counter c join counter_track t on c.track_id = t.id group by 1")}
        same("reserved", top["reserved"], RUN["peak_reserved"])
        same("allocated", top["allocated"], RUN["peak_allocated"])
        wrong = {r.name: r.value for r in processor.query(
            "select name, value from stats where severity in ('error', 'data_loss') and value > 0")}
        same("what the trace processor complains of", wrong, {})
        refused = [r.n for r in processor.query("select count(*) as n from slice where name = 'out of memory'")]
        same("refusals", refused, [1 if RUN["ooms"] else 0])
    finally:
        processor.close()


def viz():
    file = os.environ["VIZ"]
    spec = importlib.util.spec_from_file_location("viz_of_torch", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with open(path("x.pickle"), "rb") as stream:
        data = pickle.load(stream)
    # Its own sums assert that each segment is the sum of its blocks.
    stats = module.segsum(data)
    same("segments", int(re.search(r"^segments: (\d+)$", stats, re.M).group(1)), len(data["segments"]))
    for function in (module.memory, module.segments):
        lines = function(data, format_flamegraph=lambda text: text).splitlines()
        same(f"bytes of {function.__name__}()", sum(int(line.rsplit(" ", 1)[1]) for line in lines), RUN["final_reserved"])
    events = sum(len(t) for t in data["device_traces"])
    text = module.trace(data)
    same("events", sum(int(n) for n in re.findall(r"^(\d+) entries$", text, re.M)), events)
    same("refusals", text.count("raise OutOfMemoryError"), RUN["ooms"])
    for page in (module.trace_plot(data), module.segment_plot(data)):
        inside = re.search(r'"base64": "([^"]+)"', page)
        assert inside, "the page holds no snapshot"
        same("the snapshot in the page", pickle.loads(base64.b64decode(inside.group(1)))["segments"], data["segments"])
    done = subprocess.run([sys.executable, file, "stats", path("x.pickle")], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip() == stats.strip(), done.stderr


def pprof():
    def ask(*words):
        return subprocess.run([os.environ["PPROF"], *words, path("x.pprof")], capture_output=True, text=True, check=True).stdout
    total = {}
    for kind in ("inuse_space", "alloc_space"):
        found = re.search(r"Total samples = (\d+)B|% of (\d+)B total|accounting for (\d+)B, 100%",
                          ask("-top", "-unit=B", "-nodefraction=0", "-sample_index=" + kind))
        total[kind] = int(next(filter(None, found.groups())))
    if not RUN["ooms"]:
        same("bytes in use at the peak", total["inuse_space"], RUN["peak_reserved"] - RUN["stranded_at_peak"])
    assert total["alloc_space"] >= total["inuse_space"]
    traces = ask("-traces", "-unit=B")
    same("bytes of all call stacks", sum(map(int, re.findall(r"^ *(\d+)B  ", traces, re.M))), total["inuse_space"])
    with open(path("again.pprof"), "wb") as stream:    # what pprof itself writes of it
        stream.write(subprocess.run([os.environ["PPROF"], "-proto", path("x.pprof")], capture_output=True, check=True).stdout)


def table(what):
    import vramcast
    return vramcast.table(TRACE, what=what, **OPTIONS)


def pandas():
    import pandas as pd
    curve = pd.read_csv(path("x.csv"))
    for key, column in (("peak_reserved", "reserved_max"), ("peak_allocated", "allocated_max")):
        same(key, int(curve[column].max()), RUN[key])
    lines = pd.read_json(path("x.jsonl"), lines=True)
    same("peak in the lines", int(lines[lines["kind"] == "bucket"]["reserved_max"].max()), RUN["peak_reserved"])
    blocks = pd.read_csv(path("blocks.csv"))
    same("blocks in the lines", int((lines["kind"] == "block").sum()), len(blocks))
    # The same numbers by way of the package.
    pd.testing.assert_frame_equal(table("curve").to_frame(), curve, check_dtype=False)
    pd.testing.assert_frame_equal(table("blocks").to_frame()[["id", "size", "born"]], blocks[["id", "size", "born"]])


def pyarrow():
    import pandas as pd
    import pyarrow.csv
    import pyarrow.json
    import pyarrow.parquet
    read = pyarrow.csv.read_csv(path("blocks.csv"))
    made = table("blocks")
    arrow = made.to_arrow()
    for name in ("id", "addr", "size", "requested", "born", "died", "site"):
        same("column " + name, [v or None for v in arrow[name].to_pylist()] if name == "site" else arrow[name].to_pylist(),
             [v or None for v in read[name].to_pylist()] if name == "site" else read[name].to_pylist())
    made.to_parquet(path("blocks.parquet"), compression="zstd")
    back = pyarrow.parquet.read_table(path("blocks.parquet"))
    assert back.equals(arrow), "Parquet changes nothing"
    same("pandas reads the Parquet file", int(pd.read_parquet(path("blocks.parquet"))["size"].sum()), sum(made.columns["size"]))
    lines = pyarrow.json.read_json(path("x.jsonl"))
    same("lines", lines.num_rows, sum(1 for _ in open(path("x.jsonl"))))


globals()[PEER]()
