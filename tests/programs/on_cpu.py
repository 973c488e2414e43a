# SPDX-License-Identifier: Apache-2.0
"""on_cpu.py PROGRAM ARGUMENT... - where there is no card, a program of this folder runs on the processor instead, which has
real values, and prints each loss to the last bit. Where there is one, nothing is changed."""
import os
import runpy
import sys

import torch
from torch.overrides import TorchFunctionMode


class Cpu(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if str(kwargs.get("device", "")).startswith("cuda"):
            kwargs["device"] = "cpu"
        if function is torch.Tensor.cuda:
            return args[0]
        args = tuple("cpu" if isinstance(x, str) and x == "cuda" else x for x in args)
        if function is torch.Tensor.backward:
            print("loss", float(args[0].detach()).hex(), flush=True)
        return function(*args, **kwargs)


def main():
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    if torch.cuda.is_available():
        return runpy.run_path(sys.argv[0], run_name="__main__")  # a rehearsal
    torch.nn.Module.cuda = lambda self, *_: self
    torch.cuda.synchronize = torch.cuda.empty_cache = lambda *_: None
    torch.set_num_threads(1)  # sums come in one order
    with Cpu():
        return runpy.run_path(sys.argv[0], run_name="__main__")


main()
