#!/bin/sh
# cute_dsl.sh - kernels written in CuTe DSL find a runtime that does not bring a CUDA runtime of its own (cute_dsl.c).
. tests/support/tap.sh
. tests/nullgpu/torch/envs.sh
own cc || { skip "CuTe DSL's runtime" "no cc for ${ARCH:-this machine}"; finish; }
site=$TMP/site; mkdir -p "$site/torch/lib"; : > "$site/torch/__init__.py"
py=$(python3 -c "import sys; print(sys.executable)") || { skip "CuTe DSL's runtime" "no python3"; finish; }
export PYTHONPATH="$site"
echo 'int cudaMalloc(void **p, unsigned long n); int ask(void **p) { return cudaMalloc(p, 1); }' > "$TMP/want.c"
for major in 12 13; do
	cc -shared -fPIC -o "$site/torch/lib/libtorch_cuda.so" "$TMP/want.c" -L"$BUILD/nullgpu" -l:vcnull-libcudart.so.$major
	run dryrun -q -g h100-80g-sxm --devices 2 --no-record -- "$BUILD/tests/nullgpu/cute_dsl"
	printf '%s\n' "$out" > "$TMP/tap"
	relay "CUDA $major: " "$TMP/tap"
	check "CUDA $major: all of it ran" test "$rc" = 0 -a "$(grep -c '^ok' "$TMP/tap")" = 13
done
# loaded by the path of the installed one, it is the stand-in too; what the user named stays behind it
mkdir -p "$site/nvidia_cutlass_dsl/lib"; echo 'int _cudaSetDevice(int d) { return 77; }' > "$TMP/theirs.c"
cc -shared -fPIC -o "$site/nvidia_cutlass_dsl/lib/libcute_dsl_runtime.so" "$TMP/theirs.c"
export CUTE_DSL_LIBS="$site/nvidia_cutlass_dsl/lib/libcute_dsl_runtime.so"
run dryrun -q -g h100-80g-sxm --no-record -- "$py" -c "
import ctypes, os
print('device', ctypes.CDLL('$CUTE_DSL_LIBS')._cudaSetDevice(0), os.environ['CUTE_DSL_LIBS'].split(':')[1:] == ['$CUTE_DSL_LIBS'])"
expect "a path to the installed runtime leads to the stand-in, and the variable keeps what was in it" 0 'device 0 True'
finish
