#!/bin/sh
# smi.sh - the stand-in nvidia-smi: alone, and started by a program on the null GPU.
. tests/support/tap.sh
smi() {
	env VRAMCAST_NULL_DEVICES=2 VRAMCAST_NULL_TOTAL=$((1000 << 20)) VRAMCAST_NULL_BOARD=$((1024 << 20)) \
		VRAMCAST_NULL_CONTEXT=$((100 << 20)) VRAMCAST_NULL_OTHERS=$((50 << 20))@4242 VRAMCAST_NULL_NAME="Test Card" \
		VRAMCAST_NULL_CLOCKS=1980,2619 CUDA_VISIBLE_DEVICES=1 "$BUILD/nullgpu/vcnull-nvidia-smi" "$@" > "$TMP/out" 2> "$TMP/err"
	rc=$? out=$(cat "$TMP/out") err=$(cat "$TMP/err")
}
smi -L
expect "the cards of the machine, whatever CUDA_VISIBLE_DEVICES says" 0 'GPU 1: Test Card \(UUID: GPU-564c4e00'
smi --query-gpu=index,name,memory.total,memory.reserved,memory.used,memory.free,utilization.gpu,clocks.max.sm,compute_cap --format=csv
expect "a query as scripts make it" 0 '^1, Test Card, 1024 MiB, 24 MiB, 50 MiB, 950 MiB, \[N/A\], 1980 MHz, 8.9$'
check "... with its header" grep -qx 'index, name, memory.total \[MiB\], memory.reserved \[MiB\], memory.used \[MiB\], memory.free \[MiB\], utilization.gpu \[%\], clocks.max.sm \[MHz\], compute_cap' "$TMP/out"
smi --query-gpu=memory.total,name --format=csv,noheader,nounits -i 1
check "without header and units, of one card" test "$(cat "$TMP/out")" = "1024, Test Card"
smi --query-gpu memory.used --format csv,noheader --id 0
check "options and values may be two words" test "$(cat "$TMP/out")" = "50 MiB"
smi
expect "without a query the figures of the table" 0 '^1, Test Card, 50 MiB, 1024 MiB$'
smi --query-gpu=name,wishes --format=csv,noheader -i 0
expect "a field that is not known" 0 '^Test Card, \[N/A\]$'
smi --query-gpu=name
expect "a query wants a format" 2 'format'
smi -i 7
expect "a card that is not there" 6 'No devices were found'
smi --gpu-reset
expect "what is not played is said" 2 "'--gpu-reset' is not played"

own cc || { skip "started by a program" "no cc for ${ARCH:-this machine}"; finish; }
site=$TMP/site; mkdir -p "$site/torch/lib"; : > "$site/torch/__init__.py"
py=$(python3 -c "import sys; print(sys.executable)") || { skip "started by a program" "no python3"; finish; }
export PYTHONPATH="$site" TMPDIR="$TMP/private"; mkdir -p "$TMPDIR"
cat > "$TMP/want.c" <<'C'
int cudaMalloc(void **p, unsigned long n);
int cudaFree(void *p);
int ask(void **p, long n) { return cudaMalloc(p, n); }
int give(void *p) { return cudaFree(p); }
C
cc -shared -fPIC -o "$site/torch/lib/libtorch_cuda.so" "$TMP/want.c" -L"$BUILD/nullgpu" -l:vcnull-libcudart.so.12
cat > "$TMP/use.py" <<P
import ctypes, subprocess
lib, p = ctypes.CDLL("$site/torch/lib/libtorch_cuda.so", mode=2), ctypes.c_void_p()
def smi(): print(subprocess.run(["nvidia-smi", "--query-gpu=memory.total,memory.used", "--format=csv,noheader"], capture_output=True, text=True).stdout.strip())
smi(); lib.ask(ctypes.byref(p), ctypes.c_long(300 << 20)); smi(); lib.give(p); smi()
P
run dryrun -g h100-80g-sxm --context 500MiB --no-record --report "$TMP/r.json" -- "$py" "$TMP/use.py"
expect "what the process holds now, with its context" 0 '81559 MiB, 800 MiB'
check "... before and after" test "$(tr '\n' ' ' < "$TMP/out")" = "81559 MiB, 0 MiB 81559 MiB, 800 MiB 81559 MiB, 500 MiB "
check "nvidia-smi itself is no process that used the device" "$py" -c "import json; assert len(json.load(open('$TMP/r.json'))['runs'][0]['processes']) == 1"
finish
