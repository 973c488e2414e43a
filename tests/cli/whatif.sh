#!/bin/bash
# whatif.sh - the questions people ask when memory runs out, on recordings of one script at several sizes.
. tests/support/tap.sh
run estimate --params 7e9 --layers 32 --hidden 4096 --optimizer adamw --zero 2 --gpus 2 --batch 4 --seq 2048 -g a100-80g-sxm
expect "no recording at all: formulas, marked as such" 3 'least trustworthy'
run estimate --params 7e9 --layers 32 --hidden 4096 --precision bf16 --lora-rank 8 --recompute full -g a100-80g-sxm --json
expect "adapters with recomputation fit" 0 '"verdict": "fits"'
run estimate --layers 32; expect "estimate says what it needs" 2 '' 'params is missing'

# An evaluation step that needs 5.80 GiB in one piece, with 4.43 GiB free and 3.17 GiB cached in pieces.
{ echo "vramcast-golden 1"; echo "total 16642998272"
  echo "m 1 8481112064 0"
  for i in $(seq 2 14); do echo "m $i 260000000 0"; done
  for i in $(seq 2 14); do echo "f $i"; done
  echo "m 90 6227702579 0"; } > "$TMP/eval.ops"
run sim "$TMP/eval.ops" --torch 2.9
expect "one large request: the cache is emptied for it" 0 'emptying the cache'
# One recording, batch 1, where everything divides by the batch and half of it has a parameter's size: 20.1 GiB were
# recorded at batch 8 (python examples/gpt.py --batch-size 8).
run sim tests/recordings/gpt.vct --set batch=8 --capacity 80GiB --force
check "bounds from one recording hold what was recorded, within half as much again" sh -c 'echo "$1" | sed -n "s/.*reserved lies between \([0-9.]*\) GiB and \([0-9.]*\) GiB/\1 \2/p" |
	awk "{ ok = \$1 <= 20.1 && \$2 >= 20.1 && \$2 < 1.5 * \$1 } END { exit !ok }"' - "$out"
L=tests/ladders/recordings
peak() { sed -n 's/^ "peak_reserved": \([0-9]*\),$/\1/p' "$L/$1.json"; }
got() { printf '%s\n' "$out" | sed -n 's/^ *"peak_reserved": \([0-9]*\),*$/\1/p' | head -n 1; }

a=$L/resnet50_batch0008_torch2.9.1.vct@batch=8,eval_batch=32
b=$L/resnet50_batch0016_torch2.9.1.vct@batch=16,eval_batch=32
c=$L/resnet50_eval_batch0064_torch2.9.1.vct@batch=8,eval_batch=64
card="--capacity 31.37GiB --context 450MiB"
run sim $a $b $c --set batch=64 --set eval_batch=32 $card --json
check "training and evaluation batch apart: the first alone is exact" test "$(got)" = "$(peak resnet50_batch0064_torch2.9.1)"
run sim $a $b $c --set batch=8 --set eval_batch=256 $card --json
check "the second alone is exact" test "$(got)" = "$(peak resnet50_eval_batch0256_torch2.9.1)"
run sim $a $b $c --set batch=256 --set eval_batch=512 $card; expect "both at once, on a card of 32 GB" 0 'fits'
run sim $a $b --set sec=4; expect "a parameter nobody recorded" 2 '' 'do not say their sec; name it, as FILE@sec=VALUE'
run sim $a --set batch=64 --json; expect "one recording gives bounds" 0 '"level": "bounds"'

m=$L/gpt2-hf_batch0008_torch2.9.1.vct
run sim $m --capacity 31.37GiB --used 18.81GiB@4711; expect "another process holds 18.81 GiB: fits beside it" 0 '18\.81 GiB'
run sim $m --capacity 24GiB --used 18.81GiB@4711; expect "on a smaller card it does not" 3 'out of memory'
run sim $m -g rtx3090 --fraction 0.9; expect "a fraction of 0.9" 0 'fits'
run sim $m -g rtx3090 -x fraction:f=0.2; expect "a fraction of 0.2 is too little" 3 'out of memory'
for z in 0 1 2 3; do
	run sim $m --capacity 31.37GiB -x zero:stage=$z,ranks=2,offload=$([ $z -gt 0 ] && echo optimizer || echo none)
	expect "ZeRO stage $z over two cards" 0 'fits'
done
run sim $m -x zero:stage=3,ranks=2,offload=all; expect "host memory of the offload is said" 0 'host memory'
run sim $m --json; adamw=$(got)
run sim $m -x optimizer:to=adafactor --json
check "Adafactor instead of AdamW needs less" test "$(got)" -lt "$adamw"
run sim $m -x checkpoint --json; check "checkpointing needs less" test "$(got)" -lt "$adamw"
run sim $m -x accumulate:k=2 --json; check "accumulation of the same batch needs no less" test "$(got)" -ge "$adamw"
p=tests/transforms/recordings
run sim $p/bert.piece.vct -x optimizer:to=sgd
expect "the piece of a step that is all there is is refused, with what to record" 2 '' 'begins in the middle of its only step: record'
run info $p/bert.step.vct
expect "call sites tell a single step in the middle of a run" 0 'iterations *1, from names of call sites'
run sim $p/gpt.vct@batch=1 $p/gpt_--precision_amp.vct@batch=2 --set batch=4 --no-verify
expect "another precision is another configuration: refused with what shows it" 2 '' 'not of one configuration: .*match nothing'
live() { printf '%s\n' "$out" | sed -n 's/^ *"peak_requested": \([0-9]*\),*$/\1/p' | head -n 1; }
l=tests/ladders/recordings/mlp_batch
run sim ${l}4096_torch2.9.1.vct --json --no-verify; truth=$(got)
run sim ${l}0100_torch2.9.1.vct@batch=100 ${l}2048_torch2.9.1.vct@batch=2048 --set batch=4096 --json --no-verify
check "buffers of norms that only the larger batch needs are no turns of a loop" test "$(got)" = "$truth"
i=tests/ladders/medium-inference
run sim $i-ctx1024.vct --json --no-verify; truth=$(live)
run sim $i-ctx128.vct@ctx=128 $i-ctx256.vct@ctx=256 --set ctx=1024 --json --no-verify; said=$(live)
echo "# context 128 and 256 to 1024: $said of $truth bytes"
check "context 128 and 256 give 1024 within 0.1 %, on a real GPU" test $(( (said - truth) * 1000 / truth )) -ge -1 -a $(( (said - truth) * 1000 / truth )) -le 1
finish
