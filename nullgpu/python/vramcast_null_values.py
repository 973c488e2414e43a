# SPDX-License-Identifier: Apache-2.0
"""vramcast_null_values.py - computes what decides on the null GPU, so that the decisions a script takes
from tensors (masks, lengths, argmax, end of text, sizes of nonzero, boxes, edges) are the right ones.

Device addresses are ordinary memory of this process: after an operation has run on the device (which
allocates and computes nothing) the CPU kernel of the same operation runs on the same bytes. This is
done for small tensors, and for larger ones outside of what is differentiated: data, masks, ranges,
boxes, assignments. Small results of everything else become zeros: readable, finite, the same in every
run. A size that depends on unknown values is the largest it can be, and the report says so. The
allocator sees nothing of all this. Backward passes and optimizer steps are left alone: nothing there
decides, but for what a backward pass runs of Python's (gradients that a program writes itself, forward
passes that it repeats).

Operations are seen at a dispatch key that PyTorch has and does not use, below the autograd keys and above
the devices. A dispatch mode would see them too, but all of them, a call into Python each, and PyTorch
takes other ways while one is active (gradients are copied that a card would not copy). Here what does
not concern us (views, memory, the network's own work) falls through."""
import ctypes
import functools
import math
import os
import sys
import threading
import weakref

import vramcast_null_routes as routes

MOVED = int(os.environ.get("VRAMCAST_NULL_COPY_MAX", 1 << 20))  # bytes that the device side copies
LIMIT = int(os.environ.get("VRAMCAST_NULL_VALUES_MAX", 1 << 20))  # bytes of storage: always computed
# Larger ones cost host memory and time; integers and masks (edges, tokens, assignments) decide more
# often than floating point does.
KNOWN_INTEGER = 64 * LIMIT
KNOWN_FLOAT = 16 * LIMIT
KNOWN_MASK = 4 * LIMIT  # one byte each
UPLOADED_FLOAT = 4 * LIMIT

# Memory, not values; made of other operations that are seen; or the caller's business.
LEFT_ALONE = set("""
scalar_tensor empty empty_strided empty_like new_empty new_empty_strided record_stream set_ resize_ detach
_pin_memory is_pinned pin_memory lift_fresh alias _copy_from randn randn_like
""".split())
# The network's own work: nothing is computed, small results are zeros.
NETWORK = set("""
mm addmm bmm baddbmm _addmm_activation convolution convolution_backward cudnn_convolution _cudnn_rnn
native_dropout native_layer_norm _fused_rms_norm native_batch_norm cudnn_batch_norm
_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention
_scaled_dot_product_cudnn_attention gelu silu
""".split())
# They have no values of their own.
VIEWS = set("""
view transpose t permute expand slice select split split_with_sizes unbind squeeze unsqueeze as_strided
_unsafe_view _reshape_alias diagonal unfold view_as_real view_as_complex
""".split())
# Of the network's work what calls no other operation that matters: need not be seen where fresh memory
# reads as zeros.
LEAVES = set("""
native_dropout native_layer_norm gelu silu
_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention
_scaled_dot_product_cudnn_attention _flash_attention_forward _efficient_attention_forward
_cudnn_attention_forward
""".split())
PLACE, SPAN = 1 << 45, 1 << 45  # nullgpu/null.h
PIECE = 512  # nullgpu/fresh.c
KEY = "Fake"  # of torchdistx, which has long been given up
# Of that, what is computed while it is tiny, as the last layer of a model that is.
PRODUCTS = {"mm", "addmm", "bmm", "baddbmm"}
# Often called: past the tables of operators, by PyTorch's own names for them, it is shorter.
OFTEN = PRODUCTS | {"add", "sub", "mul", "div"}
PRODUCT_LIMIT = 1 << 22  # multiplications: about a millisecond on one core
# Matrices take longer than anything else: only little ones are worked out.
MATRICES = ("linalg_", "_linalg_", "geqrf", "ormqr", "_cdist_forward", "cholesky", "lu_", "triangular_solve")
MATRIX = 1 << 16  # bytes
SHARED = 1 << 18  # elements: less is not worth waking the other threads, let alone waiting for them
# Random numbers: other ones than the card's, and without touching the host's generator.
RANDOM = {"multinomial", "randint", "randperm", "bernoulli", "rand", "rand_like", "normal", "poisson",
          "binomial", "_standard_gamma", "_sample_dirichlet"}
# The same, in place (randn is one of them). Few are drawn: loops end by them, layers need none.
DRAWS = {"bernoulli_", "uniform_", "normal_", "random_", "exponential_", "log_normal_", "cauchy_",
         "geometric_"}
DRAWN = 1 << 16  # bytes
# Their kernels ask by further operations for values of what they were given: those are seen as well.
ASKING = {"bincount", "histc", "linalg_eig", "_to_sparse", "_to_sparse_csr", "_to_sparse_csc",
          "_to_sparse_bsr", "_to_sparse_bsc", "repeat_interleave", "_nested_tensor_from_mask", "linalg_matrix_exp",
          "_nested_tensor_from_mask_left_aligned", "normal", "multinomial", "allclose", "equal"}
# A program asks them whether its values are right, and ends where they are not: of unknown ones all are. The
# least of a mask says the same.
HOLDS = {"all", "_is_all_true"}
LEAST = {"min", "amin"}
# Single numbers that may well be infinite; others are losses and norms, which a card has finite.
EXTREMES = ("max", "min", "amax", "amin", "where")
# They ask the device how many results there are before they allocate them.
COUNTED = {"nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive",
           "index", "index_put", "index_put_", "_index_put_impl_", "nms"}
INDEXED = ("index", "index_put", "index_put_", "_index_put_impl_")
MASKED = {"masked_select", "nonzero", *INDEXED}
# Floating point made of masks is added to attention scores: it decides nothing.
ADDED = {"where", "masked_fill"}
# What makes zeros of unknown values, which count as zeros: of any, of its first, of nothing else.
ZERO_OF_ANY = {"mul", "mul_", "bitwise_and", "bitwise_and_", "logical_and", "logical_and_"}
ZERO_OF_FIRST = set("""
_to_copy clone neg pow relu_ square abs mean sum relu sqrt tanh div div_ constant_pad_nd index_select roll
flip tril triu
""".split())
ZERO_OF_ALL = {"add", "add_", "sub", "sub_", "cat", "stack", "bitwise_or", "bitwise_or_", "logical_or",
               "logical_or_"}
# Of their tensor they want the shape alone.
SHAPED = {"zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full"}
# What they write to need not have been known before.
OVERWRITE = {"zero_", "fill_", "copy_"}
LEAVE, ITEM, COMPUTE, ZERO, DRAW, COALESCE, STEPS, SCALES, COLLECT = range(9)
# What comes of all ranks, in PyTorch's own words for its process groups: first where it goes, then what is told.
COLLECTED = """allreduce_ broadcast_ allgather_ _allgather_base_ allgather_into_tensor_coalesced_ reduce_scatter_
_reduce_scatter_base_ alltoall_ alltoall_base_""".split()
# Of the operations on lists only this: optimizers count their steps with it, and divide by them.
STEPPED = "_foreach_add_"
# Asks whether a gradient overflowed (GradScaler), which nobody knows.
SCALED = "_amp_foreach_non_finite_check_and_unscale_"
# What the verdict says of that; a step that is left out makes no state.
OVERFLOW = "whether a gradient overflows (GradScaler): none here, so each step makes its state"
scaled = False  # that was asked


def tell_fewer(size):
    """So many bytes are not there where a scaler leaves steps out."""
    driver = ctypes.CDLL("libcuda.so.1")
    driver.vc_null_fewer(OVERFLOW.encode(), ctypes.c_uint64(max(size, 0)))


SMALL, KNOWN, UNKNOWN = range(3)  # what the values of an operation's arguments are


def flatten(torch, x, out):
    if isinstance(x, torch.Tensor):
        out.append(x)
    elif isinstance(x, (list, tuple)):
        for y in x:
            flatten(torch, y, out)


def storage_bytes(t):
    """Size of a tensor's storage. From PyTorch 2.10 on a storage that Python has looked at counts as held
    by somebody else, and a gradient in such a one is not added to in place. So the tensor answers, or the
    one that it is a view of, where it fills its storage."""
    whole = t._base if t._is_view() else t
    if whole is not None and not whole.is_nested and not whole.storage_offset():
        size = whole.size()
        if whole.is_contiguous() or \
                sum([(a - 1) * b for a, b in zip(size, whole.stride())], 1) == whole.numel():
            return whole.numel() * whole.element_size()
    return t.untyped_storage().nbytes()


def storage_at(t):
    """Where it begins; 0 where there is none."""
    at = t.data_ptr()
    return at - t.storage_offset() * t.element_size() if at else 0


class _Memory:
    """Which device memory holds values that mean something, and the way to it from the host."""

    def __init__(self, torch):
        self.torch = torch
        self.plain = (torch.Tensor, torch.nn.Parameter)
        driver = ctypes.CDLL("libcuda.so.1")
        self.settle, self.is_fresh = driver.vc_null_settle, driver.vc_null_is_fresh
        self.settle.argtypes, self.settle.restype = (ctypes.c_void_p, ctypes.c_size_t), None
        self.is_fresh.argtypes = (ctypes.c_void_p,)
        self.is_told = driver.vc_null_is_told
        self.made_up, self.mark = driver.vc_null_is_made_up, driver.vc_null_made_up
        self.made_up.argtypes, self.made_up.restype = (ctypes.c_void_p, ctypes.c_uint64), ctypes.c_void_p
        self.mark.argtypes, self.mark.restype = (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p), None
        self.one_of_many = "VRAMCAST_NULL_WORLD" in os.environ
        self.flat = {}
        self.told = False  # fresh memory reads as zeros: nothing has to be cleared here
        self.known = {}  # address of a large storage -> type of the values it holds
        self.parts = {}  # of a large one whose values are not known -> what was written into it, if little
        self.masked = False  # the backward pass will ask a mask for its count
        self.counts = {}  # of masks that nobody knows: how many were said to be true

    def all_of(self, dtype):
        """All device memory as one CPU tensor: a view of it is the cheapest there is."""
        if not self.flat:
            place = (ctypes.c_char * SPAN).from_address(PLACE)
            self.flat[self.torch.uint8] = self.torch.frombuffer(place, dtype=self.torch.uint8)
        flat = self.torch.empty(0, dtype=dtype, device="cpu")  # the program's default may be the card
        flat.set_(self.flat[self.torch.uint8].untyped_storage(), 0, (SPAN // dtype.itemsize,), (1,))
        self.flat[dtype] = flat
        return flat

    def on_host(self, t):
        """The same bytes, seen as a CPU tensor."""
        at, dtype, size, stride = t.data_ptr(), t.dtype, t.size(), t.stride()
        if at == 0 or 0 in size:
            return self.torch.empty(size, dtype=dtype, device="cpu")
        n = sum([(a - 1) * b for a, b in zip(size, stride)], 1) * dtype.itemsize
        self.settle_all(at, n, size, stride, dtype.itemsize)  # parts may come from another rank
        if not PLACE <= at < PLACE + SPAN:  # something else sat there
            view = self.torch.frombuffer((ctypes.c_char * n).from_address(at), dtype=dtype)
            return view.as_strided(size, stride)
        flat = self.flat.get(dtype)
        if flat is None:
            flat = self.all_of(dtype)
        return flat.as_strided(size, stride, (at - PLACE) // dtype.itemsize)

    def settle_all(self, at, n, size, stride, width):
        """A few rows of something large, one by one: what lies between them would be cleared too, unless each piece of
        memory of which that is known has one (a column)."""
        if n <= LIMIT or math.prod(size) * width > n // 2:
            return self.settle(at, n)
        step, d = max((b, i) for i, (a, b) in enumerate(zip(size, stride)) if a > 1)
        if step * width <= PIECE:
            return self.settle(at, n)
        n -= (size[d] - 1) * step * width
        for i in range(size[d]):
            self.settle_all(at + i * step * width, n, size[:d] + size[d + 1:], stride[:d] + stride[d + 1:],
                            width)

    def is_plain(self, t):
        return type(t) in self.plain and t.layout is self.torch.strided and not t.is_complex()

    def is_small(self, t):
        return self.is_plain(t) and storage_bytes(t) <= LIMIT

    def is_known(self, t):
        if not self.known:
            return False
        at = storage_at(t)
        return self.known.get(at) is t.dtype and not self.is_fresh(at)

    def place(self, t):
        return t.data_ptr(), t.numel(), t.dtype

    def is_little(self, t):
        """Of what its storage holds."""
        return t.numel() * t.element_size() <= LIMIT

    def is_part(self, t):
        """One that the program wrote itself, over zeros."""
        return bool(self.parts) and self.place(t) in self.parts.get(storage_at(t), ()) and \
            not self.is_fresh(t.data_ptr())

    def may_hold(self, t, name=""):
        """Whether the values of a result are kept."""
        most = KNOWN_MASK if t.dtype.itemsize == 1 else KNOWN_INTEGER
        if t.dtype.is_floating_point:
            most = LIMIT if name in RANDOM or name in ADDED else KNOWN_FLOAT
        return self.is_plain(t) and storage_bytes(t) <= most

    def learn(self, t):
        if storage_bytes(t) > LIMIT:
            self.known[storage_at(t)] = t.dtype

    def learn_part(self, t):
        if self.told and not self.is_small(t) and not self.is_known(t) and self.is_little(t):
            self.parts.setdefault(storage_at(t), set()).add(self.place(t))

    def forget(self, results):
        if self.known or self.parts:
            for t in results:
                if t.is_cuda and self.is_plain(t):
                    self.known.pop(t.data_ptr(), None)
                    self.parts.pop(storage_at(t), None)

    def forget_floats(self):
        """Memory that the backward pass or an optimizer reuses is not seen here."""
        for at in [at for at, dtype in self.known.items() if dtype.is_floating_point]:
            del self.known[at]
        self.parts.clear()

    def weigh(self, device, name, mutable):
        """What the values of the arguments on the device are worth: outside of what is differentiated
        unknown ones count as zeros, as in a network that has learnt nothing."""
        known = unknown = size = 0
        learnt = False
        for i, t in enumerate(device):
            if not self.is_plain(t):
                return UNKNOWN
            stored = storage_bytes(t)
            n = max(stored, t.numel() * t.element_size())
            learnt = learnt or t.requires_grad or type(t) is not self.torch.Tensor
            if stored <= LIMIT and n > LIMIT and n <= KNOWN_INTEGER:
                known += 1  # a small one, expanded
            elif n > LIMIT and self.is_little(t) and (self.is_part(t) or (i == 0 and mutable and self.told)):
                known += 1
            elif n > LIMIT:
                size = max(size, n)
                if self.is_known(t) or (i == 0 and name in OVERWRITE and self.may_hold(t, name)):
                    known += 1
                else:
                    unknown += 1
        if not known and not unknown:
            return SMALL
        return UNKNOWN if learnt or size > (KNOWN_FLOAT if unknown else KNOWN_INTEGER) else KNOWN

    def is_unknown(self, t):
        return t.is_cuda and storage_bytes(t) > LIMIT and not self.is_known(t) and not self.is_part(t)

    def stays_unknown(self, name, tensors):
        """Whether a result is zeros because unknown values are, or is said to hold: nobody need compute it."""
        if name in ZERO_OF_ANY or self.is_check(name, tensors):
            return any(map(self.is_unknown, tensors))
        if name in ZERO_OF_FIRST:
            return self.is_unknown(tensors[0])
        return name in ZERO_OF_ALL and all(map(self.is_unknown, tensors)) and \
            (len(tensors) > 1 or name in ("cat", "stack"))

    def moved(self, x):
        if isinstance(x, self.torch.Tensor):
            if not x.is_cuda:
                return x
            if self.is_small(x) or self.is_known(x) or self.is_part(x):
                return self.on_host(x)
            return self.torch.zeros(x.size(), dtype=x.dtype, device="cpu")
        if isinstance(x, (list, tuple)):
            return type(x)(self.moved(y) for y in x)
        if isinstance(x, self.torch.device) and x.type == "cuda":
            return self.torch.device("cpu")
        return x

    def zero(self, results):
        """Results that have just been allocated."""
        if self.told:
            return
        self.told = bool(self.is_told())
        for r in results:
            if r.is_cuda and r.numel() * r.element_size() <= LIMIT and self.is_small(r):
                ctypes.memset(r.data_ptr(), 0,
                              r.numel() * r.element_size() if r.is_contiguous() else 0)
            elif r.is_cuda:
                self.forget([r])

    def count_of(self, mask, guess):
        """How many of a mask that nobody knows are true: each time it is asked the same, whatever it chooses from."""
        version = None if mask.is_inference() else mask._version
        at = id(mask)
        ref, seen, count = self.counts.get(at, (None, None, None))
        if ref is None or ref() is not mask or seen != version:
            count, counts = guess, self.counts
            counts[at] = (weakref.ref(mask, lambda gone: counts.pop(at, None)), version, guess)
        return count

    def decided_by(self, tensors):
        """The call by which ranks that were not played decide one of these numbers, or None."""
        for t in tensors:
            at = t.data_ptr() if self.one_of_many and self.is_plain(t) else 0  # not of what only stands for one
            what = at and t.numel() and self.made_up(at, t.numel() * t.element_size())
            if what:
                return what
        return None

    def decide(self, results, what):
        """Numbers that are made of such are so, too; floating point decides no size."""
        for t in results if self.one_of_many else ():
            if t.is_cuda and self.is_plain(t) and self.is_little(t):
                self.mark(t.data_ptr(), t.numel() * t.element_size(),
                          None if t.dtype.is_floating_point else what)

    def is_check(self, name, tensors):
        return name in HOLDS or (name in LEAST and tensors[0].dtype is self.torch.bool)

    def hold(self, results):
        for r in results:
            if r.is_cuda and r.dtype in (self.torch.bool, self.torch.uint8) and self.is_small(r):
                self.on_host(r).fill_(1)

    def store(self, results, done, reduced=False):
        values = []
        flatten(self.torch, done, values)
        for value in values if reduced else ():
            if value.numel() == 1 and value.is_floating_point() and not math.isfinite(value.item()):
                value.zero_()
        for to, value in zip(results, values):
            if to.shape != value.shape:
                continue
            if not to.is_cuda:
                to.copy_(value)  # large: the device side answered with zeros; strided: with nothing
            elif self.may_hold(to):
                self.on_host(to).copy_(value)
                self.learn(to)
            else:
                self.forget([to])


def _make_handler(torch, memory):
    driver = ctypes.CDLL("libcuda.so.1")
    masks = (torch.bool, torch.uint8)
    told, draws = {}, threading.local()  # threads run in any order
    exclude, key = torch._C._dispatch_tls_set_dispatch_key_excluded, torch._C._parse_dispatch_key(KEY)
    below = torch._C._dispatch_keyset_full_after(key)

    def plan_of(func):
        name = func._schema.name.split("::")[-1]
        returns = func._schema.returns
        view = any(r.alias_info is not None and not r.alias_info.is_write for r in returns)
        foreach = name.startswith(("_foreach", "_fused", "_amp"))
        if name == "_local_scalar_dense":
            plan = ITEM
        elif name in NETWORK:
            plan = ZERO
        elif name in DRAWS:
            plan = DRAW
        elif name == "_coalesce":
            plan = COALESCE
        elif func._schema.name == "torchvision::nms":
            plan = COMPUTE
        elif name == STEPPED:
            plan = STEPS
        elif name == SCALED:
            plan = SCALES
        elif func.namespace == "c10d":
            plan = COLLECT
        elif view or foreach or name in LEFT_ALONE or func.namespace != "aten":
            plan = LEAVE
        else:
            plan = COMPUTE
        return plan, name, func._schema.is_mutable, view

    def is_learnt(args):
        """A large tensor of what is differentiated, the common case: its results are unknown."""
        first = args[0] if args else None
        return type(first) in memory.plain and first.requires_grad and first.is_cuda and \
            first.nbytes > LIMIT

    def is_tiny(args):
        a, b = args[-2:]
        return a.numel() <= PRODUCT_LIMIT and type(a) in memory.plain and \
            type(b) in memory.plain and a.dim() == b.dim() and \
            a.numel() * b.shape[-1] <= PRODUCT_LIMIT

    def passes_of(plan):
        """Tells of an operation's arguments that nothing is to be done but the operation itself,
        where fresh memory reads as zeros."""
        plan, name, mutable, _ = plan
        if plan == STEPS:
            return lambda args: not (args[0] and args[0][0].is_cuda and args[0][0].numel() == 1)
        if plan == SCALES:
            return lambda args: name in told
        if plan == ZERO:
            return (lambda args: not is_tiny(args)) if name in PRODUCTS else lambda args: True
        if plan == COMPUTE and not mutable and name not in COUNTED and name not in ASKING and \
                name not in HOLDS and name not in routes.TAKES and name not in SHAPED:
            return is_learnt
        return lambda args: False

    def gather(args, kwargs):
        tensors = []
        flatten(torch, args, tensors)
        for v in kwargs.values():
            flatten(torch, v, tensors)
        return tensors

    def on_cpu(func, name, mutable, args, kwargs):
        host = [memory.moved(a) for a in args]
        if mutable and isinstance(args[0], torch.Tensor) and args[0].is_cuda:
            host[0] = memory.on_host(args[0])
        host_kwargs = {k: memory.moved(v) for k, v in kwargs.items()}
        threads = torch.get_num_threads()
        if host and type(host[0]) is torch.Tensor and host[0].numel() > SHARED:
            return func(*host, **host_kwargs)
        torch.set_num_threads(1)
        try:
            return func(*host, **host_kwargs)
        finally:
            torch.set_num_threads(threads)

    def drawn(func, name, mutable, args, kwargs):
        kwargs = {k: v for k, v in kwargs.items() if k != "generator"}
        generator = torch.default_generator
        state = generator.get_state()
        draws.n = getattr(draws, "n", 0) + 1
        generator.manual_seed(draws.n)
        try:
            return on_cpu(func, name, mutable, args, kwargs)
        finally:
            generator.set_state(state)

    def draw(func, name, args, kwargs):
        """Random numbers in place. Larger ones are zeros, but for the kind that is divided by."""
        out, t = func(*args, **kwargs), args[0]
        if t.is_cuda and memory.is_plain(t):
            if t.nbytes <= DRAWN:
                drawn(func, name, True, args, kwargs)
            elif name == "exponential_" and t.nbytes <= UPLOADED_FLOAT:
                memory.on_host(t).fill_(1)
            if DRAWN < t.nbytes:
                memory.forget([t])
        return out

    def ask(func, name, args, kwargs):
        if name not in ASKING:
            return func(*args, **kwargs)
        first = next((a for a in args if isinstance(a, torch.Tensor)), None)
        if first is None:  # normal() of numbers asks nothing
            return func(*args, **kwargs)
        if name == "repeat_interleave":  # it refuses negative ones, which it finds out of zeros
            count, known = args[0].numel(), memory.is_small(args[0]) or memory.is_known(args[0])
            kwargs.setdefault("output_size", int(memory.moved(args[0]).sum()) if known else count)
            if not known:
                not_known(name)
        exclude(key, False)
        try:
            return func.redispatch(torch._C._dispatch_keys(first) & below, *args, **kwargs)
        finally:
            exclude(key, True)

    def coalesce(func, t):
        """Sparse tensors: what is there twice counts once."""
        indices, done = t._indices(), None
        if memory.is_small(indices) or memory.is_known(indices):
            done = torch.sparse_coo_tensor(memory.moved(indices), memory.moved(t._values()),
                                           t.shape, check_invariants=False)
            done = done._coalesced_(False).coalesce()
        else:
            not_known("_coalesce")
        driver.vc_null_count_is(ctypes.c_uint64(done._nnz() if done is not None else t._nnz()))
        out = func(t)
        driver.vc_null_count_unused()
        if done is not None:
            memory.store([out._indices(), out._values()], [done._indices(), done._values()])
        return out

    def mask_of(name, args):
        """The tensor whose true elements are counted, None where nothing is."""
        if name not in INDEXED:
            return args[1 if name == "masked_select" else 0]
        chosen = []
        flatten(torch, args[1], chosen)
        chosen = [m for m in chosen if m.dtype in masks and m.is_cuda]
        return chosen[0] if chosen else None

    def tell_count(func, name, args, kwargs):
        """Runs a counted operation ahead and tells the device how many results it has."""
        if name in INDEXED:
            tell_true(mask_of(name, args))
            memory.masked = memory.masked or (torch.is_grad_enabled() and args[0].requires_grad)
            return None
        done = on_cpu(func, name, False, args, kwargs)
        first = []
        flatten(torch, done, first)
        driver.vc_null_count_is(ctypes.c_uint64(first[0].shape[0]))
        return done

    def tell_true(mask):
        if mask is not None:
            driver.vc_null_count_is(ctypes.c_uint64(int(memory.moved(mask).count_nonzero())))

    def tell_known(name, args):
        """What is indexed need not be known as long as the mask is."""
        mask = mask_of(name, args)
        if name not in INDEXED and mask.shape != args[0].shape:
            return False
        memory.masked = memory.masked or (mask is not None and args[0].requires_grad)
        known = mask is None or memory.is_small(mask) or memory.is_known(mask)
        if known:
            tell_true(mask)
        return known

    def not_known(name, what=None):
        if name not in told:
            told[name] = ctypes.create_string_buffer((what or "the size of a result of " + name).encode())
            if hasattr(driver, "vc_null_values_unknown"):
                driver.vc_null_values_unknown(told[name])

    def chooses_most(mask):
        """It counts as zeros here, unless it was said to be true throughout before."""
        return mask is not None and memory.is_unknown(mask) and memory.count_of(mask, 0) > 0

    def tell_most(name, args):
        """Nobody knows how many: as many as there can be, and the report names it."""
        mask = mask_of(name, args)
        if mask is None or not mask.is_cuda:
            return
        count = memory.count_of(mask, mask.numel())
        if count:
            not_known(name)
        driver.vc_null_count_is(ctypes.c_uint64(count))

    def in_turn(name, args, kwargs, done=None, results=()):
        """What a router takes: of what was computed, or into the results of what was not."""
        asked = routes.Question(name, args, kwargs) if name in routes.TAKES else None
        if asked is None or not asked.concerns:
            return done
        if done is not None:
            done, tied = asked.of_known(torch, memory.moved(args[0]), done)
        else:
            tied = bool(results) and results[-1].is_cuda and memory.may_hold(results[-1])
            if tied:
                memory.on_host(results[-1]).copy_(asked.of_unknown(torch, args[0].shape))
                memory.learn(results[-1])
        if tied:
            not_known("routes", routes.SAID)
        return done

    def on_device(kwargs):
        device = kwargs.get("device")
        return isinstance(device, torch.device) and device.type == "cuda"

    def upload(func, args, kwargs):
        """Data that comes from the host: the device side copies what is small."""
        out = func(*args, **kwargs)
        if type(out) is torch.Tensor and out.is_cuda and args and memory.is_plain(out) and \
                out.nbytes > LIMIT:
            most = UPLOADED_FLOAT if out.dtype.is_floating_point else KNOWN_INTEGER
            if type(args[0]) is torch.Tensor and out.nbytes <= most:
                memory.on_host(out).copy_(args[0])
                memory.learn(out)
            else:
                memory.forget([out])
        return out

    def compute(func, name, mutable, args, kwargs):
        tensors = gather(args, kwargs)
        device = [t for t in tensors if t.is_cuda]
        if not device and (tensors or not on_device(kwargs)):  # on the host, or a copy from there
            return upload(func, args, kwargs) if on_device(kwargs) else func(*args, **kwargs)
        worth = SMALL if name in SHAPED else memory.weigh(device, name, mutable)
        if worth == KNOWN and (memory.stays_unknown(name, tensors) or name in MASKED and chooses_most(mask_of(name, args))):
            worth = UNKNOWN
        if worth == UNKNOWN or (name.startswith(MATRICES) and device[0].nbytes > MATRIX and
                                "norm" not in name):
            return large(func, name, mutable, args, kwargs)
        done = None
        what = memory.decided_by(device[1:] if name in OVERWRITE else device)
        if what and name in COUNTED:
            driver.vc_null_read_made_up(ctypes.c_void_p(what))
        try:
            if name in COUNTED:
                done = tell_count(func, name, args, kwargs)
        except Exception:
            done = None
        out = ask(func, name, args, kwargs)
        driver.vc_null_count_unused()
        results = []
        flatten(torch, out, results)
        if not mutable and not all(memory.may_hold(r, name) for r in results):
            memory.zero(results)
            return out
        try:
            if name in RANDOM:
                done = drawn(func, name, mutable, args, kwargs)
            elif done is None:
                done = on_cpu(func, name, mutable, args, kwargs)
                done = done if mutable else in_turn(name, args, kwargs, done)
            if not mutable and not results:
                return done  # equal and its like answer without a tensor
            if not mutable:
                memory.store(results, done, device and device[0].numel() > 1 and
                             not name.startswith(EXTREMES))
            elif name in OVERWRITE and args[0].is_cuda and \
                    args[0].nbytes == storage_bytes(args[0]):
                memory.learn(args[0])
            elif args[0].is_cuda:
                memory.learn_part(args[0])
            memory.decide(results, what)
        except Exception:  # no such kernel on the CPU: as if it were large
            if not mutable:
                memory.zero(results)
        return out

    def collect(func, name, args, kwargs):
        """What ranks tell each other is known where what this one tells is: of whole numbers and masks. What the
        device side does not move is gathered here."""
        out = func(*args, **kwargs)
        into, said = [], []
        flatten(torch, args[0], into)
        flatten(torch, args[1], said)
        said = said or into
        known = not any(t.is_floating_point() or memory.is_unknown(t) for t in said)
        moved = all(t.nbytes <= MOVED for t in said)
        for t in into:
            if not (known and t.is_cuda and t.nbytes == storage_bytes(t) <= KNOWN_INTEGER) or \
                    not (moved or "gather" in name and len(said) == 1 and t.is_contiguous()):
                memory.forget([t])
                continue
            if not moved:
                memory.on_host(t).view(-1, said[0].numel()).copy_(memory.moved(said[0]).reshape(1, -1))
            memory.learn(t)
        return out

    def large(func, name, mutable, args, kwargs):
        if name in COUNTED and not (name in MASKED and tell_known(name, args)):
            tell_most(name, args)
        out = ask(func, name, args, kwargs)
        if name in COUNTED:
            driver.vc_null_count_unused()
        results = []
        flatten(torch, out, results)
        if mutable:
            memory.forget(results)
        else:
            memory.zero(results)
            in_turn(name, args, kwargs, results=results)
        if memory.is_check(name, args):
            memory.hold(results)
        return out

    def handle(func, plan, args, kwargs):
        plan, name, mutable, view = plan
        if plan == LEAVE:
            out = func(*args, **kwargs)
            if memory.known and not view and (mutable or not memory.told) and \
                    isinstance(out, torch.Tensor):
                memory.forget([out])
            return out
        if plan == ZERO and not (name in PRODUCTS and is_tiny(args)):
            return large(func, name, mutable, args, kwargs)
        if plan == DRAW:
            return draw(func, name, args, kwargs)
        if plan == COALESCE:
            return coalesce(func, args[0]) if args[0].is_cuda else func(*args)
        if plan == COLLECT:
            return collect(func, name, args, kwargs)
        if plan == STEPS:
            out = func(*args, **kwargs)
            for t in args[0]:
                if t.is_cuda and t.numel() == 1 and memory.is_plain(t):
                    memory.on_host(t).add_(*args[1:], **kwargs)
            return out
        if plan == SCALES:
            global scaled
            scaled = True
            not_known(name, OVERFLOW)
            return func(*args, **kwargs)
        if plan == ITEM:
            value = func(*args)
            return 0.0 if isinstance(value, float) and not math.isfinite(value) else value
        if is_learnt(args) and name not in SHAPED:
            return large(func, name, mutable, args, kwargs)
        return compute(func, name, mutable, args, kwargs)

    return handle, plan_of, passes_of


def _hooks_at_work(autograd):
    """Whether something may ask a hook what to keep for the backward pass. PyTorch 2.4 does not say: they are
    counted."""
    top = getattr(autograd, "_top_saved_tensors_default_hooks", None)
    if top:
        return lambda: top(True) is not None
    push, pop = autograd._push_saved_tensors_default_hooks, autograd._pop_saved_tensors_default_hooks
    hooks = []

    def pushed(pack, unpack):
        push(pack, unpack)
        hooks.append(pack)

    def popped():
        pop()
        hooks.pop()
    autograd._push_saved_tensors_default_hooks, autograd._pop_saved_tensors_default_hooks = pushed, popped
    return lambda: bool(hooks)


def _make_key(torch, memory):
    """Sees operations at a dispatch key of its own."""
    C, handle, plan_of, passes_of = torch._C, *_make_handler(torch, memory)
    key, python = map(C._parse_dispatch_key, (KEY, "Python"))
    exclude, include = (C._dispatch_tls_set_dispatch_key_excluded,
                        C._dispatch_tls_set_dispatch_key_included)
    rest, network, others = (C._dispatch_library("IMPL", ns, "") for ns in ("aten", "aten", "_"))

    asks_hooks = _hooks_at_work(C._autograd)

    def resolve(name):
        if memory.told and not asks_hooks():  # else one of these may be at work, which asks a hook what to keep
            network.reset()
        namespace, name = name.split("::")
        packet, _, overload = name.partition(".")
        func = getattr(getattr(getattr(torch.ops, namespace), packet), overload or "default")
        plan = plan_of(func)
        own = getattr(C._VariableFunctions, packet, func._op) if packet in OFTEN else func._op
        return func, plan, passes_of(plan), own

    def wraps(args, found):
        """Of what kinds those are that stand for others (a sharded tensor, a result that is waited for)."""
        for a in args:
            if isinstance(a, (list, tuple)):
                wraps(a, found)
            elif isinstance(a, torch.Tensor) and type(a) not in memory.plain and \
                    type(a).__torch_dispatch__ is not C._disabled_torch_dispatch_impl:
                found.add(type(a))
        return found

    def watch(name):
        func = plan = passes = own = None

        def seen(*args, **kwargs):
            nonlocal func, plan, passes, own
            if func is None:
                func, plan, passes, own = resolve(name)
            exclude(key, True)
            try:
                if memory.told and passes(args):
                    return own(*args, **kwargs)
                kinds = wraps(args, set())
                if len(kinds) != 1 or C._len_torch_dispatch_stack() or C._dispatch_tls_is_dispatch_key_excluded(python):
                    return handle(func, plan, args, kwargs)
                exclude(key, False)  # what it does to them is seen for itself
                return next(iter(kinds)).__torch_dispatch__(func, tuple(kinds), args, kwargs)
            finally:
                exclude(key, False)
        return seen

    def concerns(name):
        namespace, _, name = name.partition("::")
        base = name.partition(".")[0]
        if name == STEPPED + ".Scalar" or name == SCALED:
            return True
        return namespace == "aten" and base not in VIEWS and base not in LEFT_ALONE and \
            not base.startswith(("_foreach", "_fused_ad", "_fused_sgd", "_amp"))

    names = set()
    for kind in "CPU CUDA CompositeExplicitAutograd CompositeExplicitAutogradNonFunctional".split():
        names.update(C._dispatch_get_registrations_for_dispatch_key(kind))
    others.fallback_fallthrough(KEY)
    for name in filter(concerns, sorted(names)):
        library = network if name[len("aten::"):] in LEAVES else rest
        library.impl(name[len("aten::"):], KEY, watch(name), False)
    rest.impl("_coalesce", KEY, watch("aten::_coalesce"), False)
    vision = C._dispatch_library("IMPL", "torchvision", "")
    vision.impl("nms", KEY, watch("torchvision::nms"), False)
    ranks = C._dispatch_library("IMPL", "c10d", "")
    for name in COLLECTED:
        ranks.impl(name, KEY, watch("c10d::" + name), False)

    class Key:
        libraries = rest, network, others, vision, ranks  # registered as long as they live

        def is_on(self):
            return C._dispatch_tls_is_dispatch_key_included(key)

        def enter(self):
            include(key, True)

        def leave(self):
            include(key, False)
    return Key()


def _pass_higher_order(torch):
    """Operators whose arguments are functions (regions that are run again with the same random numbers,
    loops, flex attention) look for their kernels in tables of their own, which know nothing of a key that
    nobody uses: they fall through it. What they call is seen as ever."""
    ops, key = torch._ops, torch._C._parse_dispatch_key(KEY)
    kind = getattr(ops, "HigherOrderOperator", None)
    if kind is None or not hasattr(kind, "fallthrough"):
        return
    init = kind.__init__

    @functools.wraps(init)
    def with_key(self, *args, **kwargs):
        init(self, *args, **kwargs)
        self.fallthrough(key)
    kind.__init__ = with_key
    for op in list(getattr(ops, "_higher_order_ops", {}).values()):
        op.fallthrough(key)


def _read_wide(torch, key):
    """Before PyTorch 2.7 or so, numbers of 2^63 and more do not pass through Python's side of an operator:
    reading them back goes past it."""
    try:
        torch.ops.aten._local_scalar_dense(torch.tensor(2 ** 63, dtype=torch.uint64, device="cpu"))
        return
    except RuntimeError:
        pass

    def past(read):
        @functools.wraps(read)
        def wrapped(self, *args):
            left = self.dtype is torch.uint64 and key.is_on()
            if left:
                key.leave()
            try:
                return read(self, *args)
            finally:
                if left:
                    key.enter()
        return wrapped
    for name in ("item", "tolist", "__int__", "__index__"):
        setattr(torch.Tensor, name, past(getattr(torch.Tensor, name)))


class _Switch(threading.local):
    """An on and an off. PyTorch keeps keys by thread, and gradients are computed in threads of their own:
    so is the switch."""
    on = False
    compiles = False  # for all threads

    def __init__(self, key, memory):
        self.key, self.memory = key, memory
        self.left = []  # of compiled calls, one in the other: did they switch it off?

    def enter(self):
        if self.on:
            return False
        self.key.enter()
        self.on = True
        return True

    def leave(self):
        if not self.on:
            return False
        self.key.leave()
        self.on = False
        return True

    def around(self, function):
        def wrapped(*args, **kwargs):
            # a gradient through a boolean index asks the mask again, so values stay on
            left = (self.compiles or not self.memory.masked) and self.leave()
            self.memory.masked = False
            self.memory.forget_floats()
            try:
                return function(*args, **kwargs)
            finally:
                if left:
                    self.enter()
        wrapped.__name__ = getattr(function, "__name__", "wrapped")
        wrapped.__doc__ = function.__doc__
        return wrapped

    def inside(self, function):
        """Python that a backward pass calls: there values are on again."""
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            entered = not self.on and not self.key.is_on() and self.enter()
            try:
                return function(*args, **kwargs)
            finally:
                if entered:
                    self.leave()
        return wrapped

    def counts_on_card(self, optimizer):
        """Whether the optimizer reads its count of steps back from the card: where the program's default
        device is a card. One that says "capturable" or "fused" counts there and does not read."""
        group = optimizer.param_groups[0]
        if group.get("capturable") or group.get("fused"):
            return False
        state = next(iter(optimizer.state.values()), None)
        if not state:
            return self.memory.torch.empty(0).is_cuda
        count = state.get("step")
        return isinstance(count, self.memory.torch.Tensor) and count.is_cuda

    def outside(self, step):
        """An optimizer's step, but for the passes that it calls for."""
        @functools.wraps(step)
        def wrapped(*args, **kwargs):
            args = [self.inside(a) if callable(a) and i else a for i, a in enumerate(args)]
            if callable(kwargs.get("closure")):
                kwargs["closure"] = self.inside(kwargs["closure"])
            left = not self.counts_on_card(args[0]) and self.leave()
            try:
                return step(*args, **kwargs)
            finally:  # it may run out of memory
                if left:
                    self.enter()
        return wrapped

    def compiled(self):
        """From here on backward passes may be compiled ones."""
        if not self.compiles:
            _Switch.compiles = True
            print("vramcast: values of small tensors are not computed inside torch.compile (it fuses the "
                  "operations they come from)", file=sys.stderr)


def _off_inside_compiled(torch, switch, compile_):
    """torch.compile whose results run with values off: PyTorch would not compile with them, and what
    is fused has no operations to follow. Between them values are computed as ever."""
    def leave(*unused):
        switch.compiled()
        switch.left.append(switch.leave())

    def enter(*unused):
        if switch.left and switch.left.pop():
            switch.enter()

    def guarded(compiled):
        if isinstance(compiled, torch.nn.Module):
            compiled.register_forward_pre_hook(leave)
            compiled.register_forward_hook(enter, always_call=True)
            return compiled

        @functools.wraps(compiled)
        def call(*args, **kwargs):
            leave()
            try:
                return compiled(*args, **kwargs)
            finally:
                enter()
        return call

    @functools.wraps(compile_)
    def compile_guarded(model=None, **kwargs):
        if model is None:
            return lambda m: guarded(compile_(m, **kwargs))
        return guarded(compile_(model, **kwargs))
    return compile_guarded


def _end_backward(torch):
    """A backward pass has ended when the thread that computed gradients says so; what that thread still
    holds it frees a moment later, or a moment later still. Here it comes first: it gets some more
    work, which asks for no memory, and does it after it has let go of the old."""
    graph, ends = torch.autograd, {}
    run = getattr(graph, "_engine_run_backward", None)
    if run is None:
        return

    def flush():
        if torch._C._current_graph_task_id() != -1 or not torch.cuda.is_initialized() or \
                torch._C._len_torch_dispatch_stack() or torch._C._functorch.peek_interpreter_stack():
            return  # inside of another, or nothing is run: a compiler looks
        device = torch.cuda.current_device()
        if torch._C._cuda_getCurrentRawStream(device) != 0:
            return
        if device not in ends:
            leaf = torch.empty(0, device="cuda", requires_grad=True)
            with torch.enable_grad():
                ends[device] = leaf, leaf.view(0, 1), torch.empty(0, 1, device="cuda")
        leaf, end, gradient = ends[device]
        graph.Variable._execution_engine.run_backward((end,), (gradient,), True, False, (leaf,),
                                                      allow_unreachable=True, accumulate_grad=False)

    @functools.wraps(run)
    def ended(*args, **kwargs):
        try:
            return run(*args, **kwargs)
        finally:
            flush()
    graph._engine_run_backward = ended


def _follow_backward(torch, switch):
    """The doors by which a backward pass enters Python: gradients of custom functions, saved tensors that
    are made anew (checkpointing), and hooks of modules. (Those of tensors register in what a compiler
    reads, and it knows their own function only.)"""
    custom = torch.autograd.function.BackwardCFunction
    custom.apply = switch.inside(custom.apply)
    hooks = torch.autograd.graph.saved_tensors_hooks
    init = hooks.__init__

    @functools.wraps(init)
    def with_values(self, pack_hook, unpack_hook):
        init(self, pack_hook, switch.inside(unpack_hook))
    hooks.__init__ = with_values
    register = torch.nn.Module.register_full_backward_hook

    @functools.wraps(register)
    def registered(self, hook, *args, **kwargs):
        return register(self, switch.inside(hook), *args, **kwargs)
    torch.nn.Module.register_full_backward_hook = registered


def _constraints_hold(torch, memory):
    """What distributions ask of their parameters is made of sums and differences, too, which are zeros
    where values are not known: rows that add up to 1 would not."""
    constraints = sys.modules.get("torch.distributions.constraints")

    def holding(check):
        @functools.wraps(check)
        def checked(self, value):
            out = check(self, value)
            if isinstance(value, torch.Tensor) and isinstance(out, torch.Tensor) and memory.is_unknown(value):
                memory.hold([out])
            return out
        return checked
    for kind in list(vars(constraints).values()) if constraints else ():
        if isinstance(kind, type) and "check" in vars(kind):
            kind.check = holding(kind.check)


def start(torch):
    if not hasattr(ctypes.CDLL(None), "vc_null_count_is") or not torch.backends.cuda.is_built():
        return
    if tuple(int(v) for v in torch.__version__.split(".")[:2]) < (2, 4):
        driver = ctypes.CDLL(None)
        if hasattr(driver, "vc_null_values_unknown"):
            driver.vc_null_values_unknown(b"values: they are computed with PyTorch 2.4 and newer")
        return
    if hasattr(torch.utils, "deterministic"):  # fresh memory is to read as zeros
        torch.utils.deterministic.fill_uninitialized_memory = False
    memory = _Memory(torch)
    key = _make_key(torch, memory)
    switch = _Switch(key, memory)
    _pass_higher_order(torch)
    _read_wide(torch, key)
    _constraints_hold(torch, memory)
    torch.autograd.backward = switch.around(torch.autograd.backward)
    _follow_backward(torch, switch)
    _end_backward(torch)
    optim = sys.modules.get("torch.optim.optimizer")
    if optim is not None and hasattr(optim.Optimizer, "profile_hook_step"):
        hooked = optim.Optimizer.profile_hook_step
        optim.Optimizer.profile_hook_step = staticmethod(lambda step: switch.outside(hooked(step)))
    torch.compile = _off_inside_compiled(torch, switch, torch.compile)
    # PyTorch keeps keys by thread: a thread of Python is as the one that starts it (a compiler's are off)
    start_thread, bootstrap = threading.Thread.start, threading.Thread._bootstrap_inner

    def starts(thread):
        thread.vramcast_sees = switch.on
        start_thread(thread)

    def started(thread):
        if getattr(thread, "vramcast_sees", False):
            switch.enter()
        bootstrap(thread)
    threading.Thread.start, threading.Thread._bootstrap_inner = starts, started
    # a worker of a process that uses the card cannot use it; a child of one that does not, can
    os.register_at_fork(after_in_child=lambda: torch.cuda._is_in_bad_fork() and switch.leave())
    switch.enter()
