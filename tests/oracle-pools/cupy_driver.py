# SPDX-License-Identifier: Apache-2.0
"""cupy_driver.py DEVICE.so SCRIPT RESULT... - scripts through the memory pool of the CuPy that can be imported.

The pool takes any allocator; here it is the scripted device (simulator/replay/device.c). What CuPy asks the CUDA runtime for
besides memory is which device it is on. Its modules call each other through capsules, and those two are replaced."""
import ctypes, gc, sys, warnings

warnings.simplefilter("ignore")

import cupy_backends.cuda.api.runtime as runtime

INT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
keep = []
for name, value in (("getDevice", 0), ("getDeviceCount", 1)):
    call, signature = INT(lambda skip, value=value: value), b"int (int __pyx_skip_dispatch)"
    keep += [call, signature]
    runtime.__pyx_capi__[name] = new_capsule(ctypes.cast(call, ctypes.c_void_p), signature, None)

import cupy                                                     # noqa: E402
from cupy.cuda import memory, stream                            # noqa: E402

U64 = ctypes.c_uint64
class Config(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("total", U64), ("prop_total", U64), ("context", U64), ("others", U64), ("more", ctypes.c_int64),
                ("index", ctypes.c_uint), ("va", ctypes.c_int), ("process", ctypes.c_void_p), ("processes", ctypes.c_size_t)]
lib = ctypes.CDLL(sys.argv[1])
lib.vc_device_new.restype = ctypes.c_void_p
lib.vc_device_alloc.restype = ctypes.c_bool
lib.vc_device_alloc.argtypes = [ctypes.c_void_p, U64, ctypes.POINTER(U64)]
lib.vc_device_free.argtypes = [ctypes.c_void_p, U64, U64]
lib.vc_device_set_others.argtypes = [ctypes.c_void_p, U64]


def play(script, result):
    lines, out = open(script), open(result, "w")
    head = next(lines).split()
    head = dict(zip(head[::2], head[1::2]))
    device = lib.vc_device_new(ctypes.byref(Config(total=int(head["total"]), va=["inc", "dec", "fit", "mix"].index(head["va"]))),
                               ctypes.create_string_buffer(8192))
    sizes = {}

    def malloc(size, _):
        addr = U64()
        if not lib.vc_device_alloc(device, size, ctypes.byref(addr)):
            print(f"X {size}", file=out)
            raise runtime.CUDARuntimeError(2)                   # cudaErrorMemoryAllocation
        sizes[addr.value] = size
        print(f"R {addr.value:x} {size}", file=out)
        return addr.value

    def free(addr, _):
        size = sizes.pop(addr)
        if not out.closed:
            print(f"r {addr:x} {size}", file=out)
        lib.vc_device_free(device, addr, size)

    print("release", cupy.__version__, file=out)
    allocator = memory.PythonFunctionAllocator(malloc, free)
    pool, live = memory.MemoryPool(allocator.malloc), {}
    pool.set_limit(size=int(head["limit"]))
    streams = [stream.ExternalStream(16 * k) if k else stream.Stream.null for k in range(4)]
    for line in lines:
        op, *n = line.split()
        n = [int(x) for x in n]
        if op == "a":
            try:
                with streams[n[2]]:
                    p = live[n[0]] = pool.malloc(n[1])
                print(f"a {p.ptr:x} {p.mem.size}", file=out)
                del p
            except memory.OutOfMemoryError as e:
                print("-", e, file=out)
        elif op == "f":
            live.pop(n[0], None)
        elif op == "t":
            pool.free_all_blocks()
        else:
            lib.vc_device_set_others(device, n[0])
        print(".", pool.used_bytes(), pool.total_bytes(), file=out)
    out.close()


gc.freeze()                                                     # the pool collects garbage each time that it runs out
for k in range(2, len(sys.argv), 2):
    play(sys.argv[k], sys.argv[k + 1])
