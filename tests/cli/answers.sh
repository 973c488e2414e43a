#!/bin/bash
# answers.sh - what sim, diff, report and the rest say to whoever asks for the first time: the verdict
# first, tables that add up, a leak by name, the device that matters, the same picture from everybody.
. tests/support/tap.sh
PY=${PYTHON:-python3}
lm=traces/lm-train-ctx128.vct
bert=tests/transforms/recordings/bert.vct
json() { printf '%s\n' "$out" | sed -n "s/^ *\"$1\": \([0-9]*\),*\$/\1/p" | head -n 1; }

# ---- order ----
run sim $bert -g rtx4090 -x checkpoint --conf expandable_segments:True --no-verify
expect "the first line is the verdict" 0 '^torch 2.11'
check "it stands first" test "$(printf '%s\n' "$out" | head -n 1 | cut -c1-10)" = "torch 2.11"
expect "each setting before and after" 0 '^  --conf expandable_segments:True +[0-9.]+ [MG]iB -> [0-9.]+ [MG]iB reserved'
expect "each transform before and after" 0 '^  -x checkpoint +[0-9.]+ [MG]iB -> [0-9.]+ [MG]iB reserved'
first() { printf '%s\n' "$out" | grep -n -- "$1" | head -n 1 | cut -d: -f1; }
check "then the changes, then the ledger, then the rest" test "$(first ' -> ')" -lt "$(first '^  at the peak')" -a "$(first 'tensors (alloc')" -lt "$(first 'What this rests on')"
run sim $bert -g rtx4090 -x checkpoint -x lora --no-verify --no-advice --json
expect "the changes for programs" 0 '"change": "-x checkpoint"'
check "one begins where the other ended" test "$(printf '%s\n' "$out" | sed -n 's/^ *"after": \([0-9]*\).*/\1/p' | sed -n 1p)" = \
	"$(printf '%s\n' "$out" | sed -n 's/^ *"before": \([0-9]*\).*/\1/p' | sed -n 2p)"

# ---- who holds the memory ----
adds_up() { # NAME: the rows of the table are its last row, as far as two decimals go
	printf '%s\n' "$out" | awk -v name="$1" '
		BEGIN { s["bytes"]=1; s["KiB"]=1024; s["MiB"]=1024^2; s["GiB"]=1024^3 }
		/^Who holds/ { on = 1; next } on && /bytes +blocks/ { next } on && NF < 4 { on = 0 }
		on && /= reserved/ { total = $1 * s[$2]; on = 0; next } on { sum += $1 * s[$2]; slack += s[$2] / 100 }
		END { exit !(total > 0 && sum - total < slack + 1e7 && total - sum < slack + 1e7) }'
}
run sim $lm -g rtx4090 --no-advice; expect "what was there at the start is a holder" 3 '[GM]iB +[0-9,]+ +there at the start'
check "the holders add up when it dies" adds_up dies
expect "with the rest as others" 3 '[GM]iB +[0-9,]+ +others'
run sim $lm -g t4 --no-advice; expect "also when it dies before the first event" 3 '890 +there at the start'
check "no bare addresses" sh -c '! grep -qE "segment [0-9a-f]{6}" "$1"' - "$TMP/out"
run sim $lm -g h200 --no-advice; expect "who holds it is said when it fits, too" 0 'Who holds the memory at the peak'
check "the holders add up when it fits" adds_up fits
run sim $lm -g h200 --no-advice --json
holders=$(printf '%s\n' "$out" | awk '/"holders"/{on=1} on && /"bytes"/{gsub(/[^0-9]/, ""); s+=$0} on && /\]/{printf "%.0f\n", s; exit}')
check "the holders of the JSON are what is allocated" test "$holders" = "$(json allocated)"

# ---- CI ----
run sim $lm -g h200 --no-advice --fail-above 10%; expect "why the budget fails" 4 'over the budget: 63\.09 GiB used, --fail-above 10% allows 13\.98 GiB'
run sim $lm -g h200 --no-advice --fail-above 10% --json; expect "and for programs" 4 '"over": "over the budget'
run sim $lm -g h200 --no-advice --fail-above 90%; check "nothing of it within the budget" sh -c '! grep -q budget "$1"' - "$TMP/out"
run diff $lm traces/lm-medium-ctx1024.vct --no-verify; check "diff begins with its conclusion" test "$(head -n 1 "$TMP/out" | cut -c1-18)" = "B needs less than "
run diff traces/lm-medium-ctx1024.vct $lm --no-verify --fail-above 5%; expect "a threshold in percent" 4 'over the threshold: --fail-above 5% allows'
run diff traces/lm-medium-ctx1024.vct $lm --no-verify --fail-above 60GiB; expect "a threshold in bytes, not reached" 0 'B needs more than A'
run diff $lm $lm --no-verify --fail-above 0%; expect "the same twice" 0 'B needs as much as A'
run diff $lm $lm --fail-above much; expect "a threshold that is none" 2 '' 'wants a percentage'

# ---- one picture whoever draws it ----
for o in "-g h200" "-g h200 -g a100-80g-sxm" "--conf backend:native --conf expandable_segments:True"; do
	# shellcheck disable=SC2086
	"$VRAMCAST" sim $lm $o --no-advice -o "$TMP/sim.svg" > /dev/null; "$VRAMCAST" plot $lm $o -o "$TMP/plot.svg"
	# shellcheck disable=SC2086
	"$VRAMCAST" export $lm $o -o "$TMP/export.svg"
	check "sim and plot draw the same ($o)" cmp "$TMP/sim.svg" "$TMP/plot.svg"
	check "and export ($o)" cmp "$TMP/sim.svg" "$TMP/export.svg"
done
"$VRAMCAST" sim $lm -g rtx4090 -o "$TMP/sim.html" > /dev/null; "$VRAMCAST" report $lm -g rtx4090 -o "$TMP/report.html"
check "and the same report" cmp "$TMP/sim.html" "$TMP/report.html"
check "the report says what would help" grep -q 'a larger card' "$TMP/report.html"
"$VRAMCAST" report $lm -g rtx4090 --no-advice -o "$TMP/report.html"; check "unless it is told not to" sh -c '! grep -q "a larger card" "$1"' - "$TMP/report.html"
"$VRAMCAST" sim $lm -g h200 --no-advice -o - > "$TMP/dash.svg" 2> "$TMP/words"; "$VRAMCAST" plot $lm -g h200 -o "$TMP/plot.svg"
check "sim -o - writes the picture" cmp "$TMP/dash.svg" "$TMP/plot.svg"
check "and says the rest where narration goes" grep -q '^torch 2.6 on NVIDIA H200: fits' "$TMP/words"
run sim $lm -g h200 -o - --json; expect "two cannot have standard output" 2 '' 'both want standard output'
run sim $lm -g h200 --no-advice --color; check "--color colours" grep -q "$(printf '\033')\[32m" "$TMP/out"
run sim $lm -g h200 --no-advice; check "and only then" sh -c '! grep -q "$(printf "\033")" "$1"' - "$TMP/out"

# ---- cards ----
for c in "sim $lm" "estimate --params 7e9 --layers 32 --hidden 4096" "fit $lm@batch=1" "sweep $lm --vary conf=backend:native"; do
	# shellcheck disable=SC2086
	run $c -g "A100 80GB"; expect "$c: variants of a card are asked about" 2 '' 'a100-80g-pcie, a100-80g-sxm: say which'
done
run sim $lm -g "RTX 4060 Ti"; expect "two sizes of one name are asked for" 2 '' 'rtx4060ti-8g, rtx4060ti-16g: say which'
run gpus rtx5070; expect "a total that nobody printed is marked" 0 'never printed: estimate'
run gpus; expect "in the list, too" 0 'rtx4070ti-12g .*never printed: estimate'
check "most totals were printed" test "$(grep -c ' printed$' "$TMP/out")" -ge 40

# ---- names ----
run sim $lm -x bf16; expect "-x bf16 is a precision" 2 '' 'did you mean precision:to=bf16\?'
run sim $lm -x amp; expect "-x amp, too" 2 '' 'did you mean precision:to=amp\?'
run sim $lm -x checkpiont; expect "a transform misspelt" 2 '' 'did you mean checkpoint\?'
run sim $lm -m torhc; expect "a model misspelt" 2 '' 'did you mean torch\?'
run plot $lm -t timelin -o "$TMP/x.svg"; expect "a picture misspelt" 2 '' 'did you mean timeline\?'
run export $lm --to cvs -o -; expect "a format misspelt" 2 '' 'did you mean csv\?'
run help timelin; expect "a topic misspelt" 2 '' 'did you mean timeline\?'
run list model; expect "a list misspelt" 2 '' 'did you mean models\?'
run sweep $lm --vary gpu=rtx4090,h200 --table --no-verify
check "sweep's table has a head" test "$(head -n 1 "$TMP/out" | awk '{print $1, $2}')" = "run verdict"
expect "a run that died needs more than it had" 0 'gpu=rtx4090 +oom +> 23\.52 GiB'
"$VRAMCAST" completions bash > "$TMP/c.bash"
words() { bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _vramcast_words; echo "${COMPREPLY[@]}"' - "$TMP/c.bash" vramcast "$@"; }
check "completion of cards" test "$(words sim -g a100-80)" = "a100-80g-pcie a100-80g-sxm"
check "of transforms" test "$(words sim -x precis)" = precision
check "of models" test "$(words sim --model rmm)" = rmm_pool
check "of sinks" test "$(words plot -t timel)" = timeline
check "of the words of an option" test "$(words sim --start w)" = warm
check "of options" test "$(words sim --no-adv)" = --no-advice
check "make install puts them where shells look" grep -q 'completions zsh > $(DESTDIR)$(ZSHDIR)/_vramcast' Makefile

# ---- a leak, as real programs have it ----
for kind in graph logits maps; do
	run info tests/recordings/leak-$kind.vct --no-verify; expect "info names the leak of $kind" 0 '^  leak +each step keeps [0-9.]+ MiB that is never freed .*leak\.py:'
done
for t in $lm traces/decomfl.vct traces/attention.vct traces/llm-oom.vct traces/vllm-rl-pools.vct traces/lm-medium-ctx1024.vct $bert \
	tests/recordings/gpt.vct tests/recordings/eval-8-16.vct tests/recordings/lengths-4.vct; do
	run info $t --no-verify --json; check "no leak in $t" grep -q '"leak": null' "$TMP/out"
done

# ---- a card that the recording names, and nothing said of its context ----
run sim tests/recordings/gpt.vct --no-advice --no-verify; expect "the context of its profile" 0 'CUDA context +504\.00 MiB'

# ---- recordings that nobody had: several devices, a leak, an out-of-memory with marks ----
if ! command -v "$PY" > /dev/null; then skip "recordings made for this" "no python3"; finish; fi
"$PY" - "$TMP" <<'EOF'
import pickle, sys
M = 1 << 20
def trace(device, steps, leak, busy):
    """steps of ten blocks; each keeps `leak` MiB."""
    out, t = [], [0]
    frames = lambda name: [dict(name=name, filename='train.py', line=len(name))]
    def put(action, addr, size, name='step'):
        t[0] += 1000
        out.append(dict(action=action, addr=addr, size=size, stream=0, frames=frames(name), time_us=t[0]))
    base = 0x7f0000000000 + (device << 40)
    put('segment_alloc', base, 2048 * M, 'make'); put('alloc', base, 40 * M, 'make')
    at = base + 40 * M
    for s in range(steps):
        for b in range(busy):
            put('alloc', at + 256 * M + b * 20 * M, 16 * M + b * M, 'layer%d' % (b % 3))
        if leak:
            put('alloc', at, leak * M, 'remember'); at += leak * M
        for b in range(busy):
            put('free_requested', at + (256 - leak) * M + b * 20 * M if leak else at + 256 * M + b * 20 * M, 16 * M + b * M)
            put('free_completed', at + (256 - leak) * M + b * 20 * M if leak else at + 256 * M + b * 20 * M, 16 * M + b * M)
    return out
def dump(name, traces):
    pickle.dump(dict(device_traces=traces, segments=[]), open(sys.argv[1] + '/' + name, 'wb'), 4)
def profile(name, marked):
    """layers that keep 8 MiB each, within one step of the profiler."""
    import json
    events, live = [], 0
    def memory(addr, size):
        nonlocal live
        live += size
        events.append({'ph': 'i', 'name': '[memory]', 'ts': len(events) * 10, 'args': {'Device Type': 1, 'Device Id': 0,
            'Addr': addr, 'Bytes': size, 'Total Allocated': live, 'Total Reserved': 4096 * M}})
    for layer in range(24):
        for b in range(9): memory((1 + b) << 32, (16 + b) * M)
        memory((10 + layer) << 32, 8 * M)
        for b in range(9): memory((1 + b) << 32, -(16 + b) * M)
    if marked: events.append({'ph': 'X', 'cat': 'user_annotation', 'name': 'ProfilerStep#1', 'ts': 0, 'dur': 9999})
    json.dump({'traceEvents': events}, open(sys.argv[1] + '/' + name, 'w'))
profile('step.json', True)
profile('steps.json', False)
dump('leak.pickle', [trace(0, 12, 8, 8)])
dump('tidy.pickle', [trace(0, 12, 0, 8)])
dump('two.pickle', [trace(0, 8, 0, 2), trace(1, 3, 0, 9)]) # fewer requests, more memory
dead = trace(1, 3, 0, 3)
dead.append(dict(action='oom', size=11200 * M, device_free=9000 * M, stream=0, frames=[], time_us=8888888))
dump('dead.pickle', [trace(0, 8, 0, 9), dead])
EOF
run sim "$TMP/leak.pickle" -g t4 --no-verify; expect "sim names a leak" 0 'leak: each step keeps 8\.00 MiB that is never freed .*most of it at train.py:8 remember'
expect "and how long the card lasts" 0 'the card is full after [0-9,]+ more'
run sim "$TMP/leak.pickle" -g t4 --no-verify --json; expect "for programs, too" 0 '"leak": \{'
run info "$TMP/leak.pickle" --no-verify; expect "info names it" 0 '^  leak +each step keeps 8\.00 MiB'
"$VRAMCAST" report "$TMP/leak.pickle" -g t4 --no-verify -o "$TMP/leak.html"; check "report names it" grep -q 'leak: each step keeps 8.00 MiB' "$TMP/leak.html"
run sim "$TMP/tidy.pickle" -g t4 --no-verify; check "no leak where there is none" sh -c '! grep -q "leak" "$1"' - "$TMP/out"
run info "$TMP/step.json"; check "layers within one marked step are no steps that leak" sh -c '! grep -q "leak" "$1"' - "$TMP/out"
run info "$TMP/steps.json"; expect "as they would seem without the mark" 0 '^  leak +each step keeps 8\.00 MiB'
run sim "$TMP/two.pickle" -g t4 --no-verify --no-advice; expect "the fullest of two devices is asked about" 0 'on device 1, the fullest of several'
run sim "$TMP/two.pickle" -g t4 --no-verify --no-advice --device 0; expect "another one when it is asked for" 0 'on device 0, as asked for'
run sim "$TMP/dead.pickle" -g t4 --no-verify --no-advice; expect "the one that died goes first" 6 'on device 1, which ran out of memory'
run sim "$TMP/dead.pickle" --no-verify --no-advice
expect "the card of a recorded out-of-memory" 3 'card +.*, by what was reserved \(2\.00 GiB\) and free \(8\.79 GiB\) when it ran out'
said=$(printf '%s\n' "$out" | sed -n 's/.*the recorded run itself ran out of memory.*: event \([0-9]*\) .*/\1/p')
check "the note and the result count alike" test -n "$said" -a "$said" = "$(printf '%s\n' "$out" | sed -n 's/.*runs out of memory.* at event \([0-9]*\):.*/\1/p')"
finish
