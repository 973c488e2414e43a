# SPDX-License-Identifier: Apache-2.0
"""examples.py - every public function of the package has an example in its docstring, and every example prints what
it says. They run in a folder that has the files they name."""
import doctest
import importlib.util
import inspect
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import card  # noqa: E402
import tap  # noqa: E402
import vramcast  # noqa: E402

FOLDER = os.path.join(os.environ["TMP"], "examples")
FILES = {"run.vct": "traces/decomfl.vct", "small.vct": "traces/lm-medium-ctx1024.vct", "big.vct": "traces/lm-train-ctx128.vct",
         "8.vct": "tests/recordings/eval-4-8.vct", "16.vct": "tests/recordings/eval-8-16.vct",
         "gpt8.vct": "tests/ladders/recordings/gpt-amp_batch0008_torch2.9.1.vct",
         "gpt16.vct": "tests/ladders/recordings/gpt-amp_batch0016_torch2.9.1.vct", "card.py": card.__file__}
TRAIN = "import sys\nimport card\ncard.take(int(sys.argv[2]) * 64 if sys.argv[1:] else 64)\n"
MESSAGE = ("CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity; 9.50 GiB already "
           "allocated; 10.25 MiB free; 9.60 GiB reserved in total by PyTorch)")


def public():
    """name -> object, for all that the package exports and for the public members of its classes."""
    out = {}
    for name in vramcast.__all__:
        thing = out[name] = getattr(vramcast, name)
        if inspect.isclass(thing) and not issubclass(thing, Exception):
            for member, value in vars(thing).items():
                if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, (property, classmethod))):
                    out[f"{name}.{member}"] = getattr(thing, member) if isinstance(value, classmethod) else value
    return out


def here(example):
    """Is what the example says it needs there?"""
    found = re.search(r"# needs (\w+)", example.source)
    return found is None or importlib.util.find_spec(found.group(1)) is not None


def world():
    os.makedirs(FOLDER, exist_ok=True)
    for name, file in FILES.items():
        shutil.copy(file, os.path.join(FOLDER, name))
    with open(os.path.join(FOLDER, "train.py"), "w") as stream:
        stream.write(TRAIN)
    # A dry run looks at what PyTorch's libraries want of CUDA; one that wants the driver alone stands for them.
    library = os.path.join(FOLDER, "torch", "lib")
    os.makedirs(library, exist_ok=True)
    open(os.path.join(FOLDER, "torch", "__init__.py"), "w").close()
    beside = os.path.dirname(os.environ["VRAMCAST"])
    null = os.path.join(beside, "nullgpu")
    shutil.copy(os.path.join(null if os.path.isdir(null) else beside, "vcnull-libcufile.so.0"),
                os.path.join(library, "libtorch_cuda.so"))
    python = os.path.join(FOLDER, "python")
    if not os.path.exists(python):
        with open(python, "w") as stream:
            stream.write(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        os.chmod(python, 0o755)
    os.environ["PATH"] = FOLDER + os.pathsep + os.environ["PATH"]
    os.environ["PYTHONPATH"] = os.pathsep.join([FOLDER, os.path.abspath("python") if not vramcast.__file__.startswith(sys.prefix) else ""])
    sys.orig_argv = ["python", "train.py"]
    os.chdir(FOLDER)


def add(name, thing):
    def test():
        examples = doctest.DocTestParser().get_examples(inspect.getdoc(thing) or "")
        assert examples, f"{name} has no example"
        if not all(map(here, examples)):
            tap.skip("pandas or pyarrow is not here")
        runner, said = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS), []
        failed = runner.run(doctest.DocTest(examples, {"vramcast": vramcast, "MESSAGE": MESSAGE}, name, None, 0, None),
                            out=said.append).failed
        assert not failed, "".join(said)
    test.__doc__ = f"{name}: its example prints what it says"
    globals()["test_" + name.replace(".", "_")] = test


for one, object_ in public().items():
    add(one, object_)
world()
tap.run(dict(globals()))
