#!/bin/bash
# fit_find.sh - fit --find checkpoint and --find anything: what makes a run fit, from one recording.
. tests/support/tap.sh
export XDG_CACHE_HOME=$TMP/cache
t=traces/lm-medium-ctx1024.vct
pick() { printf '%s' "$out" | python3 -c "import json, sys; c = json.load(sys.stdin)['cards'][0]; print($1)"; }

run fit --find checkpoint "$t"; expect "checkpoint wants a card" 2 '' 'say what it has to fit on'
run fit --find checkpoint -g rtx4090; expect "and a recording" 2 '' 'name a recording, or a program'
run fit --find checkpoint -g rtx4090 -g a100-40g-sxm -- /bin/true; expect "a dry run plays one card" 2 '' 'say which one with -g'
run fit --find checkpoint --capacity 40GiB --context 0 "$t"; expect "where it fits nothing is computed twice" 0 'it fits as it is'
run fit --find checkpoint --capacity 2GiB --context 0 "$t"; expect "where nothing is enough" 3 'nothing fits'
run fit --find checkpoint --capacity 16GiB --context 0 "$t"
expect "the layers are named" 0 '^24 layers at model\.py:382' && expect "with the least time that fits" 0 'best estimate +layers=' &&
	expect "what is certain" 0 'surely +layers=' && expect "and code to paste" 0 'TWICE = \{.*of 24 layers'
run fit --find checkpoint --capacity 16GiB --context 0 --by rerun "$t"; expect "and is not run in vain" 2 '' '--by rerun: '
run fit --find checkpoint --capacity 16GiB --context 0 "$t" --json
check "the front has less memory for more time ($(pick "len(c['front'])") choices)" test "$(pick "all(a['peak_reserved'] > b['peak_reserved'] \
and a['layers_share'] <= b['layers_share'] for a, b in zip(c['front'], c['front'][1:]))")" = True
check "no uniform choice is cheaper" test "$(pick "c['best']['layers_share'] <= c['uniform']['layers_share']")" = True
check "what is certain needs no less than its share" test "$(pick "c['sure']['used_high'] <= 16 << 30 and c['best']['used'] <= 16 << 30")" = True
best=$(pick "c['best']['change']") need=$(pick "c['best']['peak_reserved']")
run sim "$t" --capacity 16GiB --context 0 -x "$best" --json
check "sim says the same of $best" grep -q "\"peak_reserved\": $need" <<< "$out"
run sim "$t" -x checkpoint:layers=999; expect "a layer that is not there" 2 '' 'there are [0-9]+ of them, from 0 to'
run sim "$t" -x checkpoint:layers=3/1; expect "a list out of order" 2 '' 'behind a larger number'

# Programs that were recorded as they are and with each layer computed twice: the second shows when blocks go.
peaks() { printf '%s' "$out" | python3 -c "import json, sys; r = json.load(sys.stdin)['runs'][0]; print(r['peak_allocated'], r['peak_reserved'])"; }
near() { python3 -c "a, b = [[int(w) for w in s.split()] for s in ('$1', '$2')]; sys = __import__('sys'); \
sys.exit(any(abs(x / y - 1) > $3 for x, y in zip(a, b)))"; }
pairs=tests/transforms/recordings
for name in bert gpt wav efficient; do
	run sim "$pairs/$name.vct" --capacity 1TiB --context 0 -x "checkpoint:seen=$pairs/${name}_--checkpoint_1.vct" --json
	predicted=$(peaks)
	run sim "$pairs/${name}_--checkpoint_1.vct" --capacity 1TiB --context 0 --json
	check "$name needs what was seen: $predicted, really $(peaks)" near "$predicted" "$(peaks)" 0.011
done
# Layers that keep nothing for a backward pass (offloaded here, those of a teacher elsewhere) are no choice, and no failure.
run fit --find checkpoint -g t4 "$pairs/gpt_--offload.vct"
expect "layers that keep nothing leave the run as it is" 0 'it fits as it is'
run fit --find checkpoint -g t4 --capacity 700MiB "$pairs/gpt_--offload.vct"
expect "and where it does not fit, they cannot help" 3 'no choice saves anything, and it still needs 1.07 GiB'
run sim "$pairs/gpt.vct" -x "checkpoint:seen=$pairs/bert_--checkpoint_1.vct"
expect "a recording of another run is refused" 1 '' 'its forward passes are not those of this recording'

run fit --find budget -g t4 "$t"; expect "a budget asks the program, not a recording" 2 '' 'name it behind --'
echo '{"schema": "vramcast.choice/1", "units": [{"name": "a", "do": "forget"}]}' > "$TMP/choice.json"
run run --choice "$TMP/choice.json" -- /bin/true; expect "a choice says what is done" 125 '' 'unit 1 needs a "name"'
sed -i 's/forget/keep/' "$TMP/choice.json"
run run --choice "$TMP/choice.json" -- /bin/true; expect "a program without these modules runs as it is" 0 '' 'none of the modules'
run run --choice "$t" -- /bin/true; expect "a recording is no choice" 125 ''

run fit --find anything --capacity 16GiB --context 0 --most 60 "$t" --json
check "changes that leave the results as they are are found" test "$(pick "len(c['nothing'])")" -gt 0
check "each kind is in order of time" test "$(pick "all(a['time_factor'] <= b['time_factor'] for k in ('nothing', 'rounding', 'precision', \
'training', 'cards') for a, b in zip(c[k], c[k][1:]))")" = True
check "each fits" test "$(pick "all(f['used'] <= 16 << 30 for k in ('nothing', 'rounding', 'precision', 'training', 'cards') for f in c[k])")" = True
run fit --find anything --capacity 40GiB --context 0 "$t"; expect "where it fits nothing is searched" 0 'it fits as it is'
sgd="tests/transforms/recordings/bert_--optimizer_sgd.vct"
run fit --find anything --capacity 250MiB --context 0 --most 60 "$sgd"
check "why its changes were not made in the program is said" grep -q "not rerun: which program made the recording is not known" <(printf "%s" "$err")
[ "$rc" != 2 ] && printf '%s' "$out" | grep -q 'replayed' && ! printf '%s' "$out" | grep -q 'optimizer:to=' &&
	pass "SGD, which keeps no states, is not told to become AdamW" || fail "an optimizer for SGD" "$out"
amp=tests/recordings/autocast-16.vct@batch=16
run fit --find anything --capacity 2.1GiB --context 0 --most 200 --json "$amp"
check "where products are in 16 bit already, autocast is not offered" test "$(pick "sum('precision:' in w['change'] for k in \
('nothing', 'rounding', 'precision', 'training', 'cards') for f in c[k] for w in f['changes'])")" = 0
check "a change is not among those of a suggestion unless it pays" test "$(pick "max(len(f['changes']) for f in c['training'])")" -le 2
run sim --no-advice --no-verify --set batch=8 -x accumulate:micro=2 "$amp" --json
check "two passes over half a batch are no faster than one" test "$(printf '%s' "$out" | python3 -c "import json, sys; t = \
json.load(sys.stdin)['runs'][0]['time']; print(t['step_ns'] >= 0.99 * t['recorded_step_ns'])")" = True
run fit --find anything --capacity 20GiB --context 0 --most 60 traces/lm-medium-ctx1024.vct --json
check "of more layers a guess says more time" test "$(pick "len(c['nothing']) > 2 and all(abs(f['time_factor'] - 1 - 0.33 * n / 24) < 0.01 for f in c['nothing'] \
for w in f['changes'] if len(f['changes']) == 1 and 'layers=' in w['change'] for n in [int(w['text'].split()[1])])")" = True
run run --fit -- /bin/true; expect "run --fit wants a card" 2 '' 'wants to know the card'
run run --fit --plan x.vcp -g rtx4090 -- /bin/true; expect "run --fit and a plan" 2 '' 'excludes --plan'
finish
