#!/bin/sh
# serve.sh - traces of requests: what is read, what is said, and that bad ones get a sentence. That the blocks are vLLM's is the
# subject of tests/oracle-vllm/vllm.sh.
. tests/support/tap.sh
field() { printf '%s\n' "$out" | sed -n "s/^ *\"$1\": \([0-9]*\),*$/\1/p"; }
cat > "$TMP/two.csv" <<'END'
arrival,prompt,output,shared,shared_tokens
0,1000,50,sys,512
0.1,900,60,sys,512
END
run serve "$TMP/two.csv" --blocks 200 --json
expect "a trace is played" 0 'vramcast.serve/1'
[ "$(field prefix_hits)" = 512 ] && [ "$(field prefix_queries)" = 1900 ] && [ "$(field tokens_generated)" = 110 ] &&
	pass "512 shared tokens are 32 blocks that need not be computed" || fail "hits" "$out"
run serve "$TMP/two.csv" --blocks 200 --json --no-prefix-caching
[ "$(field prefix_hits)" = 0 ] && pass "without the prefix cache none" || fail "no caching" "$out"
# 125 blocks hold 2000 tokens: both prompts and not all of their outputs. Counted by hand: 66 + 61 blocks are needed, 32 shared.
printf 'arrival,prompt,output\n0,960,100\n0,960,100\n' > "$TMP/tight.csv"
run serve "$TMP/tight.csv" --blocks 126 --max-num-batched-tokens 4096 --json
[ "$(field preemptions)" = 1 ] && [ "$(field peak_blocks)" -ge 124 ] && pass "who came last gives way when no block is free" || fail "preemption" "$out"
run serve "$TMP/tight.csv" --blocks 140 --max-num-batched-tokens 4096 --json
[ "$(field preemptions)" = 0 ] && [ "$(field peak_blocks)" = 134 ] && pass "and with blocks enough nobody does: 2 x 67 blocks" || fail "no preemption" "$out"
run serve "$TMP/tight.csv" --blocks 140 --csv; expect "one line per step" 0 '^step,time_ns,tokens,blocks_used,running,waiting,preempted$'
# The same requests in the three forms give the same answer.
printf '{"arrival": 0, "prompt": [["sys", 512], ["a", 488]], "output": 50}\n{"arrival": 0.1, "prompt": [["sys", 512], ["b", 388]], "output": 60}\n' > "$TMP/two.jsonl"
printf '{"timestamp": 5000, "input_length": 1000, "output_length": 50, "hash_ids": [7, 8]}\n{"timestamp": 5100, "input_length": 900, "output_length": 60, "hash_ids": [7, 9]}\n' > "$TMP/mooncake.jsonl"
printf 'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 23:59:59.95,1000,50\n2023-11-17 00:00:00.05,900,60\n' > "$TMP/azure.csv"
"$VRAMCAST" serve "$TMP/two.csv" --blocks 200 > "$TMP/a"
"$VRAMCAST" serve "$TMP/two.csv" --blocks 200 --csv > "$TMP/steps"
for f in two.jsonl mooncake.jsonl; do
	"$VRAMCAST" serve "$TMP/$f" --blocks 200 --csv | cmp -s - "$TMP/steps" && pass "$f: at the same times" || fail "$f: at the same times"
	"$VRAMCAST" serve "$TMP/$f" --blocks 200 | cmp -s - "$TMP/a" && pass "$f says the same" || fail "$f" "$("$VRAMCAST" serve "$TMP/$f" --blocks 200 2>&1 | diff "$TMP/a" -)"
done
run serve "$TMP/azure.csv" --blocks 200 --no-prefix-caching; a=$out
"$VRAMCAST" serve "$TMP/two.csv" --blocks 200 --no-prefix-caching > "$TMP/b"
[ "$a" = "$(cat "$TMP/b")" ] && pass "dates are arrivals, over midnight too" || fail "dates" "$a"
gzip -c "$TMP/two.jsonl" | "$VRAMCAST" serve - --blocks 200 | cmp -s - "$TMP/a" && pass "compressed and through a pipe" || fail "pipe"
# A conversation: the answer of the first is found in the prompt of the second.
printf '{"arrival": 0, "prompt": [["q", 160]], "output": 33, "answer": "a"}\n{"arrival": 9, "prompt": [["q", 160], ["a", 33], ["r", 15]], "output": 5}\n' > "$TMP/talk.jsonl"
run serve "$TMP/talk.jsonl" --blocks 200 --json
[ "$(field prefix_hits)" = 192 ] && pass "the answer of the turn before is known: 12 blocks" || fail "conversation" "$(field prefix_hits)"
# Texts that end inside a block: of 80 tokens the first 20 are the same, which is one whole block.
printf '{"arrival": 0, "prompt": [["s", 20], ["x", 60]], "output": 2, "answer": "a"}\n{"arrival": 9, "prompt": [["s", 20], ["y", 60]], "output": 2, "answer": "b"}\n' > "$TMP/apart.jsonl"
run serve "$TMP/apart.jsonl" --blocks 200 --json
[ "$(field prefix_hits)" = 16 ] && pass "what begins alike and goes on otherwise shares one block" || fail "texts inside a block" "$(field prefix_hits)"
run serve "$TMP/two.csv" --blocks 200 --max-model-len 950; expect "a prompt that is too long is refused, and said" 3 'vLLM refuses 1 request: that of line 2'
run serve "$TMP/two.csv" -g t4 --weights 3GiB --token-bytes 128KiB --json; expect "blocks of a card" 0
[ "$(field blocks)" = $(((15642329088 * 92 / 100 - 3 * 1024 * 1024 * 1024) / (16 * 131072))) ] && pass "92 % of the card less the weights" || fail "blocks of a card" "$(field blocks)"

# The verdict, and what is missing: with so many blocks more all fit, with one less they do not.
run serve "$TMP/tight.csv" --blocks 140; expect "that it fits is said" 0 'verdict +fits'
run serve "$TMP/tight.csv" --blocks 126 --max-num-batched-tokens 4096; expect "and that it does not, with 3" 3 'missing +144 tokens in 9 blocks$'
run serve "$TMP/tight.csv" --blocks 126 --max-num-batched-tokens 4096 --token-bytes 1KiB --json
[ "$(field needs_blocks)" = 135 ] && [ "$(field missing_bytes)" = 147456 ] && pass "2 x 67 blocks and vLLM's own" || fail "missing" "$out"
run serve "$TMP/tight.csv" --blocks 135 --max-num-batched-tokens 4096; expect "so many are enough" 0 'verdict +fits'
run serve "$TMP/tight.csv" --blocks 134 --max-num-batched-tokens 4096; expect "one less is not" 3 'missing +16 tokens in 1 block$'
run serve "$TMP/tight.csv" --blocks 134 --csv; expect "nor with --csv" 3 '^step,'
run serve "$TMP/two.csv" --blocks 30; expect "a prompt longer than the cache" 3 'missing'
printf 'arrival,prompt,output\n0,160,400\n' > "$TMP/long.csv"
run serve "$TMP/long.csv" --blocks 21; expect "a cache that ends a request early does not fit it" 3 'missing +240 tokens in 15 blocks'
run serve "$TMP/long.csv" --blocks 21 --max-model-len 320; expect "a length that was asked for does" 0 'verdict +fits'
run serve "$TMP/two.csv" -g t4 --weights 15GiB --token-bytes 128KiB; expect "no room beside the weights is an answer" 3 'Nothing is left for the KV cache'
run serve "$TMP/two.csv" -g t4 --weights 15GiB --token-bytes 128KiB --json
[ "$(field missing_bytes)" = $(((67 * 16 * 131072) + 15 * 1024 * 1024 * 1024 - 15642329088 * 92 / 100)) ] && pass "missing are the cache and what the weights lack" || fail "missing of nothing" "$(field missing_bytes) $(field needs_blocks)"
for length in 4096 4097; do # 256 blocks and one of vLLM's own hold the first
	run serve "$TMP/two.csv" -g t4 --weights 15GiB --token-bytes 128KiB --max-model-len $length --json
	[ "$(field needs_blocks)" = $((257 + length - 4096)) ] && pass "a sequence of $length tokens must fit" || fail "missing for a sequence" "$(field needs_blocks)"
	run serve "$TMP/two.csv" --blocks $((257 + length - 4096)) --max-model-len $length; expect "... as it then does" 0 'verdict +fits'
done

# Llama 3.1 8B: 8,030,261,248 parameters, 2 x 32 x 8 x 128 x 2 = 128 KiB a token.
llama() { printf '{"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "tie_word_embeddings": false%s}' "$1" > "$TMP/config.json"; }
llama; run serve "$TMP/two.csv" -g a10 --model "$TMP/config.json" > /dev/null; expect "a model's own configuration is enough" 0 '14.96 GiB beside the cache are the weights of --config'
a=$(printf '%s\n' "$out" | grep 'KV cache ')
run serve "$TMP/two.csv" -g a10 --weights 16060522496 --token-bytes 128KiB
[ "$a" = "$(printf '%s\n' "$out" | grep 'KV cache ')" ] && pass "and says what its numbers would" || fail "config" "$a" "$out"
llama ', "quantization_config": {"bits": 4}'
run serve "$TMP/two.csv" -g a10 --model "$TMP/config.json" > /dev/null; expect "quantized weights have another size" 0 '5.21 GiB beside the cache are the weights'
llama ', "sliding_window": 64'
run serve "$TMP/tight.csv" --blocks 140 --max-num-batched-tokens 4096 --model "$TMP/config.json" --json
[ "$(field peak_blocks)" -lt 134 ] && [ "$(field preemptions)" = 0 ] && pass "windows give back what they have passed: at most $(field peak_blocks) blocks" || fail "windows" "$out" "$err"
run serve "$TMP/two.csv" -g a10 --model "$TMP/config.json" --vllm 0.23; expect "and older releases are not played with them" 1 '' 'as vLLM 0.31 and newer'
llama ', "sliding_window": 4096, "use_sliding_window": false'
run serve "$TMP/two.csv" -g a10 --model "$TMP/config.json"; expect "windows that are off are none" 0

# Qwen3-Next's groups: 12 layers of attention, 36 of states in three groups; blocks of 544 tokens, whose 12 layers hold 2 KiB a token.
printf '{"model_type": "qwen3_next", "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256, "intermediate_size": 512, "vocab_size": 151936, "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128, "linear_value_head_dim": 128, "max_position_embeddings": 262144}' > "$TMP/config.json"
run serve "$TMP/two.csv" --kv-memory 1GiB --config "$TMP/config.json" --max-num-seqs 16 --json
[ "$(field block_size)" = 544 ] && [ "$(field blocks)" = $((1024 * 1024 * 1024 / (544 * 2048 * 12))) ] && pass "blocks of 544 tokens, $(field blocks) of them" || fail "hybrid" "$out" "$err"
[ "$(field peak_blocks)" -ge 10 ] && [ "$(field preemptions)" = 0 ] && pass "two requests hold attention and states: $(field peak_blocks) blocks" || fail "hybrid blocks" "$out"
run serve "$TMP/two.csv" --kv-memory 12GiB --config "$TMP/config.json" --max-num-seqs 1024; expect "state blocks that do not suffice are said before the start" 2 '' '963 state blocks do not suffice for 1024 sequences; --max-num-seqs 963'
run serve "$TMP/two.csv" --kv-memory 1GiB --config "$TMP/config.json" --max-num-seqs 16 --max-model-len 262144; expect "nor a sequence that is too long" 2 '' 'a sequence of 262144 tokens takes 488 blocks'
run serve "$TMP/two.csv" --blocks 488 --config "$TMP/config.json" --max-num-seqs 16 --max-model-len 262144; expect "one of the blocks is vLLM's own" 2 '' 'takes 488 blocks of its groups of layers, and there are 487'
run serve "$TMP/two.csv" --blocks 489 --config "$TMP/config.json" --max-num-seqs 489 --max-model-len 262144; expect "with one more it starts, with a state for each sequence" 0 'verdict +fits'

# Drafts: with all of them right four tokens come out of a step; a wrong one is computed in vain.
printf 'arrival,prompt,output\n0,100,41\n' > "$TMP/one.csv"
run serve "$TMP/one.csv" --blocks 200 --speculative 3 --acceptance 1 --json
[ "$(field steps)" = 11 ] && [ "$(field drafts)" = 30 ] && [ "$(field drafts_accepted)" = 30 ] && pass "drafts that are right: 41 tokens in 11 steps" || fail "drafts" "$out"
run serve "$TMP/one.csv" --blocks 200 --speculative 3 --acceptance 0 --json
[ "$(field steps)" = 41 ] && [ "$(field tokens_computed)" = $((100 + 40 * 4)) ] && pass "and wrong ones: 41 steps, four tokens computed for each" || fail "wrong drafts" "$out"
run serve "$TMP/one.csv" --blocks 10; expect "nine blocks hold 141 tokens" 0
run serve "$TMP/one.csv" --blocks 10 --speculative 6 --acceptance 1; expect "drafts are cut where the cache ends" 0 'drafts that were right'
run serve "$TMP/one.csv" --blocks 200; printf '%s\n' "$out" | grep -q drafts && fail "drafts without any" "$out" || pass "without drafts nothing is said of them"

# SGLang: pages of one token, prompts first, found again by its radix cache.
run serve "$TMP/two.csv" --blocks 3000 --sglang 0.5 --json; expect "SGLang's scheduler plays the same trace" 0 '"model": "sglang_radix"'
[ "$(field prefix_hits)" = 512 ] && [ "$(field tokens_generated)" = 110 ] && [ "$(field steps)" -gt 60 ] && pass "and finds the shared tokens" || fail "sglang" "$out"
run serve "$TMP/two.csv" --blocks 3000 --sglang 0.5.21 --no-prefix-caching --json
[ "$(field prefix_hits)" = 0 ] && pass "without the radix cache none" || fail "sglang without its cache" "$out"
run serve "$TMP/long.csv" --blocks 321 --sglang 0.5; expect "what does not fit is said of it, too" 3 'missing +242 tokens'
run serve "$TMP/two.csv" --blocks 600 --sglang 0.5; expect "and whom it refuses" 3 'SGLang refuses 2 requests'
run serve "$TMP/two.csv" --blocks 200 --block-size 16 --sglang 0.5.23 --csv; expect "one line per step" 0 '^step,time_ns'
bad() { name=$1; pattern=$2; shift 2; run serve "$@"; expect "$name" "${code:-2}" '' "$pattern"; }
bad "the size of the cache must be said" 'how large is the KV cache' "$TMP/two.csv"
bad "and once" 'Give one of' "$TMP/two.csv" --blocks 10 --kv-memory 1GiB
bad "a card needs more" 'needs --weights' "$TMP/two.csv" -g t4 --token-bytes 1KiB
bad "a sequence must fit" 'vLLM does not start' "$TMP/two.csv" --blocks 10 --max-model-len 4096
bad "an unknown release" '0.10 .. 0.33' "$TMP/two.csv" --blocks 10 --vllm 0.9
bad "more drafts than anybody has" '--speculative goes to 64' "$TMP/two.csv" --blocks 10 --speculative 65
bad "a chance above 1" '--acceptance from 0 to 1' "$TMP/two.csv" --blocks 10 --speculative 2 --acceptance 1.5
bad "an unknown SGLang" '0.5 .. 0.5.23' "$TMP/two.csv" --blocks 10 --sglang 0.6
bad "drafts in SGLang" "are vLLM's" "$TMP/two.csv" --blocks 1000 --sglang 0.5 --speculative 2
bad "no pages" 'SGLang needs two pages' "$TMP/two.csv" --blocks 2 --sglang 0.5
bad "a draft model without drafts" '--draft goes with it' "$TMP/two.csv" --blocks 10 --draft config.json
bad "no block to spare" 'there must be two' "$TMP/two.csv" --blocks 1
code=1 bad "a file that is no configuration" 'no configuration of a model' "$TMP/two.jsonl" -g t4 --model examples/requests.jsonl
code=1
while IFS='|' read -r name text pattern; do
	printf "$text" > "$TMP/bad"; bad "$name" "$pattern" "$TMP/bad" --blocks 100
	[ -z "$out" ] && pass "and nothing is printed" || fail "$name: output" "$out"
done <<'END'
nothing at all||no request was found
a header that says nothing|a,b,c\n1,2,3\n|line 1: the header must name prompt and output
half of a shared text|prompt,output,shared\n1,2,3\n|shared only with shared_tokens
letters for a number|prompt,output\nten,3\n|line 2: a number of tokens
less than nothing|prompt,output\n-5,3\n|line 2: a number of tokens
a prompt without tokens|prompt,output\n0,3\n|line 2: a prompt without tokens
more shared than there is|prompt,output,shared,shared_tokens\n5,3,x,9\n|line 2: what the prompt shares is longer
a senseless time|arrival,prompt,output\nsoon,5,3\n|line 2: an arrival is seconds
a line cut off|{"prompt": 5, "output": 3}\n{"prompt": 5, "out|line 2
no output|{"prompt": 5}\n|line 1: the number of output tokens is missing
hashes for a longer prompt|{"input_length": 5, "output_length": 3, "hash_ids": [1, 2, 3]}\n|line 1: hash_ids has more entries
pieces without a length|{"prompt": [["x"]], "output": 3}\n|line 1: a piece of a prompt is
END
finish
