# SPDX-License-Identifier: Apache-2.0
"""vramcast_null_host.py - weights that a program initialises in the host's memory take none of it
(`vramcast dryrun --host-weights untouched`).

A model is mostly built on the host and then moved to the card. The null GPU looks at no large weight, so
nobody misses what an initialisation would have written. A page that nobody wrote takes no memory. What
writes large floating point tensors at random, or makes an unwritten one into another, does nothing as
long as the tensor's pages are unwritten, which the system tells (mincore). All else is done as ever: a
tensor that was loaded, or that holds data, has its values."""
import ctypes
import functools

LEAST = 1 << 20  # bytes: smaller tensors are initialised
WRITTEN = 1 / 16  # a table of which single rows were written (padding) counts as unwritten
M_MMAP_THRESHOLD = -3  # malloc.h
RANDOM = "normal_ uniform_ random_ exponential_ log_normal_ cauchy_ bernoulli_ geometric_".split()
# What initialisers go on with.
IN_PLACE = "erfinv_ mul_ add_ sub_ div_ clamp_ zero_ fmod_".split()
INITIALISERS = ("orthogonal_", "sparse_")  # of torch.nn.init: made of other operations
COPIES = {"clone": None, "half": "float16", "bfloat16": "bfloat16", "float": "float32",
          "double": "float64", "contiguous": None}


class _Pages:
    """Which pages of this process anybody has written."""

    def __init__(self):
        self.libc = ctypes.CDLL(None)
        self.size = self.libc.getpagesize()
        # every large block gets pages of its own, fresh ones that read as zeros
        self.libc.mallopt(M_MMAP_THRESHOLD, LEAST)
        self.libc.mincore.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p

    def are_unwritten(self, at, size):
        first = -(-at // self.size) * self.size  # whole pages: the others hold what lies beside
        n = (at + size - first) // self.size
        state = ctypes.create_string_buffer(max(n, 1))
        if n <= 0 or self.libc.mincore(first, n * self.size, state) != 0:
            return False
        return n - state.raw.count(b"\0", 0, n) <= n * WRITTEN


def _make_test(torch, pages):
    plain = torch.Tensor, torch.nn.Parameter

    def is_unwritten(t):
        if type(t) not in plain or t.device.type != "cpu" or not t.is_floating_point() or \
                t.layout is not torch.strided or t.numel() * t.element_size() < LEAST:
            return False
        try:
            storage = t.untyped_storage()
        except NotImplementedError:  # what torch.func wraps has none
            return False
        return storage.nbytes() >= LEAST and pages.are_unwritten(storage.data_ptr(), storage.nbytes())
    return is_unwritten


def _leave_in_place(torch, is_unwritten, name):
    original = getattr(torch.Tensor, name)

    @functools.wraps(original)
    def method(self, *args, **kwargs):
        if not torch.compiler.is_compiling() and is_unwritten(self):
            return self
        return original(self, *args, **kwargs)
    setattr(torch.Tensor, name, method)


def _leave_copy(torch, is_unwritten, name, dtype):
    original = getattr(torch.Tensor, name)

    @functools.wraps(original)
    def method(self, *args, **kwargs):
        to = dtype or self.dtype
        # what would hand back the tensor itself, or has a gradient to pass on, copies nothing large
        if not torch.compiler.is_compiling() and (name == "clone" or to != self.dtype) and \
                not (torch.is_grad_enabled() and self.requires_grad) and is_unwritten(self):
            return torch.empty_like(self, dtype=to, requires_grad=False)
        return original(self, *args, **kwargs)
    setattr(torch.Tensor, name, method)


def _leave_to(torch, is_unwritten):
    """Tensor.to within the host. On the way to the card another type is made on the host first."""
    original = torch.Tensor.to

    @functools.wraps(original)
    def to(self, *args, **kwargs):
        if torch.compiler.is_compiling() or not is_unwritten(self) or \
                (torch.is_grad_enabled() and self.requires_grad):
            return original(self, *args, **kwargs)
        device, dtype, _, _ = torch._C._nn._parse_to(
            *args, **{k: v for k, v in kwargs.items() if k != "copy"})
        if dtype is None or dtype == self.dtype or not dtype.is_floating_point:
            return original(self, *args, **kwargs)
        host = torch.empty_like(self, dtype=dtype, requires_grad=False)
        return host if device is None or device.type == "cpu" else host.to(device)
    torch.Tensor.to = to


def _leave_factory(torch, name, pages):
    """Random numbers, and zeros, which fresh pages are."""
    original = getattr(torch, name)

    @functools.wraps(original)
    def make(*args, **kwargs):
        if torch.compiler.is_compiling() or kwargs.get("out") is not None:
            return original(*args, **kwargs)
        if kwargs.get("device") is None:  # PyTorch's default device knows make, not original
            kwargs["device"] = torch.empty(0).device
        device = kwargs["device"]
        shape = original(*args, **{k: v for k, v in {**kwargs, "device": "meta"}.items()
                                   if k not in ("generator", "pin_memory")})
        if torch.device(device).type != "cpu" or kwargs.get("pin_memory") or \
                shape.numel() * shape.element_size() < LEAST or \
                not shape.is_floating_point() or shape.layout is not torch.strided:
            return original(*args, **kwargs)
        made = torch.empty(shape.shape, dtype=shape.dtype, device=device)
        if not pages.are_unwritten(made.data_ptr(), made.nbytes):
            return original(*args, **kwargs)
        return made.requires_grad_(bool(kwargs.get("requires_grad")))
    setattr(torch, name, make)
    torch.jit._builtins._register_builtin(make, "aten::" + name)  # in a script it is the operator


def start(torch):
    """Called when `import torch` has finished."""
    pages = _Pages()
    is_unwritten = _make_test(torch, pages)
    for name in RANDOM + IN_PLACE:
        _leave_in_place(torch, is_unwritten, name)
    for name, dtype in COPIES.items():
        _leave_copy(torch, is_unwritten, name, dtype and getattr(torch, dtype))
    _leave_to(torch, is_unwritten)
    for name in ("randn", "rand", "zeros"):
        _leave_factory(torch, name, pages)
    init = torch.nn.init
    for name in INITIALISERS:
        original = getattr(init, name)
        setattr(init, name, functools.wraps(original)(
            lambda t, *args, _do=original, **kwargs: t if is_unwritten(t) else _do(t, *args, **kwargs)))
