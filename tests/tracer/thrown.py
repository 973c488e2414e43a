# SPDX-License-Identifier: Apache-2.0
"""thrown.py LIBC10 N [child]: N allocations and N / 2 frees, then an exception that nobody catches."""
import ctypes
import os
import sys

lib = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
me = ctypes.CDLL(None)
alloc, free = me._ZN3c109alloc_cpuEm, me._ZN3c108free_cpuEPv
alloc.restype, alloc.argtypes, free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
if len(sys.argv) > 3:
    for i in range(10):
        alloc(64)
    pid = os.fork()
    if pid:
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
p = [alloc(64) for i in range(int(sys.argv[2]))]
for q in p[::2]:
    free(q)
raise RuntimeError("not caught")
