#!/bin/bash
# answers.sh - answers stay what they were when somebody last looked at them: what each allocation of a recording is
# for, and what each transform makes of it. Other tests hold some of these answers against what really happened; this
# one notices every rule that changes any of them. When a change is meant: make answers, and read the difference.
. tests/support/tap.sh
here=tests/answers
T=tests/transforms/recordings R=tests/recordings L=tests/ladders/recordings

# What the blocks are, and in which phase they were asked for: number and bytes of each kind
anatomy() { # RECORDING
	echo "== $1"
	"$VRAMCAST" info -q "$1" 2>&1 | grep -E '^  (iterations|layers|steps) |^ +[0-9]+ at |leak|grows|lengths' | grep -v '^  command '
	"$VRAMCAST" dump --anatomy "$1" 2>&1 | awk '/ alloc .* is=/ {
		size = is = phase = ""
		for (i = 4; i <= NF; i++) {
			if ($i ~ /^size=/) size = substr($i, 6)
			if ($i ~ /^is=/) for (is = substr($i, 4); $(i + 1) !~ /=/; i++) is = is " " $(i + 1)
			if ($i ~ /^phase=/) phase = substr($i, 7)
		}
		n[is ", " phase]++; bytes[is ", " phase] += size }
		END { for (k in n) printf "%s: %.0f, %.0f bytes\n", k, n[k], bytes[k] }' | LC_ALL=C sort
}

sums() { # allocated, reserved and the interval of the last run
	[ "$rc" = 0 ] || [ "$rc" = 3 ] || { sed 's/^vramcast [a-z]*: //' "$TMP/err" | head -n 1; return; }
	awk '/^ *"(verdict|peak_allocated|peak_reserved|peak_event|stranded_at_peak|pinned|steps_before)": / { gsub(/[":,]/, ""); sub("peak_", "", $1); s = s " " $1 " " $2 }
		/^ *"interval": \[/ { getline low; getline high; gsub(/[ ,]/, "", low); gsub(/ /, "", high); s = s " (" low " to " high ")" }
		END { print substr(s, 2) }' "$TMP/out"
}
ask() { # OPTION... : one line
	run sim --no-verify --no-advice --json "$@"
	echo "$* -> $(sums)"
}

recordings() {
	for f in $T/*.vct $R/*.vct traces/l*.vct $L/{bert-cls_batch0008,gpt-accum_seq0256,gpt-amp_batch0002,gpt-scaler_batch0004,gpt2-hf_batch0002,llama-lora_batch0002,mlp_batch0032,resnet50_batch0008,vit-b16_batch0004}_torch2.9.1.vct; do
		anatomy "$f"
	done
}
changes() {
	for f in gpt conv bert qwen distil wav efficient llama.ds_bf16 bert.first encoder.eval; do
		for x in empty_cache accumulate:k=2 optimizer:to=adafactor optimizer:to=adam8bit optimizer:to=lion precision precision:to=bf16 \
			zero:stage=1 zero:stage=2 zero:stage=3 zero:stage=3,offload=all ddp fsdp:version=1 fsdp lora qlora checkpoint \
			checkpoint:all=true leak:steps=20 tail_batch mixture offload ddp:view=true tp pp:stages=2 share:n=2 window:iteration=1,iterations=1; do
			ask $T/$f.vct -x $x
		done
	done
	ask $T/bert.vct -x precision -x checkpoint -x optimizer:to=sgd -x ddp
	list=1; for i in {2..64}; do list=$list/1; done
	ask $T/gpt.vct -x mixture:shares=$list
	ask $T/gpt.vct -x mixture:shares=$list/1
	ask $R/gpt.vct -x checkpoint:count=5 -x lora:rank=64
}
others() {
	ask $R/eval-4-8.vct@batch=4 $R/eval-8-16.vct@batch=8 --set batch=6
	ask $R/lengths-4.vct $R/lengths-8.vct --set batch=64
	ask $R/lengths-4.vct --set batch=64
	ask $R/h100/vit-4.vct@batch=4 $R/h100/vit-24.vct@batch=24 --set batch=12
	ask $R/gpt.vct --set batch=3
	ask traces/lm-train-ctx128.vct -x optimizer:to=sgd
	ask traces/lm-train-ctx128.vct
	ask traces/decomfl.vct
	ask tests/ladders/medium-inference-ctx128.vct@ctx=128 tests/ladders/medium-inference-ctx256.vct@ctx=256 --set ctx=600
	for g in t4 rtx4090 a100-80g-sxm; do
		ask $L/vit-b16_batch0002_torch2.9.1.vct@batch=2 $L/vit-b16_batch0004_torch2.9.1.vct@batch=4 --set batch=40 -g $g
		ask $L/bert-cls_batch0004_torch2.9.1.vct@batch=4 $L/bert-cls_batch0008_torch2.9.1.vct@batch=8 --set batch=40 -g $g
	done
	ask $L/resnet50_batch0008_torch2.9.1.vct@batch=8,eval_batch=32 $L/resnet50_batch0016_torch2.9.1.vct@batch=16,eval_batch=32 \
		$L/resnet50_eval_batch0064_torch2.9.1.vct@batch=8,eval_batch=64 --set batch=100 --set eval_batch=100
	for f in $L/{bert-cls_batch0008,gpt-accum_seq0256,llama-lora_batch0002,mlp_batch0032,vit-b16_batch0004,resnet50_batch0008}_torch2.9.1.vct; do
		for x in checkpoint offload optimizer:to=sgd precision lora accumulate:k=2 fsdp; do ask $f -x $x; done
	done
}
# Not all that a change makes moves a peak: the events themselves, their number and bytes, and a checksum of all they say
events() {
	for f in gpt conv bert; do
		for x in accumulate:k=2 optimizer:to=adafactor optimizer:to=adam8bit precision precision:to=bf16 zero:stage=1 zero:stage=2 zero:stage=3 \
			ddp ddp:view=true fsdp:version=1 fsdp lora qlora checkpoint checkpoint:all=true offload tp pp:stages=2 leak:steps=20 mixture; do
			count $T/$f.vct -x $x
		done
	done
	count $T/llama.ds_bf16.vct -x offload
	count $T/llama.ds_bf16.vct -x optimizer:to=adam8bit
	count $R/eval-4-8.vct@batch=4 $R/eval-8-16.vct@batch=8 --set batch=6
	count $R/lengths-4.vct $R/lengths-8.vct --set batch=64
	for k in bert-cls_batch:4:8:100 gpt2-hf_batch:1:2:100 vit-b16_batch:2:4:100 resnet50_batch:1:2:100 llama-lora_batch:1:2:100 mlp_batch:16:32:5000 \
		vit-b16_image:112:160:400 gpt-accum_seq:128:192:1000 gpt-scaler_batch:2:4:100; do
		IFS=: read -r name a b to <<< "$k"; knob=${name##*_}
		count $L/${name}$(printf %04d $a)_torch2.9.1.vct@$knob=$a $L/${name}$(printf %04d $b)_torch2.9.1.vct@$knob=$b --set $knob=$to
	done
}
count() { # OPTION... : one line
	if "$VRAMCAST" export -q "$@" --to vct -o "$TMP/events.vct" 2> "$TMP/err"; then
		"$VRAMCAST" dump "$TMP/events.vct" > "$TMP/dump"
		echo "$* -> $(awk '$3 == "alloc" { n++; for (i = 4; i <= NF; i++) if ($i ~ /^size=/) s += substr($i, 6) }
			$3 == "free" { f++ } END { printf "%d allocations, %.0f bytes, %d frees", n, s, f }' "$TMP/dump"), sum $(cksum < "$TMP/dump")"
	else
		echo "$* -> $(sed 's/^vramcast [a-z]*: //' "$TMP/err" | head -n 1)"
	fi
}
held() { # NAME
	$1 > "$TMP/$1"
	if [ "$UPDATE" ]; then cp "$TMP/$1" $here/$1.txt; fi
	if diff $here/$1.txt "$TMP/$1" > "$TMP/diff"; then pass "$1: $(grep -c . $here/$1.txt) lines as they were"
	else fail "$1: $(grep -c '^>' "$TMP/diff") lines are not as they were (when it is meant: make answers)" "$(cat "$TMP/diff")"; fi
}
for part in ${PART:-recordings changes others events}; do held $part; done
finish
