#!/bin/sh
# others.sh - programs that share a card: what others hold, by a stand-in for NVIDIA's management library, is theirs and not
# this program's context. Where that library cannot tell, nothing is said.
. tests/tracer/lib.sh
own cc || { skip "programs that share a card" "no cc for ${ARCH:-this machine}"; finish; }
cat > "$TMP/nvml.c" << 'NVML'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
struct process { unsigned pid; unsigned long long used; unsigned gpu, compute; };
static int on(const char *what) { const char *s = getenv("STANDIN_NVML"); return s && strstr(s, what) != NULL; }
int cuDeviceGetPCIBusId(char *s, int n, int device) { snprintf(s, (size_t)n, "0000:%02X:00.0", device + 42); return 0; }
int cuDeviceGetName(char *s, int n, int device) { snprintf(s, (size_t)n, "NVIDIA Stand-in"); return 0; }
int cuDeviceGetAttribute(int *v, int which, int device) { *v = which == 75 ? 8 : which == 76 ? 6 : which == 16 ? 28 : -1; return device; }
int nvmlInit_v2(void) { return on("no-driver") ? 9 : 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **h) { *h = (void *)1; return strcmp(bus, "0000:2A:00.0") ? 6 : 0; }
int nvmlDeviceGetMigMode(void *h, unsigned *now, unsigned *later) { *now = *later = on("mig"); return 0; }
static int list(void *h, unsigned *n, struct process *p)
{
	static int asked;
	if (*n < 3)
		return 7;
	p[0] = (struct process){ .pid = on("container") ? 1 : (unsigned)getpid(), .used = 600ull << 20 };
	p[1] = (struct process){ .pid = 4711, .used = on("bytes") ? ~0ull : 2048ull << 20 };
	p[2] = (struct process){ .pid = 4712, .used = on("grows") && asked++ ? 512ull << 20 : 1024ull << 20 };
	*n = 3;
	return 0;
}
#ifdef OLD
int nvmlDeviceGetComputeRunningProcesses_v2(void *h, unsigned *n, struct process *p) { return list(h, n, p); }
#else
int nvmlDeviceGetComputeRunningProcesses_v3(void *h, unsigned *n, struct process *p) { return list(h, n, p); }
#endif
NVML
mkdir "$TMP/new" "$TMP/old"
cc -shared -fPIC -o "$TMP/new/libnvidia-ml.so.1" "$TMP/nvml.c" && cc -shared -fPIC -DOLD -o "$TMP/old/libnvidia-ml.so.1" "$TMP/nvml.c" &&
	cc -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$TMP/libcuda.so.1" "$TMP/nvml.c" || { skip "programs that share a card" "cc does not link"; finish; }
cp -r "$bin/torch" "$TMP/torch"
printf "__version__ = '2.9.0+cu000'\n" > "$TMP/torch/version.py"
export STANDIN_TORCH=9 STANDIN_DEVICE=$((8 << 30)) STANDIN_BESIDE=$((3500 << 20)) VRAMCAST_NULL_CLOCK=device
# of FILE: the context and the other processes that a replay on the recorded card has, in MiB
of() { "$VRAMCAST" sim --json "$1" | tr -d ' \n' | sed 's/.*"context":\([0-9]*\),.*"others":\([0-9]*\),.*/\1 \2/' | awk '{ print $1 / 2^20, $2 / 2^20 }'; }
go() { # go FOLDER WORD...
	STANDIN_NVML="$2" LD_LIBRARY_PATH="$1" LD_PRELOAD="$TMP/libcuda.so.1" run record -q -o "$TMP/a.vct" -- "$TMP/torch/lib/client" steps 300
	"$VRAMCAST" dump "$TMP/a.vct" > "$TMP/dump"
	said=$(grep -c ' mark .*label=other processes' "$TMP/dump")
}
go "$TMP/new" ""
equal "what two others hold is recorded once, in front of the first sample" "$said $(awk '$3 == "device_sample" { exit } / label=other processes/ { print $4, $5 }' "$TMP/dump")" "1 device=0 size=$((3 << 30))"
equal "it is theirs: the rest of what is beside the segments is context" "$(of "$TMP/a.vct")" "428 3072"
mkdir "$TMP/j"
VC_DIR="$TMP/j" VC_OPTIONS=device=cuda LD_PRELOAD="$PWD/${BUILD:-build}/libvramcast_trace.so:$TMP/libcuda.so.1" "$TMP/torch/lib/client" steps 1
equal "the driver says which card it is" "$(grep -aho 'gpu [0-9] [ -~]*' "$TMP"/j/*.vcj)" "gpu 0 8589934592 8.6 28 NVIDIA Stand-in"
run sim "$TMP/a.vct"; expect "sim names them" 0 '\+ other processes +3.00 GiB'
equal "with --used the user's word counts" "$("$VRAMCAST" sim --json --used 1GiB "$TMP/a.vct" | tr -d ' \n' | sed 's/.*"others":\([0-9]*\),.*/\1/')" $((1 << 30))
equal "another card has others, of whom nothing is known" "$("$VRAMCAST" sim --json -g l4 "$TMP/a.vct" | tr -d ' \n' | sed 's/.*"others":\([0-9]*\),.*/\1/')" 0
go "$TMP/old" ""; equal "the function of CUDA 11.1" "$(of "$TMP/a.vct")" "428 3072"
go "$TMP/new" grows; equal "a change is recorded" "$said $(grep ' mark .*label=other processes' "$TMP/dump" | awk '{ print $5 }' | tail -n 1)" "2 size=$((2560 << 20))"
for why in no-driver mig container bytes; do
	go "$TMP/new" "$why"
	equal "$why: it cannot be known, and nothing is said" "$said $(of "$TMP/a.vct")" "0 3500 0"
done
STANDIN_CURRENT=1 go "$TMP/new" ""; equal "a card that the library does not know" "$said" 0
go "$TMP" ""; equal "no such library" "$rc $said" "0 0"
finish
