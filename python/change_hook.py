# SPDX-License-Identifier: Apache-2.0
"""change_hook.py - changes a program that knows nothing of it. `vramcast sim -x`, `fit` and `run --fit` put it first
on PYTHONPATH as sitecustomize.py; after.py stands in front of it.

VRAMCAST_CHANGE names changes as -x does, one a line: each is a method of _Changes.

VRAMCAST_RECOMPUTE names layers to be computed twice: {"take": [0, 1], "of": 12, "sites": [[file, first line, last
line], ...]}. A layer is a call of a module whose forward() stands at one of the sites. Layers are counted in the
order in which they are called, from one backward pass to the next, which is how the recording counts them."""
import json
import threading


class _Changes:
    """Each change as its user would write it into the program. What was done goes to a report: "NAME TIMES", or "!" and
    why it could not be done."""

    def __init__(self, torch):
        self.torch = torch
        self.done, self.why = {}, None
        self.before_call = []      # (module, args, kwargs) -> (args, kwargs), of the outermost module
        self.before_backward = []
        self.before_optimizer = []  # (parameters) of one that is made
        self.at_end = []
        self.state = threading.local()

    def stop(self, why):
        self.why = why
        raise SystemExit("vramcast: " + why)

    def count(self, name, times=1):
        self.done[name] = self.done.get(name, 0) + times

    def make(self, name, given):
        if not self.done:
            self.watch()
        self.done[name] = 0
        getattr(self, name)(given)

    def watch(self):
        torch, state, this = self.torch, self.state, self
        call, new = torch.nn.Module._call_impl, torch.optim.Optimizer.__new__

        def _vramcast_call(layer, *args, **kwargs):
            if getattr(state, "inside", False):
                return call(layer, *args, **kwargs)
            state.inside = True
            try:
                for change in this.before_call:
                    args, kwargs = change(layer, args, kwargs)
                return call(layer, *args, **kwargs)
            finally:
                state.inside = False

        def _vramcast_first(function):
            def _vramcast_pass(*args, **kwargs):
                for change in this.before_backward:
                    change()
                return function(*args, **kwargs)
            return _vramcast_pass

        def _vramcast_new(kind, *args, **kwargs):
            made = new(kind)
            if not getattr(state, "making", False):
                for change in this.before_optimizer:
                    made = change(made, args, kwargs) or made
            return made

        torch.nn.Module._call_impl = _vramcast_call
        torch.autograd.backward = _vramcast_first(torch.autograd.backward)
        torch.autograd.grad = _vramcast_first(torch.autograd.grad)
        torch.optim.Optimizer.__new__ = _vramcast_new

    # ---- optimizer ----

    def kind(self, to):
        """A class and its arguments."""
        optim = self.torch.optim
        if to in ("adam8bit", "lion8bit"):
            import bitsandbytes
            return getattr(bitsandbytes.optim, {"adam8bit": "AdamW8bit", "lion8bit": "Lion8bit"}[to]), {}
        if to == "lion":
            from lion_pytorch import Lion
            return Lion, {}
        if to == "adafactor_hf":
            from transformers.optimization import Adafactor
            return Adafactor, {}
        name = {"sgd": "SGD", "momentum": "SGD", "adam": "Adam", "adamw": "AdamW", "amsgrad": "AdamW", "rmsprop": "RMSprop",
                "adagrad": "Adagrad", "adafactor": "Adafactor"}[to]
        return getattr(optim, name), {"momentum": {"momentum": 0.9}, "amsgrad": {"amsgrad": True}}.get(to, {})

    def optimizer(self, given):
        """Whatever optimizer the program makes, it gets another one, with its parameters, its rate and the decay that
        it asked for."""
        import inspect
        kind, own = self.kind(given.get("to", "adamw"))
        own = {**own, **{"foreach": {"foreach": True}, "fused": {"fused": True}, "loop": {"foreach": False}}.get(
            given.get("step", "usual"), {})}
        taken, state, this = inspect.signature(kind.__init__).parameters, self.state, self

        def _vramcast_init(made, *args, **kwargs):
            if "param_groups" not in made.__dict__:  # of the program's own class, Python calls it once more
                kind.__init__(made, *args, **kwargs)
        other = type(kind.__name__, (kind,), {"__init__": _vramcast_init, "__module__": kind.__module__})

        def instead(made, args, kwargs):
            if type(made).__name__ == "ZeroRedundancyOptimizer":  # makes the one that it was told
                return None
            asked = inspect.signature(type(made).__init__).bind_partial(made, *args, **kwargs).arguments
            asked = {**asked, **asked.get("kwargs", {})}
            more = {k: asked[k] for k in ("lr", "weight_decay") if k in taken and asked.get(k) is not None}
            if given.get("to") == "adafactor_hf":
                more.pop("lr", None)  # it has one of its own
            state.making = True
            try:
                new = other.__new__(other)
                kind.__init__(new, asked.get("params", args[0] if args else None), **more, **own)
            finally:
                state.making = False
            this.count("optimizer")
            return new
        self.before_optimizer.append(instead)

    # ---- precision ----

    def precision(self, given):
        (self.bf16 if given.get("to") == "bf16" else self.amp)(given)

    def amp(self, given):
        """autocast from the call of a module up to the backward pass, as the tutorials have it. It is not entered as a
        context: those of the program may begin and end in between."""
        torch, called, on, this = self.torch, set(), [], self
        evaluates = given.get("eval") != "float"

        def enter(layer, args, kwargs):
            if not torch.is_grad_enabled() and id(layer) in called:  # the next batch
                leave()
            called.add(id(layer))
            if not on and not torch.is_autocast_enabled() and (evaluates or torch.is_grad_enabled()):
                half = torch.bfloat16 if torch.cuda.get_device_capability()[0] >= 8 else torch.float16
                torch.set_autocast_gpu_dtype(half)
                torch.set_autocast_enabled(True)
                on.append(layer)
                this.count("precision")
            elif on and not evaluates and not torch.is_grad_enabled():
                leave()
            return args, kwargs

        def leave():
            called.clear()
            if on:
                on.clear()
                torch.set_autocast_enabled(False)
                torch.clear_autocast_cache()
        self.before_call.append(enter)
        self.before_backward.append(leave)

    def bf16(self, given):
        """model.to(torch.bfloat16) when it is on the card, and data as the model is."""
        torch, this = self.torch, self
        module, half = torch.nn.Module, torch.bfloat16
        to, cuda, state = module.to, module.cuda, self.state

        def narrow(x):
            if isinstance(x, (list, tuple)) and not hasattr(x, "_fields"):
                return type(x)(narrow(v) for v in x)
            if isinstance(x, dict) and type(x) is dict:
                return {k: narrow(v) for k, v in x.items()}
            return x.to(half) if torch.is_tensor(x) and x.dtype == torch.float32 else x

        def moved(original):
            def _vramcast_move(model, *args, **kwargs):
                out = original(model, *args, **kwargs)
                if not getattr(state, "moving", False) and any(p.is_cuda and p.dtype == torch.float32
                                                               for p in model.parameters()):
                    state.moving = True
                    to(model, half)
                    state.moving = False
                    this.count("precision")
                return out
            return _vramcast_move

        def before(made, args, kwargs):
            import gc
            models = [m for m in gc.get_objects() if issubclass(type(m), module) and any(
                p.dtype == torch.float32 and p.is_cuda for p in m.parameters())]
            inner = {id(c) for m in models for c in m.modules() if c is not m}
            for m in models:
                if id(m) not in inner:
                    to(m, half)
                    this.count("precision")
        module.to, module.cuda = moved(to), moved(cuda)
        self.before_optimizer.insert(0, before)
        self.before_call.append(lambda layer, args, kwargs: (narrow(args), narrow(kwargs)))

    # ---- accumulate ----

    def accumulate(self, given):
        """Each so-many-th step is made, and gradients stay until then. A program has as many batches as it has: what is
        there then is seen from its second step on."""
        import functools
        micro = int(given.get("micro", given.get("k", 2)))
        torch, this = self.torch, self
        optim, calls, inside, passes = torch.optim.Optimizer, {}, set(), []
        init, scaled = optim.__init__, torch.amp.GradScaler.step
        self.before_backward.append(lambda: None if calls else passes.append(1))

        def due(made, further=0):
            return (calls.get(id(made), 0) + further) % micro == 0

        def unless(function, held, answer=None):
            @functools.wraps(function)
            def _vramcast_unless(*args, **kwargs):
                return answer if held(*args) else function(*args, **kwargs)
            return _vramcast_unless

        def stepping(step):
            @functools.wraps(step)
            def _vramcast_step(made, *args, **kwargs):
                if id(made) in inside:
                    return step(made, *args, **kwargs)
                if not calls and len(passes) > 1:
                    this.stop("it accumulates gradients already, or has several backward passes a step")
                calls[id(made)] = calls.get(id(made), 0) + 1
                if not due(made):
                    return None
                if calls[id(made)] == 2 * micro:
                    this.count("accumulate")
                inside.add(id(made))
                try:
                    return step(made, *args, **kwargs)
                finally:
                    inside.discard(id(made))
            _vramcast_step._vramcast = True
            return _vramcast_step

        def _vramcast_init(made, *args, **kwargs):
            init(made, *args, **kwargs)
            kind = type(made)
            if not hasattr(kind.step, "_vramcast"):
                kind.step = stepping(kind.step)
                kind.zero_grad = unless(kind.zero_grad, lambda made, *rest: not due(made))

        def _vramcast_scaled(scaler, made, *args, **kwargs):
            return scaled(scaler, made, *args, **kwargs) if due(made, 1) else made.step()

        def held(*rest):
            return any(n % micro for n in calls.values())

        def will_be_held(*rest):
            return not calls or any((n + 1) % micro for n in calls.values())
        optim.__init__ = _vramcast_init
        scaler = torch.amp.GradScaler
        scaler.step, scaler.update = _vramcast_scaled, unless(scaler.update, held)
        scaler.unscale_ = unless(scaler.unscale_, lambda s, made: not due(made, 1))
        torch.nn.Module.zero_grad = unless(torch.nn.Module.zero_grad, held)
        for place in (torch.nn.utils, torch.nn.utils.clip_grad):
            for name in ("clip_grad_norm_", "clip_grad_value_"):
                setattr(place, name, unless(getattr(place, name), will_be_held, torch.zeros(())))

        def short():
            if not this.done["accumulate"] and not this.why:
                this.why = "it makes %d steps, and %d are needed" % (max(calls.values(), default=0), 2 * micro)
        self.at_end.append(short)

    # ---- offload ----

    def offload(self, given):
        torch, this = self.torch, self
        hooks = torch.autograd.graph.save_on_cpu(pin_memory=True)
        pack = hooks.pack_hook

        def _vramcast_pack(tensor):
            this.count("offload")
            return pack(tensor)
        self.hooks = torch.autograd.graph.saved_tensors_hooks(_vramcast_pack, hooks.unpack_hook)
        self.hooks.__enter__()

    # ---- settings ----

    def set(self, given):
        """torch.backends.cudnn.deterministic = True, and the like."""
        import importlib
        for name, value in given.items():
            place, _, last = name.rpartition(".")
            setattr(importlib.import_module("torch." + place), last, value == "True" if value in ("True", "False") else float(value))
            self.count("set")

    def channels_last(self, given):
        """Weights of convolutions, once they are called; what they compute follows them."""
        torch, this, call = self.torch, self, self.torch.nn.modules.conv._ConvNd.__call__
        formats = {4: torch.channels_last, 5: torch.channels_last_3d}

        def _vramcast_convolution(layer, *args, **kwargs):
            to = formats.get(layer.weight.dim())
            if to is not None and not layer.weight.is_contiguous(memory_format=to):
                layer.weight.data = layer.weight.data.contiguous(memory_format=to)
                this.count("channels_last")
            return call(layer, *args, **kwargs)
        torch.nn.modules.conv._ConvNd.__call__ = _vramcast_convolution

    def report(self, path):
        for look in self.at_end:
            look()
        with open("%s.%d" % (path, os.getpid()), "w") as out:
            if self.why:
                out.write("!%s\n" % self.why)
            out.writelines("%s %d\n" % one for one in self.done.items())


class _Recompute:
    """Which calls are layers is decided when the outermost module is called first. Usually their own
    forward() stands at the sites. Where that is the forward() of the outermost module itself, each
    turn of a loop in it was a layer: then they are the modules that it calls from those lines."""

    def __init__(self, torch, plan):
        import inspect
        self.unwrap = inspect.unwrap
        self.torch = torch
        self.take = set(plan["take"])
        self.of = plan["of"]
        self.sites = plan["sites"]
        self.codes = {}      # class: (code of its forward, sites in it)
        self.loop = None     # the outermost module is the loop over the layers; None: not known yet
        self.count = self.most = self.done = self.passes = 0
        self.odd = 0         # passes with another number of layers than the recording
        self.state = threading.local()
        self.classes = set()

    def code_of(self, kind):
        found = self.codes.get(kind)
        if found is None:
            code = getattr(self.unwrap(kind.forward), "__code__", None)
            lines = [line for _, _, line in code.co_lines() if line] if code else [0]
            at = [(low, high) for file, low, high in self.sites
                  if code and min(lines) <= low and high <= max(lines) and
                  (code.co_filename.endswith(file) or file.endswith(code.co_filename))]
            found = self.codes[kind] = (code, at)
        return found

    def is_layer(self, layer, above):
        if not self.loop:
            return bool(self.code_of(type(layer))[1])
        code, at = self.code_of(type(above[-1])) if above else (None, ())
        if not at:
            return False
        frame = sys._getframe(2)
        while frame is not None and frame.f_code is not code:
            frame = frame.f_back
        return frame is not None and any(low <= frame.f_lineno <= high for low, high in at)

    def instances(self):
        import gc
        module = self.torch.nn.Module
        return sum(bool(self.code_of(type(o))[1]) for o in gc.get_objects() if issubclass(type(o), module))

    def ended(self):
        if self.count:
            self.passes += 1
            self.odd += self.count % self.of != 0
            self.most = max(self.most, self.count)
        self.count = 0

    def start(self):
        module = self.torch.nn.Module
        original = module._call_impl
        state, grad = self.state, self.torch.is_grad_enabled
        from torch.utils.checkpoint import checkpoint
        this = self

        def _vramcast_run(layer, args, kwargs):
            before = getattr(state, "inside", False)
            state.inside = True
            try:
                return original(layer, *args, **kwargs)
            finally:
                state.inside = before

        def _vramcast_layer(layer, args, kwargs):
            place = this.count % this.of
            this.count += 1
            if place not in this.take:
                return _vramcast_run(layer, args, kwargs)
            this.done += 1
            this.classes.add(type(layer).__name__)
            if kwargs.get("past_key_values") is not None:  # a cache would be written to twice
                kwargs["past_key_values"] = None
            if kwargs.get("use_cache"):
                kwargs["use_cache"] = False

            def _vramcast_again(*values):
                return _vramcast_run(layer, values, kwargs)
            return checkpoint(_vramcast_again, *args, use_reentrant=False)

        def _vramcast_call(layer, *args, **kwargs):
            if getattr(state, "inside", False) or not grad():
                return original(layer, *args, **kwargs)
            above = getattr(state, "above", None)
            if above is None:
                above = state.above = []
            if this.loop is None:
                if this.code_of(type(layer))[1]:  # outermost, and as often there as layers are?
                    this.loop = this.instances() % this.of != 0
                elif any(this.code_of(type(m))[1] for m in layer.modules()):
                    this.loop = False
            if this.is_layer(layer, above):
                return _vramcast_layer(layer, args, kwargs)
            above.append(layer)
            try:
                return original(layer, *args, **kwargs)
            finally:
                above.pop()

        def _vramcast_first(function):
            def _vramcast_pass(*args, **kwargs):
                this.ended()
                return function(*args, **kwargs)
            return _vramcast_pass

        module._call_impl = _vramcast_call
        self.torch.autograd.backward = _vramcast_first(self.torch.autograd.backward)
        self.torch.autograd.grad = _vramcast_first(self.torch.autograd.grad)

    def report(self, path):
        with open("%s.%d" % (path, os.getpid()), "w") as out:
            out.write("%d %d %d %s\n" % (self.done, self.odd, self.most, ",".join(sorted(self.classes)) or "-"))


def _vramcast_recompute(torch, plan, path):
    import atexit
    hook = _Recompute(torch, json.loads(plan))
    hook.start()
    if path:
        atexit.register(lambda: hook.passes and hook.report(path))


def _vramcast_change(torch, lines, path):
    import atexit
    changes = _Changes(torch)
    atexit.register(lambda: changes.report(path))
    try:
        for line in lines.splitlines():
            name, _, rest = line.partition(":")
            changes.make(name, dict(part.split("=", 1) for part in rest.split(",") if part))
    except ImportError as error:
        changes.stop("%s is not installed" % error.name)
