# SPDX-License-Identifier: Apache-2.0
"""label.py OUT SCRIPT [ARG...] - run a training script and write down what its memory is for.

One line a tensor: allocations made so far, address, bytes, what it is (parameter, gradient, state, activation). The
block meant is the last one allocated at that address until then. Activations are what autograd saves for its
backward pass, seen by its own hooks; the others are read from the optimizer. tests/anatomy/compare.py holds the
categories that vramcast finds against them."""
import runpy
import sys

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

out = open(sys.argv[1], "w", encoding="ascii")
seen = set()


def storages(t):
    """Of subclasses (DTensor) the local part."""
    t = getattr(t, "_local_tensor", t)
    if isinstance(t, torch.Tensor) and t.is_cuda:
        yield t.untyped_storage()


def note(t, what):
    for s in storages(t):
        made = torch.cuda.memory_stats().get("allocation.all.allocated", 0)
        if s.nbytes():
            out.write(f"{made} {s.data_ptr():x} {s.nbytes()} {what}\n")


def pack(t):
    if not isinstance(t, torch.nn.Parameter):
        note(t, "activation")
    return t


def before(optimizer, args, kwargs):
    for group in optimizer.param_groups:
        for p in group["params"]:
            if p.grad is not None:
                note(p.grad, "gradient")


def after(optimizer, args, kwargs):
    for state in optimizer.state.values():
        for t in state.values():
            if isinstance(t, torch.Tensor):
                note(t, "state")


def parameters(module, args):
    """Before the first call of any module: what the outermost one holds."""
    if id(module) in seen:
        return
    for m in module.modules():
        seen.add(id(m))
    for t in [*module.parameters(), *module.buffers()]:
        note(t, "parameter")


register_optimizer_step_pre_hook(before)
register_optimizer_step_post_hook(after)
register_module_forward_pre_hook(parameters)
sys.argv = sys.argv[2:]
with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
    runpy.run_path(sys.argv[0], run_name="__main__")
out.close()
