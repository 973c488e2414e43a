#!/bin/sh
# findings.sh - what is said about a run: pictures, the report and sim say the same, and it is true. `make check-findings` holds
# every recording to it.
. tests/support/tap.sh
if ! command -v python3 > /dev/null; then skip "what is said about a run" "python3 is not here"; finish; fi
mkdir "$TMP/made"; python3 tests/findings/make.py "$TMP/made" > "$TMP/lines"
says() { sed 's/<[^>]*>/\n/g' "$1" | grep -qE -- "$2"; }
lacks() { ! says "$@"; }

# 150 MiB of every step stay, and the card has room for no more: no green "Fits", nowhere.
L="$TMP/made/leak.json --capacity 1600MiB --context 0"
for t in timeline ledger flame segments lives unused; do
	run plot $L -t $t -o "$TMP/leak.svg"; expect "a leak, -t $t" 0
	check "is what its title says" says "$TMP/leak.svg" '^Grows by 0\.15 GiB every step: .*, the next step does not fit$'
	check "its mark is not that of a run that fits" lacks "$TMP/leak.svg" '^fits$'
	check "and what would help is not nothing" lacks "$TMP/leak.svg" '^nothing, '
done
run report $L --no-advice -o "$TMP/leak.html"; expect "its report" 0
check "begins with it" sh -c 'grep -q "<h1>Grows by 0.15 GiB every step" "$1"' sh "$TMP/leak.html"
run plot "$TMP/made/varying.json" -t lives -o "$TMP/v.svg"
check "inputs of varying length are no leak" lacks "$TMP/v.svg" 'a step$|Grows'

run plot $L -o "$TMP/goes-on.svg"
check "a picture draws how it goes on, up to the card" says "$TMP/goes-on.svg" '^If it goes on like this$'
cat > "$TMP/line.py" <<'END'
import re, sys
text = open(sys.argv[1], encoding="utf-8").read().split("If it goes on like this")[1]
axis = [(float(y) - 4.5, float(v)) for x, y, v in re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>([\d.]+)</text>', text) if float(x) < 75]
per = (axis[1][1] - axis[0][1]) / (axis[0][0] - axis[1][0])
ends = [float(v) for v in re.search(r'class="bads thin" d="M[\d.]+ ([\d.]+)L[\d.]+ ([\d.]+)"', text).groups()]
drawn = [(axis[0][0] - y) * per for y in ends]
print("from %.0f to %.0f" % tuple(drawn))
sys.exit(any(abs(a - float(b)) > 3 * per + 0.01 * a for a, b in zip(drawn, sys.argv[2:])))
END
check "from what is used to what there is: 1,464 and 1,614 MiB" python3 "$TMP/line.py" "$TMP/goes-on.svg" 1464 1614
run plot "$TMP/made/steady.json" -g t4 -o "$TMP/steady.svg"; check "only where something grows" lacks "$TMP/steady.svg" '^If it goes on'
run plot "$TMP/made/leak.json" --capacity 1600MiB --context 0 -t advice -o "$TMP/none.svg"
check "nor is there nothing to change about a leak" says "$TMP/none.svg" '^freeing what each step keeps, in blocks of 0.15 GiB$'
run plot tests/recordings/leak-blocks.vct --capacity 600MiB --context 0 --conf '' --conf expandable_segments:True -t compare -o "$TMP/steps.svg"
check "a step has one number, with and without its marks" says "$TMP/steps.svg" 'of step 3$'
run plot "$TMP/made/late.json" -g t4 --axis time -o "$TMP/late.svg"; check "kernels after the last allocation are drawn" says "$TMP/late.svg" '^30 ms$'

# The cause is that of the whole run, and what would help follows from it.
run sim traces/lm-train-ctx128.vct -g a100-40g-sxm --no-advice --json -o "$TMP/oom.svg"
check "a run that needs 51.8 GiB live on 39.4 lacks them" says "$TMP/oom.svg" '^demand: 51\.8 GiB must be there at once'
run sim traces/lm-train-ctx128.vct -g a100-40g-sxm --no-advice; expect "which sim says, too" 3 'cause +demand: 51\.79 GiB must be there at once'
check "not one piece of 100 MiB" lacks "$TMP/oom.svg" 'one piece of 100 MiB'
run sim "$TMP/made/split.pickle" --capacity 610MiB --context 0 --no-advice --json -o "$TMP/frag.svg"
check "one that would fit if it lay better is fragmented" says "$TMP/frag.svg" '^fragmentation: '
run sim "$TMP/made/beside.pickle" --capacity 6GiB --context 0 --used 2500MiB --no-advice --json
expect "one that would fit alone dies of other processes" 3 '"cause": "outside"'
run sim "$TMP/made/limit.pickle" --capacity 6GiB --context 0 --fraction 0.5 --no-advice --json
expect "and one that would fit without its limit of that" 3 '"cause": "limit"'
run sim tests/recordings/expoom.vct --capacity 700MiB --context 0 --no-advice --json -o "$TMP/first.svg"
check "a failure before anything was reserved is told of an empty heap" says "$TMP/first.svg" '^reserved at event 12$'
run plot traces/llm-oom.vct -o "$TMP/heap.svg"
check "a card for a heap needs room for its context, too" says "$TMP/heap.svg" 'or more(, and its CUDA context)?$'
run sim tests/recordings/first-step.vct -g t4
check "no card is said to help a recording that ends where it ran out" sh -c '! grep -q "a larger card" "$1"' sh "$TMP/out"

# What is said to be the most is the highest point of the outermost area, on the axis that stands beside it.
cat > "$TMP/top.py" <<'END'
import re, sys
text = open(sys.argv[1], encoding="utf-8").read()
unit = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10}
axis = [(float(y) - 4.5, float(v)) for x, y, v in re.findall(r'<text[^>]* x="([\d.]+)" y="([\d.]+)"[^>]*>([\d.]+)</text>', text) if float(x) < 70]
per = unit[re.search(r'>(GiB|MiB|KiB)</text>', text).group(1)] * (axis[1][1] - axis[0][1]) / (axis[0][0] - axis[1][0])
said = re.search(r"At most ([\d.]+)(?: (GiB|MiB|KiB))? of [\d.]+ (GiB|MiB|KiB)", text)
first = re.search(r'<path class="(?:lane|cg ar)" d="M([^z]*)z', text).group(1)
y = best = float(first.split()[1].split("v")[0].split("h")[0])
for move in re.findall(r"v(-?[\d.]+)", first):
    y += float(move)
    best = min(best, y)
drawn, told = (axis[0][0] - best) * per, float(said.group(1)) * unit[said.group(2) or said.group(3)]
print("%.3f drawn, %.3f said" % (drawn / (1 << 30), told / (1 << 30)))
sys.exit(abs(drawn - told) > 3 * per + told / 100 + 0.006 * unit[said.group(2) or said.group(3)])
END
for f in traces/decomfl.vct traces/lm-train-ctx128.vct tests/recordings/conv-4.vct tests/recordings/oom.vct tests/recordings/first-step.vct; do
	"$VRAMCAST" plot $f -t unused -o "$TMP/u.svg"
	check "unused of $f: the most that is said is the most that is drawn" python3 "$TMP/top.py" "$TMP/u.svg"
done
run report tests/recordings/leak-blocks.vct tests/recordings/leak-graph.vct --no-advice -o "$TMP/two.html"; expect "a report of two processes" 0
run diff tests/python/recordings/base.vct tests/python/recordings/head.vct
most=$("$VRAMCAST" diff tests/python/recordings/base.vct tests/python/recordings/head.vct --json | python3 -c 'import json, sys
print(max(json.load(sys.stdin)["sites"], key=lambda s: abs(s["live_at_peak"]["a"] - s["live_at_peak"]["b"]))["site"])')
check "diff names the line that holds more at the peak: $most" grep -qF "most of the change is at $most (" "$TMP/out"


# The weights of nn.TransformerEncoder (1,581,312 numbers of four bytes) are no workspaces; the second card is one, too.
run info tests/recordings/encoder.vct; expect "weights of an encoder are told as such" 0 'parameter +6\.03 MiB'
run plot tests/recordings/two-devices.vct --device 1 --axis time -o "$TMP/second.svg"
check "the second of two cards has its capacity" says "$TMP/second.svg" '^Fits: 0\.5[0-9] of 23\.5 GiB used$'
check "and its kernels" says "$TMP/second.svg" '^kernels$'

(cat "$TMP/lines"; printf '%s\n' 'traces/lm-medium-ctx1024.vct -g rtx4090' 'tests/recordings/many-steps.vct' \
	'tests/recordings/leak-blocks.vct --capacity 600MiB --context 0' 'traces/lm-train-ctx128.vct -g a100-40g-sxm') |
	TMP=$TMP python3 tests/findings/check.py --mutate > "$TMP/judged"
while read -r k what; do
	check "$what: $(sed -n "s/^.*ok $k - //p" "$TMP/judged")" grep -q "^ok $k" "$TMP/judged"
done <<'END'
1 every sentence is held to the record
2 so is what is said of several runs
3 a record that is off by one unit is noticed
END
grep '^# ' "$TMP/judged"

# What helps, memory against time: a mark of each stands where the numbers of sim are, on both axes.
A="tests/recordings/h100/gpt-24.vct --capacity 700MiB"
run plot $A -t advice -o "$TMP/trade.svg"; "$VRAMCAST" sim $A --json > "$TMP/trade.json"
cat > "$TMP/trade.py" <<'END'
import json, re, sys
text = open(sys.argv[1], encoding="utf-8").read().split("Memory against the time of a step")[1]
run = json.load(open(sys.argv[2]))["runs"][0]
labels = [(float(x), float(y), t) for x, y, t in re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>', text)]
down = [(y - 4.5, float(t)) for x, y, t in labels if x < 75 and re.fullmatch(r"[\d.]+", t)]
bottom = down[0][0] + 22
along = [(x, float(t)) for x, y, t in labels if abs(y - bottom) < 1 and re.fullmatch(r"[\d.]+", t)]
def value(ticks, at):
    (a, x), (b, y) = ticks[0], ticks[-1]
    return x + (at - a) / (b - a) * (y - x)
marks = [(float(x) + 8, float(y) + 8) for x, y in re.findall(r'<rect class="card" x="([\d.]+)" y="([\d.]+)" width="16" height="16"', text)]
advice = [a for a in run["advice"] if a["time_factor"]]
assert len(marks) == len(run["advice"]) + 1, marks
assert len(advice) > 2
for n, a in enumerate(run["advice"]):
    x, y = marks[n + 1]
    if a["time_factor"]:
        assert abs(value(along, x) - a["time_factor"]) < 0.01, (value(along, x), a)
    else:
        assert x > along[-1][0], (x, a)
    if not a["interval"] and "larger card" not in a["text"]:
        assert abs(value(down, y) - (a["peak_reserved"] + run["ledger"]["context"] + run["ledger"]["libraries"]) / 2 ** 20) < 4, a
    assert re.search("about (%.1f times as long|as fast)" % (a["time_factor"] or 0), " ".join(t for _, _, t in labels if t.startswith("%d." % (n + 1)))) or not a["time_factor"], a
END
check "memory against the time of what would help" python3 "$TMP/trade.py" "$TMP/trade.svg" "$TMP/trade.json"
finish
