# SPDX-License-Identifier: Apache-2.0
"""gpu_cupti.py - what CUPTI itself says of the calls of gpu_calls.py, without the tracer: each call of the driver that
takes or gives back memory, and each record of memory, with number, address, size and time. One line a section; the
calls first ("cuMemMap#17@7f.."), then the records ("record#17 alloc device 7f..+4194304 at 12us" after the section began)."""
import contextlib
import ctypes
import io
import os
import struct
import time

import gpu_calls

u8p, u32, u64 = ctypes.POINTER(ctypes.c_uint8), ctypes.c_uint32, ctypes.c_uint64
REQUEST = ctypes.CFUNCTYPE(None, ctypes.POINTER(u8p), ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t))
COMPLETE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, u32, u8p, ctypes.c_size_t, ctypes.c_size_t)
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, u32, ctypes.c_void_p)
MEMORY2, DRIVER = 49, 1
CALLS = {243: "cuMemAlloc", 245: "cuMemFree", 547: "cuMemAddressReserve", 548: "cuMemAddressFree", 549: "cuMemCreate",
         550: "cuMemRelease", 551: "cuMemMap", 552: "cuMemUnmap", 553: "cuMemSetAccess"}  # cupti_driver_cbid.h
KINDS = {1: "pageable", 2: "pinned", 3: "device", 4: "array", 5: "managed", 6: "device static", 7: "managed static"}
SIZE = 1 << 20
sections, buffers, done = [], [], []


def library():
    for name in ("libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so"):
        with contextlib.suppress(OSError):
            return ctypes.CDLL(name)
    raise SystemExit("gpu_cupti.py: no libcupti can be loaded")


def value(at):
    return ctypes.cast(at, ctypes.POINTER(u64)).contents.value if at else 0


@REQUEST
def request(buffer, size, records):
    buffers.append(ctypes.create_string_buffer(SIZE + 8))
    at = (ctypes.addressof(buffers[-1]) + 7) // 8 * 8
    buffer[0], size[0], records[0] = ctypes.cast(at, u8p), SIZE, 0


@COMPLETE
def complete(context, stream, buffer, size, valid):
    done.append((buffer, valid))


@CALLBACK
def called(user, domain, number, data):
    site, _, _, params, result = struct.unpack("iiQQQ", ctypes.string_at(data, 32))
    correlation = struct.unpack("I", ctypes.string_at(data + 64, 4))[0]  # CUpti_CallbackData
    if site == 1 and number in CALLS and params:  # the call has returned
        first = value(params)  # the address, or where it is put
        address = value(first) if number in (243, 547, 549) else first
        sections[-1][2].append("%s#%d@%x" % (CALLS[number], correlation, address))


def began(name):
    sections.append((name, time.time_ns(), [], []))


def read(cupti):
    for buffer, valid in done:
        record = ctypes.c_void_p()
        while valid and cupti.cuptiActivityGetNextRecord(buffer, ctypes.c_size_t(valid), ctypes.byref(record)) == 0:
            kind, operation, memory, correlation, address, size, at = struct.unpack(
                "IIIIQQQ", ctypes.string_at(record.value, 40))
            if kind == MEMORY2:
                home = [s for s in sections if s[1] <= at] or sections
                home[-1][3].append("record#%d %s %s %x+%d at %dus" % (
                    correlation, {1: "alloc", 2: "free"}.get(operation, operation), KINDS.get(memory, memory), address,
                    size, (at - home[-1][1]) // 1000))


def main():
    cupti, handle = library(), ctypes.c_void_p()
    gpu_calls.began = began
    gpu_calls.call("cuInit", 0)
    began("before")
    for r in (cupti.cuptiSubscribe(ctypes.byref(handle), called, None), cupti.cuptiActivityRegisterCallbacks(request, complete),
              cupti.cuptiActivityEnable(MEMORY2)):
        if r:
            raise SystemExit("gpu_cupti.py: CUPTI answers %d" % r)
    for number in CALLS:
        cupti.cuptiEnableCallback(1, handle, DRIVER, number)
    with contextlib.redirect_stdout(io.StringIO()):
        gpu_calls.main()
    cupti.cuptiActivityFlushAll(1)
    read(cupti)
    for name, _, calls, records in sections:
        print("%s: %s" % (name, "; ".join(calls[:12] + records[:12]) or "nothing"), flush=True)
    os._exit(0)


main()
