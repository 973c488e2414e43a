#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check.sh - make check-xla: JAX and TensorFlow themselves on the null GPU (three gigabytes, kept outside the tree). What their own
# allocator says is held against what the verdict says, and JAX's against XLA's own account of the compiled step.
. tests/support/tap.sh
. tests/nullgpu/torch/envs.sh
here=tests/nullgpu/xla
py=$ENVS/xla/bin/python

fetch() { # FOLDER PIP-ARGUMENTS
	[ -d "$ENVS/$1" ] && return
	"$py" -m pip install -q --target "$ENVS/$1" $2 > "$TMP/pip.log" 2>&1 || { rm -rf "${ENVS:?}/$1"; return 1; }
}

dry() { # FOLDER CARD SCRIPT ARGUMENT...
	folder=$1 card=$2; shift 2
	PYTHONPATH=$ENVS/$folder TF_CPP_MIN_LOG_LEVEL=2 nice "$VRAMCAST" dryrun --no-record --exit-code verdict $card -- "$py" "$@" \
		> "$TMP/out" 2> "$TMP/err"
	code=$?
	step=$(sed -n 's/^step //p' "$TMP/out") pool=$(sed -n 's/^pool //p' "$TMP/out")
	used=$(sed -n 's/.*framework took it used \([0-9.]*\) GiB.*/\1/p' "$TMP/err")
}

is_pool() { awk -v p="$pool" -v u="$used" 'BEGIN { d = p / 2 ^ 30 - u; exit !(p > 0 && d < 0.006 && d > -0.006) }'; }

[ -x "$py" ] || python3 -m venv "$ENVS/xla" > /dev/null 2>&1
if fetch jax "--no-deps jax jaxlib jax-cuda12-plugin jax-cuda12-pjrt ml_dtypes numpy opt_einsum scipy"; then
	dry jax "-g a100-40g-sxm" $here/train_jax.py 16
	check "JAX trains on a card that is not there" test "$code" = 0
	check "the verdict has what its pool held" is_pool
	check "... which is what XLA says of the compiled step, within 5 %" awk -v p="$pool" -v s="$step" 'BEGIN { exit !(s > 0 && p >= s * 0.95 && p <= s * 1.05) }'
	echo "# JAX: XLA says $step bytes for the step, its pool held $pool"
	whole=$pool
	dry jax "-g a100-40g-sxm" $here/train_jax.py 8
	check "half the batch needs less" awk -v a="$pool" -v b="$whole" 'BEGIN { exit !(a > 0.4 * b && a < 0.8 * b) }'
	dry jax "-g a100-40g-sxm --capacity 2GiB" $here/train_jax.py 16
	check "on a smaller card XLA computes again what it would have kept" awk -v c="$code" -v a="$pool" -v b="$whole" 'BEGIN { exit !(c == 0 && a < b * 0.9) }'
	dry jax "-g a100-40g-sxm --capacity 900MiB" $here/train_jax.py 16
	check "a card that is too small is out of memory" test "$code" = 3
else
	skip "JAX" "it could not be fetched"
fi
if fetch tensorflow tensorflow; then
	dry tensorflow "-g a100-40g-sxm" $here/train_keras.py
	check "Keras trains on TensorFlow" test "$code" = 0
	check "the verdict has what its pool held" is_pool
	echo "# TensorFlow: its pool held $pool bytes"
else
	skip "TensorFlow" "it could not be fetched"
fi
finish
