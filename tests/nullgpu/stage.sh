#!/bin/sh
# stage.sh - dryrun with a made-up PyTorch: what is found, what is refused, what is generated.
. tests/support/tap.sh
own cc || { skip "staging a made-up PyTorch" "no cc for ${ARCH:-this machine}"; finish; }
site=$TMP/site; mkdir -p "$site/torch/lib"; : > "$site/torch/__init__.py"
py=$(python3 -c "import sys; print(sys.executable)") || { skip "staging a made-up PyTorch" "no python3"; finish; }
python3 -m venv --without-pip "$TMP/venv" 2> /dev/null && py=$TMP/venv/bin/python # one without packages of its own
export PYTHONPATH="$site" TMPDIR="$TMP/private"; mkdir -p "$TMPDIR"
run dryrun -g rtx4090 --no-record -- "$py" -c pass
expect "a PyTorch without CUDA is named, with the remedy" 125 '' 'has no CUDA in it; install a CUDA build'
run dryrun --no-record -- "$py" -c pass
expect "a card must be named" 2 '' "which card\? try -g rtx4090"
run dryrun -g rtx4090 --no-record
expect "a program must be named" 2 '' 'which program'

# a library that wants what the tables hold, and one function that they do not
cat > "$TMP/want.c" <<'C'
int cudaMalloc(void **p, unsigned long n);
int cublasBrandNewInTheYear3000(void);
int ask(void **p) { return cudaMalloc(p, 20 << 20) + cublasBrandNewInTheYear3000(); }
C
cc -shared -fPIC -o "$site/torch/lib/libtorch_cuda.so" "$TMP/want.c" -L"$BUILD/nullgpu" -l:vcnull-libcudart.so.12
cat > "$TMP/use.py" <<P
import ctypes
p = ctypes.c_void_p()
lib = ctypes.CDLL("$site/torch/lib/libtorch_cuda.so", mode=2)
print("answer", lib.ask(ctypes.byref(p)), hex(p.value or 0))
P
run dryrun -v -g rtx4090 --no-record -- "$py" "$TMP/use.py"
expect "a wheel finds the stand-ins, and a function from the future is made" 0 'answer 0 0x20' '1 functions that this PyTorch or a package beside it wants were made on the spot'
expect "the verdict counts the context" 0 '' 'peak of device memory 0.5. GiB, of which 0.4. GiB context'
# what a library inside the wheel has is not made, whatever its name's hash
echo 'int cusparseBundledInTheYear3000(void); int go(void) { return cusparseBundledInTheYear3000(); }' > "$TMP/bundle.c"
cc -shared -fPIC -o "$site/torch/lib/libtorch_more.so" "$TMP/bundle.c"
run dryrun -v -g rtx4090 --no-record -- "$py" "$TMP/use.py"
expect "a function that no library has is made" 0 'answer 0' '2 functions that this PyTorch'
echo 'int cusparseBundledInTheYear3000(void) { return 1; }' > "$TMP/bundle.c"
cc -shared -fPIC -o "$site/torch/lib/libcusparse-0badcafe.so.0" "$TMP/bundle.c"
run dryrun -v -g rtx4090 --no-record -- "$py" "$TMP/use.py"
expect "... but not what a library inside the wheel has" 0 'answer 0' '1 functions that this PyTorch'
rm "$site/torch/lib/libtorch_more.so" "$site/torch/lib/libcusparse-0badcafe.so.0"
# no Python that could be asked
mkdir "$TMP/nopython" "$TMP/badpython"; printf '#!/bin/sh\nexit 1\n' > "$TMP/badpython/python3"; chmod +x "$TMP/badpython/python3"
PATH="$TMP/nopython" "$VRAMCAST" dryrun -g rtx4090 --no-record -- /bin/true > "$TMP/out" 2> "$TMP/err"; rc=$?; tap_read
expect "no Python in PATH: one sentence" 125 '' 'no python in PATH; put the one that has PyTorch first'
PATH="$TMP/badpython" "$VRAMCAST" dryrun -g rtx4090 --no-record -- /bin/true > "$TMP/out" 2> "$TMP/err"; rc=$?; tap_read
expect "one that does not run: one sentence" 125 '' "$TMP/badpython/python3 does not run"
# a package in another folder, as of a venv that sees the system's PyTorch
mkdir -p "$TMP/other/layers" "$TMP/other/layers-1.0.dist-info"
sed 's/cublasBrandNewInTheYear3000/cublasAnotherOfTheYear3000/g' "$TMP/want.c" > "$TMP/want2.c"
cc -shared -fPIC -o "$TMP/other/layers/layers.so" "$TMP/want2.c" -L"$BUILD/nullgpu" -l:vcnull-libcudart.so.12
sed "s|$site/torch/lib/libtorch_cuda.so|$TMP/other/layers/layers.so|" "$TMP/use.py" > "$TMP/use2.py"
PYTHONPATH=$site:$TMP/other run dryrun -v -g rtx4090 --no-record -- "$py" "$TMP/use2.py"
expect "so does a package in another folder" 0 'answer 0 0x20' '2 functions that this PyTorch or a package beside it wants were made on the spot'
# Triton's own tuner, as far as it is met here
mkdir -p "$TMP/tuner/triton/runtime"; : > "$TMP/tuner/triton/__init__.py"; : > "$TMP/tuner/triton/runtime/__init__.py"
cat > "$TMP/tuner/triton/runtime/autotuner.py" << 'P'
class Autotuner:
    cache_results, compiled = True, []

    def _bench(self, *args, config, **meta):
        self.compiled.append(config)
        return [float("inf")] * 3 if config < 0 else [config, config, config]

    def run(self, *args, **kwargs):
        timings = {c: self._bench(*args, config=c, **kwargs) for c in (-1, 7, 3, 5)}
        return min(timings, key=timings.get)
P
printf 'def do_bench(fn, rep=1):\n    return fn()\n' > "$TMP/tuner/triton/testing.py"
PYTHONPATH=$site:$TMP/tuner run dryrun -g rtx4090 --no-record -- "$py" -c 'from triton.testing import do_bench
print("timed", do_bench(lambda: 5), do_bench.__name__, do_bench.__wrapped__ is not None)'
expect "what Triton times is called as before, and the recording is told to leave it out" 0 'timed 5 do_bench True'
PYTHONPATH=$site:$TMP/tuner run dryrun -g rtx4090 --no-record -- "$py" -c 'from triton.runtime.autotuner import Autotuner
a = Autotuner(); print("chosen", a.run(1), a.run(1), a.compiled, a.cache_results)'
expect "of Triton's configurations the first that compiles is taken, and no other compiled" 0 'chosen 7 7 \[-1, 7, -1, 7\] False'
PYTHONPATH=$site:$TMP/tuner run dryrun -g rtx4090 --no-record -- "$py" -c 'from triton.runtime.autotuner import Autotuner
class Own(Autotuner):
    def run(self, *args):
        return max((c for c in (-1, 3, 7) if self._bench(*args, config=c)[0] < 99), default=None)
a = Own(); print("chosen", a.run(1), a.run(1), a.compiled, a.cache_results)'
expect "a tuner that another package derived from it, too" 0 'chosen 3 3 \[-1, 3, -1, 3\] False'
for s in py off; do
	how=; [ $s = py ] || how="--stacks $s"
	run dryrun -g rtx4090 $how -o "$TMP/s.vct" -- "$py" -c "import os; print(os.environ['VC_OPTIONS'])"
	expect "call sites are recorded${how:+, unless} $how" 0 "stacks=$s,"
done
run dryrun -g rtx4090 --addresses both --no-record -- "$py" "$TMP/use.py"
expect "both orders of addresses are two runs" 0 'answer 0 0x200000000000' 'between 0.5. and 0.5. GiB with device addresses going (down and up|up and down)'
cat > "$TMP/twice.py" <<P
import os, sys
exec(open("$TMP/use.py").read())
sys.exit(5 if os.path.exists("$TMP/once") else open("$TMP/once", "w").close())
P
run dryrun -g rtx4090 --addresses both --no-record -- "$py" "$TMP/twice.py"
expect "a second run that fails is told by its exit code" 5 'answer 0'
run dryrun -g rtx4090 --capacity 600MiB --context 480MiB --no-record -- "$py" "$TMP/use.py"
expect "what lies inside the margin is too close to call" 0 '' 'too close to call; it fits with 0.10 GiB left'
run dryrun -g rtx4090 --capacity 490MiB --context 480MiB --no-record -- "$py" "$TMP/use.py"
expect "a full card refuses, and the program goes on" 0 'answer 2' 'verdict: at the limit; 1 requests were refused, the largest 0.02 GiB, and the program went on'
run dryrun -g a100-40g-sxm -g a100-80g-sxm -g rtx4090 --no-record --report "$TMP/report.json" -- "$py" "$TMP/use.py"
expect "cards of one class are answered by one run" 0 'answer 0' 'a100-40g-sxm .* fits +a100-80g-sxm'
check "another class runs for itself" test "$(grep -c '^answer' "$TMP/out")" = 2
check "the verdicts are there as JSON" "$py" -c "
import json, sys
runs = json.load(open('$TMP/report.json'))['runs']
by = {r['gpu']: r['answered_by'] for r in runs}
sys.exit(by != {'a100-40g-sxm': 'a100-80g-sxm', 'a100-80g-sxm': None, 'rtx4090': None} or runs[0]['verdict'] != 'fits')"
run dryrun -g a100-40g-sxm -g a100-80g-sxm --context 39.98GiB --no-record -- "$py" "$TMP/use.py"
expect "a card whose limit the run came near gets a run of its own" 0 'answer' 'a100-40g-sxm .* its own run'
cat > "$TMP/total.py" <<P
import ctypes
exec(open("$TMP/use.py").read())
total = ctypes.c_size_t()
ctypes.CDLL("libcuda.so.1").cuDeviceTotalMem_v2(ctypes.byref(total), 0)
P
run dryrun -g a100-40g-sxm -g a100-80g-sxm --no-record -- "$py" "$TMP/total.py"
expect "a program that asks how large the card is gets a run for each" 0 'answer' 'a100-40g-sxm .* its own run'
# a package beside PyTorch with code for this CUDA, for an older one, and a library of its own
mkdir -p "$site/fast/kernels"
cat > "$TMP/fast.c" <<'C'
int cublasFastInTheYear3000(void);
int go(void) { return cublasFastInTheYear3000(); }
C
echo 'int cudaMalloc(void) { return 0; }' > "$TMP/old.c"
mkdir -p "$TMP/old"; cc -shared -fPIC -Wl,-soname,libcudart.so.11.0 -o "$TMP/old/libcudart.so.11.0" "$TMP/old.c"
cc -shared -fPIC -Wl,--no-as-needed -o "$site/fast/kernels/fast12.so" "$TMP/fast.c" -L"$BUILD/nullgpu" -l:vcnull-libcudart.so.12
sed 's/Fast/Slow/' "$TMP/fast.c" > "$TMP/slow.c"
cc -shared -fPIC -Wl,--no-as-needed -o "$site/fast/kernels/fast11.so" "$TMP/slow.c" -L"$TMP/old" -l:libcudart.so.11.0
echo "import ctypes; print('fast', ctypes.CDLL('$site/fast/kernels/fast12.so').go())" > "$TMP/fast.py"
run dryrun -v -g rtx4090 --no-record -- "$py" "$TMP/fast.py"
expect "a package with CUDA code finds its functions, those for another CUDA are left alone" 0 'fast 0' '2 functions that'
# a copy of the runtime under a name with a hash, as wheels bring it, and one that is loaded by its path
mkdir -p "$site/fast.libs"; printf 'libcudart.so.12 { global: *; };' > "$TMP/copy.map"
echo 'int cudaMalloc(void) { return 77; } int cudaSetDevice(void) { return 77; }' > "$TMP/copy.c"
cc -shared -fPIC -Wl,-soname,libcudart.0badcafe.so.12 -Wl,--version-script="$TMP/copy.map" -o "$site/fast.libs/libcudart.0badcafe.so.12" "$TMP/copy.c"
cc -shared -fPIC -Wl,-soname,libcudart.so.12 -Wl,--version-script="$TMP/copy.map" -o "$TMP/libcudart.so.12" "$TMP/copy.c"
echo 'int cudaMalloc(void **p, unsigned long n); int copied(void **p) { return cudaMalloc(p, 30 << 20); }' > "$TMP/hashed.c"
cc -shared -fPIC -Wl,-soname,libcutensor.so.9 -o "$TMP/libcutensor.so.9" "$TMP/copy.c" # needed, but for none of its functions
cc -shared -fPIC -Wl,--disable-new-dtags,-rpath,'$ORIGIN/../../fast.libs' -o "$site/fast/kernels/hashed.so" "$TMP/hashed.c" "$site/fast.libs/libcudart.0badcafe.so.12" \
	-Wl,--no-as-needed "$TMP/libcutensor.so.9"
# auditwheel's names: a dash, and the whole version
cc -shared -fPIC -Wl,-soname,libcudart-0badcafe.so.12.0.107 -Wl,--version-script="$TMP/copy.map" -o "$site/fast.libs/libcudart-0badcafe.so.12.0.107" "$TMP/copy.c"
cc -shared -fPIC -Wl,--disable-new-dtags,-rpath,'$ORIGIN/../../fast.libs' -o "$site/fast/kernels/dashed.so" "$TMP/hashed.c" "$site/fast.libs/libcudart-0badcafe.so.12.0.107"
cat > "$TMP/hashed.py" <<P
import ctypes
print("dashed", ctypes.CDLL("$site/fast/kernels/dashed.so").copied(ctypes.byref(ctypes.c_void_p())))
lib, p = ctypes.CDLL("$site/fast/kernels/hashed.so"), ctypes.c_void_p()
print("copied", lib.copied(ctypes.byref(p)), hex(p.value or 0))
for name in "libcudart.0badcafe.so.12", "$site/fast.libs/libcudart.0badcafe.so.12", "$TMP/libcudart.so.12":
    runtime = ctypes.CDLL(name)
    print("names", runtime.cudaSetDevice(0), hasattr(runtime, "cudaLibraryLoadData"))
P
cat >> "$TMP/hashed.py" <<'P'
class Dim(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint) for n in "xyz"]
library, kernel, n = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint()
loaded = runtime.cudaLibraryLoadData(ctypes.byref(library), b"code", None, None, 0, None, None, 0)
found = runtime.cudaLibraryGetKernel(ctypes.byref(kernel), library, b"made_at_run_time")
runtime.cudaLaunchKernel.argtypes = ctypes.c_void_p, Dim, Dim, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p
print("library", loaded, found, bool(library), bool(kernel), runtime.cudaLaunchKernel(kernel, Dim(1, 1, 1), Dim(32, 1, 1), None, 0, None))
print("what is not there says so", runtime.cudaMalloc3D(None, None))
P
PATH=/nowhere:$PATH run dryrun -v -g rtx4090 --no-record -- "$py" "$TMP/hashed.py"
expect "a copy of the runtime with a hash in its name is the stand-in" 0 'copied 0 0x20'
expect "... and so is one with a dash and a whole version" 0 'dashed 0'
check "... with all its names, however it is loaded" test "$(grep -c 'names 0 True' "$TMP/out")" = 3
check "... without a word of the loader's" sh -c '! grep -q "version information" "$1"' sh "$TMP/err"
check "... and kernels that were compiled at run time are loaded and launched" grep -q 'library 0 0 True True 0' "$TMP/out"
check "... but what has no stand-in is refused" grep -q 'says so 801' "$TMP/out"
rm "$site/fast/kernels/hashed.so"
# two libraries that nothing stands in for: each is made with what is wanted of it
for l in libnvjpeg libnppc; do
	echo "int ${l#lib}InTheYear3000(void) { return 77; }" > "$TMP/$l.c"; echo "${l}_9 { global: *; };" > "$TMP/$l.map"
	cc -shared -fPIC -Wl,-soname,$l.so.99 -Wl,--version-script="$TMP/$l.map" -o "$TMP/$l.so.99" "$TMP/$l.c"
done
echo 'int nvjpegInTheYear3000(void); int nppcInTheYear3000(void); int both(void) { return nvjpegInTheYear3000() + nppcInTheYear3000(); }' > "$TMP/both.c"
cc -shared -fPIC -o "$site/fast/kernels/both.so" "$TMP/both.c" "$TMP/libnvjpeg.so.99" "$TMP/libnppc.so.99" -Wl,--no-as-needed -L"$BUILD/nullgpu" -l:vcnull-libcudart.so.12
run dryrun -g rtx4090 --no-record -- "$py" -c "import ctypes; print('both', ctypes.CDLL('$site/fast/kernels/both.so').both())"
expect "libraries that nothing stands in for are made, each with its own functions" 0 'both 0'
rm "$site/fast/kernels/both.so"
check "no private folder is left behind" rmdir "$TMPDIR"
mkdir -p "$TMPDIR"
PATH=/nowhere "$VRAMCAST" dryrun -g rtx4090 --no-record -- "$py" -c pass > /dev/null 2> "$TMP/err"
check "without a compiler the missing functions are named" grep -q 'Missing: cublasBrandNewInTheYear3000' "$TMP/err"
# what is not known is said with its bytes: ask the stand-ins themselves
cat > "$TMP/more.c" <<'C'
int cudnnGetRNNTempSpaceSizes(void);
int cusolverDnSpotrf_bufferSize(void);
int cusparseCreateCsr(void);
int more(void) { return cudnnGetRNNTempSpaceSizes() + cusolverDnSpotrf_bufferSize() + cusparseCreateCsr(); }
C
cc -shared -fPIC -o "$site/torch/lib/libtorch_more.so" "$TMP/more.c" -L"$BUILD/nullgpu" -l:vcnull-libcudnn.so.9 \
	-l:vcnull-libcusolver.so.11 -l:vcnull-libcusparse.so.12
cat > "$TMP/more.py" <<'P'
import ctypes
from ctypes import byref, c_int, c_int64, c_size_t, c_void_p
cuda, solver, sparse, cudnn = (ctypes.CDLL(n) for n in ("libcudart.so.12", "libcusolver.so.11", "libcusparse.so.12", "libcudnn.so.9"))
p, stream, graph, exe = c_void_p(), c_void_p(), c_void_p(), c_void_p()
size, long_size = c_int(), c_size_t()
cuda.cudaMalloc(byref(p), c_size_t(21 << 20)), cuda.cudaMalloc(byref(p), c_size_t(3 << 20))
cuda.cudaStreamCreate(byref(stream)), cuda.cudaStreamBeginCapture(stream, 0)
for _ in range(100):
    cuda.cudaMemsetAsync(p, 0, c_size_t(64), stream)
cuda.cudaStreamEndCapture(stream, byref(graph)), cuda.cudaGraphInstantiate(byref(exe), graph, 0)
solver.cusolverDnSpotrf_bufferSize(None, 0, 1024, None, 1024, byref(size))
sparse.cusparseCreateCsr(byref(p), c_int64(1 << 20), c_int64(4), c_int64(3 << 20), None, None, None, 0, 0, 0, 0)
sparse.cusparseSpMV_bufferSize(None, 0, None, p, None, None, None, 0, 0, byref(long_size))
x, y = c_void_p(), c_size_t()
cudnn.cudnnCreateTensorDescriptor(byref(x))
cudnn.cudnnSetTensorNdDescriptor(x, 0, 4, (c_int * 4)(8, 64, 128, 128), (c_int * 4)(1 << 20, 1 << 14, 128, 1))
cudnn.cudnnSetTensorNdDescriptor(x, 0, 4, (c_int * 4)(8, 32, 130, 130), (c_int * 4)(540800, 1, 4160, 32))
half = c_void_p()
cudnn.cudnnCreateTensorDescriptor(byref(half))
cudnn.cudnnSetTensorNdDescriptor(half, 2, 4, (c_int * 4)(128, 64, 56, 56), (c_int * 4)(200704, 1, 3584, 64))
told = []
for t in x, half:
    cudnn.cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(None, 2, 0, t, None, t, None, None, byref(y))
    told += [y.value - 8 * 128]
    cudnn.cudnnGetBatchNormalizationBackwardExWorkspaceSize(None, 2, 0, t, None, t, None, t, None, None, byref(y))
    told += [y.value - 8 * 128]
cudnn.cudnnGetBatchNormalizationBackwardExWorkspaceSize(None, 1, 0, x, None, x, None, x, None, None, byref(y))
print(*told, y.value)
P
run dryrun -g rtx4090 --no-record --report "$TMP/more.json" -- "$py" "$TMP/more.py"
expect "the driver's blocks and what rounding costs" 0 '' 'driver: 3 blocks at the peak, 2.0 MiB of it rounding'
expect "instantiated graphs by their nodes" 0 '' 'memory of instantiated CUDA graphs \(at most 2.7 MiB, not counted\)'
expect "cuSOLVER: a bound from the matrix" 0 '' 'cusolverDnSpotrf_bufferSize \(at least 0.0 MiB, at most 66.0 MiB at a time; 0.0 MiB counted\)'
expect "cuSPARSE: a bound from the largest matrix" 0 '' 'cusparseSpMV_bufferSize \(at least 0.0 MiB, at most 0.12 GiB at a time; 0.0 MiB counted\)'
# H100 of 132 multiprocessors: 1091384, 722468, 1295720, 2142244
expect "batch norm, channels last: what an H100 said, but for its multiprocessors" 0 \
	'^1090328 721412 1294664 2141188 0$' ''
expect "... and on another card it may be more" 0 '' 'cuDNN batch norm, workspace \(at least 0.0 MiB, at most 4.1 MiB at a time; 2.0 MiB counted'
check "... and as JSON" "$py" -c "
import json
r = json.load(open('$TMP/more.json'))['runs'][0]
u = {i['name']: i for i in r['uncounted']}
assert r['driver_blocks'] == 3 and r['driver_rounding'] == 2 << 20, r
assert u['memory of instantiated CUDA graphs']['at_most'] == 3400000 - (108 << 10) - 409600, u
assert u['cusolverDnSpotrf_bufferSize']['single_most'] == 69206016 and u['cusolverDnSpotrf_bufferSize']['at_most'] == 69206016, u
assert u['cuDNN batch norm, workspace']['at_most'] == 0, 'covered by measured runs: no part of the margin'"

# A communicator of many ranks: what NCCL can hold for it does not grow with those on other machines.
echo 'int ncclCommCount(void *, int *); int many(void) { return ncclCommCount(0, 0); }' > "$TMP/nccl.c"
cc -shared -fPIC -o "$site/torch/lib/libtorch_nccl.so" "$TMP/nccl.c" -L"$BUILD/nullgpu" -l:vcnull-libnccl.so.2
cat > "$TMP/nccl.py" <<'P'
import ctypes
cuda, nccl = ctypes.CDLL("libcudart.so.12"), ctypes.CDLL("libnccl.so.2")
class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]
p, comm, unique = ctypes.c_void_p(), ctypes.c_void_p(), Id()
cuda.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(21 << 20))
nccl.ncclGetUniqueId(ctypes.byref(unique))
nccl.ncclCommInitRank(ctypes.byref(comm), 1024, unique, 7)
P
VRAMCAST_NULL_WORLD=1024 run dryrun -g h100-80g-sxm --no-record -- "$py" "$TMP/nccl.py"
expect "NCCL: two neighbours, and 32 cards that share switches" 0 '' "NCCL's own buffers \(at most 1.75 GiB, not counted\)"

mkdir -p "$TMP/old"
echo 'int cudaMalloc(void **p, unsigned long n) { return 0; }' > "$TMP/old/cudart.c"
cc -shared -fPIC -Wl,-soname,libcudart.so.11.0 -o "$TMP/old/libcudart.so.11.0" "$TMP/old/cudart.c"
cc -shared -fPIC -o "$site/torch/lib/libtorch_cuda.so" "$TMP/want.c" -L"$TMP/old" -l:libcudart.so.11.0
run dryrun -g rtx4090 --no-record -- "$py" -c pass
expect "a PyTorch for CUDA 11 is refused with the reason" 125 '' 'built for CUDA 11, and the null GPU plays 12 and 13'
finish
