# SPDX-License-Identifier: Apache-2.0
"""processes.py HOW WORKERS: workers as Python's multiprocessing starts them (fork, spawn, forkserver)
allocate through the stand-in libc10 while their parent, and a thread of it, do; prints events by process."""
import ctypes
import multiprocessing
import os
import sys
import threading

lib = ctypes.CDLL(None)
alloc, free = lib._ZN3c109alloc_cpuEm, lib._ZN3c108free_cpuEPv
alloc.restype, alloc.argtypes, free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]


def work(n):
    for p in [alloc(64 + i) for i in range(n)][::2]:
        free(p)
    return n + (n + 1) // 2


def worker(n, queue):
    queue.put((os.getpid(), work(n)))


def main():
    how = multiprocessing.get_context(sys.argv[1])
    queue = how.SimpleQueue()
    busy = threading.Thread(target=work, args=(2001,)) # holds half-made records when the forks come
    busy.start()
    all = [how.Process(target=worker, args=(1000 + 10 * i, queue)) for i in range(int(sys.argv[2]))]
    for p in all:
        p.start()
    mine = work(501)
    for p in all:
        print(*queue.get())
    for p in all:
        p.join()
    busy.join()
    print(os.getpid(), mine + 2001 + 1001)


if __name__ == "__main__":
    main()
