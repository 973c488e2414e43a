#!/bin/sh
# estimate_serve.sh - estimate --serve against what vLLM logged when it started (tests/serving/lines.tsv), and against the numbers of
# parameters that authors published.
. tests/support/tap.sh
mkdir -p "$TMP/m"
grep -v '^#' tests/serving/models.tsv | while IFS='	' read -r name json; do mkdir -p "$TMP/m/$name"; printf '%s\n' "$json" > "$TMP/m/$name/config.json"; done
field() { printf '%s\n' "$out" | sed -n "s/^  \"$1\": \"*\([^,\"]*\)\"*,*$/\1/p"; }
rows=0
while IFS='	' read -r name model options what value most source; do
	case $name in '#'*|'') continue;; esac
	case $options in *--draft*) options="${options%--draft *}--draft $TMP/m/${options##*--draft }";; esac
	# shellcheck disable=SC2086
	run estimate "$TMP/m/$model" --serve --json $options
	case $most in
	in) [ "$(field "${what}_low")" -le "$value" ] && [ "$(field "${what}_high")" -ge "$value" ] && pass "$name: $value in $(field "${what}_low") .. $(field "${what}_high")" || fail "$name" "$out";;
	out) [ "$(field "${what}_low")" -gt "$value" ] && pass "$name: known to be too high ($source)" || fail "$name lies inside now: mend the table" "$out";;
	*) printf '%s %s %s\n' "$(field "$what")" "$value" "$most" | awk '{ d = 100 * ($1 / $2 - 1); exit !(d <= $3 && -d <= $3) }' && pass "$name: $(field "$what") for $value" || fail "$name: $(field "$what") for $value" "$out";;
	esac
	rows=$((rows + 1))
done < tests/serving/lines.tsv
[ $rows -ge 55 ] && pass "$rows lines" || fail "only $rows lines"

# Parameters: counted, and as published.
params() { # NAME PUBLISHED JSON : within half a percent, norms and biases aside
	mkdir -p "$TMP/m/$1"; printf '{%s}' "$3" > "$TMP/m/$1/config.json"; run estimate "$TMP/m/$1" --serve -g h200 --tp 8 --context 4096 --json
	printf '%s %s\n' "$(field params)" "$2" | awk '{ d = $1 / $2 - 1; exit !(d < 0.005 && -d < 0.005) }' && pass "$1 has $(field params) parameters ($2)" || fail "$1" "$(field params)" "$err"
}
params Mixtral-8x7B 46702792704 '"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2'
params DeepSeek-V3 671026419200 '"model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "num_attention_heads": 128, "num_hidden_layers": 61, "num_key_value_heads": 128, "vocab_size": 129280, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "first_k_dense_replace": 3, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "quantization_config": {"quant_method": "fp8"}'
params gpt-oss-20b 20914757184 '"model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "head_dim": 64, "num_attention_heads": 64, "num_hidden_layers": 24, "num_key_value_heads": 8, "vocab_size": 201088, "num_local_experts": 32, "num_experts_per_tok": 4, "sliding_window": 128, "quantization_config": {"quant_method": "mxfp4"}'
run estimate "$TMP/m/DeepSeek-V3" --serve -g h200 --tp 8 --context 4096 --json
printf '%s\n' "$out" | grep -q '"layers": 61,' && [ "$(field block_bytes)" = $((16 * 576 * 2 * 61)) ] && pass "MLA keeps 576 numbers a token, on every card" || fail "MLA" "$out"
run estimate "$TMP/m/gpt-oss-20b" --serve -g h100-80g-sxm --context 131072 --json
[ "$(printf '%s\n' "$out" | grep -c '"kind": "sliding window"')" = 1 ] && [ "$(field block_bytes)" = $((12 * 16 * 2048)) ] && pass "two groups of 12 layers share the pool" || fail "groups" "$out"
weights() { printf '%s\n' "$out" | sed -n '/"term": "weights"/,/}/s/^ *"bytes": \([0-9]*\),*$/\1/p'; }
a=$(weights); [ "$a" -gt 13000000000 ] && [ "$a" -lt 14000000000 ] && pass "mxfp4: experts in 4.25 bits, the rest in 16: $a" || fail "mxfp4" "$a"
# What lies beside the file says more than its shape.
printf '{"metadata": {"total_size": 13761264768}, "weight_map": {}}' > "$TMP/m/gpt-oss-20b/model.safetensors.index.json"
run estimate "$TMP/m/gpt-oss-20b" --serve -g h100-80g-sxm --context 131072 --json
[ "$(weights)" = 13761264768 ] && printf '%s\n' "$out" | grep -q 'size of the files' && pass "the index of the files beside it counts" || fail "index" "$(weights)"
l="$TMP/m/Llama-3.1-8B"
for q in 'awq 4 128 0.51953125' 'gptq 8 128 1' 'fp8 0 0 1' 'nvfp4 0 0 0.5625'; do
	set -- $q; mkdir -p "$TMP/m/q"
	sed "s/}\$/, \"quantization_config\": {\"quant_method\": \"$1\", \"bits\": $2, \"group_size\": $3}}/" "$l/config.json" > "$TMP/m/q/config.json"
	run estimate "$TMP/m/q" --serve -g l4 --context 8192 --json
	printf '%s %s\n' "$(weights)" "$4" | awk '{ want = (8029995008 - 2 * 128256 * 4096) * $2 + 4 * 128256 * 4096; d = $1 / want - 1; exit !(d < 0.0001 && -d < 0.0001) }' && pass "$1: $(weights) bytes" || fail "$1" "$(weights)" "$err"
done
sed 's/}$/, "quantization_config": {"quant_method": "secret"}}/' "$l/config.json" > "$TMP/m/q/config.json"
run estimate "$TMP/m/q" --serve -g l4; expect "an unknown format is not guessed" 1 '' "how wide the weights are in 'secret' is not known; give --weights"
for q in '"load_in_4bit": true 0.5625' '"load_in_8bit": true 1'; do
	sed "s/}\$/, \"quantization_config\": {\"quant_method\": \"bitsandbytes\", ${q% *}}}/" "$l/config.json" > "$TMP/m/q/config.json"
	run estimate "$TMP/m/q" --serve -g l4 --context 8192 --json
	printf '%s %s\n' "$(weights)" "${q##* }" | awk '{ want = (8029995008 - 2 * 128256 * 4096) * $2 + 4 * 128256 * 4096; d = $1 / want - 1; exit !(d < 0.0001 && -d < 0.0001) }' && pass "bitsandbytes, ${q% *}" || fail "bitsandbytes, ${q% *}" "$(weights)" "$err"
done

# What each layer keeps, of four: half of them all tokens (16 x 2 x 8 heads x 128 x 2 bytes), the other two something else or nothing.
keeps() { # WHAT GROUPS,LAYERS KIND JSON
	mkdir -p "$TMP/m/k"
	printf '{"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 4, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 131072, %s}' "$4" > "$TMP/m/k/config.json"
	run estimate "$TMP/m/k" --serve -g h100-80g-sxm --context 8192 --json
	[ "$(printf '%s\n' "$out" | tr -d ' \n' | grep -o "\"kind\":\"$3\",\"count\":${2%,*},\"layers\":${2#*,}," | wc -l)" = 1 ] && pass "$1" || fail "$1" "$out" "$err"
}
states='"linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128, "linear_value_head_dim": 128'
keeps "layers by their names" 1,3 fullattention '"layer_types": ["full_attention", "full_attention", "full_attention", "mlp"]'
keeps "moe keeps nothing" 1,2 fullattention '"layers_block_type": ["attention", "moe", "attention", "moe"]'
keeps "windows by their names" 1,2 slidingwindow '"sliding_window": 1024, "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]'
keeps "chunks by their names" 1,1 chunks '"attention_chunk_size": 2048, "layer_types": ["chunked_attention", "full_attention", "full_attention", "full_attention"]'
keeps "states by their names" 3,1 state "$states, \"layer_types\": [\"linear_attention\", \"linear_attention\", \"linear_attention\", \"full_attention\"]"
keeps "three of four keep chunks" 3,1 chunks '"attention_chunk_size": 2048'
keeps "states of Kimi, counted from one" 3,1 state '"linear_attn_config": {"kda_layers": [1, 2, 3], "full_attn_layers": [4], "num_heads": 32, "head_dim": 128, "short_conv_kernel_size": 4}'
keeps "a pattern of numbers" 1,1 slidingwindow '"sliding_window": 1024, "hybrid_layer_pattern": [0, 0, 1, 0]'
keeps "a pattern of letters" 1,1 fullattention '"mamba_num_heads": 32, "mamba_head_dim": 128, "hybrid_override_pattern": "M-*M"'
keeps "each second" 1,2 slidingwindow '"sliding_window": 1024, "sliding_window_pattern": 2'

# Verdicts.
run estimate "$l" --serve -g h100-80g-sxm --context 8192 --users 16; expect "so many users fit" 0 'verdict +fits'
run estimate "$l" --serve -g rtx3060-12g --context 8192; expect "a model that is larger than the card" 3 'verdict +oom'
run estimate "$l" --serve -g rtx4090 --context 32768; expect "where the band decides it is left open" 6 'verdict +undecided'
run estimate "$TMP/m/Qwen3.6-27B" --serve -g h100-94g-nvl --vllm 0.25; expect "blocks for states that do not suffice are said before the start" 3 'because +max_num_seqs exceeds the blocks for states'
run estimate "$TMP/m/Qwen3.6-27B" --serve -g h100-94g-nvl --vllm 0.25 --max-num-seqs 256; expect "and fewer sequences start" 0 'verdict +fits'
answer() { printf '%s\n' "$out" | sed -n 's/^  "answer": "\(.*\)",*$/\1/p'; }
# The one sentence: with the options and the memory that it names the server starts, also with the least memory of the band.
safe() { # NAME CARD OPTIONS EXPECTED-OPTIONS...
	name=$1; card=$2; options=$3; shift 3
	# shellcheck disable=SC2086
	run estimate "$model" --serve -g $card $options --json
	a=$(answer)
	case $a in *"with $* it starts"*) ;; *) fail "$name: $*" "$a"; return;; esac
	# shellcheck disable=SC2086,SC2046
	set -- $(printf ' %s ' "$*" | sed 's/--tensor-parallel-size/--tp/; s/--max-model-len/--context/; s/--kv-cache-dtype/--kv-dtype/')
	kv=${a##*--kv-cache-memory=}
	# shellcheck disable=SC2086
	run estimate "$model" --serve $options "$@" --kv-memory "$kv" --json
	first=$(field verdict)
	# shellcheck disable=SC2086
	run estimate "$model" --serve -g $card $options "$@" --json
	[ "$first" = fits ] && [ "$(field verdict)" = fits ] && [ "$(field kv_memory_low)" -ge "$kv" ] && pass "$name: $*" || fail "$name" "$first $out"
}
model=$TMP/m/Qwen3.6-27B
safe "too few states" h100-94g-nvl "--vllm 0.25" --max-num-seqs 558
safe "several at a time" h100-80g-sxm "--context 262144 --users 4" --tensor-parallel-size 2 --max-num-seqs 300 --kv-cache-dtype fp8
model=$l
safe "a length that nobody asked for" rtx4090 "" --max-model-len 29696
safe "no room" rtx3060-12g "" --tensor-parallel-size 2 --max-model-len 8192
safe "many users" h100-80g-sxm "--context 32768 --users 20" --kv-cache-dtype fp8
run estimate "$l" --serve -g h100-80g-sxm --context 8192 --users 16 --json
case $(answer) in "starts with at least $(field tokens_low) tokens"*) pass "a sentence where all is well";; *) fail "a sentence" "$(answer)";; esac
run estimate "$TMP/m/GLM-5.1-FP8" --serve -g h100-80g-sxm; expect "and where nothing helps" 3 'answer +dies: .*no option'
run estimate "$TMP/m/Qwen3-235B-FP8" --serve -g all --context 8192; expect "which cards, and how many" 0 '^ *h200-141g +[0-9.]+ GiB +2 '
run estimate "$l" --serve -g l4 --context 4096; printf '%s\n' "$err" | grep -q 'dryrun -g l4 -- vllm serve .* --load-format dummy' && pass "the line that makes it exact" || fail "next" "$err"
mkdir -p "$TMP/hub/models--org--net/snapshots/1"; cp "$l/config.json" "$TMP/hub/models--org--net/snapshots/1/"
HF_HUB_CACHE="$TMP/hub" "$VRAMCAST" estimate org/net --serve -g l4 --context 4096 > "$TMP/out" 2>&1; grep -q 'left for the cache' "$TMP/out" && pass "a name in the hub's cache" || fail "hub" "$(cat "$TMP/out")"
run estimate org/net --serve -g l4; expect "and one that is not there" 1 '' 'no config.json, no folder with one, and no model in'
run estimate "$TMP/m/GLM-5.1-FP8" --serve --kv-memory 30GiB --context 8192 --tp 8 --kv-dtype fp8 --json
[ "$(field block_bytes)" = $((64 * (656 + 132) * 78)) ] && pass "sparse MLA: 656 bytes of a token in 8 bits, 132 of its indexer, blocks of 64" || fail "sparse MLA" "$out"
run estimate "$TMP/m/gemma-4-26B-A4B-NVFP4" --serve -g rtx5090 --context 8192 --speculative 3 --draft "$TMP/m/gemma-4-26B-A4B-eagle3" --json; a=$(weights)
run estimate "$TMP/m/gemma-4-26B-A4B-NVFP4" --serve -g rtx5090 --context 8192 --json; a=$((a - $(weights)))
[ $a -gt 355000000 ] && [ $a -lt 390000000 ] && pass "an EAGLE head shares the embedding: $a bytes more (0.35 GiB in the log)" || fail "the weights of a draft" "$a"
run estimate "$TMP/m/Qwen3.6-27B" --serve --kv-memory 18GiB --context 32768 --max-num-seqs 64 --speculative 3 --draft "$TMP/m/gemma-4-26B-A4B-eagle3"
expect "a draft of another width leaves groups of one layer: 65 of them" 0 '^ *state +48 +1 '
run estimate "$l" --serve -g l4 --draft "$l"; expect "a draft proposes some tokens" 2 '' '--draft goes with --speculative N'
run estimate "$l" --serve -g l4 --draft nowhere --speculative 2; expect "and is a model" 1 '' 'nowhere is no config.json'
mkdir -p "$TMP/m/v4"; printf '{"model_type": "deepseek_v4", "hidden_size": 4096, "num_hidden_layers": 4, "num_attention_heads": 64, "num_key_value_heads": 1, "head_dim": 512, "vocab_size": 129280, "moe_intermediate_size": 2048, "compress_rates": {"compressed_sparse_attention": 4}}' > "$TMP/m/v4/config.json"
run estimate "$TMP/m/v4" --serve -g h200 --context 8192; expect "layers that compress what they keep get no number" 1 '' 'compress them \(deepseek_v4\) is not modelled'
# SGLang: states of 32 bits where the file does not say it, one more than can be used, three for a request with the radix cache.
run estimate "$TMP/m/Nemotron-3-Nano-30B" --serve --sglang 0.5 --kv-memory 20GiB --context 8192 --json
[ "$(field states)" -gt 0 ] && [ "$(field running)" = $(($(field states) / 3)) ] && pass "as many requests as their states allow: $(field running) with $(field states)" || fail "states of SGLang" "$out"
run estimate "$l" --serve --sglang 0.5 -g h100-80g-sxm --utilization 0.88 --context 8192 --users 8; expect "SGLang on a card" 0 'max_total_num_tokens +[0-9]+ .[0-9]+ '
run estimate "$l" --serve --sglang 0.5 -g rtx3060-12g --utilization 0.88 --context 8192; expect "a model that is larger than the card, in SGLang" 3 'because +the weights leave no room'
run estimate "$TMP/m/MiMo-V2-Flash" --serve --sglang 0.5 --kv-memory 8MiB --tp 4 --context 100 --swa-full-tokens-ratio 0.1; expect "a pool that is narrower than its window" 3 'because +the pool of the window does not hold one request'
run estimate "$l" --serve --sglang 0.4 --kv-memory 8GiB; expect "an unknown SGLang" 2 '' 'try 0.5'
run estimate "$l" --serve --sglang 0.5 -g h100-80g-sxm; expect "SGLang needs its part of the memory" 2 '' 'mem_fraction_static'
run estimate "$l" --serve; expect "a card is needed" 2 '' '--serve wants a card'
run estimate --serve -g l4; expect "and a model" 2 '' '--serve wants a model'
run estimate "$l" --serve -g l4 --vllm 0.9; expect "an unknown release" 2 '' '0.10 .. 0.33'
run estimate "$l" --serve -g l4 --users 0; expect "nobody" 2 '' '--users and --max-num-seqs 1 to'
run estimate "$l" --serve -g l4 --utilization 2; expect "more than the card" 2 '' 'above 0, at most 1'
finish
