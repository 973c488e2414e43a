#!/bin/sh
# estimate.sh - formulas without a recording, held against recordings of known models.
. tests/support/tap.sh
within() { # NAME TRACE ESTIMATE-OPTION... : the recorded peak of reserved memory lies in the band, context aside
	name=$1; run sim "$2" --no-verify --no-advice --json; shift 2
	truth=$(printf '%s\n' "$out" | sed -n 's/^ *"peak_reserved": \([0-9]*\),*$/\1/p' | head -n 1)
	run estimate --json "$@"
	set -- $(printf '%s\n' "$out" | sed -n 's/^  "\(low\|high\)": \([0-9]*\),*$/\2/p') $(printf '%s\n' "$out" |
		sed -n '/"CUDA context/,/}/s/^ *"\(low\|high\)": \([0-9]*\),*$/\2/p')
	[ $# = 4 ] && [ "$truth" -ge $(($1 - $3)) ] && [ "$truth" -le $(($2 - $4)) ] &&
		pass "$name: $((truth >> 20)) MiB in $((($1 - $3) >> 20)) .. $((($2 - $4) >> 20))" || fail "$name" "$truth: $*"
}
within "a GPT of 24 layers, batch 1" tests/recordings/gpt.vct --params 367.9e6 --layers 24 --hidden 1024 --heads 16 \
	--vocabulary 32000 --arch gpt --seq 1024 --precision fp32 --batch 1
L=tests/ladders/recordings
for b in 4 16; do
	within "BERT, attention written out, batch $b" "$(ls $L/bert-cls_batch00*${b}_*.vct | head -n 1)" --params 109e6 --layers 12 \
		--hidden 768 --heads 12 --vocabulary 5 --arch gpt --seq 128 --precision fp32 --attention eager --batch $b
done
run estimate --params 1e9 --layers 16 --hidden 2048 --arch gpt; expect "each term has a band, a moment and a source" 0 'as backward begins +16 bytes per logit'
a=$("$VRAMCAST" estimate --params 1e9 --layers 16 --hidden 2048 --arch gpt --seq 4096 --json | sed -n 's/^  "total": \([0-9]*\),*/\1/p')
b=$("$VRAMCAST" estimate --params 1e9 --layers 16 --hidden 2048 --arch gpt --seq 4096 --attention eager --json | sed -n 's/^  "total": \([0-9]*\),*/\1/p')
[ "$b" -gt $((a * 2)) ] && pass "attention that is written out keeps its scores" || fail "eager attention" "$a $b"
run estimate --params 1e9 --layers 1 --hidden 64 --arch gpt --seq 16 --precision fp32 --json
sums=$(printf '%s\n' "$out" | tr -d '",' | awk '$1 == "bytes:" { b = $2 } $1 == "low:" { l = $2 } $1 == "high:" { h = $2 } $1 == "total:" { t = $2 }
	/when: (always|from backward on|in the step)$/ { B += b; L += l; H += h } END { print (t == B), (l == L), (h == H), (L > 0) }')
[ "$sums" = "1 1 1 1" ] && pass "the total and both ends of its band are the sums of the terms of its moment" || fail "sums of terms" "$sums" "$out"
run estimate --params 1e9 --layers 16 --hidden 2048 --attention x; expect "another attention is refused" 2 '' '--attention x: must be one of fused\|eager'

# --model: shapes of published models, and how many parameters their authors say they have.
params() { # NAME PARAMETERS JSON-MEMBERS
	printf '{"architectures": ["X"], %s, "rope_scaling": {"hidden_size": 7}}' "$3" > "$TMP/config.json"
	run estimate --model "$TMP/config.json" --json
	expect "$1 has $2 parameters" 0 "^  \"params\": $2,"
}
heads='"num_attention_heads": 32, "num_hidden_layers": 32'
params Llama-3.1-8B 8030261248 "\"model_type\": \"llama\", \"hidden_size\": 4096, \"intermediate_size\": 14336, $heads, \"num_key_value_heads\": 8, \"vocab_size\": 128256, \"tie_word_embeddings\": false"
params Mistral-7B 7241732096 "\"model_type\": \"mistral\", \"hidden_size\": 4096, \"intermediate_size\": 14336, $heads, \"num_key_value_heads\": 8, \"vocab_size\": 32000"
params Phi-3-mini 3821079552 "\"model_type\": \"phi3\", \"hidden_size\": 3072, \"intermediate_size\": 8192, $heads, \"vocab_size\": 32064"
params Qwen2-7B 7615616512 '"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4, "vocab_size": 152064, "tie_word_embeddings": false'
params Qwen3-8B 8190735360 '"model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288, "num_attention_heads": 32, "num_hidden_layers": 36, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "tie_word_embeddings": false'
params Gemma-2B 2506172416 '"model_type": "gemma", "hidden_size": 2048, "intermediate_size": 16384, "num_attention_heads": 8, "num_hidden_layers": 18, "num_key_value_heads": 1, "head_dim": 256, "vocab_size": 256000'
params Gemma-2-2B 2614341888 '"model_type": "gemma2", "hidden_size": 2304, "intermediate_size": 9216, "num_attention_heads": 8, "num_hidden_layers": 26, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 256000'
params GPT-2 124439808 '"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_inner": null, "vocab_size": 50257, "n_positions": 1024'
wrong() { printf '%s' "$2" > "$TMP/config.json"; run estimate --model "$TMP/config.json"; expect "$1" 1 '' "config.json: $3"; }
wrong "a kind that nobody counted" '{"model_type": "mamba"}' "the weights of model_type 'mamba' are not counted"
wrong "a mixture of experts" '{"model_type": "qwen3", "num_experts": 64, "hidden_size": 1}' 'a mixture of experts'
wrong "a shape that is not whole" '{"model_type": "llama", "hidden_size": 4096}' 'the width, the layers'
wrong "another JSON" '{"traceEvents": []}' 'no configuration of a model: it has no'
wrong "no JSON" 'model' 'damaged JSON'
run estimate --model "$TMP/config.json" --layers 3; expect "both the file and options" 2 '' '--config says what'

# Every card, and prices.
model="--params 1e9 --layers 16 --hidden 2048"
run estimate $model -g all; expect "the smallest card that fits comes first" 0 'the smallest that fits  [a-z]'
small=$(printf '%s\n' "$out" | sed -n 's/^ *the smallest that fits *//p')
run estimate $model -g "$small" --json; expect "by itself $small fits, too" 0 '"verdict": "fits"'
printf '# dollars an hour, 2026-11-22\nname,price\nh200,3.5\na100-80g-sxm, 1.9\nt4,0.35\n' > "$TMP/prices.csv"
run estimate $model -g all --prices "$TMP/prices.csv" --json; expect "the cheapest that fits" 0 '"cheapest": "a100-80g-sxm"'
check "what does not fit stands behind it, cheap or not" sh -c 'awk "/\"gpu\": \"a100-80g-sxm\"/ { a = NR } /\"gpu\": \"t4\"/ { t = NR } END { exit !(a && a < t) }" "$1"' - "$TMP/out"
run estimate --params 1e13 --layers 16 --hidden 2048 -g all; expect "where none fits" 3
run estimate $model -g t4 --prices "$TMP/prices.csv"; expect "prices of one card" 2 '' '--prices goes with -g all'
for bad in 'a100-80g-sxm:line 1. wants NAME,PRICE' 't4,0.35\nl4,cheap:line 2. .cheap. is no price' 't44,1:line 1.*did you mean t4'; do
	printf "${bad%%:*}\n" > "$TMP/bad.csv"; run estimate $model -g all --prices "$TMP/bad.csv"; expect "a list of prices: ${bad#*:}" "$([ "${bad%%,*}" = t44 ] && echo 2 || echo 1)" '' "${bad#*:}"
done
# Dry runs of `python -m vramcast.model` (PyTorch 2.9.1, transformers 4.57, card b200-180g, two steps) and the MiB that they used at
# their peak: the band holds them.
shape() { # NAME HIDDEN INNER HEADS LAYERS KV-HEADS VOCABULARY TIED
	printf '{"model_type": "llama", "hidden_size": %s, "intermediate_size": %s, "num_attention_heads": %s, "num_hidden_layers": %s, "num_key_value_heads": %s, "vocab_size": %s, "tie_word_embeddings": %s}' "$2" "$3" "$4" "$5" "$6" "$7" "$8" > "$TMP/$1.json"
}
shape l1b 2048 8192 32 16 8 128256 true; shape l7b 4096 11008 32 32 32 32000 false; shape l8b 4096 14336 32 32 8 128256 false
shape tiny 768 2048 12 12 12 32000 false; shape q05 896 4864 14 24 2 151936 true
gpt2='"model_type": "gpt2", "n_positions": 1024, "vocab_size": 50257'
echo "{$gpt2, \"n_embd\": 768, \"n_head\": 12, \"n_layer\": 12}" > "$TMP/gpt2.json"; echo "{$gpt2, \"n_embd\": 1280, \"n_head\": 20, \"n_layer\": 36}" > "$TMP/gpt2l.json"
while read -r peak name batch seq options; do
	run estimate -q --config "$TMP/$name.json" -g b200-180g --batch "$batch" --seq "$seq" $options --json
	low=$(sed -n 's/^  "low": \([0-9]*\),*/\1/p' "$TMP/out"); high=$(sed -n 's/^  "high": \([0-9]*\),*/\1/p' "$TMP/out")
	check "$name $batch x $seq $options: $peak MiB in $((low >> 20)) .. $((high >> 20))" test $((low >> 20)) -le "$peak" -a "$peak" -le $((high >> 20))
done << 'T'
26250 l1b 1 2048 --precision fp32
28484 l1b 1 2048 --precision amp
23496 l1b 4 1024 --precision bf16
140382 l7b 1 512 --precision amp
29584 l7b 1 512 --precision bf16 --optimizer sgd
66956 l7b 1 2048 --precision bf16 --recompute full
16346 l7b 1 2048 --precision bf16 --recompute full --lora-rank 16
83650 l8b 1 1024 --precision bf16
28492 l8b 1 1024 --precision bf16 --lora-rank 8
17774 gpt2 8 1024 --precision fp32
16698 gpt2 8 1024 --precision amp
25726 gpt2l 4 512 --precision fp32
43748 q05 4 2048 --precision amp
36086 q05 2 4096 --precision bf16
20754 tiny 32 512 --precision amp
52524 l7b 4 1024 --precision bf16 --lora-rank 16
32882 l7b 1 512 --precision fp32 --lora-rank 16
22386 l7b 4 2048 --precision bf16 --recompute full --lora-rank 16
27416 l8b 2 2048 --precision bf16 --recompute full --lora-rank 8
27046 l7b 1 1024 --precision bf16 --optimizer sgd --recompute full
33740 l8b 1 2048 --precision bf16 --optimizer sgd --recompute full
26318 l1b 2 4096 --precision bf16 --recompute full
T
finish
