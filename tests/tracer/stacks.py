# SPDX-License-Identifier: Apache-2.0
"""stacks.py FOLDER: two steps of two allocations, then requests that fail, in the stand-in for PyTorch's
libraries in FOLDER; between a failure and PyTorch's word of it other memory is asked for, or not."""
import ctypes
import sys

c10 = ctypes.PyDLL(sys.argv[1] + "/libc10.so", ctypes.RTLD_GLOBAL)
cuda = ctypes.PyDLL(sys.argv[1] + "/libc10_cuda.so", ctypes.RTLD_GLOBAL)
me = ctypes.PyDLL(None)
me._ZN3c104cuda28device_count_ensure_non_zeroEv()
cuda.standin_vtable.restype = ctypes.POINTER(ctypes.c_void_p)
this = ctypes.c_void_p()
me.vramcast_watch_failures()


def ask(n):
    table = cuda.standin_vtable(ctypes.byref(this))
    allocate = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(table[2])
    allocate(ctypes.byref((ctypes.c_void_p * 4)()), this, n)


def forward():
    ask(1000)


def backward():
    ask(2000)


def too_much(n):
    ask(n << 40)
    if n == 2:
        ask(3000)
    me.vramcast_failed()


for i in range(4):
    forward()
    backward()
    me.vramcast_step()
too_much(1)
too_much(2)
