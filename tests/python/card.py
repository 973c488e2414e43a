# SPDX-License-Identifier: Apache-2.0
"""card.py - takes memory of the card through the driver's own interface, as PyTorch would: a
program that a dry run can run where PyTorch is not there."""
import ctypes
import sys


def take(mib, path=None):
    cuda = ctypes.CDLL("libcuda.so.1")
    context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    code = cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(mib << 20))
    if path:
        with open(path, "w") as file:
            file.write(str(code))
    if code:
        raise MemoryError(f"CUDA_ERROR_{code}: {mib} MiB")


def fail():
    raise ValueError("a mistake that has nothing to do with memory")


if __name__ == "__main__":
    take(int(sys.argv[1]))
