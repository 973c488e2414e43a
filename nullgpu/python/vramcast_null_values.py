# SPDX-License-Identifier: Apache-2.0
"""vramcast_null_values.py - computes small tensors on the null GPU, so that decisions which a script
takes from them (masks, lengths, argmax, end of text, sizes of nonzero) are the right ones.

Device addresses are ordinary memory of this process: after an operation has run on the device (which
allocates and computes nothing) the CPU kernel of the same operation runs on the same bytes. Small
results of large operations become zeros: readable, finite, the same in every run. The allocator sees
nothing of all this. Backward passes and optimizer steps are left alone: nothing there decides."""
import ctypes
import functools
import math
import os
import sys

LIMIT = int(os.environ.get("VRAMCAST_NULL_VALUES_MAX", 1 << 20))  # bytes of storage

# Their result is not what decides, or it is the caller's business: nothing is computed.
LEFT_ALONE = set("""
empty empty_strided empty_like new_empty new_empty_strided record_stream set_ resize_ detach
_pin_memory is_pinned pin_memory lift_fresh alias _copy_from bernoulli_ uniform_ normal_
random_ exponential_ mm addmm bmm baddbmm _addmm_activation convolution cudnn_convolution _cudnn_rnn
native_dropout native_layer_norm _fused_rms_norm native_batch_norm cudnn_batch_norm
_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention
_scaled_dot_product_cudnn_attention gelu silu rand randn rand_like randn_like
""".split())
# Answered by a random number: zeros do.
RANDOM = {"multinomial", "randint", "randperm", "bernoulli"}
# They ask the device how many results there are before they allocate them.
COUNTED = {"nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive",
           "repeat_interleave", "index", "index_put_"}
LEAVE, ITEM, COMPUTE = range(3)


def _make_mode(torch):
    from torch.utils._python_dispatch import TorchDispatchMode
    driver = ctypes.CDLL("libcuda.so.1")
    tensor_types = (torch.Tensor, torch.nn.Parameter)
    masks = (torch.bool, torch.uint8)
    plans = {}

    def plan_of(func):
        name = func._schema.name.split("::")[-1]
        returns = func._schema.returns
        view = any(r.alias_info is not None and not r.alias_info.is_write for r in returns)
        foreach = name.startswith(("_foreach", "_fused", "_amp"))
        if name == "_local_scalar_dense":
            plan = ITEM
        elif view or foreach or name in LEFT_ALONE or func.namespace != "aten":
            plan = LEAVE
        else:
            plan = COMPUTE
        plans[func] = (plan, name, func._schema.is_mutable)
        return plans[func]

    def on_host(t):
        """The same bytes, seen as a CPU tensor."""
        storage = t.untyped_storage()
        n = storage.nbytes()
        if n == 0:
            return torch.empty(t.size(), dtype=t.dtype)
        view = (ctypes.c_char * n).from_address(storage.data_ptr())
        out = torch.empty(0, dtype=t.dtype)
        out.set_(torch.frombuffer(view, dtype=torch.uint8).untyped_storage(), t.storage_offset(),
                 t.size(), t.stride())
        return out

    def flatten(x, out):
        if isinstance(x, torch.Tensor):
            out.append(x)
        elif isinstance(x, (list, tuple)):
            for y in x:
                flatten(y, out)

    def moved(x):
        if isinstance(x, torch.Tensor):
            return on_host(x) if x.is_cuda else x
        if isinstance(x, (list, tuple)):
            return type(x)(moved(y) for y in x)
        if isinstance(x, torch.device) and x.type == "cuda":
            return torch.device("cpu")
        return x

    def is_small(t):
        return type(t) in tensor_types and t.layout is torch.strided and not t.is_complex() and \
            t.untyped_storage().nbytes() <= LIMIT

    def on_cpu(func, args, kwargs):
        return func(*[moved(a) for a in args], **{k: moved(v) for k, v in kwargs.items()})

    def tell_count(func, name, args, kwargs):
        """Runs a counted operation ahead and tells the device how many results it has."""
        if name in ("index", "index_put_"):
            chosen = []
            flatten(args[1], chosen)
            chosen = [m for m in chosen if m.dtype in masks]
            if not chosen or not chosen[0].is_cuda:
                return None
            driver.vc_null_count_is(ctypes.c_uint64(int(on_host(chosen[0]).sum())))
            return None
        done = on_cpu(func, args, kwargs)
        first = []
        flatten(done, first)
        driver.vc_null_count_is(ctypes.c_uint64(first[0].shape[0]))
        return done

    def zero(results):
        for r in results:
            if r.is_cuda and r.numel() * r.element_size() <= LIMIT and is_small(r):
                storage = r.untyped_storage()
                ctypes.memset(storage.data_ptr() + r.storage_offset() * r.element_size(), 0,
                              r.numel() * r.element_size() if r.is_contiguous() else 0)

    def store(results, done):
        values = []
        flatten(done, values)
        for to, value in zip(results, values):
            if to.is_cuda and to.shape == value.shape and is_small(to):
                on_host(to).copy_(value)

    def on_device(kwargs):
        device = kwargs.get("device")
        return isinstance(device, torch.device) and device.type == "cuda"

    def compute(func, name, mutable, args, kwargs):
        tensors = []
        flatten(args, tensors)
        for v in kwargs.values():
            flatten(v, tensors)
        device = [t for t in tensors if t.is_cuda]
        if not device and (tensors or not on_device(kwargs)):  # on the host, or a copy from there
            return func(*args, **kwargs)
        for t in device:
            if t.numel() * t.element_size() > LIMIT or not is_small(t):
                return large(func, mutable, args, kwargs)
        done = None
        try:
            if name in COUNTED:
                done = tell_count(func, name, args, kwargs)
        except Exception:
            done = None
        out = func(*args, **kwargs)
        driver.vc_null_count_unused()
        results = []
        flatten(out, results)
        if name in RANDOM:
            zero(results)
            return out
        try:
            if done is None:
                done = on_cpu(func, args, kwargs)
            if not mutable:
                store(results, done)
        except Exception:  # no such kernel on the CPU: as if it were large
            if not mutable:
                zero(results)
        return out

    def large(func, mutable, args, kwargs):
        out = func(*args, **kwargs)
        if not mutable and not (type(out) in tensor_types and out.nbytes > LIMIT):
            results = []
            flatten(out, results)
            zero(results)
        return out

    class Values(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            plan, name, mutable = plans.get(func) or plan_of(func)
            if plan == LEAVE:
                return func(*args, **kwargs) if kwargs else func(*args)
            if plan == ITEM:
                value = func(*args)
                return 0.0 if isinstance(value, float) and not math.isfinite(value) else value
            first = args[0] if args else None
            if type(first) in tensor_types and first.nbytes > LIMIT and first.is_cuda:
                return large(func, mutable, args, kwargs or {})  # the common case, without a look
            return compute(func, name, mutable, args, kwargs or {})

    return Values()


class _Switch:
    """The mode with an on and an off; off does nothing when another mode lies on top of it."""

    def __init__(self, torch):
        self.torch, self.mode, self.on, self.stopped = torch, _make_mode(torch), False, False

    def is_top(self):
        from torch.utils import _python_dispatch
        current = getattr(_python_dispatch, "_get_current_dispatch_mode", None)
        return current is None or current() is self.mode

    def enter(self):
        if not self.on and not self.stopped:
            self.mode.__enter__()
            self.on = True

    def leave(self):
        if self.on and self.is_top():
            self.mode.__exit__(None, None, None)
            self.on = False
            return True
        return False

    def around(self, function):
        def wrapped(*args, **kwargs):
            left = self.leave()
            try:
                return function(*args, **kwargs)
            finally:
                if left:
                    self.enter()
        wrapped.__name__ = getattr(function, "__name__", "wrapped")
        wrapped.__doc__ = function.__doc__
        return wrapped

    def stop(self, why):
        if not self.stopped:
            self.leave()
            self.stopped = True
            print("vramcast: values of small tensors are not computed any more (%s)" % why,
                  file=sys.stderr)


def _stop_when_called(torch, switch, compile_):
    """torch.compile whose results switch the mode off when they are first used: PyTorch would not
    compile under it, and libraries decorate functions that are never called."""
    def stop(*args):
        switch.stop("torch.compile fuses the operations they come from")

    def guarded(compiled):
        if isinstance(compiled, torch.nn.Module):
            compiled.register_forward_pre_hook(stop)
            return compiled

        @functools.wraps(compiled)
        def call(*args, **kwargs):
            stop()
            return compiled(*args, **kwargs)
        return call

    @functools.wraps(compile_)
    def compile_guarded(model=None, **kwargs):
        if model is None:
            return lambda m: guarded(compile_(m, **kwargs))
        return guarded(compile_(model, **kwargs))
    return compile_guarded


def start(torch):
    if not hasattr(ctypes.CDLL(None), "vc_null_count_is") or not torch.backends.cuda.is_built():
        return
    switch = _Switch(torch)
    torch.autograd.backward = switch.around(torch.autograd.backward)
    optim = sys.modules.get("torch.optim.optimizer")
    if optim is not None and hasattr(optim, "register_optimizer_step_pre_hook"):
        left = []
        optim.register_optimizer_step_pre_hook(lambda *a: left.append(switch.leave()) and None)
        optim.register_optimizer_step_post_hook(lambda *a: left and left.pop() and switch.enter())
    torch.compile = _stop_when_called(torch, switch, torch.compile)
    os.register_at_fork(after_in_child=switch.leave)
    switch.enter()
