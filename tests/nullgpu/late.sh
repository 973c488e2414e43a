#!/bin/sh
# late.sh - how a Python program ends under dryrun when threads of C++ still want Python's lock: on a
# stand-in for PyTorch's backward thread, in C, whose stack must not be unwound (cleanup aborts, as noexcept does).
. tests/support/tap.sh
own cc || { skip "the end of a program" "no cc for ${ARCH:-this machine}"; finish; }
py=$(python3 -c "import sys; print(sys.executable)") || { skip "the end of a program" "no python3"; finish; }
site=$TMP/site; mkdir -p "$site/torch/lib" "$TMP/private"
export PYTHONPATH="$site" TMPDIR="$TMP/private" VRAMCAST_NULL_VALUES=0
cat > "$TMP/want.c" <<'C'
int cudaMalloc(void **p, unsigned long n);
int ask(void **p) { return cudaMalloc(p, 20 << 20); }
C
cc -shared -fPIC -o "$site/torch/lib/libtorch_cuda.so" "$TMP/want.c" -L"$BUILD/nullgpu" -l:vcnull-libcudart.so.12
cat > "$TMP/thread.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int PyGILState_Ensure(void);
void PyGILState_Release(int state);
void *PyEval_SaveThread(void);
void PyEval_RestoreThread(void *state);
static volatile int ready, stopping, count;
static char engine;
static int python_ends(void)
{
	int (*ends)(void);
	*(void **)&ends = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
	if (!ends)
		*(void **)&ends = dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
	return ends();
}
static void must_not_unwind(int *passed)
{
	if (!*passed)
		abort();
}
static void lets_go(void *state)
{
	int passed __attribute__((cleanup(must_not_unwind))) = 0;
	PyEval_RestoreThread(state);
	passed = 1;
}
/* Waits for work without Python's lock, and takes it to end. */
static void *backward(void *unused)
{
	int gil = PyGILState_Ensure();
	void *state = PyEval_SaveThread();
	ready = 1;
	while (!stopping && !python_ends())
		usleep(1000);
	lets_go(state);
	PyGILState_Release(gil);
	count--;
	return unused;
}
/* As NCCL's heartbeat: asks Python for something, and is joined. */
static void *asks(void *unused)
{
	while (!python_ends())
		usleep(1000);
	PyGILState_Ensure();
	return unused;
}
static pthread_t heartbeat;
static volatile int stays;
void start_asking(void)
{
	pthread_create(&heartbeat, NULL, asks, NULL);
}
void stay(void)
{
	stays = 1;
}
static void *leaves(void *unused)
{
	pthread_exit(unused);
}
void start(void)
{
	pthread_t t;
	count++;
	pthread_create(&t, NULL, backward, NULL);
	pthread_detach(t);
	while (!ready)
		usleep(1000);
}
/* A library's own thread, which ends by pthread_exit while somebody waits for it. */
__attribute__((destructor)) static void join(void)
{
	pthread_t t;
	if (ready && pthread_create(&t, NULL, leaves, NULL) == 0 && pthread_join(t, NULL) == 0)
		fputs("joined\n", stderr);
	if (heartbeat && pthread_join(heartbeat, NULL) == 0)
		fputs("the heartbeat, too\n", stderr);
	while (stays)
		pause();
}
void *_ZN5torch8autograd6Engine18get_default_engineEv(void)
{
	return &engine;
}
void _ZN5torch8autograd6Engine4stopEv(void *self)
{
	stopping = 1;
	for (int i = 0; i < 5000 && count; i++)
		usleep(1000);
	fprintf(stderr, "%s, %d threads left, %s\n", self == &engine ? "stopped" : "another engine",
		count, python_ends() ? "too late" : "in time");
}
C
cc -shared -fPIC -fexceptions -o "$site/thread.so" "$TMP/thread.c" -lpthread -ldl
cat > "$TMP/late.py" <<P
import ctypes
import time
import torch
class Last:
    def __del__(self, sleep=time.sleep):
        sleep(0.3)  # without the lock, while the interpreter ends
last = Last()
ctypes.CDLL("$site/thread.so").start()
print("done")
P
echo '_C = None' > "$site/torch/__init__.py"
if "$py" -c 'import sys; sys.exit(sys.version_info < (3, 14))'; then skip "the stand-in ends the process by itself" "this Python stops such threads"
else
	sh -c '"$@" > /dev/null 2>&1' sh "$py" "$TMP/late.py" 2> /dev/null; rc=$?
	check "without the null GPU the stand-in ends the process by SIGABRT ($rc)" test $rc = 134
fi
run dryrun -g rtx4090 --no-record -- "$py" "$TMP/late.py"
expect "a thread that comes too late does not end a program that has done its work" 0 '^done' '^joined'
cat > "$site/torch/__init__.py" <<P
import types
_C = types.ModuleType("torch._C")
_C.__file__ = "$site/thread.so"
P
run dryrun -g rtx4090 --no-record -- "$py" "$TMP/late.py"
expect "PyTorch's backward threads end before Python does" 0 '^done' '^stopped, 0 threads left, in time'
run dryrun -g rtx4090 -o "$TMP/a.vct" -- "$py" "$TMP/late.py"
expect "... in a recorded run, too" 0 '^done' '^stopped, 0 threads left, in time'
sed 's/start()/start_asking()/' "$TMP/late.py" > "$TMP/asks.py"
run dryrun -g rtx4090 --no-record -- timeout 20 "$py" "$TMP/asks.py"
expect "who joins a thread that sleeps for ever goes on" 0 '^done' '^the heartbeat, too'
cat > "$TMP/stays.py" <<P
import ctypes, sys, torch
ctypes.CDLL("$site/thread.so").stay()
sys.exit(5)
P
run dryrun -g rtx4090 --no-record -- timeout 20 "$py" "$TMP/stays.py"
expect "a process that stays when its program has ended is ended with its status" 5 '' 'the program ended 8 s ago, and its process stays. It waits in'
check "... and says where it waits" grep -q '^  .*pause.* (libc' "$TMP/err"
cat > "$TMP/threads.py" <<P
import threading, time, torch
threading.Thread(target=time.sleep, args=(14,), name="saver").start()
P
run dryrun -g rtx4090 --no-record -- "$py" "$TMP/threads.py"
expect "a program that goes on in a thread is waited for, which is said" 0 '' 'but for its own threads saver: it is waited for'
echo 'raise SystemExit(7)' >> "$TMP/late.py"
run dryrun -g rtx4090 --no-record -- "$py" "$TMP/late.py"
expect "... and the program's own exit code stays" 7 '^done' '^stopped, 0 threads left, in time'
finish
