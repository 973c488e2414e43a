# SPDX-License-Identifier: Apache-2.0
"""marks.py - step marks and allocator settings for the tracer. `vramcast record` puts it first on PYTHONPATH as
sitecustomize.py; after.py stands in front of it."""
# A copy further down the path (a source tree on PYTHONPATH) would mark each step twice.
_first = not hasattr(sys, "_vramcast_marks")
sys._vramcast_marks = True


def _tell_program():
    """For the recorder: the user's own files among the modules, and the versions of the packages."""
    folder, ours = os.environ.get("VC_DIR"), os.environ.get("VRAMCAST_NULL_REPORT") or "\n"
    if not folder or not os.path.isdir(folder):
        return
    lines, standard = [], os.path.dirname(os.path.abspath(os.__file__)) + os.sep
    for name, module in list(sys.modules.items()):
        known = getattr(module, "__dict__", {})
        file, version = known.get("__file__"), known.get("__version__")
        if not isinstance(file, str) or "\n" in file or file.startswith((folder, ours)):
            continue
        if "site-packages" in file or "dist-packages" in file:
            if "." not in name and isinstance(version, str) and len(version.split()) == 1:
                lines.append(f"package {name} {version}\n")
        elif file.endswith(".py") and not file.startswith(standard):
            lines.append(f"file {os.path.abspath(file)}\n")
    with open(os.path.join(folder, f"{os.getpid()}.program"), "w") as out:
        out.writelines(sorted(set(lines)))


def _tell_quietly():
    try:
        _tell_program()
    except Exception:  # the program must never notice
        pass


def _step(library):
    told = []

    def hook(optimizer, args, kwargs):
        library.vramcast_optimizer_step()
        if not told:  # in case that the program does not end in order
            told.append(1)
            _tell_quietly()
    return hook


def _watch_failures(torch, library):
    """--stacks py:N: PyTorch tells of requests that failed, outside of its allocator's lock."""
    attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer",
                     getattr(torch._C, "_cuda_attachOutOfMemoryObserver", None))
    if attach is None:
        return

    def _vramcast_failed(*sizes):
        library.vramcast_failed()

    def start():
        attach(_vramcast_failed)
        library.vramcast_watch_failures()
    torch.cuda._lazy_call(start)  # attaching starts CUDA, which is the program's to decide


def _after_torch(torch):
    import atexit
    import ctypes
    library = ctypes.CDLL(None)
    if not hasattr(library, "vramcast_step"):
        return
    atexit.register(_tell_quietly)
    optim = sys.modules.get("torch.optim.optimizer")
    register = getattr(optim, "register_optimizer_step_post_hook", None)
    if register is not None:
        register(_step(library))
    if ",stacks=py:" in os.environ.get("VC_OPTIONS", ""):
        _watch_failures(torch, library)


def _after_torch_quietly(torch):
    try:
        _after_torch(torch)
    except Exception:  # the program must never notice
        pass


# Phases of jobs that take turns on a card: module, class, methods and what they do. A range in another is that
# part of it: "train" makes what it trains on ("score"), for which it has the server "generate".
_PHASES = {
    "vllm.entrypoints.llm": ("LLM", {"generate": "generate"}),
    "trl.generation.vllm_generation": ("VLLMGeneration", {"sync_weights": "sync weights"}),
    "trl.trainer.grpo_trainer": ("GRPOTrainer", {"_generate_and_score_completions": "score",
                                                 "training_step": "train"}),
}


def _in_range(method, name):
    import functools

    @functools.wraps(method)
    def call(*args, **kwargs):
        nvtx = sys.modules["torch"].cuda.nvtx
        try:
            nvtx.range_push(name)
        except RuntimeError:  # PyTorch without CUDA has none
            return method(*args, **kwargs)
        try:
            return method(*args, **kwargs)
        finally:
            nvtx.range_pop()
    return call


def _mark_phases(module):
    kind, methods = _PHASES[module.__name__]
    owner = getattr(module, kind, None)
    for method, name in methods.items():
        if hasattr(owner, method):
            setattr(owner, method, _in_range(getattr(owner, method), name))


if _first:
    sys.meta_path.insert(0, _Finder({"torch": _after_torch_quietly, **{m: _mark_phases for m in _PHASES}}))
_chain()
