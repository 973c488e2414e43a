# SPDX-License-Identifier: Apache-2.0
"""recompute_hook.py - checkpoints chosen layers of a program that knows nothing of it. `vramcast fit`
and `vramcast run --fit` put it first on PYTHONPATH as sitecustomize.py, with the choice in
VRAMCAST_RECOMPUTE: {"take": [0, 1], "of": 12, "sites": [[file, first line, last line], ...]}.

A layer is a call of a module whose forward() stands at one of the sites. Layers are counted in the
order in which they are called, from one backward pass to the next, which is how the recording counts
them. after.py stands in front of it."""
import json
import threading


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


def _vramcast_after_torch(torch):
    plan = os.environ.get("VRAMCAST_RECOMPUTE")
    if not plan:
        return
    hook = _Recompute(torch, json.loads(plan))
    hook.start()
    path = os.environ.get("VRAMCAST_RECOMPUTE_REPORT")
    if path:
        import atexit
        atexit.register(lambda: hook.passes and hook.report(path))


sys.meta_path.insert(0, _Finder({"torch": _vramcast_after_torch}))
_chain()
