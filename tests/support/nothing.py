# SPDX-License-Identifier: Apache-2.0
"""nothing.py - names that do nothing, in place of what a judge does not need of another program."""
import importlib.abc
import importlib.machinery
import importlib.util
import os


class Meta(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return thing(name)

    def __iter__(cls):
        return iter(())

    def __or__(cls, other):
        return cls

    __ror__ = __or__


def thing(name):
    """A class that takes any argument, keeps the named ones, and is whatever else it is asked to be."""
    def init(self, *a, **k):
        self.__dict__.update(k)

    return Meta(name, (), {"__init__": init, "__init_subclass__": classmethod(lambda cls, **k: None), "__class_getitem__": classmethod(lambda cls, i: cls),
                           "__call__": lambda self, *a, **k: (a[0] if a and callable(a[0]) else self), "__enter__": lambda s: s, "__exit__": lambda *a: None,
                           "__getattr__": lambda self, n: (_ for _ in ()).throw(AttributeError(n)) if n.startswith("__") else quiet})


def quiet(*a, **k):
    return None


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules below `tops`: those whose name begins as one of `real` come from TREE, any other is an empty `stub`."""

    def __init__(self, tree, real, tops, stub):
        self.tree, self.real, self.tops, self.stub = tree, real, tops, stub

    def find_spec(self, name, path, target=None):
        if name.split(".")[0] not in self.tops:
            return None
        file = os.path.join(self.tree, *name.split("."))
        if name.startswith(self.real):
            for f in (file + ".py", os.path.join(file, "__init__.py")):
                if os.path.exists(f):
                    where = [file] if f.endswith("__init__.py") else None
                    return importlib.util.spec_from_file_location(name, f, submodule_search_locations=where)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return self.stub(spec.name)

    def exec_module(self, module):
        module.__path__ = []
