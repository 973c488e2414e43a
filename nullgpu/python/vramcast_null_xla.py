# SPDX-License-Identifier: Apache-2.0
"""vramcast_null_xla.py - JAX and TensorFlow in a dry run. Their own allocator takes most of the card at
its start, so it is asked at the end what it held at most, and what it refuses counts as refused.

Kernels are compiled by XLA itself or come with TensorFlow, and do nothing: results are what the memory
held before."""
import atexit
import ctypes
import os
import re
import sys

# Timing kernels that do nothing says nothing, and takes minutes; graphs of commands take none of XLA's
# pool. The program's own flags come behind these, and win.
FLAGS = "--xla_gpu_autotune_level=0 --xla_gpu_enable_command_buffer="
SIZES = {"B": 0, "bytes": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}


def _note(device, peak, refused=False, size=0):
    driver = ctypes.CDLL(None)
    if hasattr(driver, "vc_null_pool"):
        driver.vc_null_pool(ctypes.c_int(device), ctypes.c_uint64(peak), ctypes.c_int(refused),
                            ctypes.c_uint64(size))


def _watch_refusals():
    show = sys.excepthook

    def excepthook(kind, value, trace):
        text = str(value)
        if "RESOURCE_EXHAUSTED" in text or kind.__name__ == "ResourceExhaustedError":
            found = re.search(r"allocat\w* ([0-9.]+) ?(B|KiB|MiB|GiB|TiB|bytes)\b", text)
            _note(0, 0, True, int(float(found[1]) * 2 ** SIZES[found[2]]) if found else 0)
        show(kind, value, trace)
    sys.excepthook = excepthook


def _report_jax(bridge):
    backend = bridge._backends.get("cuda")
    for device in backend.local_devices() if backend else ():
        stats = device.memory_stats() or {}  # none with XLA_PYTHON_CLIENT_ALLOCATOR=platform
        _note(device.local_hardware_id or 0, stats.get("peak_bytes_in_use", 0))


def _report_tensorflow(tensorflow):
    from tensorflow.python.eager import context
    own = context.context_safe()
    if own is None or not own._initialized:  # asking would start it
        return
    for i, _ in enumerate(tensorflow.config.list_logical_devices("GPU")):
        _note(i, tensorflow.config.experimental.get_memory_info(f"GPU:{i}")["peak"])


def _put_flags():
    os.environ["XLA_FLAGS"] = f"{FLAGS} {os.environ.get('XLA_FLAGS', '')}"


def see_card(hardware):
    """JAX looks for the files of NVIDIA's driver before it asks the driver."""
    hardware.has_visible_nvidia_gpu = lambda: True
    _put_flags()


def start_jax(jax):
    atexit.register(_report_jax, jax._src.xla_bridge)  # runs before what JAX itself registered earlier
    _watch_refusals()


def start_tensorflow(tensorflow):
    _put_flags()
    atexit.register(_report_tensorflow, tensorflow)
    _watch_refusals()
