#!/bin/sh
# preload.sh - a library of the program's own that stands before the CUDA runtime, as torch_memory_saver does for SGLang:
# it keeps a lock while it calls on, so a call that comes back to it would never end.
. tests/support/tap.sh
own cc || { skip "a library that stands before the runtime" "no cc for ${ARCH:-this machine}"; finish; }
site=$TMP/site; mkdir -p "$site/torch/lib"; : > "$site/torch/__init__.py"
py=$(python3 -c "import sys; print(sys.executable)") || { skip "a library that stands before the runtime" "no python3"; finish; }
export PYTHONPATH="$site"
cat > "$TMP/want.c" <<'C'
int cudaMalloc(void **p, unsigned long n);
int cudaFree(void *p);
int ask(void **p) { return cudaMalloc(p, 20 << 20); }
int give(void *p) { return cudaFree(p); }
C
cc -shared -fPIC -o "$site/torch/lib/libtorch_cuda.so" "$TMP/want.c" -L"$BUILD/nullgpu" -l:vcnull-libcudart.so.12
cat > "$TMP/saver.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
static int inside, calls;
int cudaDeviceSynchronize(void);
int saver_calls(void) { return cudaDeviceSynchronize() + calls; }
int cudaMalloc(void **p, unsigned long n)
{
	int (*next)(void **, unsigned long) = (int (*)(void **, unsigned long))dlsym(RTLD_NEXT, "cudaMalloc");
	if (inside++)
		return 77;
	int rc = next(p, n);
	inside = 0;
	calls++;
	return rc;
}
int cudaFree(void *p)
{
	int (*next)(void *) = (int (*)(void *))dlsym(RTLD_NEXT, "cudaFree");
	if (inside++)
		return 77;
	int rc = next(p);
	inside = 0;
	calls++;
	return rc;
}
C
cc -shared -fPIC -w -o "$TMP/saver.so" "$TMP/saver.c" -L"$BUILD/nullgpu" -l:vcnull-libcudart.so.12 -ldl
cat > "$TMP/use.py" <<P
import ctypes
lib, saver, p = ctypes.CDLL("$site/torch/lib/libtorch_cuda.so"), ctypes.CDLL("$TMP/saver.so"), ctypes.c_void_p()
print("asked", lib.ask(ctypes.byref(p)), bool(p.value), "gave", lib.give(p), "through it", saver.saver_calls())
P
for how in "--no-record" "-o $TMP/r.vct"; do
	# shellcheck disable=SC2086 # words
	run dryrun -q -g rtx4090 $how -- sh -c "LD_PRELOAD=$TMP/saver.so:\$LD_PRELOAD exec $py $TMP/use.py"
	expect "its calls go on to the runtime, and come back to it once (${how%% *})" 0 'asked 0 True gave 0 through it 2'
done
finish
