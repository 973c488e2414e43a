#!/bin/bash
# fit.sh - the largest value that fits, from recordings; gpus picks a card.
. tests/support/tap.sh
export XDG_CACHE_HOME=$TMP/cache
run gpus; expect "the cards are listed" 0 'rtx4090 +GeForce RTX 4090 +23\.52'
run gpus h100; expect "an ambiguous name is answered with the candidates" 2 '' 'h100-80g-sxm'
run gpus --free "18.9GiB,20GiB,24GiB" --need 19GiB; expect "the smallest card that is enough" 0 'CUDA_VISIBLE_DEVICES=1'
run gpus --free "18.9GiB,20GiB"; expect "without a need the one with most" 0 'CUDA_VISIBLE_DEVICES=1'
run gpus --free "18.9GiB,20GiB" --need 21GiB; expect "none is enough" 3 'none of the 2 cards'
L=tests/ladders/recordings

run fit "$L/mlp_batch0016_torch2.9.1.vct"; expect "a recording that does not say its batch" 2 '' 'the recording does not say its batch; name it, as FILE@batch=VALUE'
m=$L/mlp_batch0016_torch2.9.1.vct@batch=16
run fit "$m" --capacity 1846MiB --context 0
expect "one recording answers with a pair of bounds" 0 'bounds from one recording' && check "the truth is not outside them (4,096 fits, 8,192 does not)" \
	sh -c 'echo "$1" | sed -n "s/.*certain up to *\([0-9]*\), possible up to \([0-9]*\).*/\1 \2/p" | { read a b && [ "$a" -lt 8192 ] && [ "$b" -ge 4096 ]; }' - "$out"
run fit "$m" "$L/mlp_batch0032_torch2.9.1.vct@batch=32" --capacity 846MiB --context 0
expect "a need that is not monotone is said (848 MiB at 1,000, 836 MiB at 1,024 were recorded)" 0 'largest that fits +1024' && expect "with the smaller value that fails" 0 'not monotone: larger ones fit'
a=$L/gpt-amp_batch0001_torch2.9.1.vct@batch=1
b=$L/gpt-amp_batch0002_torch2.9.1.vct@batch=2
run fit "$a" "$b" -g rtx4090 --json; expect "fit answers in JSON" 0 '"schema": "vramcast.fit/1"'
run fit "$a" "$b"; expect "it wants a card" 2 '' 'say what it has to fit on'
run fit "$a" "$b" --capacity 100MiB --context 0; expect "a card too small for one" 3 'largest that fits +0'
run fit "$a" "$b" -g rtx4090 --target 95..85%; expect "a target upside down" 2 '' 'LOW..HIGH'

# Only some values: what a program tries that shrinks its batch by itself.
run fit "$a" "$b" --capacity 12GiB --context 0 --json; any=$(printf '%s\n' "$out" | sed -n 's/^  "largest": \([0-9]*\),*$/\1/p')
run fit "$a" "$b" --capacity 12GiB --context 0 --among "64,$((any + 1)),$((any - 2)),3,3,0"
expect "of a list the largest that fits ($any fits)" 0 "largest that fits +$((any - 2))" && expect "and the smallest that does not" 0 "does not $((any + 1))"
run fit "$a" "$b" --capacity 12GiB --context 0 --among "$any,1,1000"; expect "a list that holds the answer" 0 "largest that fits +$any"
run fit "$a" "$b" --capacity 12GiB --context 0 --among "1000,2000"; expect "a list of which nothing fits" 3 'not even batch=1000 fits'
run fit "$a" "$b" --capacity 12GiB --context 0 --among 8,x; expect "a list with a word in it" 2 '' "among: 'x' is not a whole number"
run fit "$a" "$b" --capacity 12GiB --context 0 --among 8 --multiple 4; expect "a list and a multiple" 2 '' 'leave --multiple out'

# What other processes hold counts, however it is said.
need() { printf '%s\n' "$out" | awk '/"batch": 12,/ { getline; getline; print $2; exit }'; }
run fit "$a" "$b" --capacity 16GiB --context 0 --most 12 --json; alone=$(need)
run fit "$a" "$b" --capacity 16GiB --context 0 --most 12 --used 2GiB --json; used=$(need)
check "--used counts ($alone, $used)" test "${used%,}" = $(( ${alone%,} + 2147483648 ))
run fit "$a" "$b" --capacity 16GiB --context 0 --most 12 -x share:n=2 --json; share=$(need)
check "-x share counts ($alone, $share)" test "${share%,}" -gt "${alone%,}"
run fit "$a" "$b" --capacity 12GiB --context 0 --target 85..95% --json
check "the recommended value lies in the target band" sh -c 'echo "$1" | grep -q "\"recommended\": 16"' - "$out"

# A capacity between the recorded peaks of two rungs: the answer must lie between the rungs.
peak() { sed -n 's/^ "peak_reserved": \([0-9]*\),$/\1/p' "$1"; }
between() { # LADDER KNOB TORCH LOW1 LOW2 RUNG NEXT
	lo=$(peak "$L/$1_$2$6_torch$3.json"); hi=$(peak "$L/$1_$2$7_torch$3.json")
	cap=$(( (lo + hi) / 2 ))
	run fit "$L/$1_$2$4_torch$3.vct@$2=$((10#$4))" "$L/$1_$2$5_torch$3.vct@$2=$((10#$5))" \
		--find $2 --capacity $cap --context 0 --json
	got=$(printf '%s\n' "$out" | sed -n 's/^  "largest": \([0-9]*\),*$/\1/p')
	check "$1 $2: the largest is between $6 and $7" test "${got:-0}" -ge $((10#$6)) -a "${got:-0}" -lt $((10#$7))
}
if [ -n "$BASH_VERSION" ]; then
	between gpt-amp batch 2.9.1 0001 0002 0016 0024
	between bert-cls batch 2.9.1 0004 0008 0032 0048
	between gpt-accum seq 2.9.1 0128 0192 0320 0512
	between llama-lora batch 2.9.1 0001 0002 0012 0016
	between mlp batch 2.9.1 0016 0032 2048 4096
	between resnet50 batch 2.9.1 0001 0002 0048 0064
	between vit-b16 image 2.9.1 0112 0160 0288 0384
	between gpt2-hf seq 2.9.1 0256 0384 0640 1024
	between gpt-scaler batch 2.9.1 0002 0004 0012 0016
fi
# 2,048 needs less than 1,793 (tests/ladders: 1,038 MiB): the next power of two is looked at behind what fits.
m=tests/ladders/recordings/mlp_batch
run fit ${m}0016_torch2.9.1.vct@batch=16 ${m}0032_torch2.9.1.vct@batch=32 ${m}0100_torch2.9.1.vct@batch=100 --torch 2.9.1 -g h200 --capacity 1040MiB --context 0 --target 1..100% --json
expect "a power of two that fits behind smaller ones that do not is found" 0 '"largest": 2048,'
# From 515 on the second block is of 10 MiB and more and has a segment of its own size, below it one of 20 MiB: 512 to 514
# do not fit, smaller and larger ones do.
for n in 100 192 384; do printf 'vramcast-golden 1\ntotal 8589934592\nevents auto\nm 1 %d 0\nm 2 %d 0\nf 2\nf 1\n' $((65600 * n)) $((20361 * n)) > "$TMP/hole$n.ops"; done
run fit "$TMP/hole100.ops@seq=100" "$TMP/hole192.ops@seq=192" "$TMP/hole384.ops@seq=384" --find seq --torch 2.9.1 --capacity 53MiB --context 0 --target 1..100%
expect "a power of two that does not fit below what does is named" 0 'does not 512 \(not monotone'
one=tests/recordings/eval-4-8.vct@batch=4
run fit $one --capacity 186MiB --context 0; expect "where nothing is certain to fit, it is undecided" 6 'certain up to +0, possible up to 5'
check "and no more of a card is said to be used than there is" sh -c '! printf "%s" "$1" | grep -E "with 1[0-9]{2}\.[0-9] % of the card used"' sh "$out"
run fit $one --capacity 186MiB --context 0 --assume best; expect "--assume decides" 0
run fit $one -g h200 -g t4 --context 14.4GiB --most 64; expect "of several cards the worst counts" 6 'NVIDIA H200'
finish
