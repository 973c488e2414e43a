#!/bin/sh
# nvtx.sh - NVTX ranges and marks of a C program become marks of the recording, neither CUPTI nor CUDA
# being there. (Those of PyTorch and of Python's nvtx: make check-torch-trace.)
. tests/tracer/lib.sh
for dir in "$CUDA_HOME/include" /usr/local/cuda/include /usr/include; do [ -e "$dir/nvtx3/nvToolsExt.h" ] && break; dir=; done
[ -n "$dir" ] || { skip "NVTX from C" "no nvtx3 headers here: CUDA_HOME can name a toolkit"; finish; }
${CC:-cc} -std=gnu11 -isystem "$dir" -o "$TMP/nvtx" tests/tracer/nvtx.c -ldl 2> "$TMP/log" || { fail "compiles" "$(cat "$TMP/log")"; finish; }
run record -q -o "$TMP/a.vct" -- "$TMP/nvtx"
got=$("$VRAMCAST" dump "$TMP/a.vct" | sed -n 's/.* mark device=0\( flags=\([0-9]*\)\)*\( label=\(.*\)\)*/\2:\4/p' | tr '\n' ' ')
equal "push, pop, mark, start, end; plain, with attributes, registered in a domain" "$got" \
	"2:outer 2:with attributes :a mark 3: :with attributes 3: 2:anywhere 3:anywhere 2:with attributes 3:with attributes 2:registered :registered 3: 2:registered 3:registered : : 2: 3: "
finish
