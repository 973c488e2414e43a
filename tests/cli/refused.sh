#!/bin/bash
# refused.sh - values one beyond what is taken, and the last ones that are: one sentence says which are.
. tests/support/tap.sh
R=tests/transforms/recordings/bert.vct J=$TMP/q.jsonl
printf '{"timestamp":0,"input_length":10,"output_length":5}\n' > "$J"
# COMMAND LINE | the sentence; ok: it is taken
while IFS='|' read -r line why; do
	[ -n "$line" ] || continue
	line=${line% }
	eval "set -- $line"
	run "$@"
	case $why in
	" ok") if [ "$rc" = 0 ] || [ "$rc" = 3 ]; then pass "$line"; else fail "$line: taken" "$rc $err"; fi ;;
	*) expect "not $line" 2 '' "${why# }" ;;
	esac
done << 'END'
sim $R -x accumulate:micro=0 | accumulate: micro=0 is not between 1 and 4096
sim $R -x accumulate:micro=4097 | accumulate: micro=4097 is not between 1 and 4096
sim $R -x accumulate:micro=1 | ok
sim $R -x ddp:ranks=0 | ddp: ranks starts at 1
sim $R -x ddp:ranks=1 | ok
sim $R -x fraction:f=1.01 | fraction: f=1.01 is not between 0 and 1
sim $R -x fraction:f=-0.1 | f
sim $R -x fraction:f=1 | ok
sim $R -x fraction:f=0 | ok
sim $R -x fsdp:ranks=0 | fsdp: ranks starts at 1
sim $R -x fsdp:ranks=1048577 | fsdp: ranks starts at 1
sim $R -x fsdp:ranks=1048576 | ok
sim $R -x fsdp:version=3 | fsdp: version is 1 .FullyShardedDataParallel. or 2 .fully_shard.
sim $R -x fsdp:version=0 | fsdp: version is 1
sim $R -x fsdp:version=1 | ok
sim $R -x fsdp:version=2 | ok
sim $R -x leak:steps=0 | leak: steps is 1 to 100000
sim $R -x leak:steps=100001 | leak: steps is 1 to 100000
sim $R -x leak:steps=1 | ok
sim $R -x lora:rank=0 | lora: rank starts at 1, targets is 0 to 1, element 2 or 4
sim $R -x lora:targets=1.1 | lora: rank starts at 1, targets is 0 to 1
sim $R -x lora:element=3 | lora: rank starts at 1, targets is 0 to 1, element 2 or 4
sim $R -x lora:rank=1,targets=0,element=2 | ok
sim $R -x lora:rank=1,targets=1,element=4 | ok
sim $R -x mixture:low=0,high=1,steps=2 | mixture: 0 < low <= high
sim $R -x mixture:low=1,high=0.9,steps=2 | mixture: 0 < low <= high
sim $R -x mixture:low=1,high=1,steps=0 | mixture: .* steps is 1 to 100000
sim $R -x mixture:low=1,high=1,steps=100001 | mixture: .* steps is 1 to 100000
sim $R -x mixture:low=1,high=1,steps=1 | ok
sim $R -x optimizer:element=3 | optimizer: element is 2 or 4 bytes
sim $R -x optimizer:block=0 | optimizer: block starts at 1
sim $R -x optimizer:element=2,block=1 | ok
sim $R -x optimizer:element=4 | ok
sim $R -x pp:stages=0 | pp: stages and micro start at 1, stage is below stages
sim $R -x pp:stages=2,micro=0 | pp: stages and micro start at 1
sim $R -x pp:stages=2,stage=2 | pp: stages and micro start at 1, stage is below stages
sim $R -x pp:stages=2,stage=1,micro=1 | ok
sim $R -x precision:act=1.1 | precision: act=1.1 is not between 0 and 1
sim $R -x precision:act=-0.5 | precision: act=-0.5 is not between 0 and 1
sim $R -x precision:act=0 | ok
sim $R -x precision:act=1 | ok
sim $R -x share:processes=0 | share: processes counts this one, it starts at 1
sim $R -x share:processes=1 | ok
sim $R -x tail_batch:share=0 | tail_batch: share=0 is not above 0 and up to 1
sim $R -x tail_batch:share=1.1 | tail_batch: share=1.1 is not above 0 and up to 1
sim $R -x tail_batch:share=1 | ok
sim $R -x tp:ranks=0 | tp: ranks and element start at 1
sim $R -x tp:element=0 | tp: ranks and element start at 1
sim $R -x tp:ranks=1,element=1 | ok
sim $R -x zero:stage=4 | zero: stage is 0 to 3
sim $R -x zero:ranks=0 | zero: ranks starts at 1
sim $R -x zero:ranks=1048577 | zero: ranks starts at 1
sim $R -x zero:stage=2,bucket=0 | zero: bucket=0 is torch's ZeroRedundancyOptimizer, which has stage 1 only
sim $R -x zero:stage=1,bucket=0 | ok
sim $R -x zero:element=3 | zero: element is 2 or 4
sim $R -x zero:stage=2,offload=all | zero: parameters are offloaded by stage 3 only
sim $R -x zero:stage=3,offload=all | ok
sim $R -x zero:stage=0 | ok
sim $R -x trim:x=1 | trim
sim $R -x checkpoint:every=0 | every and stride start at 1
sim $R -x checkpoint:every=1 | ok
sim $R -x window:iteration=x | iteration: 'x' is not a whole number
sim $R -x precision:to=nosuch | 'nosuch' is none of
sim $R -x checkpoint:last=maybe | 'maybe' is neither true nor false
sim $R --start never | --start never: must be one of warm.rebuild.cold
sim $R --assume often | --assume often: must be one of low.best.high
sim $R --set batch | --set batch: write NAME=VALUE, as in batch=32
sim $R --seeds 0 | --seeds goes from 1 to
sim $R --seeds 65 | --seeds goes from 1 to
sim $R -g h100 | gpu 'h100' is one of .*: say which
sweep $R --vary batch | --vary batch: write KEY=VALUES, as in batch=8,16,32
sweep $R --vary batch= | --vary batch: no values
sweep $R --vary torch=2.6 --vary torch=2.7 | --vary torch is given twice: write all its values in one, torch=A,B
sweep $R --vary torch=2.6 --shard 0/2 | --shard 0/2: write I/N with I from 1 to N, or auto
sweep $R --vary torch=2.6 --shard 3/2 | --shard 3/2: write I/N with I from 1 to N, or auto
sweep $R --vary torch=2.6 --shard 1/1 | ok
fit $R@batch=4 -g l4 --multiple 0 | --multiple and --most start at 1
fit $R@batch=4 -g l4 --most 0 | --multiple and --most start at 1
fit $R@batch=4 -g l4 --target 95..85% | --target 95..85%: write LOW..HIGH%, as in 85..95%
fit $R@batch=4 -g l4 --target x | --target: 'x' is not a number
fit $R@batch=4 -g l4 --target 0..0% | --target 0..0%: write LOW..HIGH%
fit $R@batch=4 -g l4 --target 85..101% | --target 85..101%: write LOW..HIGH%
fit $R@batch=4 -g l4 --target 85..100% | ok
fit $R@batch=4 -g l4 --target 0.85..0.95 | ok
fit $R@batch=4 -g l4 --among 0 | --among 0: no value from 1 to --most
plot $R -o $TMP/p.svg --width 39 | --width goes from 40 to 4000, not 39
plot $R -o $TMP/p.svg --width 4001 | --width goes from 40 to 4000, not 4001
plot $R -o $TMP/p.svg --width 40 | ok
plot $R -o $TMP/p.svg --width 4000 | ok
diff $R | diff wants two traces, not 1
diff $R $R --markdown --json | --markdown or --json, not both
plan $R $R | plan wants one trace, not 2
export $R --to csv | where to. give -o FILE .or -o -.
export $R --to vct -o $TMP/x.vct --level 23 | --block goes from 1 to 16777216, --level from 0 to 22
export $R --to vct -o $TMP/x.vct --block 0 | --block goes from 1 to 16777216, --level from 0 to 22
export $R --to vct -o $TMP/x.vct --block 16777217 | --block goes from 1 to 16777216, --level from 0 to 22
export $R --to vct -o $TMP/x.vct --level 22 --block 16777216 | ok
export $R --to vct -o $TMP/x.vct --level 0 --block 1024 | ok
export $R --to csv -o $TMP/x.csv --no-stacks | --no-stacks and --no-addresses are for --to vct only
completions tcsh | which shell: bash, zsh or fish
schema nosuch | which document. One of
estimate --params 7e9 --layers 32 --hidden 4096 --zero 2 --offload all | --offload all needs --zero 3
estimate --params 7e9 --layers 32 --hidden 4096 --zero 3 --offload all | ok
serve $J --blocks 100 --csv --json | --csv or --json, not both
serve $J --blocks 100 --max-num-seqs 0 | --max-num-seqs starts at 1 request
serve $J --blocks 100 --max-num-seqs 1 | ok
serve $J --blocks 100 --max-num-batched-tokens 0 | --max-num-batched-tokens starts at 1 token
serve $J --blocks 100 --block-size 0 | --block-size starts at 1 token
serve $J --blocks 100 --block-size 1 | ok
serve $J --blocks 100 --vllm 0.23 --watermark 0.1 | vLLM 0.23 has no watermark, 0.24 has
serve $J --blocks 100 --sglang 0.5.23 --speculative 2 | --speculative and --watermark are vLLM's
dryrun -g t4 --devices 17 -- true | --devices and --ranks go from 1 to 16
dryrun -g t4 --devices 0 -- true | --devices and --ranks go from 1 to 16
record -o $TMP/r.vct --keep 1023KiB -- true | --keep 1023KiB: a ring needs 1MiB at least
record -o $TMP/r.vct --after soon -- true | --after is a time .90s, 5m, 2h., not 'soon'
record -o $TMP/r.vct --duration long -- true | --duration is a time .60s, 5m., not 'long'
run --choice x.json --fit -- true | --choice excludes --fit, --plan and --learn
END
check "what is refused leaves nothing" test ! -e "$TMP/r.vct"
finish
