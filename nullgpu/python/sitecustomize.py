# SPDX-License-Identifier: Apache-2.0
"""sitecustomize.py - the Python side of a dry run: starts the values mode once the program has
imported torch, plays one rank of a large job, ends the program after a number of steps, has PyTorch's own threads
end before Python does, keeps Triton from trying everything, tells what is only timed, and asks JAX's and TensorFlow's
allocator what it held.

`vramcast dryrun` puts this folder on PYTHONPATH; the build puts python/after.py in front of this file."""
import atexit


class _Exit:
    """What the program ends with is known when it has ended, which Python's end comes before."""
    code = None


def _tell(name, value):
    """One of the functions of nullgpu/end.c."""
    import ctypes
    tell = getattr(ctypes.CDLL(None), name, None)
    if tell is not None:
        tell(value)


def _remember_exit(leave):
    def exit(status=None, /):
        _Exit.code = status
        leave(status)
    exit.__doc__ = leave.__doc__
    return exit


def status():
    if getattr(sys, "last_value", None) is not None or not isinstance(_Exit.code, (int, type(None))):
        return 1
    return int(_Exit.code or 0)


def _tell_threads():
    """Python waits for threads of the program's own, as long as these run."""
    import threading
    names = [t.name for t in threading.enumerate()
             if t.is_alive() and not t.daemon and t is not threading.main_thread()]
    if names:
        _tell("vc_null_waits", ("its own threads " + ", ".join(names)).encode())


def _say_ranks():
    error = getattr(sys, "last_value", None)
    if isinstance(error, (KeyError, ValueError)) and "WORLD_SIZE" not in os.environ and \
            any(name in str(error) for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR")):
        print("vramcast: this program wants to be one rank of several: 'vramcast dryrun --world N' plays one, "
              "'--ranks N' starts all", file=sys.stderr)


def _end_threads():
    """Lets the threads of backward passes finish and end while there is a Python to end in. They let
    go of the last tensors of a pass after the program was told of its end, and one that does so
    while Python ends is in trouble (nullgpu/late.c). PyTorch ends them by the same call, but in a
    destructor, when Python has gone."""
    _say_ranks()
    _tell("vc_null_ends", status())
    core = getattr(sys.modules.get("torch"), "_C", None)
    if not hasattr(core, "__file__"):
        return
    import ctypes
    library = ctypes.CDLL(core.__file__)  # its calls leave Python's lock to the others
    try:
        engine = library._ZN5torch8autograd6Engine18get_default_engineEv
        stop = library._ZN5torch8autograd6Engine4stopEv
    except AttributeError:
        return  # a PyTorch without them ends as it would
    engine.restype = ctypes.c_void_p
    stop.restype = None
    stop(ctypes.c_void_p(engine()))


def _count_steps(most):
    """Tells of each step of an optimizer, and ends the program, as if it had called sys.exit, after so many."""
    import ctypes
    optim = sys.modules.get("torch.optim.optimizer")
    if not hasattr(optim, "register_optimizer_step_post_hook"):
        return
    tell = getattr(ctypes.CDLL(None), "vc_null_step", lambda: None)
    done, before = [], {}

    def watch(optimizer, *unused):
        """What the first step makes, it does not make where a scaler leaves steps out."""
        values = sys.modules.get("vramcast_null_values")
        if values and values.scaled and not optimizer.state:
            before[id(optimizer)] = sys.modules["torch"].cuda.memory_allocated()

    def hook(optimizer, *unused):
        tell()
        if id(optimizer) in before:
            values = sys.modules["vramcast_null_values"]
            values.tell_fewer(sys.modules["torch"].cuda.memory_allocated() - before.pop(id(optimizer)))
        done.append(1)
        if 0 < most <= len(done):
            raise SystemExit(0)
    optim.register_optimizer_step_pre_hook(watch)
    optim.register_optimizer_step_post_hook(hook)


def _watch_total_memory(torch):
    """PyTorch keeps the properties of a card, so that a script reading their total_memory asks nobody:
    that its run is no answer for a larger or smaller card is noted here."""
    import ctypes
    properties = getattr(torch._C, "_CudaDeviceProperties", None)
    total = getattr(properties, "total_memory", None)
    driver = ctypes.CDLL(None)
    if not isinstance(total, property) or not hasattr(driver, "vc_null_asks_total"):
        return
    asks = driver.vc_null_asks_total

    def read(self):
        asks(None)
        return total.fget(self)
    properties.total_memory = property(read)


def _after_torch(torch):
    import threading
    if hasattr(threading, "_register_atexit"):  # before it waits for threads
        threading._register_atexit(_tell_threads)
    _watch_total_memory(torch)
    _count_steps(int(os.environ.get("VRAMCAST_NULL_STEPS", "0")))
    if os.environ.get("VRAMCAST_NULL_VALUES", "1") != "0":
        import vramcast_null_values
        vramcast_null_values.start(torch)
    if os.environ.get("VRAMCAST_NULL_HOST_WEIGHTS") == "0":
        import vramcast_null_host
        vramcast_null_host.start(torch)
    if os.environ.get("VRAMCAST_NULL_WORLD"):
        import vramcast_null_world
        vramcast_null_world.start(torch)


def _after_launcher(api):
    if os.environ.get("VRAMCAST_NULL_WORLD"):
        import vramcast_null_world
        vramcast_null_world.launch(api)


def _after_ctypes(ctypes):
    """A library of CUDA's that is named by a path is the stand-in of that name, as it is for those who
    link to it."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    load = ctypes._dlopen

    def dlopen(name, *mode):
        if name and isinstance(name, str) and "/" in name:
            ours = os.path.join(folder, os.path.basename(name))
            name = ours if ".so" in name and os.path.exists(ours) else name
        return load(name, *mode)
    ctypes._dlopen = dlopen


def _after_jax_hardware(module):
    import vramcast_null_xla
    vramcast_null_xla.see_card(module)


def _after_jax(jax):
    import vramcast_null_xla
    vramcast_null_xla.start_jax(jax)


def _after_tensorflow(tensorflow):
    import vramcast_null_xla
    vramcast_null_xla.start_tensorflow(tensorflow)


def _after_autotuner(module):
    """Triton compiles and times a kernel in each of its configurations. Here all take as long: the first that compiles
    is timed, with the memory that timing takes, and the others are not compiled."""
    tuner = module.Autotuner
    bench = tuner._bench

    def one(run):
        def run_one(self, *args, **kwargs):
            self.vramcast_timed = self.cache_results = False  # nor does a real card get to see these results
            return run(self, *args, **kwargs)
        return run_one

    def bench_one(self, *args, **kwargs):
        if self.vramcast_timed:
            return [float("inf")] * 3
        timing = bench(self, *args, **kwargs)
        self.vramcast_timed = float("inf") not in (timing if isinstance(timing, (list, tuple)) else [timing])
        return timing

    def with_run_of_its_own(cls, **kwargs):
        super(tuner, cls).__init_subclass__(**kwargs)
        if "run" in vars(cls):
            cls.run = one(cls.run)
    tuner.run, tuner._bench, tuner.vramcast_timed = one(tuner.run), bench_one, False
    tuner.__init_subclass__ = classmethod(with_run_of_its_own)


def _after_timing(module):
    """What is launched to be timed is no part of a step: the recording does not tell of it, but of the memory that it takes."""
    import functools

    def trying(call):
        @functools.wraps(call)
        def tried(*args, **kwargs):
            _tell("vc_null_tries", 1)
            try:
                return call(*args, **kwargs)
            finally:
                _tell("vc_null_tries", -1)
        return tried
    for where in (module, *(c for c in vars(module).values() if isinstance(c, type) and c.__module__ == module.__name__)):
        for name in ("do_bench", "do_bench_cudagraph", "benchmark_gpu"):
            if callable(vars(where).get(name)):
                setattr(where, name, trying(vars(where)[name]))


AFTER = {"torch": _after_torch, "triton.testing": _after_timing, "torch._inductor.runtime.benchmarking": _after_timing,
         "triton.runtime.autotuner": _after_autotuner, "ctypes": _after_ctypes,
         "torch.distributed.launcher.api": _after_launcher,
         "jax._src.hardware_utils": _after_jax_hardware, "jax": _after_jax, "tensorflow": _after_tensorflow}


atexit.register(_end_threads)  # the first to be registered is the last to be called
sys.exit = _remember_exit(sys.exit)
sys.meta_path.insert(0, _Finder(AFTER))
_chain()
