#!/bin/sh
# cupti_layout.sh - the numbers and layouts in tracer/cupti_abi.h against a CUDA toolkit's headers.
. tests/tracer/lib.sh
name="the tracer's picture of CUPTI is that of the headers"
for dir in "$CUDA_HOME/include" "$CUDA_HOME/extras/CUPTI/include" /usr/local/cuda/include; do
	[ -e "$dir/cupti_activity_deprecated.h" ] || continue
	if log=$(${CC:-cc} -std=c11 -fsyntax-only -I. -isystem "$dir" tests/tracer/cupti_layout.c 2>&1); then pass "$name"
	else fail "$name" "$log"; fi
	finish
done
skip "$name" "no CUDA 13 toolkit here: CUDA_HOME can name one"
finish
