#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fft.sh - scratch memory of Fourier transforms: which need some on a card.
. tests/support/tap.sh
mkdir -p "$TMP/lib"
for soname in libcuda.so.1 libcufft.so.11; do
	ln -sf "$PWD/$BUILD/nullgpu/vcnull-$soname" "$TMP/lib/$soname"
done
own python3 && py=$(python3 -c "import sys; print(sys.executable)") || { skip "transforms" "no python3 for ${ARCH:-this machine}"; finish; }
scratch() { # BATCH POINTS...: complex floats
	env LD_LIBRARY_PATH="$TMP/lib" "$py" -c "
import ctypes, sys
n, size = [int(v) for v in sys.argv[2:]], ctypes.c_size_t(1)
points = (ctypes.c_longlong * len(n))(*n)
one = [None, ctypes.c_longlong(1), ctypes.c_longlong(1), 4]
ctypes.CDLL('libcufft.so.11').cufftXtMakePlanMany(1, len(n), points, *one, *one, ctypes.c_longlong(int(sys.argv[1])), ctypes.byref(size), 4)
print(size.value)" "$@"
}
check "a line of 4096 points: none" test "$(scratch 64 4096)" = 0
check "a longer one: a copy" test "$(scratch 2 8192)" = $((2 * 8192 * 8))
check "a plane of 160 x 160, as on an H100: none" test "$(scratch 512 160 160)" = 0
check "... of 8192 x 16: a copy" test "$(scratch 1 8192 16)" = $((8192 * 16 * 8))
check "three dimensions: a copy" test "$(scratch 1 32 32 32)" = $((32 * 32 * 32 * 8))
finish
