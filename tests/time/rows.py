# SPDX-License-Identifier: Apache-2.0
"""rows.py ROWS.csv FOLDER [NAME]... - dry runs of the jobs of a table (its columns: docs/measurements/time.md), with
megatron.py, and the step that each takes beside the measured one. Recordings stay in FOLDER and are not made again."""
import csv
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def arguments(r):
    a = ["--hidden", r["hidden"], "--ffn", r["ffn"], "--layers", r["layers"], "--heads", r["heads"],
         "--kv-heads", r["kv_heads"], "--head-dim", r["head_dim"], "--vocab", r["vocab"], "--seq", r["seq"],
         "--microbatches", r["num_microbatches"], "--tp", r["tp"], "--pp", r["pp"], "--cp", r["cp"], "--ep", r["ep"]]
    if r["moe_experts"]:
        a += ["--experts", r["moe_experts"], "--topk", r["moe_topk"], "--moe-ffn", r["moe_ffn"], "--shared-ffn",
              r["moe_shared_ffn"] or "0", "--dense-layers", r["dense_layers"] or "0"]
    if r["mla"]:
        w = r["mla"].split()
        v = dict(zip(w[::2], w[1::2]))
        a += ["--mla", ",".join(v[k] for k in ("q_lora", "kv_lora", "qk", "rope", "v"))]
    return a


def play(r, folder, rank):
    path = os.path.join(folder, "%s.%d.vct" % (r["case"], rank))
    made = path.replace(".vct", ".rank%d.vct" % rank)
    if not os.path.exists(made):
        subprocess.run(["vramcast", "dryrun", "-q", "-g", "b200-180g", "--world", r["gpus"], "--rank", str(rank), "--stacks",
                        "off", "--values", "off", "-o", path, "--", "python", os.path.join(HERE, "megatron.py"), *arguments(r), "--steps", "3"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return made


def main():
    table, folder, *names = sys.argv[1:]
    for r in csv.DictReader(open(table)):
        if names and not any(n in r["case"] for n in names):
            continue
        stage = int(r["gpus"]) // int(r["pp"])
        files = [play(r, folder, k * stage) for k in range(int(r["pp"]))]
        out = subprocess.run(["vramcast", "ranks", "--json", *files], capture_output=True, text=True).stdout
        t = json.loads(out)["time"]
        step, low, high = [(t[k] or 0) / 1e6 for k in ("step_ns", "low_ns", "high_ns")]
        real = float(r["real_step_ms"])
        print("%-52s real %8.1f  here %8.1f  %+6.1f %%  (%.0f .. %.0f)%s  simumax %+6.1f %%" % (
            r["case"], real, step, 100 * (step / real - 1), low, high, "" if low <= real <= high else " OUTSIDE",
            100 * (float(r["simumax_step_ms"]) / real - 1)), flush=True)


main()
