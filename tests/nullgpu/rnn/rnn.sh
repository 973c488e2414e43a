#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# rnn.sh - temporary space of recurrent networks against what cuDNN answered on a card (h100.tsv).
. tests/support/tap.sh
mkdir -p "$TMP/lib"
for soname in libcuda.so.1 libcudnn.so.9; do
	ln -sf "$PWD/$BUILD/nullgpu/vcnull-$soname" "$TMP/lib/$soname"
done
env LD_LIBRARY_PATH="$TMP/lib" "$BUILD/tests/nullgpu/rnn" tests/nullgpu/rnn/h100.tsv > "$TMP/out" 2> "$TMP/err"
rc=$? out=$(cat "$TMP/out") err=$(cat "$TMP/err")
expect "eighty answers of a card are asked for again" 0 '^80 training '
# shellcheck disable=SC2086
set -- $out
check "inference: all of them are the card's ($9 of $1)" test "$9" = "$1"
check "the reserve of training: all ($6 of $1)" test "$6" = "$1"
check "training: nine in ten ($3 of $1)" test "$3" -ge $(($1 * 9 / 10))
check "... and the others within 3 % ($4 of $1)" test "$4" = "$1"
finish
