#!/bin/sh
# changes.sh - every transform with each of its parameters, every allocator, release and setting, on recordings of several
# kinds: all are answered, and what they say is what it was.
. tests/support/tap.sh
changes='fraction:f=0.5|fraction:f=0.3,instead=true|empty_cache:at=iterations|empty_cache:at=phases|empty_cache:at=switches
share:processes=3|share:processes=2,each=1GiB,context=1GiB,mode=aligned|share:processes=3,mode=optimal|awake|window:iterations=1|window:from=500,to=1500
accumulate:micro=3|optimizer:to=sgd|optimizer:to=adam8bit,block=128|optimizer:to=adam,step=foreach,element=2|optimizer:to=adafactor|optimizer:to=lion,step=loop
optimizer:to=momentum,step=fused|optimizer:to=amsgrad|optimizer:to=rmsprop|optimizer:to=adagrad|optimizer:to=lamb|optimizer:to=muon|optimizer:to=adafactor_hf|optimizer:to=lion8bit
precision|precision:to=bf16|precision:bound=low|precision:bound=high,loss=float,eval=float|precision:act=0.5
zero:stage=1,ranks=4|zero:stage=2,ranks=4,overlap=true|zero:stage=3,ranks=8,live=1000000|zero:stage=2,offload=optimizer|zero:stage=3,offload=all,prefetch=1000
ddp:ranks=4|ddp:bucket=5,view=true|ddp:rebuild=false,bound=high|ddp:bound=low
fsdp:ranks=4|fsdp:ranks=4,version=1|fsdp:wrap=whole|fsdp:reshard=false|fsdp:version=2,root=true,mixed=true|fsdp:bound=low|fsdp:bound=high
lora:rank=16|lora:targets=0.5,bound=low|lora:element=2,bound=high|qlora|qlora:double=false,rank=64
checkpoint|checkpoint:every=2|checkpoint:stride=2|checkpoint:least=1MiB|checkpoint:first=1,count=2|checkpoint:layers=0/2|checkpoint:all=true|checkpoint:last=false|checkpoint:bound=low|checkpoint:bound=high
leak:steps=50|tail_batch:share=0.25|mixture:low=0.4,high=1.5,steps=8|mixture:shares=0.5/1/1.5,bound=high|offload|offload:least=4MiB,after=5
tp:ranks=2|tp:ranks=4,sequence=true,element=2|pp:ranks=2|pp:ranks=4,stage=1,micro=2|pp:ranks=2,stage=1,micro=16'
confs='
expandable_segments:True
max_split_size_mb:64
garbage_collection_threshold:0.6
roundup_power2_divisions:4
max_split_size_mb:128,max_non_split_rounding_mb:40
backend:cudaMallocAsync'
# One run a line, so that what is refused is a line as well.
printf '%s\n' "$changes" | tr '|' '\n' | sed 's/.*/{"x":"&","gpu":"rtx3060-12g"}/' > "$TMP/changes"
for torch in 2.0 2.4 2.7 2.11; do for capacity in 300MiB 1GiB 40GiB; do
	printf '%s\n' "$confs" | sed "s/.*/{\"conf\":\"&\",\"torch\":\"$torch\",\"capacity\":\"$capacity\"}/"
done; done > "$TMP/settings"
for model in $("$VRAMCAST" list models | sed -n 's/^  \([a-z][a-z0-9_-]*\) .*/\1/p'); do for capacity in 300MiB 1GiB 40GiB; do
	printf '{"model":"%s","capacity":"%s"}\n' $model $capacity
done; done > "$TMP/allocators"
"$VRAMCAST" gpus --json | sed -n 's/^ *"name": "\(.*\)",$/{"gpu":"\1"}/p' > "$TMP/cards"
for batch in 2 20 48; do for gpu in t4 h100-80g-sxm; do
	for x in '' precision:to=bf16; do printf '{"batch":%d,"gpu":"%s","x":"%s"}\n' $batch $gpu "$x"; done
done; done > "$TMP/values"
R=tests/recordings
answered() { # LIST RECORDING LEAST : of so many runs at least LEAST are answered
	# shellcheck disable=SC2086
	run sweep --json $2 --scenarios "$TMP/$1"
	n=$(printf '%s\n' "$out" | grep -c '"verdict":"')
	[ "$(printf '%s\n' "$out" | wc -l)" = "$(wc -l < "$TMP/$1")" ] && [ "$n" -ge "$3" ] && pass "$1 of ${2##*/}: $n are answered" ||
		fail "$1 of ${2##*/}: $n are answered, $3 were" "$rc" "$err" "$(printf '%s\n' "$out" | grep -v verdict)"
}
for f in $R/gpt.vct $R/h100/resnet-4.vct $R/h100/unet-4.vct $R/encoder.vct; do
	answered changes $f 60
	answered settings $f 75
	answered allocators $f 20
done
answered cards $R/h100/unet-4.vct 40
# What came before a recording decides what other settings make of it.
answered settings $R/h100/attached.vct 75
for p in gpt llama lstm_packed moe style superres t5 transformer_xl unet vit; do
	answered values "$R/h100/$p-4.vct@batch=4 $R/h100/$p-12.vct@batch=12" 10
done
# Servers: pages, prompts in parts, and caches that are too small.
served() { # RELEASE... : each with caches and steps of several sizes
	n=0
	for release; do for page in 1 16 64; do for tokens in 300 2048; do for seqs in 12 256; do
		[ "$page ${release%=*}" != "1 --vllm" ] || continue
		run serve examples/requests.jsonl "$release" --block-size $page --blocks $((24000 / page)) --max-num-batched-tokens $tokens --max-num-seqs $seqs --json
		{ [ "$rc" = 0 ] || [ "$rc" = 3 ]; } && n=$((n + 1))
	done; done; done; done
	[ $n -ge 10 ] && pass "$1 and other releases: $n are answered" || fail "$1 and other releases: $n are answered" "$err"
}
served --vllm=0.10 --vllm=0.18 --vllm=0.24 --vllm=0.33
served --sglang=0.5 --sglang=0.5.10 --sglang=0.5.23
finish
