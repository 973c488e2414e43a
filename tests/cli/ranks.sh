#!/bin/sh
# ranks.sh - the recordings of a job: each says what `sim` says of it, equal ones are one group.
. tests/support/tap.sh
for i in 0 1 3; do cp traces/lm-train-ctx128.vct "$TMP/run.rank$i.vct"; done
cp traces/lm-medium-ctx1024.vct "$TMP/run.rank2.vct"
cp traces/decomfl.vct "$TMP/run.vct"
set -- "$TMP/run.rank2.vct" "$TMP/run.vct" "$TMP/run.rank3.vct" "$TMP/run.rank0.vct" "$TMP/run.rank1.vct"

run ranks "$@"
expect "who needs most, and which are alike" 0 '5 ranks: 5 fit; rank 0 needs the most, 62.46 GiB reserved'
expect "equal ranks are one group" 0 '0-1,3  *3  *yes  *62.46 GiB'
expect "why another is not like them" 0 'run.rank2.vct is not like .*run.rank0.vct: -39.02 GiB reserved, -1177 allocations'
expect "with the place where it begins" 0 'the first difference is event 1632: 5.00 MiB at model.py:57 forward'
expect "a rank without a number is called by its file" 0 '/run.vct  *1 '
run ranks "$@" --capacity 30GiB
expect "one that runs out decides" 3 '5 ranks: 2 fit, 3 run out of memory; rank 0 needs the most, 62.46'
expect "who dies first" 3 'rank 0 dies first, after .*, and 2 others as early: event'

cat > "$TMP/ranks.py" <<'P'
import json, subprocess, sys
program, *words = sys.argv[1:]
files = [w for w in words if w.endswith(".vct")]
options = [w for w in words if not w.endswith(".vct")]
def ask(*a): return json.loads(subprocess.run([program, *a, "--json", "-q"], capture_output=True, text=True).stdout)
whole = ask("ranks", *words)
sims = {f: ask("sim", f, *options, "--no-advice")["runs"][0] for f in files}
for k in whole["ranks"]:
    s = sims[k["trace"]]
    for field in "verdict", "peak_reserved", "peak_allocated", "peak_used", "level", "reproduced":
        assert k[field] == s[field], (k["trace"], field, k[field], s[field])
    free = ask("sim", k["trace"], "--no-advice", "--capacity", "1TiB")["runs"][0]
    assert k["need"] == free["peak_reserved"], (k["need"], free["peak_reserved"])
needs = [k["need"] for k in whole["ranks"]]
assert (whole["largest"], whole["least"], whole["mean"]) == (max(needs), min(needs), sum(needs) // len(needs))
assert abs(whole["imbalance"] - (max(needs) * len(needs) / sum(needs) - 1)) < 1e-9
assert sum(g["count"] for g in whole["groups"]) == len(files) == whole["traces"]
dead = {f: s["oom"] for f, s in sims.items() if s["verdict"] == "oom"}
assert whole["deaths"] == len(dead)
if dead:
    first = whole["first_to_die"]
    key = {"step": "steps_before", "time": "time_ns", "event": "event"}[first["by"]]
    assert dead[first["trace"]][key] == min(o[key] for o in dead.values())
    assert dead[first["trace"]]["request"] == first["request"]
print("same")
P
if python3 -c '' 2> /dev/null; then
	check "each is what sim says of it" test "$(python3 "$TMP/ranks.py" "$VRAMCAST" "$@")" = same
	check "and where some run out" test "$(python3 "$TMP/ranks.py" "$VRAMCAST" "$@" --capacity 30GiB)" = same
	check "by steps" test "$(python3 "$TMP/ranks.py" "$VRAMCAST" tests/recordings/eval-*.vct --capacity 200MiB)" = same
else
	skip "each is what sim says of it" "no python3"
fi
"$VRAMCAST" ranks --json -j 1 "$@" > "$TMP/one"
"$VRAMCAST" ranks --json -j 2 "$@" > "$TMP/two"
check "threads change no byte" cmp "$TMP/one" "$TMP/two"

printf 'vramcast-golden 1\ntotal 1073741824\nevents auto\nm 1 4194304 0\nm 2 8388608 0\nf 1\nf 2\n' > "$TMP/a.rank0"
printf 'vramcast-golden 1\ntotal 1073741824\nevents auto\nm 2 8388608 0\nm 1 4194304 0\nf 1\nf 2\n' > "$TMP/a.rank1"
run ranks "$TMP/a.rank0" "$TMP/a.rank1"
expect "the same blocks in another order are still one group, and it says so" 0 '0-1  *2  *no '

expect "where all need as much it says so" 0 '2 ranks: 2 fit; each needs 20.00 MiB reserved'

# Both die in the same call; by its own clock the first one is earlier, by steps the second.
run ranks tests/recordings/leak-graph.vct tests/recordings/masked-32.vct --capacity 150MiB
expect "the step tells who dies first, not the time since each began" 3 'masked-32.vct dies first, after 1 step: event 178'
printf 'vramcast-golden 1\ntotal 1073741824\nevents auto\nm 1 4194304 0\nm 2 8388608 0\nm 3 2147483648 0\n' > "$TMP/d.rank0"
printf 'vramcast-golden 1\ntotal 1073741824\nevents auto\nm 1 4194304 0\nm 3 2147483648 0\nm 2 4194304 0\n' > "$TMP/d.rank1"
run ranks "$TMP/d.rank0" "$TMP/d.rank1" --capacity 1GiB
expect "without steps and times the number of the event" 3 'rank 1 dies first, by the number of the event: event 1 asks for 2.00 GiB'
expect "as many requests of other sizes are another group" 3 '  0  *1  yes'

echo nonsense > "$TMP/nonsense"
run ranks "$TMP/run.rank0.vct" "$TMP/nonsense" --json
expect "a file that is none is named" 1 '' 'nonsense is not a trace'
check "nothing is written then" test ! -s "$TMP/out"
run ranks tests/recordings/conv-4.vct tests/recordings/conv-6.vct
expect "why the time of a step is not known" 0 'time of a step unknown: .*does not say what its kernels compute'
run ranks tests/recordings/conv-4.vct tests/recordings/conv-6.vct --json
expect "... for programs, too" 0 '"why": "a recording does not say'
run ranks tests/recordings/encoder.vct tests/recordings/encoder.vct
expect "where it is, it is said" 0 'about .* a step .*ranks that wait for each other included'
run ranks
expect "no file" 2 '' 'name the recordings'
run ranks "$TMP/run.rank0.vct" -g t4 -g l4
expect "two runs of each" 2 '' 'give one of -m, --torch, --conf and -g'
run ranks "$TMP/run.rank0.vct" --set batch=3
expect "--set" 2 '' 'each rank is replayed as it was recorded'
finish
