#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# made_up.sh - dryrun with a made-up JAX, then a made-up TensorFlow, and no PyTorch: they find the libraries by name, see a card, and
# are asked what their own allocator held.
. tests/support/tap.sh
site=$TMP/site
mkdir -p "$site/jax/_src"
py=$(python3 -c "import sys; print(sys.executable)") || { skip "a made-up JAX" "no python3"; finish; }
"$py" -c "import torch" 2> /dev/null && { skip "a made-up JAX" "$py has PyTorch, which goes first"; finish; }
export PYTHONPATH="$site" TMPDIR="$TMP/private"; mkdir -p "$TMPDIR"
run dryrun -g a100-40g-sxm --no-record -- "$py" -c pass
expect "without PyTorch and JAX it says what to install" 125 "" "has no PyTorch, no JAX with a plugin for CUDA and no TensorFlow"
mkdir -p "$site/jax_plugins/xla_cuda12"
: > "$site/jax_plugins/xla_cuda12/__init__.py"
: > "$site/jax/_src/__init__.py"
cat > "$site/jax/__init__.py" <<'P'
import atexit
import jax._src.xla_bridge
import jax._src.hardware_utils

atexit.register(jax._src.xla_bridge._backends.clear)
P
echo 'def has_visible_nvidia_gpu(): return False' > "$site/jax/_src/hardware_utils.py"
cat > "$site/jax/_src/xla_bridge.py" <<'P'
class Device:
    local_hardware_id = 0

    def memory_stats(self):
        return {"peak_bytes_in_use": 3 << 30, "bytes_limit": 29 << 30}

class Backend:
    def local_devices(self):
        return [Device()]

_backends = {"cuda": Backend()}
P
cat > "$TMP/use.py" <<'P'
import ctypes, os, sys
import jax
assert jax._src.hardware_utils.has_visible_nvidia_gpu()
print("flags", os.environ["XLA_FLAGS"])
cuda = ctypes.CDLL("libcuda.so.1")
for name in ("libcudart.so.12", "libcublas.so.12", "libcufft.so.11", "libcusolver.so.11", "libcudnn.so.9", "libnvidia-ml.so.1"):
    ctypes.CDLL(name)
a, b, c = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t()
assert ctypes.CDLL("libcufft.so.11").cufftGetVersion(ctypes.byref(a)) == 0 and a.value >= 11000
assert ctypes.CDLL("libcusparse.so.12").cusparseGetProperty(0, ctypes.byref(a)) == 0 and a.value == 12
assert cuda.cuCtxGetStreamPriorityRange(ctypes.byref(a), ctypes.byref(b)) == 0 and (a.value, b.value) == (0, -5)
lt, layout, back = ctypes.CDLL("libcublasLt.so.12"), ctypes.c_void_p(), ctypes.c_uint64()
ld, stride = ctypes.c_int64(64), ctypes.c_int64(4096)
assert lt.cublasLtMatrixLayoutCreate(ctypes.byref(layout), 0, ctypes.c_uint64(48), ctypes.c_uint64(7), ld) == 0
assert lt.cublasLtMatrixLayoutSetAttribute(layout, 6, ctypes.byref(stride), ctypes.c_size_t(8)) == 0
for attribute, is_ in ((2, 48), (3, 7), (4, 64), (6, 4096)):
    assert lt.cublasLtMatrixLayoutGetAttribute(layout, attribute, ctypes.byref(back), ctypes.c_size_t(8), ctypes.byref(c)) == 0
    assert (back.value, c.value) == (is_, 8)
assert lt.cublasLtMatrixLayoutGetAttribute(layout, 2, ctypes.byref(back), ctypes.c_size_t(4), None) == 7
pointer = ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(29 << 30)) == 0
if len(sys.argv) > 1:
    raise RuntimeError(sys.argv[1])
P
run dryrun -g a100-40g-sxm --no-record --report "$TMP/report.json" -- "$py" "$TMP/use.py"
expect "JAX alone finds the libraries of its CUDA, and a card" 0 'flags --xla_gpu_autotune_level=0 '
expect "what its allocator held is told beside what it took" 0 '' 'of what the framework took it used 3.00 GiB at most'
check "... and in the report" grep -q '"pool_peak": *3221225472' "$TMP/report.json"
XLA_FLAGS=--xla_gpu_autotune_level=4 run dryrun -g a100-40g-sxm --no-record -- "$py" "$TMP/use.py"
expect "the program's own flags come last" 0 'autotune_level=4$'
run dryrun -g a100-40g-sxm --no-record --exit-code verdict -- "$py" "$TMP/use.py" \
	"RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1.50GiB with allocator GPU_0_bfc"
expect "an exhausted pool is out of memory, though the card was not asked" 3 '' 'out of memory; 1 requests were refused, the largest 1.50 GiB'
run dryrun -g a100-40g-sxm --no-record --exit-code verdict -- "$py" "$TMP/use.py" "something else"
expect "another failure is not" 1 '' 'not for want of device memory'

rm -r "$site/jax" "$site/jax_plugins"
mkdir -p "$site/tensorflow/python/eager"
: > "$site/tensorflow/python/__init__.py"
: > "$site/tensorflow/python/eager/__init__.py"
cat > "$site/tensorflow/python/eager/context.py" <<'P'
class Context:
    _initialized = True

def context_safe():
    return Context()
P
cat > "$site/tensorflow/__init__.py" <<'P'
import types

class ResourceExhaustedError(Exception):
    pass

config = types.SimpleNamespace(list_logical_devices=lambda kind: [kind],
                               experimental=types.SimpleNamespace(get_memory_info=lambda name: {"peak": 2 << 30}))
P
cat > "$TMP/tf.py" <<'P'
import ctypes, sys
import tensorflow
pointer, cuda = ctypes.c_void_p(), ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0 and cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(37 << 30)) == 0
if len(sys.argv) > 1:
    raise tensorflow.ResourceExhaustedError("OOM when allocating tensor with shape[9] by allocator GPU_0_bfc")
P
run dryrun -g a100-40g-sxm --no-record -- "$py" "$TMP/tf.py"
expect "TensorFlow alone is asked, too" 0 '' 'of what the framework took it used 2.00 GiB at most'
run dryrun -g a100-40g-sxm --no-record -- "$py" "$TMP/tf.py" oom
expect "... and what it refuses is out of memory" 1 '' 'out of memory; 1 requests were refused$'
finish
