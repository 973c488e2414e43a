#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sglang.sh - make check-sglang: SGLang itself on the null GPU, its graphs captured, a few tokens generated. The tokens of its
# cache are what its own arithmetic makes of the free memory that it saw, and lie near "max_total_num_tokens=" of logs that
# others published (sglang.tsv). F=Llama chooses rows. SGLang lies outside the tree, as $ENVS/sglang-VERSION/bin/python, or is
# given as SGLANG=PYTHON. Not part of make check.
. tests/support/tap.sh
. tests/nullgpu/torch/envs.sh
unset CC # of make: SGLang compiles, too
here=tests/nullgpu/serving tab=$(printf '\t')

row() {
	what=$name # check has a name of its own
	py=$ENVS/sglang-$version/bin/python
	[ -x "$py" ] || py=$SGLANG
	[ -x "$py" ] || { skip "$what" "no $ENVS/sglang-$version: python3 -m venv, then pip install sglang==$version"; return; }
	# pages of a cache are numbered by a Triton kernel, and SGLang counts them when it is idle
	# shellcheck disable=SC2086 # a list of words
	HF_HUB_OFFLINE=1 SGLANG_ENABLE_STRICT_MEM_CHECK_DURING_IDLE=0 timeout 1800 nice "$VRAMCAST" dryrun -q --no-record \
		--values off -g $card -- "$py" $here/sglang_line.py "$model" "$arguments" > "$TMP/out" 2>&1
	rc=$?
	got=$(sed -n 's/.*max_total_num_tokens=\([0-9]*\).*/\1/p' "$TMP/out" | tail -n 1)
	[ -n "$got" ] || { fail "$what" "$(grep -E "Error|error" "$TMP/out" | tail -n 5)"; return; }
	check "$what: it starts, generates and shuts down" sh -c 'test "$1" = 0 && grep -q "^generated 16$" "$2"' sh "$rc" "$TMP/out"
	sed -n 's/^room \([0-9]*\) of \([0-9.]*\) less \([0-9.]*\) fraction \([0-9.]*\).*/room \1 \2 \3 \4/p; s/^token \([0-9]*\) page \([0-9]*\).*/token \1 \2/p' \
		"$TMP/out" > "$TMP/sums"
	check "$what: its cache is what its own arithmetic makes of the memory it saw" awk -v n="$got" '
		/^room/ { room = $2; own = ($4 - $3 * (1 - $5)) * 2 ^ 30 }
		/^token/ { token = $2; page = $3 }
		END { off = room - own; exit !(token && off <= 1 && off >= -1 && n == page * int(room / token / page)) }' "$TMP/sums"
	sed -n 's/.*Load weight end.*avail mem=\([0-9.]*\) GB, mem usage=\([0-9.]*\).*/# \1 GB left by \2 GB of weights/p; s/.*\(Capture .*cuda graph end\).*mem usage=\([0-9.]*\).*/# \1: \2 GB/pI' "$TMP/out"
	error=$(awk -v a="$got" -v b="$tokens" 'BEGIN { printf "%+.2f", 100 * (a - b) / b }')
	echo "# $what: published $tokens tokens, here $got, $error %"
	check "$what: within $limit % of what was published" awk -v e="$error" -v l="$limit" 'BEGIN { exit !(e <= l && -e <= l) }'
}

# shellcheck disable=SC2034 # source is for readers
while IFS=$tab read -r name version card model arguments tokens limit source; do
	case $name in '#'*|'') continue ;; *"$F"*) row < /dev/null ;; esac
done < $here/sglang.tsv
finish
