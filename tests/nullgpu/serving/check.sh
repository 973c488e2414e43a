#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check.sh - make check-serving: "GPU KV cache size: N tokens" that others published, with the whole configuration, against
# vLLM itself on the null GPU (lines.tsv). F=Llama chooses rows. vLLM lies outside the tree, as $ENVS/vllm-VERSION/bin/python
# (python3 -m venv, pip install vllm==VERSION: five gigabytes); a row whose version is not there takes the one of VLLM=PYTHON,
# if that is given. What vLLM compiles it keeps: a second row of one card and model starts with it. Not part of make check.
. tests/support/tap.sh
. tests/nullgpu/torch/envs.sh
unset CC # of make: vLLM compiles, too, and takes one word for a program
here=tests/nullgpu/serving tab=$(printf '\t')

play() {
	py=$ENVS/vllm-$version/bin/python
	[ -x "$py" ] || py=$VLLM
	[ -x "$py" ] || { skip "$row" "no $ENVS/vllm-$version: python3 -m venv, then pip install vllm==$version"; return; }
	# a list of words
	# shellcheck disable=SC2086
	VLLM_CACHE_ROOT="$TMP/cache/$(printf %s "$version-$card-$model" | tr " " -)" HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 \
		VLLM_USE_FLASHINFER_SAMPLER=0 \
		timeout 1800 nice "$VRAMCAST" dryrun -q --no-record --values off -g $card -- \
		"$py" $here/line.py "$model" "$arguments" > "$TMP/out" 2> "$TMP/err"
	got=$(sed -n 's/^cache \([0-9]*\) of.*/\1/p' "$TMP/out") token=$(sed -n 's/^cache .* of //p' "$TMP/out")
	[ -n "$got" ] || { fail "$row" "$(cat "$TMP/out" "$TMP/err" | grep -E "Error|error" | tail -n 5)"; return; }
	# vLLM prints what its profile left for the cache, with two digits
	left=$(sed -n 's/.*Available KV cache memory: \([0-9.]*\) GiB.*/\1/p' "$TMP/out" | head -1)
	check "$row: its blocks are what its own profile leaves room for" awk -v n="$got" -v t="$token" -v left="$left" \
		'BEGIN { off = left - n * t / 2 ^ 30; exit !(off <= 0.006 + 16 * t / 2 ^ 30 && off >= -0.006) }'
	[ "$tokens" != - ] || return
	error=$(awk -v a="$got" -v b="$tokens" 'BEGIN { printf "%+.2f", 100 * (a - b) / b }')
	echo "# $row: published $tokens tokens, here $got, $error %"
	check "$row: within $limit % of what was published" awk -v e="$error" -v l="$limit" 'BEGIN { exit !(e <= l && -e <= l) }'
}

while IFS=$tab read -r row version card model arguments tokens limit source; do
	case $row in '#'*|'') continue ;; *"$F"*) play < /dev/null ;; esac
done < $here/lines.tsv
finish
