# SPDX-License-Identifier: Apache-2.0
"""attach.py - what `vramcast record --pid` has a running program execute in its main thread: join the recorder, or leave
it. Nothing stays behind but the tracer's library, which nobody calls any more. The recorder appends a call of _join or
_leave; the answer goes into a file."""
import ctypes
import gc
import os
import sys
import time

SMALL, EXPANDABLE, LIVE, PENDING = 1, 2, 4, 8  # common/event.h
NONE, CUDA, CPU = range(3)  # tracer/attached.c
TRIES = 20
FREED = ("active_pending_free", "active_awaiting_free")


def _answer(path, text):
    with open(path + ".part", "w") as f:
        f.write(text)
    os.rename(path + ".part", path)


def _in_optimizer():
    """Its hooks are being gone through at the moment, so that none may be added or taken away."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.replace("\\", "/").endswith("torch/optim/optimizer.py"):
            return True
        frame = frame.f_back
    return False


def _functions(path):
    library = ctypes.CDLL(path)
    big, word = ctypes.c_uint64, ctypes.c_int
    library.vramcast_attach.argtypes = [ctypes.c_char_p, ctypes.c_char_p, word]
    library.vramcast_attach_events.restype = big
    library.vramcast_attach_segment.argtypes = [word, big, big, big, big, big, word]
    library.vramcast_attach_block.argtypes = [word, big, big, big, big, word]
    library.vramcast_attach_request.argtypes = [big, big]
    library.vramcast_attach_settings.argtypes = [ctypes.c_char_p]
    library.vramcast_attach_begin.argtypes = [big]
    return library


def _settings(snapshot, library):
    now = snapshot.get("allocator_settings", {}).get("PYTORCH_CUDA_ALLOC_CONF", "")
    began = os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or os.environ.get("PYTORCH_ALLOC_CONF") or ""
    if now and now != began:
        library.vramcast_attach_settings(now.encode())


def _waiting(torch):
    """Devices with blocks that were freed and wait for other streams: nobody could tell when each of them comes back."""
    return {s.get("device", 0) for s in torch.cuda.memory._snapshot()["segments"]
            for b in s["blocks"] if b["state"] in FREED}


def _settle(torch, device):
    """When all work is done, the next request takes them back: a small one that a free block of the default stream can
    serve, so that it leaves no trace."""
    torch.cuda.synchronize(device)
    for i in range(20):
        if not any(s.get("device", 0) == device and s["segment_type"] == "small" and s["stream"] == 0
                   and tuple(s.get("segment_pool_id", (0, 0))) == (0, 0)
                   and any(b["state"] == "inactive" and b["size"] >= 512 for b in s["blocks"])
                   for s in torch.cuda.memory._snapshot()["segments"]):
            return
        torch.cuda.caching_allocator_delete(torch.cuda.caching_allocator_alloc(512, device, 0))
        if device not in _waiting(torch):
            return
        time.sleep(0.002)


def _cuda_heap(torch, library):
    """PyTorch's own description of its allocator; false: blocks wait for other streams."""
    snapshot, waits = torch.cuda.memory._snapshot(), False
    segments = sorted(snapshot["segments"], key=lambda s: (s.get("device", 0), s["address"]))
    for s in segments:
        device, at = s.get("device", 0), s["address"]
        pool = s.get("segment_pool_id", (0, 0))
        flags = (SMALL if s["segment_type"] == "small" else 0) | (EXPANDABLE if s.get("is_expandable") else 0)
        library.vramcast_attach_segment(device, at, s["total_size"], s["stream"], pool[0], pool[1], flags)
        for b in s["blocks"]:
            pending = b["state"] in FREED
            live = b["state"] == "active_allocated"
            waits = waits or pending
            asked = b.get("requested_size", b["size"])
            library.vramcast_attach_block(device, at, asked if live or pending else 0, b["size"] if live or pending else 0,
                                          s["stream"], LIVE if live else PENDING if pending else 0)
            at += b["size"]
    _settings(snapshot, library)
    return not waits


def _cpu_heap(torch, library):
    """What Python can reach: the CPU's allocator keeps no list of its blocks."""
    seen = set()
    for t in gc.get_objects():
        try:
            if not issubclass(type(t), torch.Tensor) or t.device.type != "cpu" or t.layout is not torch.strided:
                continue
            tensors = (t, t.grad) if t.is_leaf else (t,)
            for x in tensors:
                storage = x.untyped_storage() if x is not None else None
                if storage is None or storage.is_shared() or storage.data_ptr() in seen:
                    continue
                seen.add(storage.data_ptr())
                if storage.data_ptr() and storage.nbytes():
                    library.vramcast_attach_request(storage.data_ptr(), storage.nbytes())
        except Exception:  # a tensor that is none: fake, functional, half-made
            pass
    return True


def _begin(torch, library, plane):
    heap = _cuda_heap if plane == CUDA else _cpu_heap
    for i in range(TRIES):
        events = library.vramcast_attach_events()
        library.vramcast_attach_again()
        if (plane == NONE or heap(torch, library) or i + 1 == TRIES) and library.vramcast_attach_begin(events):
            return True
    return False


class _Joined:
    """What is left in the program: the library, and a hook behind the steps of all optimizers."""
    library = handle = later = None

    def hook(self, optimizer, args, kwargs):
        if self.later is not None:
            self.later()
        if self.library is not None:
            self.library.vramcast_optimizer_step()

    def join(self, torch, path, folder, options, cuda):
        library = _functions(path)
        plane = library.vramcast_attach(os.fsencode(folder), options.encode(), int(cuda))
        self.later = None
        if plane < 0:
            return "no-room" if plane == -1 else "no-calls"
        if not _begin(torch, library, plane):
            library.vramcast_detach()
            return "busy"
        self.library = library
        return "joined"

    def join_behind_step(self, answer, *words):
        """The CPU's blocks are known best when no graph of autograd holds any."""
        def later():
            _quietly(answer, self.join, *words)
        self.later = later

    def watch_steps(self, torch, look):
        """Is there an optimizer, whose steps will be told of?"""
        register = getattr(sys.modules.get("torch.optim.optimizer"), "register_optimizer_step_post_hook", None)
        if register is not None and self.handle is None:
            self.handle = register(self.hook)
        return look and self.handle is not None and any(issubclass(type(o), torch.optim.Optimizer) for o in gc.get_objects())


def _try_join(answer, path, folder, options, now):
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "Tensor"):
        return "no-torch"
    if _in_optimizer():
        return "later"
    cuda = hasattr(torch, "cuda") and torch.cuda.is_initialized()
    if cuda and torch.cuda.is_current_stream_capturing():
        return "later"
    if cuda and not now and _waiting(torch):
        return "later"
    for device in _waiting(torch) if cuda else ():
        _settle(torch, device)
    if not hasattr(sys, "_vramcast"):
        sys._vramcast = _Joined()
    joined = sys._vramcast
    if joined.library is not None:
        return "joined"
    if joined.watch_steps(torch, not cuda and not now):
        joined.join_behind_step(answer, torch, path, folder, options, cuda)
        return None
    return joined.join(torch, path, folder, options, cuda)


def _try_leave(answer):
    if _in_optimizer():
        return "later"
    joined = getattr(sys, "_vramcast", None)
    if joined is not None:
        del sys._vramcast
        if joined.handle is not None:
            joined.handle.remove()
        if joined.library is not None:
            joined.library.vramcast_detach()
    return "left"


def _quietly(answer, what, *words):
    collects = gc.isenabled()
    gc.disable()  # what the program has dropped is for it to collect
    try:
        try:
            text = what(*words)
        except BaseException as e:  # the program must never notice
            text = "failed %s: %s" % (type(e).__name__, e)
        if text is not None:
            _answer(answer, text)
    except BaseException:
        pass
    finally:
        if collects:
            gc.enable()


def _run(page, size, answer, what, *words):
    ctypes.CDLL(None).munmap(ctypes.c_void_p(page), ctypes.c_size_t(size))
    _quietly(answer, what, answer, *words)
