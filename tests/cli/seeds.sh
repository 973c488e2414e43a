#!/bin/bash
# seeds.sh - the questions the what-if part was started for, on recordings that are always there: a GPT
# of 34 million parameters (tests/transforms/recordings), AdamW, float. Training and evaluation batch
# apart, and one large evaluation request: whatif.sh.
. tests/support/tap.sh
g=tests/transforms/recordings/gpt.vct
visible=31.37GiB
got() { printf '%s\n' "$out" | sed -n "s/^ *\"$1\": \\([0-9]*\\),*\$/\\1/p" | head -n 1; }

run sim $g --capacity $visible --used 18.81GiB@4711 --context 450MiB --json
expect "beside a process that holds 18.81 GiB of 31.37 GiB it fits" 0 '"verdict": "fits"'
check "which is listed as others" test "$(got others)" = 20197083709 -o "$(got others)" = 20197083710
check "and what is left is less by just that" test $(($(got used) + $(got free))) = "$(got capacity)"
run sim $g --capacity $visible --used 29.5GiB@4711 --context 450MiB
expect "beside 29.5 GiB it does not, and PyTorch names the process" 3 'Process 4711 has 29\.50 GiB'

run sim $g --json; whole=$(got peak_reserved); held=$(got peak_allocated)
declare -A peak
for z in 0 1 2 3; do
	run sim $g --capacity $visible -x zero:stage=$z,ranks=2 --json; peak[$z]=$(got peak_allocated)
	expect "ZeRO stage $z over two cards of 32 GB fits" 0 '"verdict": "fits"'
	check "with an interval, for it was not recorded" sh -c 'echo "$1" | tr -d "\n" | grep -q "\"interval\": \[ *[0-9]"' - "$out"
done
run sim $g -x zero:stage=1,ranks=2,bucket=0 --json; one=$(got peak_allocated)
check "without buckets stage 1 holds half of the states: $one" test $((held - one)) -gt $((120 << 20)) -a $((held - one)) -lt $((140 << 20))
for z in 1 2 3; do
	run sim $g --capacity $visible -x zero:stage=$z,ranks=2,offload=optimizer --json
	check "stage $z with the optimizer on the host needs less of the card" test "$(got peak_allocated)" -lt "${peak[$z]}"
	check "and memory of the host" test "$(got moved)" -gt 0
	check "which is a lower bound" sh -c 'echo "$1" | grep -q "\"lower_bound\": true"' - "$out"
done
run sim $g -x zero:stage=3,ranks=2,offload=all --host-memory 180GiB; expect "a host of 180 GiB does for offloading all" 0 'a lower bound'
run sim $g -x zero:stage=3,ranks=2,offload=all --host-memory 100MiB; expect "one of 100 MiB does not" 3 'does not fit: at least'
run sim $g -x zero:stage=1,ranks=2,bucket=0; expect "torch's own stage 1 needs what averages gradients" 0 'put -x ddp before it'
run sim $g -x ddp -x zero:stage=1,ranks=2,bucket=0; check "beside ddp nothing more is said" test -z "$(grep 'put -x ddp' "$TMP/out" "$TMP/err")"
run sim $g -x zero:stage=2,offload=all; expect "parameters are offloaded by stage 3 only" 2 '' 'stage 3 only'

mib=$((whole >> 20))
run sim $g --capacity $((mib + 200))MiB --context 0 --json; expect "$mib MiB on a card with 200 MiB more" 0 '"verdict": "fits"'
run sim $g --capacity $((mib + 200))MiB --context 0 --fraction 0.9 --json
check "a fraction of 0.9 of it is a limit below what it would reserve" test "$(got limit)" -lt "$whole"
check "and reserved stays below the limit" test "$(got peak_reserved)" -le "$(got limit)"
run sim $g --capacity $((mib + 200))MiB --context 0 --fraction 0.5; expect "a fraction of 0.5 is too little" 3 'out of memory'

run sim $g -x optimizer:to=adafactor --json
check "Adafactor for AdamW saves the states and the temporaries of the step" test $((held - $(got peak_allocated))) -gt $((250 << 20))
run sim $g -x optimizer:to=adafactor --capacity 1800MiB --context 0; expect "so it runs where AdamW does not" 0
run sim $g --capacity 1700MiB --context 0; expect "AdamW does not" 3 'out of memory'
run sim $g -x pp; expect "pp says what it takes for a micro-batch" 0 'the recorded step is one micro-batch'
for t in tp qlora; do run sim $g -x $t; expect "$t says how little it was held against" 0 'held against one real run'; done

# Which layers: those of one class, by their place in the program.
wav=tests/transforms/recordings/wav.vct
run info $wav; expect "info says where layers stand" 0 '6 at modeling_wav2vec2\.py:279'
run sim $wav -x checkpoint --json; stack=$(got peak_reserved)
run sim $wav -x checkpoint:module=wav2vec2.py:618 --json
check "the layers that hand on one shape are what is checkpointed" test "$(got peak_reserved)" = "$stack"
run sim $wav -x checkpoint:all=true --json; check "convolutions too give more back" test "$(got peak_reserved)" -lt "$stack"
run sim $wav -x checkpoint:count=2 --json; check "two layers give less back" test "$(got peak_reserved)" -gt "$stack"
run sim $wav -x checkpoint:module=nowhere.py; expect "a module that is not there" 2 '' "no layer is at 'nowhere.py'; 'vramcast info' lists the places"
run sim $wav -x checkpoint:first=99; expect "more layers left out than there are" 2 '' 'leave none of the layers'

# What runs beside the training steps has an assumption, which is said and can be chosen.
tab=tests/transforms/recordings/p.tabular.vct
run sim $tab -x precision; expect "evaluation under autocast is assumed, and said" 0 'an evaluation does: under autocast too is assumed'
run sim $tab -x precision --json; too=$(got peak_reserved)
run sim $tab -x precision:eval=float; expect "or chosen" 0 'an evaluation does: in float'
run sim $tab -x precision:eval=float --json; check "an evaluation in float needs more" test "$(got peak_reserved)" -gt "$too"

# A target band: 16 samples use 89.5 % of this card, more would use more than 95 %, or not fit.
L=tests/ladders/recordings
a=$L/gpt-amp_batch0001_torch2.9.1.vct@batch=1 b=$L/gpt-amp_batch0002_torch2.9.1.vct@batch=2
run fit --find batch $a $b --capacity 12657MiB --context 0 --target 85..95%
expect "of 85 to 95 % the value in the band is recommended, and why" 0 'recommended  *16' &&
	expect "with its share of the card" 0 '16 uses up to 89\.5 % of the card'
run fit --find batch $a $b -g rtx4090 --target 85..95%
expect "on an RTX 4090 too" 0 'recommended  *38' && expect "where it is 94 %" 0 '38 uses up to 94\.0 %'
finish
