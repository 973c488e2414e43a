# SPDX-License-Identifier: Apache-2.0
"""stack_cost.py LINES: ns for an allocation and a free at the end of a function of so many lines."""
import ctypes
import sys
import time

c = ctypes.PyDLL(None)
ask, give = c._ZN3c109alloc_cpuEm, c._ZN3c108free_cpuEPv
ask.restype = ctypes.c_void_p
give.argtypes = [ctypes.c_void_p]
lines = int(sys.argv[1])
body = "".join("    if n < 0: x = %d\n" % i for i in range(lines)) if lines > 1 else ""
space = {"ask": ask, "give": give}
exec("def f(n):\n" + body + "    for i in range(n):\n        give(ask(64))\n", space)
f = space["f"]
f(100)
best = 1e9
for _ in range(30):
    t = time.perf_counter_ns()
    f(1000)
    best = min(best, (time.perf_counter_ns() - t) / 1000)
print("%.0f" % best)
