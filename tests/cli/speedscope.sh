#!/bin/sh
# speedscope.sh - what speedscope.app reads: its own rules for the file, and the same bytes as folded.
. tests/support/tap.sh
run sim traces/lm-train-ctx128.vct -g h200 --no-advice -q -o "$TMP/a.speedscope"; expect "the extension is enough" 0
run export traces/lm-train-ctx128.vct -g h200 --to speedscope -o "$TMP/b.speedscope"; expect "export, too" 0
check "twice the same bytes" cmp "$TMP/a.speedscope" "$TMP/b.speedscope"
run export traces/lm-train-ctx128.vct -g h200 --to folded -o "$TMP/live.folded"; run export traces/lm-train-ctx128.vct -g h200 --to folded:what=all -o "$TMP/all.folded"
if ! command -v python3 > /dev/null; then skip "the form" "no python3"; finish; fi
cat > "$TMP/look.py" <<'P'
import json, sys
doc = json.load(open(sys.argv[1]))
assert doc["$schema"] == "https://www.speedscope.app/file-format-schema.json"
frames = doc["shared"]["frames"]
assert all(isinstance(f["name"], str) and set(f) <= {"name", "file", "line", "col"} for f in frames)
for p in doc["profiles"]:
    assert p["type"] == "sampled" and p["unit"] == "bytes" and p["startValue"] == 0, p
    assert len(p["samples"]) == len(p["weights"]) and p["endValue"] == sum(p["weights"])
    assert all(0 <= i < len(frames) for s in p["samples"] for i in s)
def folded(path):
    stacks = {}
    for line in open(path):
        stack, _, n = line.rstrip("\n").rpartition(" ")
        stacks[stack] = stacks.get(stack, 0) + int(n)
    return stacks
def name(i):
    f = frames[i]
    at = f.get("file", "") + (":%d" % f["line"] if "line" in f else "")
    return (f["name"] + (" (%s)" % at if at else "")).replace(";", ":")
for p, path in zip(doc["profiles"], sys.argv[2:]):
    stacks = {}
    for s, w in zip(p["samples"], p["weights"]):
        key = ";".join(map(name, s))
        stacks[key] = stacks.get(key, 0) + w
    wanted = folded(path)
    assert sum(stacks.values()) == sum(wanted.values()), (sum(stacks.values()), sum(wanted.values()))
    missing = {k for k in wanted if k in stacks and stacks[k] != wanted[k]} | {k for k in wanted if k not in stacks and "(" in k}
    assert len(missing) <= 1, sorted(missing)[:3]   # what no stack is known of is told apart by folded only
print(len(frames), len(doc["profiles"]))
P
check "it is of the form that speedscope asks for, and holds what folded holds" python3 "$TMP/look.py" "$TMP/a.speedscope" "$TMP/live.folded" "$TMP/all.folded"
run sim traces/lm-train-ctx128.vct -g h200 -g rtx4090 --no-advice -q -o "$TMP/two.speedscope"
check "several runs are several profiles" python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); n = len(d["profiles"]); assert n == 4, n; m = len(d["shared"]["frames"]); assert all(i < m for p in d["profiles"] for s in p["samples"] for i in s)' "$TMP/two.speedscope"
# PyTorch's unwinder recorded the stack; it did not ask for the memory
for what in folded pprof speedscope; do
	run export traces/lm-medium-ctx1024.vct --to $what -q -o "$TMP/asks.$what"; expect "$what of a recording with native frames" 0
done
check "no stack ends in the unwinder" sh -c '! grep -qE "unwind|CapturedTraceback|gather_with_cpp" "$1"' sh "$TMP/asks.folded"
check "nor does one of speedscope" python3 -c 'import json, sys
d = json.load(open(sys.argv[1])); names = [f["name"] for f in d["shared"]["frames"]]
assert not any("unwind" in names[s[-1]] for p in d["profiles"] for s in p["samples"])' "$TMP/asks.speedscope"
check "nor one of pprof" sh -c '! (gzip -dc "$1" 2> /dev/null || cat "$1") | grep -aq "torch::unwind"' sh "$TMP/asks.pprof"
finish
