# SPDX-License-Identifier: Apache-2.0
"""gpu_calls.py - each way to get device memory from the driver and the runtime, between marks of its own
name, without PyTorch; then how the driver rounds. Prints lines "name: what was seen"."""
import ctypes
import os

mark = getattr(ctypes.CDLL(None), "vramcast_mark", None)
cuda = ctypes.CDLL("libcuda.so.1")
u64, size, none = ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p
MIB = 1 << 20


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class AllocationProp(ctypes.Structure):  # CUmemAllocationProp
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", Location),
                ("win32", none), ("flags", ctypes.c_uint8 * 8)]


class AccessDesc(ctypes.Structure):  # CUmemAccessDesc
    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


class Failed(Exception):
    pass


def call(name, *args):
    r = getattr(cuda, name)(*args)
    if r:
        raise Failed("%s: error %d" % (name, r))


def began(name):
    """gpu_cupti.py puts its own here."""


def free_bytes():
    a, b = size(), size()
    call("cuMemGetInfo_v2", ctypes.byref(a), ctypes.byref(b))
    return a.value


def section(name, run):
    if mark:
        mark(name.encode())
    began(name)
    before = free_bytes()
    try:
        said = run()
    except (Failed, AttributeError) as e:
        said = str(e)
    print("%s: %s" % (name, said if said is not None else "%d bytes less free" % (before - free_bytes())))


def device():
    p = u64()
    call("cuMemAlloc_v2", ctypes.byref(p), size(3 * MIB))
    call("cuMemFree_v2", p)


def managed():
    p = u64()
    call("cuMemAllocManaged", ctypes.byref(p), size(3 * MIB), 1)
    call("cuMemFree_v2", p)


def pinned():
    p = none()
    call("cuMemHostAlloc", ctypes.byref(p), size(3 * MIB), 0)
    call("cuMemFreeHost", p)


def registered():
    b = ctypes.create_string_buffer(8 * MIB)
    at = (ctypes.addressof(b) + 4095) // 4096 * 4096
    call("cuMemHostRegister_v2", none(at), size(4 * MIB), 0)
    call("cuMemHostUnregister", none(at))


def pool():
    p = u64()
    call("cuMemAllocAsync", ctypes.byref(p), size(3 * MIB), none(0))
    call("cuCtxSynchronize")
    call("cuMemFreeAsync", p, none(0))
    call("cuCtxSynchronize")


def mapped():
    prop = AllocationProp(1, 0, Location(1, 0))
    at, handle, access = u64(), u64(), AccessDesc(Location(1, 0), 3)
    call("cuMemAddressReserve", ctypes.byref(at), size(4 * MIB), size(0), u64(0), u64(0))
    call("cuMemCreate", ctypes.byref(handle), size(4 * MIB), ctypes.byref(prop), u64(0))
    call("cuMemMap", at, size(4 * MIB), size(0), handle, u64(0))
    call("cuMemSetAccess", at, size(4 * MIB), ctypes.byref(access), size(1))
    call("cuMemUnmap", at, size(4 * MIB))
    call("cuMemRelease", handle)
    call("cuMemAddressFree", at, size(4 * MIB))


def second_context():
    context, p = none(), u64()
    call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
    call("cuMemAlloc_v2", ctypes.byref(p), size(3 * MIB))
    call("cuMemFree_v2", p)
    call("cuCtxDestroy_v2", context)


def falls(times, take):
    """(allocation, bytes) of those among so many allocations at which free memory falls."""
    steps, before = [], free_bytes()
    for i in range(times):
        take()
        now = free_bytes()
        if now != before:
            steps.append((i, before - now))
        before = now
    return "free memory falls at (allocation, bytes) %s" % steps


def shared_pages():
    p = u64()
    return "256 KiB at a time, " + falls(
        24, lambda: call("cuMemAlloc_v2", ctypes.byref(p), size(256 << 10)))


def pool_growth():
    p = u64()

    def take():
        call("cuMemAllocAsync", ctypes.byref(p), size(2 * MIB), none(0))
        call("cuCtxSynchronize")
    return "2 MiB at a time, " + falls(40, take)


def main():
    call("cuInit", 0)
    context = none()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    for name, run in (("cuMemAlloc", device), ("cuMemAllocManaged", managed), ("cuMemHostAlloc", pinned),
                      ("cuMemHostRegister", registered), ("cuMemAllocAsync", pool), ("cuMemMap", mapped),
                      ("second context", second_context), ("small cuMemAlloc", shared_pages),
                      ("growth of the default pool", pool_growth)):
        section(name, run)
    print("libcupti:", sorted({line.split()[-1] for line in open("/proc/self/maps") if "libcupti" in line}))


if __name__ == "__main__":
    main()
