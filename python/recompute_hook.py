# SPDX-License-Identifier: Apache-2.0
"""recompute_hook.py - checkpoints chosen layers of a program that knows nothing of it. `vramcast fit`
and `vramcast run --fit` put it first on PYTHONPATH as sitecustomize.py, with the choice in
VRAMCAST_RECOMPUTE: {"take": [0, 1], "of": 12, "sites": [[file, first line, last line], ...]}.

A layer is a call of a module whose forward() stands at one of the sites. Layers are counted in the
order in which they are called, from one backward pass to the next, which is how the recording counts
them. The sitecustomize further down the path, which this one hides, is loaded as well."""
import json
import os
import sys
import threading


def _chain():
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec
    here = os.path.dirname(os.path.abspath(__file__))
    paths = [os.path.abspath(p or ".") for p in sys.path]
    rest = sys.path[paths.index(here) + 1:] if here in paths else []
    spec = PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


class _Recompute:
    def __init__(self, torch, plan):
        import inspect
        self.inspect = inspect
        self.torch = torch
        self.take = set(plan["take"])
        self.of = plan["of"]
        self.sites = [(os.path.basename(file), file, low, high) for file, low, high in plan["sites"]]
        self.kinds = {}
        self.count = 0
        self.state = threading.local()
        self.done = 0
        self.names = {}

    def is_layer(self, kind):
        """Does a site stand in the forward() of this class?"""
        found = self.kinds.get(kind)
        if found is None:
            code = getattr(self.inspect.unwrap(kind.forward), "__code__", None)
            found = False
            if code is not None:
                lines = [line for _, _, line in code.co_lines() if line]
                for base, file, low, high in self.sites:
                    if os.path.basename(code.co_filename) == base and \
                            (code.co_filename.endswith(file) or file.endswith(code.co_filename)) and \
                            min(lines) <= low and high <= max(lines):
                        found = True
            self.kinds[kind] = found
        return found

    def start(self):
        torch, module = self.torch, self.torch.nn.Module
        original = module._call_impl
        state, grad = self.state, torch.is_grad_enabled
        from torch.utils.checkpoint import checkpoint
        this = self

        def _vramcast_run(layer, args, kwargs):
            before = getattr(state, "inside", 0)
            state.inside = before + 1
            try:
                return original(layer, *args, **kwargs)
            finally:
                state.inside = before

        def _vramcast_call(layer, *args, **kwargs):
            if getattr(state, "inside", 0) or not this.is_layer(type(layer)) or not grad():
                return original(layer, *args, **kwargs)
            place = this.count % this.of
            this.count += 1
            if place not in this.take:
                return _vramcast_run(layer, args, kwargs)
            this.done += 1
            this.names[place] = type(layer).__name__
            if kwargs.get("past_key_values") is not None:  # a cache would be written to twice
                kwargs["past_key_values"] = None
            if kwargs.get("use_cache"):
                kwargs["use_cache"] = False

            def _vramcast_again(*values):
                return _vramcast_run(layer, values, kwargs)
            return checkpoint(_vramcast_again, *args, use_reentrant=False)

        def _vramcast_first(function):
            def _vramcast_pass(*args, **kwargs):
                this.count = 0
                return function(*args, **kwargs)
            return _vramcast_pass

        module._call_impl = _vramcast_call
        torch.autograd.backward = _vramcast_first(torch.autograd.backward)
        torch.autograd.grad = _vramcast_first(torch.autograd.grad)

    def report(self, path):
        with open(path + ".%d" % os.getpid(), "w") as out:
            json.dump({"checkpointed": self.done,
                       "classes": sorted(set(self.names.values()))}, out)


def _vramcast_after_torch(torch):
    plan = os.environ.get("VRAMCAST_RECOMPUTE")
    if not plan:
        return
    hook = _Recompute(torch, json.loads(plan))
    hook.start()
    path = os.environ.get("VRAMCAST_RECOMPUTE_REPORT")
    if path:
        import atexit
        atexit.register(lambda: hook.done and hook.report(path))


class _Finder:
    """Wraps the loader of torch: the hook is set when the import has finished."""
    busy = False

    def find_spec(self, name, path=None, target=None):
        if name != "torch" or _Finder.busy:
            return None
        _Finder.busy = True
        try:
            import importlib.util
            spec = importlib.util.find_spec(name)
        finally:
            _Finder.busy = False
        if spec is None or spec.loader is None:
            return None
        original = spec.loader.exec_module

        def exec_module(module):
            original(module)
            _vramcast_after_torch(module)
        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, _Finder())
try:
    _chain()
except ImportError:
    pass
