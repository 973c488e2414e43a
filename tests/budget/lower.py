# SPDX-License-Identifier: Apache-2.0
"""lower.py - what is kept in lower precision (python/budget_hook.py) comes back nearly as it was, in half the bytes, and a net
learns with it as without. On the processor, with PyTorch only; make check-budget runs it first."""
import copy
import os
import threading  # noqa: F401 - the hook's

import torch

HOOK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python", "budget_hook.py")
source = open(HOOK).read()
exec(compile(source[:source.index("def _vramcast_budget(")], HOOK, "exec"))
torch.Tensor.is_cuda = property(lambda tensor: True)  # else nothing is for it to do
STEPS, ROWS, WIDTH = 60, 128, 256


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.GELU(),
                                       torch.nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        return x + self.net(x)


def lowered(model):
    hook = _Budget(torch, {})  # noqa: F821
    for layer in model:
        layer.forward = lambda *args, layer=layer, forward=layer.forward, **named: hook.lower(layer, forward, args, named)
    return model


def kept(model, x):
    """Bytes of each thing that is kept as it is, but for parameters and x; and in lower precision."""
    own = {t.untyped_storage().data_ptr() for t in (*model.parameters(), x)}
    same, low, place = {}, {}, _Lower.put  # noqa: F821

    def put(self, *args):
        place(self, *args)
        low[self.copy.data_ptr()] = self.copy.nbytes
    _Lower.put = put  # noqa: F821
    with torch.autograd.graph.saved_tensors_hooks(  # the hook's own lie within these
            lambda t: same.update({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes()}) or t, lambda t: t):
        model(x).sum().backward()
    _Lower.put = place  # noqa: F821
    return [size for at, size in same.items() if at not in own], list(low.values())


def comes_back(kind, off):
    seen = (torch.randn(64, 1024) * 37).to(kind)[3:40, 5:].t()
    home = _Lower(torch, seen.untyped_storage(), seen)  # noqa: F821
    back = home.back(seen.dtype, seen.storage_offset(), seen.size(), seen.stride())
    assert 2 * home.copy.nbytes == seen.untyped_storage().nbytes() and back.stride() == seen.stride()
    far = ((back - seen).abs().max() / seen.abs().max()).item()
    assert far <= off, (kind, far)
    return far


def learn(model, kind):
    torch.manual_seed(2)
    target = torch.randn(WIDTH, WIDTH, dtype=kind) / 16
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=1.0), []
    for _ in range(STEPS):
        x = torch.randn(ROWS, WIDTH, dtype=kind)
        loss = (model(x) - x @ target).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        if not losses:
            first = torch.cat([p.grad.float().flatten() for p in model.parameters()])
        optimizer.step()
        losses.append(loss.item())
    return losses, first


def sums_over_rows_stay():
    """Mean and deviation of each of so many rows are large enough to go, and small beside what the layer is called with."""
    rows = 32768
    assert min(kept(lowered(torch.nn.Sequential(Layer())), torch.randn(rows, WIDTH))[1]) > 4 * rows


def parameters_stay():
    """Nor does what autocast makes of a weight."""
    with torch.autocast("cpu", torch.bfloat16):
        sizes = kept(lowered(torch.nn.Sequential(Layer())), torch.randn(ROWS, WIDTH))[1]
    assert sizes and 4 * WIDTH * WIDTH not in sizes, sizes


def main():
    sums_over_rows_stay()
    parameters_stay()
    for kind, off, away in (torch.float32, 2**-8, 0.01), (torch.bfloat16, 2**-4, 0.1):
        torch.manual_seed(1)
        plain = torch.nn.Sequential(*(Layer() for _ in range(4))).to(kind)
        low = lowered(copy.deepcopy(plain))
        x = torch.randn(ROWS, WIDTH, dtype=kind)
        before, after = (sum(map(sum, kept(m, x))) for m in (plain, low))
        (a, g), (b, h) = learn(plain, kind), learn(low, kind)
        far = ((h - g).norm() / g.norm()).item()
        print("%-14s values within %.4f of the largest, gradients %.4f, kept %.2f of the bytes, loss %.4f -> %.4f (%.4f as it is)"
              % (str(kind), comes_back(kind, off), far, after / before, b[0], b[-1], a[-1]))
        assert a[0] == b[0] and 0 < far < away, far
        assert a[-1] < 0.9 * a[0] and abs(b[-1] - a[-1]) < 0.02 * a[-1], (a[-1], b[-1])
        assert after < 0.7 * before, (before, after)


main()
