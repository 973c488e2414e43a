#!/bin/sh
# plot.sh - pictures from the command line: every type, formats, mistakes, the same bytes twice.
. tests/support/tap.sh

T=traces/lm-train-ctx128.vct
wellformed() { if command -v xmllint >/dev/null 2>&1; then xmllint --noout "$1"; else grep -q '</svg>' "$1"; fi; }
small() { [ "$(wc -c < "$1")" -le 1000000 ]; }

for t in timeline segments compare sweep ranks unused; do
	run plot $T -g a100-40g-sxm -t $t -o "$TMP/$t.svg"; expect "plot -t $t" 0
	check "$t is well-formed" wellformed "$TMP/$t.svg"
	check "$t is at most 1 MB" small "$TMP/$t.svg"
	run plot $T -g a100-40g-sxm -t $t -o "$TMP/again.svg"
	check "$t has the same bytes twice" cmp "$TMP/$t.svg" "$TMP/again.svg"
done
check "a single step is no pattern: its blocks are what their call sites say" \
	sh -c 'for w in Gradients Activations "There at the start"; do grep -q ">$w<" "$1" || exit 1; done' - "$TMP/timeline.svg"
run plot $T -g a100-40g-sxm -t owners -o "$TMP/o.dot"; expect "owners as .dot" 0
if command -v dot >/dev/null 2>&1; then check "dot reads it" dot -Tcanon -o /dev/null "$TMP/o.dot"; else skip "dot reads it" "no dot here"; fi

run plot $T; expect "without -o the timeline is text" 0 '^Needs 62\.5 GiB'
run plot $T -g a100-40g-sxm -t flame; expect "and so is who holds it" 0 'AccumulateGrad  x225'
run plot $T -t unused; expect "what cannot be text wants a file" 2 '' '-t unused needs -o FILE'
check "of at most 80 columns" sh -c 'sed 1,3d "$1" | sed "s/[^ -~]/x/g" | LC_ALL=C.UTF-8 awk "length > 100 { exit 1 }"' sh "$TMP/out"
run plot $T -t tineline -o "$TMP/x.svg"; expect "a picture that does not exist" 2 '' 'no such picture'
run plot $T -t segments -o "$TMP/x.txt"; expect "a format the picture does not have" 2 '' 'written as .svg'
for old in owners:flame blocks:segments steps:timeline; do
	run plot $T -t ${old%:*} -o "$TMP/old.svg"; expect "-t ${old%:*} from before says what it is now" 0 '' "-t ${old%:*} is no more: this is -t ${old#*:}"
	"$VRAMCAST" plot $T -t ${old#*:} -o "$TMP/now.svg"; check "and is that" cmp "$TMP/old.svg" "$TMP/now.svg"
done
run plot $T -o "$TMP/x.xyz"; expect "an extension that says nothing" 2 '' 'extension'
run plot $T --theme pink -o "$TMP/x.svg"; expect "a theme that does not exist" 2 '' 'theme'
check "nothing is left of a failed picture" [ ! -e "$TMP/x.svg" ]
run plot $T --theme dark -o -; expect "- is standard output" 0 '^<svg '

run plot traces/llm-oom.vct; expect "a heap without events has an answer" 0 '^Holds 11\.0 GiB'
run plot traces/llm-oom.vct -o "$TMP/heap.svg"; expect "and a ledger where others have a timeline" 0
check "of all its bytes" grep -q 'Where the bytes are in this heap' "$TMP/heap.svg"
run sweep traces/lm-train-ctx128.vct --vary capacity=48G,60G,72G --vary 'conf=|expandable_segments:True' -q -o "$TMP/two.jsonl"
run plot "$TMP/two.jsonl" -o "$TMP/map.svg"; expect "a sweep over two keys is a map" 0
check "with what fits in each row" grep -q 'The smallest capacity tried that fits' "$TMP/map.svg"
run plot traces/vllm-rl-pools.vct -t segments -o "$TMP/state.svg"; expect "a snapshot without events still has a map" 0
check "which is well-formed" wellformed "$TMP/state.svg"
run plot $T -g a100-40g-sxm -g h100-80g-sxm -o "$TMP/two.svg"; expect "two cards are compared" 0
check "in one picture" grep -q 'Of 2 only NVIDIA H100' "$TMP/two.svg"

run sweep $T --vary capacity=24G,48G,64G,80G -o "$TMP/runs.jsonl"; expect "a sweep" 0
run plot "$TMP/runs.jsonl" -o "$TMP/sweep.svg"; expect "is drawn from its results" 0
check "with what to take" grep -q 'capacity 80<' "$TMP/sweep.svg"
echo '{"id":0,"vary":{"batch":' > "$TMP/cut.jsonl"
run plot "$TMP/cut.jsonl" -o "$TMP/x.svg"; expect "results that are cut off" 1 '' 'cut.jsonl'

# Layouts: each stands where its time and its memory are, and joined are those that no other beats in both.
if command -v python3 >/dev/null 2>&1; then
	cat > "$TMP/layouts.py" <<'PY'
import json, re, sys
plans = json.load(open(sys.argv[1]))["plans"]
svg = open(sys.argv[2]).read()
def name(p):
    return " ".join(f"{k}={p[k]}" for k in ("tp", "pp", "ep", "dp") if p[k] > 1)
timed = {name(p): (p["step_ns"], p["peak_used"], p["verdict"]) for p in plans if p["verdict"] not in (None, "oom")}
drawn = dict(re.findall(r"<g><title>([^:]*): ([^<]*)</title>", svg))
assert drawn.keys() == {name(p) for p in plans if p["verdict"]}, drawn
at = {n: (k, float(x), float(y)) for n, k, x, y in
      re.findall(r'<g><title>([^:]*): [^<]*</title>(?:<path[^<]*>\n)?<circle class="([^"]*)" cx="([^"]*)" cy="([^"]*)"', svg)}
assert at.keys() == {n for n, v in timed.items() if v[2] == "fits"}, at
far = max(at, key=lambda n: timed[n][0]), min(at, key=lambda n: timed[n][0])
high = max(at, key=lambda n: timed[n][1]), min(at, key=lambda n: timed[n][1])
for n, (_, x, y) in at.items():
    for i, (a, b), v in (1, far, x), (2, high, y):
        part = (timed[n][i - 1] - timed[b][i - 1]) / (timed[a][i - 1] - timed[b][i - 1])
        assert abs(at[b][i] + part * (at[a][i] - at[b][i]) - v) < 0.25, (n, i, v)
best = [n for n in sorted(at, key=timed.get) if all(timed[o][0] > timed[n][0] or timed[o][1] > timed[n][1]
                                                   for o in at if o != n)]
assert [n for n in sorted(at, key=timed.get) if at[n][0] == "dot"] == best, best
line = re.search(r'class="res thin" d="M([^"]*)"', svg)[1].split("L")
assert [tuple(map(float, p.split())) for p in line] == [at[n][1:] for n in best], line
for k, n in enumerate(best):
    assert f">{k + 1}. {n}: {drawn[n].rsplit(', ', 1)[0].replace(',', ' a step,')}<" in svg, (n, drawn[n])
y = float(re.search(r'class="capl" d="M[\d.]+ ([\d.]+)', svg)[1])
assert all(y < p[2] for p in at.values()) and "out of memory" in svg
PY
	python3 - > "$TMP/layouts.json" <<'PY'
import json
def plan(tp, pp, ep, dp, verdict, step, peak):
    return {"tp": tp, "cp": 1, "pp": pp, "ep": ep, "dp": dp, "verdict": verdict, "peak_used": peak,
            "step_ns": step, "step_low_ns": step and step * 9 // 10, "step_high_ns": step and step * 5 // 4}
plans = [plan(1, 1, 8, 64, "fits", 1130000000, 21592000000), plan(1, 1, 4, 64, "fits", 1150000000, 26420000000),
         plan(1, 2, 4, 32, "fits", 1200000000, 19020000000), plan(2, 1, 32, 32, "fits", 4210000000, 16060000000),
         plan(1, 1, 32, 64, "fits", 2040000000, 17970000000), plan(2, 1, 2, 32, "undecided", 2220000000, 84000000000),
         plan(1, 1, 1, 64, "oom", None, 84900000000), plan(2, 1, 64, 32, None, None, None)]
print(json.dumps({"schema": "vramcast.fit-plan/1", "gpu": "h100-80g-sxm", "capacity": 85021163520, "world": 64,
                  "plans": plans}))
PY
	for w in 600 1200; do
		run plot "$TMP/layouts.json" --width $w -o "$TMP/layouts.svg"; expect "layouts, $w wide" 0
		check "are drawn as they are reported" python3 "$TMP/layouts.py" "$TMP/layouts.json" "$TMP/layouts.svg"
	done
	check "and well-formed" wellformed "$TMP/layouts.svg"
	run plot "$TMP/layouts.json"; expect "layouts are no text" 2 '' 'layouts are drawn with -o layouts.svg'
	run plot $T -t layouts -o "$TMP/none.svg"; expect "no layouts" 0
	check "are said" grep -q 'no layouts were given' "$TMP/none.svg"
else
	skip "layouts" "no python3"
fi
if command -v rsvg-convert >/dev/null 2>&1; then
	run plot $T -o "$TMP/p.png"; expect "a PNG through rsvg-convert" 0
	check "is a PNG" sh -c 'head -c 4 "$1" | grep -q PNG' sh "$TMP/p.png"
	run plot $T -o "$TMP/p.pdf"; expect "a PDF through rsvg-convert" 0
	check "is a PDF" sh -c 'head -c 4 "$1" | grep -q PDF' sh "$TMP/p.pdf"
else
	skip "PNG and PDF" "no rsvg-convert here"
fi
F=tests/recordings/first-step.vct
run info $F; check "layers of a forward pass that ran out of memory are not steps" sh -c '! grep -q iterations "$1"' sh "$TMP/out"
run plot $F -o "$TMP/f.svg"; expect "a step that died in milliseconds after seconds of loading" 0
check "is drawn over events" grep -q ' events<' "$TMP/f.svg"
check "up to its failure" sh -c '! grep -qE ">(1200|1[.]2k|2000|2k) *(events)?<" "$1"' sh "$TMP/f.svg"
check "and what it gave back in its death is not stranded" grep -q '>0.11 GiB<' "$TMP/f.svg"
run plot $F --x time -o "$TMP/f.svg"; expect "over time where asked for" 0
check "it is" grep -q ' ms<' "$TMP/f.svg"
case $VRAMCAST in /*) bin=$VRAMCAST ;; *) bin=$PWD/$VRAMCAST ;; esac
mkdir "$TMP/none"; PATH=$TMP/none "$bin" plot $T -o "$TMP/q.png" > "$TMP/out" 2> "$TMP/err"; rc=$?; out=; err=$(cat "$TMP/err")
expect "without rsvg-convert a PNG is refused with the remedy" 1 '' 'rsvg-convert is not installed'
check "and nothing is left of it" [ ! -e "$TMP/q.png" ]

run report $T -g a100-40g-sxm -o "$TMP/r.html"; expect "a report" 0
check "fetches nothing" sh -c '! grep -oE "(src|href)=\"[^#\"][^\"]*|url\([^#)]*\)|@import" "$1"' sh "$TMP/r.html"
check "quotes what PyTorch would say" grep -q 'CUDA out of memory. Tried to allocate' "$TMP/r.html"
run report $T; expect "a report wants -o" 2 '' 'where to'
run report $T -o "$TMP/r.svg"; expect "and .html" 2 '' 'written as .html'
run plot tests/recordings/gpt.vct --no-verify -g h200 -o "$TMP/small.svg"
run plot tests/recordings/gpt.vct --no-verify --capacity 10GiB -o "$TMP/near.svg"
{ grep -q '>7<' "$TMP/small.svg" && grep -q '>10<' "$TMP/near.svg"; } && pass "the scale goes to the capacity, but not to that of a card four times too large" ||
	fail "the scale of a plot" "$(grep -o '>[0-9]*<' "$TMP/small.svg" | sort -u | tr '\n' ' ')"
# what would help is what the whole run lacks, not what the first request does
run plot tests/recordings/gpt.vct@batch=1 --set batch=4 --capacity 9GiB --context 0 -o "$TMP/lacks.svg"
check "a picture says what the whole run lacks" sh -c 'grep -qE "[0-9.]+ GiB to [0-9.]+ GiB less in use" "$1"' sh "$TMP/lacks.svg"
run plot -t advice traces/lm-train-ctx128.vct -g a100-40g-sxm -o "$TMP/helps.svg"
check "changes that may help are counted by themselves" sh -c '! grep -qE "[0-9]+ changes? would help;" "$1"' sh "$TMP/helps.svg"

# Four steps, each of which keeps 150 MiB: what the first steps of a run do has no part in what it grows by.
run plot tests/recordings/leak-blocks.vct -t lives -o "$TMP/leak.svg"
check "a leak is what each step keeps" sh -c 'grep -q ">+0.15 GiB a step<" "$1" && grep -q ">Grows by 0.15 GiB every step: " "$1"' sh "$TMP/leak.svg"

# Names come from files that anybody may have made: a terminal is not steered by them.
python3 -c '
import pickle, sys
frame = {"name": "\x1b]0;owned\x07\x1b[2J\nforged 99 %\x9b31m", "filename": "\x1b[31mtrain.py", "line": 7}
events = [{"action": a, "addr": 1 << 30, "size": 4 << 20, "stream": 0, "frames": [frame]} for a in ("segment_alloc", "alloc")]
pickle.dump({"segments": [], "device_traces": [events]}, open(sys.argv[1], "wb"), 2)' "$TMP/$(printf '\033')[2Jowned.pickle"
steered() { LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177]')" "$TMP/out" || printf '%s\n' "$out" | grep -q '^forged'; }
for t in flame timeline; do
	run plot "$TMP/$(printf '\033')[2Jowned.pickle" -t $t
	[ "$rc" = 0 ] && ! steered && pass "-t $t does not steer the terminal" || fail "-t $t steers the terminal" "$(cat -v "$TMP/out")" "$err"
done

# 220 steps have more phases than there is room for: the strip goes to the end all the same.
run plot tests/recordings/many-steps.vct -o "$TMP/many.svg"
end=$(sed -n 's/.* x="\([0-9.]*\)" y="[0-9.]*" width="\([0-9.]*\)" height="17"><title>.*/\1 \2/p' "$TMP/many.svg" | awk '{ e = $1 + $2 } END { print e }')
check "the strip of phases does not end early (at $end)" awk "BEGIN { exit !($end > 850) }"
check "phases that are too narrow are counted" grep -qE 'height="17"><title>[0-9,]+ phases<' "$TMP/many.svg"

finish
