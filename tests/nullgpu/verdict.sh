#!/bin/sh
# verdict.sh - how a dry run says that its program ended: as a whole, by process, and by its exit code.
. tests/support/tap.sh
own cc || { skip "ends of a made-up program" "no cc for ${ARCH:-this machine}"; finish; }
site=$TMP/site; mkdir -p "$site/torch/lib"; : > "$site/torch/__init__.py"
py=$(python3 -c "import sys; print(sys.executable)") || { skip "ends of a made-up program" "no python3"; finish; }
export PYTHONPATH="$site" TMPDIR="$TMP/private"; mkdir -p "$TMPDIR"
echo 'int cudaMalloc(void **p, unsigned long n); int ask(void **p, long n) { return cudaMalloc(p, n); }' > "$TMP/want.c"
cc -shared -fPIC -o "$site/torch/lib/libtorch_cuda.so" "$TMP/want.c" -L"$BUILD/nullgpu" -l:vcnull-libcudart.so.12
cat > "$TMP/use.py" <<P
import ctypes, os, signal, sys
def ask(mib):
    p = ctypes.c_void_p()
    return ctypes.CDLL("$site/torch/lib/libtorch_cuda.so", mode=2).ask(ctypes.byref(p), ctypes.c_long(mib << 20))
def ask_and_free(mib):
    p = ctypes.c_void_p(); lib = ctypes.CDLL("$site/torch/lib/libtorch_cuda.so", mode=2)
    return lib.ask(ctypes.byref(p), ctypes.c_long(mib << 20)) or lib.cudaFree(p)
P
says() { "$py" -c "
import json
r = json.load(open('$TMP/r.json'))['runs'][0]; e = r['ended']; p = r['processes']
assert $1, (e, p)"; }
program() { echo "$1" | cat "$TMP/use.py" - > "$TMP/program.py"; shift; run dryrun -g rtx4090 --capacity 1GiB --context 500MiB --no-record --report "$TMP/r.json" "$@" -- "$py" "$TMP/program.py"; }

program 'sys.exit(2)'
expect "an end before anything was asked for is said" 2 '' 'the program ended with status 2 before it asked for device memory'
check "... and no verdict is made of it" sh -c '! grep -q verdict "$1"' sh "$TMP/err"
check "... in JSON too" says "e['how'] == 'before_memory' and e['status'] == 2 and e['signal'] is None and p == []"
program 'pass'
expect "so is a program that asks for nothing" 0 '' 'the program ended with status 0, and never asked for device memory'
program 'ask(20); sys.exit(7)'
expect "an end of its own is not called a fit" 7 '' 'ended with status 7, and not for want of device memory'
check "... but what there was" grep -q 'verdict: nothing was refused up to there, 0.49 GiB left' "$TMP/err"
check "... with its process" says "e['how'] == 'otherwise' and p[0]['status'] == 7 and p[0]['verdict'] == 'fits'"
program 'ask(20); os.kill(os.getpid(), 9)'
expect "a signal is named" 137 '' 'was ended by signal 9 \(Killed\)'
check "... and what was held of the host" grep -q 'the host: a process held 0...* GiB of its .* who sent the signal is not known' "$TMP/err"
check "... in JSON too" says "e['signal'] == 9 and p[0]['status'] is None and e['host_peak'] > 0"
program 'sys.exit(bool(ask(600)))'
expect "out of memory" 1 '' 'ended with status 1 after a request was refused'
program 'sys.exit(bool(ask(600)))' --exit-code verdict
expect "--exit-code verdict: out of memory is 3" 3 '' 'verdict: out of memory'
program 'sys.exit(bool(ask(600)))' --margin
expect "--margin: what fits with as much more as a dry run can be off by is too close to call" 1 '' 'too close to call; it ran out of memory, and fits with 0.15 GiB more'
check "... in JSON, where it is out of memory still" says "r['too_close_to_call'] and r['verdict'] == 'oom'"
program 'sys.exit(bool(ask(700)))' --margin
expect "... and what does not is not" 1 '' 'verdict: out of memory'
check "... in JSON too" says "not r['too_close_to_call']"
program 'ask(600)' --exit-code verdict
expect "... and so is a limit that was met" 3 '' 'verdict: at the limit'
program 'ask(20); sys.exit(7)' --exit-code verdict
expect "... another end keeps its status" 7
program 'ask(20)' --exit-code verdict
expect "... and what fits is 0" 0
run dryrun -g rtx4090 --exit-code maybe -- "$py" -c pass
expect "... nothing else is understood" 2 '' '--exit-code maybe: must be one of program'
# A program that leaves a recording of a real one: what that needs hangs on more than two orders of addresses.
cat "$TMP/use.py" - > "$TMP/told.py" <<P
import shutil
ask(1004)
shutil.copy("tests/recordings/h100/transformer_xl-24.vct", "$TMP/told.vct")
P
run dryrun -g h100-80g-sxm --context 500MiB -o "$TMP/told.vct" --report "$TMP/r.json" -- "$py" "$TMP/told.py"
expect "the peak in other orders of addresses is said" 0 '' 'between 1.35 and 1.47 GiB with device addresses in other orders: the answer is the larger one'
check "... in JSON too: the driver's two orders alike, others not" "$py" -c "
import json
r = json.load(open('$TMP/r.json'))['runs'][0]
low, high = r['device_low'], r['device_high']
assert r['both_address_orders'] and high - low == 118 << 20, (low, high)"
# One of a convolution net, whose plans ran with these workspaces.
cat "$TMP/use.py" - > "$TMP/convolved.py" <<P
import shutil
ask(506)
for size in 84971667, 58411408, 42614931, 21823635, 16515072, 15749695, 14192656:
    ctypes.CDLL("libcuda.so.1").vc_null_workspace(ctypes.c_uint64(size))
shutil.copy("tests/recordings/h100/resnet-24.vct", "$TMP/told.vct")
P
run dryrun -g h100-80g-sxm --context 500MiB -o "$TMP/told.vct" --report "$TMP/r.json" -- "$py" "$TMP/convolved.py"
expect "what other workspaces of convolutions would make of PyTorch's peaks is said" 0 '' 'PyTorch allocates 0.29 GiB \(0.2. to 0.3.\) and reserves 0.49 GiB \(0.4. to 0.5.\) at most$'
check "... in JSON too, and it is part of what the run can be off by" "$py" -c "
import json
r = json.load(open('$TMP/r.json'))['runs'][0]
assert (r['drawn_low'] >> 20, r['drawn_high'] >> 20) == (502, 552), r
own, spare = r['reserved'], (4 << 20) + r['reserved']['peak'] // 1000 * 10
assert own == {'peak': 506 << 20, 'low': r['drawn_low'] - spare, 'high': r['drawn_high'] + spare}, own
assert r['allocated']['low'] < r['allocated']['peak'] < r['allocated']['high'], r
assert r['margin'] >= (150 << 20) + r['drawn_high'] - (506 << 20), r"
# What a library bounds, what a scaler may leave out, and what nobody bounds: the ends of the peaks that PyTorch has.
cat "$TMP/use.py" - > "$TMP/bounded.py" <<P
import shutil
driver = ctypes.CDLL("libcuda.so.1"); mib = lambda n: ctypes.c_uint64(n << 20)
ask(506)
for word in sys.argv[1:]:
    if word == "more": driver.vc_null_at_most(b"a workspace", mib(100))
    if word == "beside": driver.vc_null_beside(b"a communicator", mib(100))
    if word == "fewer": driver.vc_null_fewer(b"a scaler", mib(100))
    if word == "open": driver.vc_null_at_most(b"a size", mib(0))
    if word == "nothing": driver.vc_null_beside(b"a graph", mib(0)); driver.vc_null_fewer(b"no states", mib(0))
    if word == "steps": [driver.vc_null_step() for _ in range(17)]
shutil.copy("tests/recordings/h100/resnet-24.vct", "$TMP/told.vct")
P
bounded() { # MORE LESS WORD...
	at=$1 under=$2; shift 2; rm -f "$TMP/told.vct"
	run dryrun -g h100-80g-sxm --context 500MiB -o "$TMP/told.vct" --report "$TMP/r.json" -- "$py" "$TMP/bounded.py" "$@"
	"$py" -c "
import json
r = json.load(open('$TMP/r.json'))['runs'][0]
own, size, spare = r['reserved'], 506 << 20, (4 << 20) + (506 << 20) // 1000 * 10
low, high = min(size, r['device_low']), max(size, r['device_high'])
assert own == {'peak': size, 'low': low - spare - $under, 'high': high + spare + $at}, (own, spare)"
}
check "PyTorch's peaks: what a library bounds may come on top" bounded "(100 << 20)" 0 more
check "... what is beside PyTorch is no part of them" bounded 0 0 beside
check "... nor what may take nothing at all" bounded 0 0 nothing
check "... states that a scaler may leave out may be missing" bounded 0 "(100 << 20)" fewer
check "... which is said" grep -q 'a scaler (100.0 MiB less where each is left out)' "$TMP/err"
check "... and not in seventeen steps: its scale is 1 by then" bounded 0 0 fewer steps
! bounded 0 0 open 2> /dev/null
check "... where nobody knows a size no ends are given" says "r['reserved'] == {'peak': 506 << 20, 'low': None, 'high': None}"
check "... and that is said, without ends" grep -qE 'allocates [0-9.]+ GiB and reserves [0-9.]+ GiB at most; what is not known may change that' "$TMP/err"
program '
for mib in 20, 600:
    if os.fork() == 0:
        os._exit(bool(ask(mib)))
    os.wait()
ask(40)'
expect "each forked child is judged by itself" 0 '' '3 processes used a device'
check "... who fits" grep -q 'on device 0: ended with status 0, peak 0.51 GiB, fits' "$TMP/err"
check "... and who does not" grep -q 'ended with status 1, peak 0.49 GiB, out of memory (1 refused, the largest 0.59 GiB)' "$TMP/err"
check "... in JSON" says "sorted(x['verdict'] for x in p) == ['fits', 'fits', 'oom'] and len({x['parent'] for x in p}) == 2"
many() { echo "
import time
for i in range(2):
    if os.fork() == 0:
        r = ask($1); time.sleep(0.5 * $2); os._exit(bool(r))
    if not $2: os.wait()
while $2:
    try: os.wait()
    except ChildProcessError: break"; }
program "$(many 10 1)" --capacity 1020MiB
expect "two processes at once that fit together" 0 '' '2 of them used one card at the same time: 1.00 GiB at once in this run, 1.00 GiB if they peak together'
check "... leave what is left of both" grep -qE 'verdict: (fits|too close to call).* 0\.00 GiB left' "$TMP/err"
program "$(many 20 1)" --capacity 1020MiB --exit-code verdict
expect "two at once that do not: each fits, and nobody knows" 6 '' 'verdict: undecided; each of 2 processes fits; at one time they held 1.02 GiB of 1.00 GiB here, and if they peak at once they need 1.02 GiB'
check "... in JSON" says "r['verdict'] == 'undecided' and r['peak_together'] == r['held_together'] == 1040 << 20"
# A trainer and a server that take turns: who waits has given most of it back.
program '
import time
r, w = os.pipe()
if os.fork() == 0:
    os.read(r, 1); os._exit(bool(ask(20)))
ask_and_free(18); ask(2); os.write(w, b"1"); time.sleep(0.5); os.wait()' --capacity 1020MiB --exit-code verdict
expect "two that take turns: what was held at one time, and what it can come to" 6 '' 'at one time they held 1.00 GiB of 1.00 GiB here, and if they peak at once they need 1.01 GiB'
check "... in JSON" says "r['held_together'] == 1022 << 20 and r['peak_together'] == 1038 << 20"
program "$(many 20 0)" --capacity 1020MiB
expect "one after the other they do not meet" 0
check "... and nothing is said of both" says "'peak_together' not in r"
program '
import time
if os.fork() == 0:
    ctypes.CDLL("libcudart.so.12").cudaSetDevice(1); ask(20); time.sleep(0.3); os._exit(0)
ask(20); time.sleep(0.3); os.wait()' --capacity 1020MiB --devices 2
expect "nor do two at once on two cards" 0
check "... as each has its own" says "'peak_together' not in r and sorted(x['device'] for x in p) == [0, 1]"
program 'import subprocess
ask(20)
try: subprocess.run(["/nowhere"])
except OSError: pass
ask(20)'
check "a child that failed to start is not taken for the end of its parent" says "len(p) == 1 and p[0]['status'] == 0"

program '
runtime = ctypes.CDLL("libcudart.so.12")
sys.exit(runtime.cudaSetDevice(3))'
expect "a device that is not there: how many there should be" 101 '' 'with --devices 4 it has so many'
LOCAL_WORLD_SIZE=8 program '
runtime = ctypes.CDLL("libcudart.so.12")
sys.exit(runtime.cudaSetDevice(1))' --devices 1
expect "... or as many as a launcher started" 101 '' 'with --devices 8 it has so many'

# a recording that was cut off does not stop the next one
mkdir -p "$TMP/a.vct.journal"; : > "$TMP/a.vct.journal/999999999-1.0.vcj"
run dryrun -g rtx4090 -o "$TMP/a.vct" -- "$py" -c pass
expect "what a killed run left is set aside" 0 '' 'a.vct.journal.1 now'
check "... and kept" test -e "$TMP/a.vct.journal.1/999999999-1.0.vcj"
mkdir -p "$TMP/b.vct.journal"; : > "$TMP/b.vct.journal/$$-1.0.vcj"
run dryrun -g rtx4090 -o "$TMP/b.vct" -- "$py" -c pass
expect "what somebody still writes stays" 2 '' 'holds a recording that was cut off'
finish
