#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# rnn.sh - temporary space of recurrent networks against what cuDNN answered on a card (h100.tsv).
. tests/support/tap.sh
mkdir -p "$TMP/lib"
for soname in libcuda.so.1 libcudnn.so.9; do
	ln -sf "$PWD/$BUILD/nullgpu/vcnull-$soname" "$TMP/lib/$soname"
done
ask() { # TABLE ALGORITHM
	env LD_LIBRARY_PATH="$TMP/lib" "$BUILD/tests/nullgpu/rnn" "tests/nullgpu/rnn/$1" "$2" > "$TMP/out" 2> "$TMP/err"
	rc=$? out=$(cat "$TMP/out") err=$(cat "$TMP/err")
}
held() { # NAME, then what was counted: N training SAME CLOSE reserve SAME CLOSE inference SAME CLOSE
	check "$1, inference: all of them are the card's (${10} of $2)" test "${10}" = "$2"
	check "... the reserve of training: all ($7 of $2)" test "$7" = "$2"
	rows=$2 same=$4 close=$5
}
ask h100.tsv 0
expect "eighty answers of a card are asked for again" 0 '^80 training '
# shellcheck disable=SC2086
held "the standard algorithm" $out
check "... training: nine in ten ($same of $rows)" test "$same" -ge $((rows * 9 / 10))
check "... and the others within 3 % ($close of $rows)" test "$close" = "$rows"
ask h100_on_chip.tsv 1
expect "as are eighty with weights on the chip" 0 '^80 training '
# shellcheck disable=SC2086
held "weights on the chip" $out
check "... training: four in five ($same of $rows)" test "$same" -ge $((rows * 4 / 5))
check "... nine in ten within 3 % ($close of $rows)" test "$close" -ge $((rows * 9 / 10))
finish
