#!/bin/sh
# epoch.sh - samples of differing length: the file, the chances, the worst batch and the budget of tokens.
. tests/support/tap.sh
L=tests/ladders/recordings; S=_torch2.9.1.vct
bert="$L/bert-cls_seq0100$S@seq=100,batch=8 $L/bert-cls_seq0256$S@seq=256,batch=8"
value() { printf '%s\n' "$out" | tr -d ' ",' | awk -F: -v k="$1" '$1 == k { if ($2 != "[") { print $2; exit } n = 2; next } n-- > 0 { printf "%s ", $1; if (!n) exit }'; }

# What 384 needs was recorded: between that and a little more it fits, below it does not.
printf 'length,count\n64,1000\n100 900\n256\t95 # long\n384: 5\n' > "$TMP/lengths.txt"
need=$(sed -n 's/^ "peak_reserved": \([0-9]*\),$/\1/p' $L/bert-cls_seq0384_torch2.9.1.json)
run epoch $bert --lengths "$TMP/lengths.txt" --capacity $((need + need / 2)) --context 0 --json
expect "a card with room for the longest batch fits" 0 '"verdict": "fits"'
set -- $(value worst_used)
check "what the longest batch needs lies in the interval ($1 .. $2, recorded $need)" test "$1" -le "$need" -a "$2" -ge "$need"
check "samples and tokens are counted" sh -c '[ "$1 $2 $3 $4" = "2000 180240 250 384" ]' - "$(value samples)" "$(value tokens)" "$(value steps)" "$(value longest)"
check "no sample is too long" sh -c '[ "$1" = "0 0 " ] && [ "$2" = "0 0 " ]' - "$(value samples_over)" "$(value epoch_chance)"

# Room for 256 and not for 384: five samples of 2000 are too long.
half=$(sed -n 's/^ "peak_reserved": \([0-9]*\),$/\1/p' $L/bert-cls_seq0256_torch2.9.1.json)
run epoch $bert --lengths "$TMP/lengths.txt" --capacity $((half + (need - half) / 8)) --context 0 --json
expect "a card with room for all but five samples runs out" 3 '"verdict": "oom"'
printf '%s\n' "$out" > "$TMP/five.json"
if command -v python3 > /dev/null; then
	cat > "$TMP/chance.py" <<'P'
import json, math, sys
d = json.load(open(sys.argv[1]))
c, n, b = d["cards"][0], d["samples"], d["batch"]
assert (c["longest_certain"], c["longest_possible"], c["samples_over"]) == (256, 256, [5, 5]), c
assert c["tokens_over"] == [5 * 128] * 2
step = 1 - math.comb(n - 5, b) / math.comb(n, b)
assert all(abs(p - step) < 1e-9 for p in c["step_chance"]), (c["step_chance"], step)
last = int(sys.argv[2]) * b
epoch = 1 - math.comb(n - 5, last) / math.comb(n, last)
assert all(abs(p - epoch) < 1e-9 for p in c["epoch_chance"]), (c["epoch_chance"], epoch)
if c["half_by_step"]:
    at = lambda s: 1 - math.comb(n - 5, s * b) / math.comb(n, s * b)
    assert at(c["half_by_step"]) >= 0.5 > at(c["half_by_step"] - 1)
P
	check "the chances are those of drawing without replacement" python3 "$TMP/chance.py" "$TMP/five.json" 250
	printf '256 1998\n384 5\n' > "$TMP/odd.txt"
	run epoch $bert --lengths "$TMP/odd.txt" --capacity $((half + (need - half) / 8)) --context 0 --drop-last --json
	printf '%s\n' "$out" > "$TMP/odd.json"
	check "a last batch that is left out may hold them" python3 "$TMP/chance.py" "$TMP/odd.json" 250
fi
run epoch $bert --lengths "$TMP/lengths.txt" --capacity $((half + (need - half) / 8)) --context 0 --cut 256
expect "cut, they fit" 0 'cut by --cut: 640 tokens'
run epoch $bert --lengths "$TMP/lengths.txt" --capacity 3GiB --context 0 --pad-to 512 --json
expect "padded to 512 all are that long" 3 '"longest": 512'
run epoch $bert --lengths "$TMP/lengths.txt" --capacity 3GiB
expect "recordings of one batch tell no budget" 3 'token budget +not known: the recordings do not differ in batch'

# The budget: every batch that it allows fits by what sim says at its upper end, and the next larger one does not everywhere.
printf '96 10\n192 10\n' > "$TMP/two.txt"
run epoch $bert $L/bert-cls_seq0128$S@seq=128,batch=8 $L/bert-cls_batch0004$S@seq=128,batch=4 --lengths "$TMP/two.txt" --batch 8 --capacity 4GiB --context 0 --json
budget=$(value token_budget)
fits() { # LENGTH BATCH : the upper end of what it needs is at most 4 GiB
	"$VRAMCAST" sim $bert $L/bert-cls_seq0128$S@seq=128,batch=8 $L/bert-cls_batch0004$S@seq=128,batch=4 --set seq="$1" --set batch="$2" --context 0 --no-advice --json > "$TMP/sim.json" 2> "$TMP/err"
	high=$(awk '/"interval": \[/ { getline; getline; printf "%.0f", $1; exit } /"peak_reserved"/ && !p { p = $2 } /"interval": null/ { printf "%.0f", p; exit }' "$TMP/sim.json")
	[ "$high" -gt 0 ] && [ "$high" -le 4294967296 ]
}
check "a budget of $budget is safe for 96 and 192" sh -c '[ "$1" -gt 192 ]' - "$budget"
fits 96 $((budget / 96)) && fits 192 $((budget / 192)) && pass "its batches fit" || fail "its batches fit" "$budget" "$(cat "$TMP/err")"
fits 96 $(((budget + 1) / 96)) && fits 192 $(((budget + 1) / 192)) && fail "a larger budget has a batch that may not fit" "$budget" || pass "a larger budget has a batch that may not fit"

tell() { run epoch $bert $L/bert-cls_seq0128$S@seq=128,batch=8 $L/bert-cls_batch0004$S@seq=128,batch=4 --lengths "$TMP/two.txt" --batch 8 --capacity "$1" --context 0; }
tell 4GiB; expect "a certain budget is said once" 0 'token budget +[0-9]+ a batch, padding included; bounded by samples of 192'
tell 8GiB; expect "else how far it may go, too" 0 'token budget +[0-9]+ a batch, padding included, up to [0-9]+ possibly;'

wrong() { printf "$2" > "$TMP/bad.txt"; run epoch $bert --lengths "$TMP/bad.txt" --capacity 3GiB; expect "$1" 1 '' "$3"; }
wrong "a word" '12\nmany\n' 'bad.txt: line 2: wants a length'
wrong "three numbers" '12\n1 2 3\n' 'bad.txt: line 2: wants a length'
wrong "a length of nothing" '12\n0\n' 'line 2: a sample of length 0'
wrong "no length at all" '# nothing\n' 'no lengths; one stands on each line'
wrong "more tokens than there are" '9000000000000000000 9000000000000000000\n' 'line 1: more than 2.60 tokens'
run epoch $bert --capacity 3GiB; expect "no file" 2 '' '--lengths FILE says'
run epoch --lengths "$TMP/two.txt"; expect "no recording" 2 '' 'name recordings at two lengths or more'
run epoch $bert --lengths "$TMP/two.txt"; expect "no card" 2 '' 'name a card'
run epoch $bert --lengths "$TMP/two.txt" --capacity 3GiB --batch 9; expect "a batch that nothing tells of" 2 '' 'all recordings are of batch 8; for --batch 9'
finish
