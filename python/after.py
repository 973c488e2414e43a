# SPDX-License-Identifier: Apache-2.0
"""after.py - stands in front of each sitecustomize.py of ours; the build puts it there. What they do begins when the
program itself has imported a module, and the sitecustomize that they hide is loaded, too."""
import os
import sys


def _chain():
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec
    here = os.path.dirname(os.path.abspath(__file__))
    paths = [os.path.abspath(p or ".") for p in sys.path]
    rest = sys.path[paths.index(here) + 1:] if here in paths else []
    try:
        spec = PathFinder.find_spec("sitecustomize", rest)
        if spec is not None and spec.loader is not None:
            module = module_from_spec(spec)
            sys.modules["sitecustomize"] = module
            spec.loader.exec_module(module)
    except ImportError:
        pass


class _Finder:
    """Wraps the loaders of the modules that `after` names: its functions are called when the import has finished."""

    def __init__(self, after):
        self.after, self.busy = after, False

    def find_spec(self, name, path=None, target=None):
        if name not in self.after or self.busy:
            return None
        self.busy = True
        try:
            import importlib.util
            spec = importlib.util.find_spec(name)
        finally:
            self.busy = False
        if spec is None or spec.loader is None:
            return None
        original = spec.loader.exec_module

        def exec_module(module):
            original(module)
            self.after[name](module)
        spec.loader.exec_module = exec_module
        return spec


