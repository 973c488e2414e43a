# SPDX-License-Identifier: Apache-2.0
"""budget_code.py - runs the code to paste that test_budget_code writes to its standard input: with DEVICE (cpu, or cuda in a
dry run) by PyTorch, and compares gradients; else on a stand-in for torch."""
import copy
import os
import re
import sys
import textwrap
import types

text = sys.stdin.read()
code = textwrap.dedent("\n".join(line for line in text.split("\n") if re.match("    |$", line)))
NAMES = ["kept", "twice", "products", "sent", "from_host"]


def with_torch(device):
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name in NAMES:
                setattr(self, name, torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.LayerNorm(256), torch.nn.GELU()))

        def forward(self, x):
            for name in NAMES:
                x = getattr(self, name)(x)
            return x
    torch.manual_seed(1)
    plain = Net().to(device)
    model = copy.deepcopy(plain)
    fractions = []
    if device == "cpu":
        torch.cuda.set_per_process_memory_fraction = fractions.append
        torch.cuda.get_device_properties = lambda device: types.SimpleNamespace(total_memory=1 << 31)
    exec(code, {"model": model})
    x = torch.randn(512, 256, device=device)
    for net in plain, model:
        net(x).square().sum().backward()
    for p, q in zip(plain.parameters(), model.parameters()):
        assert torch.equal(p.grad, q.grad)
    assert device != "cpu" or fractions == [0.5]


class Tensor:
    """A view of a weight, a large one and a small one."""
    def __init__(self, nbytes=1 << 20, base=None, leaf=False, grad_fn=None):
        self._base, self.is_leaf, self.requires_grad, self.grad_fn = base, leaf, leaf, grad_fn
        self.nbytes, self.is_cuda, self.device, self.came = nbytes, True, "cuda:0", None

    def copy_(self, other, non_blocking):
        self.came = other
        return self

    def to(self, device, non_blocking):
        return self.came

    def detach(self):
        return Tensor(self.nbytes, self._base)


class Hooks:
    def __init__(self, pack, unpack):
        self.pack, self.unpack = pack, unpack

    def __enter__(self):
        weight, large, small = Tensor(leaf=True), Tensor(), Tensor(nbytes=8)
        for kept in Tensor(base=weight), weight, small:
            assert self.pack(kept) is kept and self.unpack(kept) is kept
        assert self.pack(Tensor(nbytes=8, grad_fn="node")).grad_fn is None  # else it keeps the node that keeps it
        assert self.pack(large) is not large and self.unpack(self.pack(large)) is large
        log.append("sent")

    def __exit__(self, *rest):
        pass


def checkpoint(forward, *args, use_reentrant, context_fn=None):
    assert use_reentrant is False
    log.append("products" if context_fn and context_fn() else "twice")
    return forward(*args)


def contexts(policy):
    def op(name):
        return types.SimpleNamespace(__name__=name, _schema=types.SimpleNamespace(
            arguments=[types.SimpleNamespace(name="query"), types.SimpleNamespace(name="dropout_p")]))
    assert policy(None, op("mm"), 1) == "save" and policy(None, op("gelu"), 1) == "again"
    assert policy(None, op("_scaled_dot_product_flash_attention"), 1, 0.1) == "again"
    return True


def without():
    def module(name, **members):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__dict__.update(members)
        return sys.modules[name]
    torch = module("torch", Tensor=Tensor, empty_like=lambda tensor, device, pin_memory: Tensor())
    torch.cuda = types.SimpleNamespace(set_per_process_memory_fraction=log.append, get_device_properties=lambda device:
                                       types.SimpleNamespace(total_memory=1 << 31))
    torch.autograd = types.SimpleNamespace(graph=types.SimpleNamespace(saved_tensors_hooks=Hooks))
    module("torch.utils")
    module("torch.utils.checkpoint", checkpoint=checkpoint, create_selective_checkpoint_contexts=contexts,
           CheckpointPolicy=types.SimpleNamespace(MUST_SAVE="save", PREFER_RECOMPUTE="again"))
    layer = {name: types.SimpleNamespace(forward=lambda x: x + 1) for name in NAMES}
    exec(code, {"model": types.SimpleNamespace(get_submodule=layer.get)})
    assert [layer[name].forward(i) for i, name in enumerate(NAMES)] == [1, 2, 3, 4, 5]
    assert log == [0.5, "twice", "products", "sent", "sent", "twice"], log


log = []
if "DEVICE" in os.environ:
    with_torch(os.environ["DEVICE"])
else:
    without()
