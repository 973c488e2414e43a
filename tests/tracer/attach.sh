#!/bin/sh
# attach.sh - record --pid: who cannot be attached to, in one sentence each; and, on a stand-in for PyTorch's CPU allocator
# in a real Python, a window of a program that runs. With PyTorch: check_attach.sh.
. tests/tracer/lib.sh
own python3 || { skip "attaching" "there is no python3 for ${ARCH:-this machine}"; finish; }
mkdir "$TMP/torch"
cat > "$TMP/torch/__init__.py" << 'TORCH'
import ctypes, os
c10 = ctypes.CDLL(os.environ["STANDIN_C10"], mode=ctypes.RTLD_GLOBAL)
caller = ctypes.CDLL(os.environ["STANDIN_CALLER"])
strided = object()
if "STANDIN_BROKEN" in os.environ: cuda = object()
class Tensor:
    def __init__(self, n=0, grad=None, shared=False):
        class Storage:
            data_ptr, nbytes, is_shared = lambda s: self.at, lambda s: n, lambda s: shared
        self.storage, self.grad, self.at = Storage(), grad, caller.ask(n) if n else 0
        self.is_leaf, self.layout, self.device = True, strided, type("device", (), {"type": "cpu"})
    def untyped_storage(self):
        return self.storage
TORCH
cat > "$TMP/caller.c" << 'CALLER'
#include <stddef.h>
void *_ZN3c109alloc_cpuEm(size_t n);
void _ZN3c108free_cpuEPv(void *p);
void *ask(size_t n) { return _ZN3c109alloc_cpuEm(n); }
void give(void *p) { _ZN3c108free_cpuEPv(p); }
CALLER
cat > "$TMP/loop.py" << 'LOOP'
import os, sys, time
sys.path.insert(0, os.path.dirname(__file__))
if "none" not in sys.argv:
    import torch, ctypes
    ask, give = torch.caller.ask, torch.caller.give
    ask.restype, ask.argtypes, give.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
    kept = [torch.Tensor(4096, torch.Tensor(8192)), torch.Tensor(12288, None, True), torch.Tensor()]
n = 0
while not os.path.exists(sys.argv[1]):
    if "none" not in sys.argv:
        give(ask(1000 + n % 7))
        recorder = getattr(getattr(sys, "_vramcast", None), "library", None)
        if recorder is not None:
            recorder.vramcast_step()
    n += 1
    if n == 10:
        open(sys.argv[2], "w").close()
    time.sleep(0.001)
print("through")
LOOP
export STANDIN_C10="$PWD/$bin/libc10.so" STANDIN_CALLER="$TMP/caller.so"
${CC:-cc} -shared -fPIC -o "$TMP/caller.so" "$TMP/caller.c" "$bin/libc10.so" 2> "$TMP/log" || { skip "attaching" "no compiler"; finish; }
start() { # start WORD...: a program in the background, its number in $pid
	rm -f "$TMP/end" "$TMP/ready"
	"$@" python3 "$TMP/loop.py" "$TMP/end" "$TMP/ready" $kind > "$TMP/loop.out" 2> "$TMP/loop.err" & pid=$!
	for i in $(seq 200); do [ -e "$TMP/ready" ] && break; sleep 0.05; done
}
stop() { : > "$TMP/end"; wait "$pid"; pid=; }
trap '[ -z "$pid" ] || kill "$pid" 2> /dev/null' EXIT # STOP=1 ends in the middle

kind=; start env
for window in 1 2 3; do
	run record -o "$TMP/a$window.vct" --pid "$pid" --device cpu --duration 0.2s
	expect "window $window of a running program" 0 "" "a$window.vct: [0-9]* events, 0 dropped"
	equal "window $window: it begins with the tensors that live" "$("$VRAMCAST" dump "$TMP/a$window.vct" | awk '$3 != "alloc" { exit } $6 ~ /=(4096|8192|12288)$/ { print $6 }' | sort | tr '\n' ' ')" "size=4096 size=8192 "
	equal "window $window: every free is of what was asked for" "$("$VRAMCAST" dump "$TMP/a$window.vct" | awk '$3 == "alloc" && $6 !~ /=(4096|8192)$/ { a++ } $3 == "free" { f++ } END { print (a > 0), (a - f <= 1) }')" "1 1"
done
for kernels in off on; do # with kernels the recorder waits for those that are told late
	run record -q -o "$TMP/s.vct" --pid "$pid" --device cpu --kernels $kernels --steps 5..10
	"$VRAMCAST" dump "$TMP/s.vct" | awk '{ $1 = $2 = ""; print }' > "$TMP/dump"
	equal "six steps of a running program, kernels $kernels: with what lived, and no more" "$rc $(grep -c ' mark .*label=step' "$TMP/dump") $(sed -n '1,2s/.*size=\([0-9]*\) .*/\1/p' "$TMP/dump" | sort | tr '\n' ' ')$(grep -cE ' (alloc|free) ' "$TMP/dump") $(tail -n 1 "$TMP/dump" | sed 's/.*label=//')" "0 6 4096 8192 14 step"
done
run record -o "$TMP/b.vct" --pid "$pid" --device cpu --keep 5s --duration 1s
expect "what contradicts itself is said before anything is touched" 2 "" "--keep records the end"
"$VRAMCAST" record -q -o "$TMP/c.vct" --pid "$pid" --device cpu 2> "$TMP/err" & recorder=$!
for i in $(seq 200); do grep -q '\.vcj' "/proc/$pid/maps" && break; sleep 0.05; done
sleep 0.3; kill -INT "$recorder"; wait "$recorder"; rc=$?
equal "Ctrl-C ends the recording" "$rc $(field "$TMP/c.vct" dropped)" "0 0"
equal "and not the program, in which no journal is left" "$(kill -0 "$pid" && echo runs) $(grep -c '\.vcj' "/proc/$pid/maps")" "runs 0"
stop; equal "it went on to its end, and wrote nothing else" "$(cat "$TMP/loop.out" "$TMP/loop.err")" through
equal "nothing is left beside the traces" "$(ls -d "$TMP"/*.journal 2> /dev/null)" ""

# A program that ends meanwhile.
start env; "$VRAMCAST" record -q -o "$TMP/d.vct" --pid "$pid" --device cpu 2> "$TMP/err" & recorder=$!
for i in $(seq 200); do grep -q '\.vcj' "/proc/$pid/maps" && break; sleep 0.05; done
sleep 2; stop; wait "$recorder"; rc=$?
equal "the program ends: so does the recording" "$rc $([ "$(field "$TMP/d.vct" events)" -gt 2 ] && echo some)" "0 some"

refused() { # refused NAME PID PATTERN
	run record -o "$TMP/x.vct" --pid "$2"
	expect "$1: one sentence" 125 "" "^vramcast record: .*$3"
	equal "$1: no file" "$(ls -d "$TMP"/x.* 2> /dev/null)" ""
}
refused "nobody" 4194305 "there is no process 4194305"
sleep 100 & sleeper=$!
refused "no Python" "$sleeper" "process $sleeper has no Python"
kill "$sleeper"
kind=none; start env; refused "no PyTorch" "$pid" "it has not imported PyTorch; start it under vramcast record"; stop
equal "and the program does not notice" "$(cat "$TMP/loop.out" "$TMP/loop.err")" through
kind=; start env STANDIN_BROKEN=1; refused "what attaching meets is said" "$pid" "process $pid could not be attached to: its Python said 'failed AttributeError: .*is_initialized"; stop
equal "and the program does not notice that" "$(cat "$TMP/loop.out" "$TMP/loop.err")" through
start "$VRAMCAST" record -q -o "$TMP/e.vct" --device cpu --; child=$(cat "/proc/$pid/task/$pid/children" | cut -d' ' -f1)
run record -o "$TMP/x.vct" --pid "$child"
expect "recorded already" 2 "" "process $child is being recorded already: 'vramcast top $child' shows it"; stop
if [ "$(id -u)" = 0 ] && command -v setpriv > /dev/null; then
	chmod 755 "$TMP"; start env
	setpriv --reuid 65534 --clear-groups "$VRAMCAST" record -o "/tmp/vramcast-nobody-$$.vct" --pid "$pid" 2> "$TMP/err"; rc=$?
	[ "$rc" = 125 ] && grep -q "belongs to another user (0): run vramcast as that user" "$TMP/err" && pass "another user's process" || fail "another user's process" "$rc" "$(cat "$TMP/err")"
	for rights in -sys_ptrace,-perfmon -sys_ptrace; do # what it has mapped cannot be seen; it can, and no more
		run_with() { setpriv --bounding-set "$rights" --inh-caps -all "$VRAMCAST" "$@" > "$TMP/out" 2> "$TMP/err"; rc=$?; tap_read; }
		run_with record -o "$TMP/x.vct" --pid "$pid"
		expect "without the rights $rights: one sentence" 125 "" "^vramcast record: (the kernel|this system) does not let process $pid be attached to"
	done
	stop
	equal "and the program does not notice" "$(cat "$TMP/loop.out" "$TMP/loop.err")" through
	if unshare -m true 2> /dev/null; then
		start unshare -m; refused "a container" "$pid" "process $pid runs in a container: run vramcast inside of it"; stop
	else skip "a container" "no right to make one"; fi
else skip "another user's process, a container" "only root can try"; fi
if command -v strace > /dev/null; then
	start env; strace -qq -o /dev/null -p "$pid" & tracer=$!; sleep 0.5
	refused "traced by another" "$pid" "being traced by process"; kill "$tracer"; stop
else skip "traced by another" "there is no strace"; fi
for bad in "--pid 1 true" "--pid x"; do
	run record -o "$TMP/x.vct" $bad
	expect "$bad: one sentence" 2 "" "--pid"
done
finish
