# SPDX-License-Identifier: Apache-2.0
"""gpu_workspaces.py OUT [SHAPES] - scratch memory of cuDNN's convolutions on this card, as rows of the
table that the null GPU reads (docs/reference/null-gpu.md): plan by plan, each refused the memory of the one before.

SHAPES: a table of the same form (VRAMCAST_NULL_WORKSPACE_LOG of a dry run writes one); without, the layers
of a ResNet-50 and a VGG for three batch sizes, in fp32 and bf16."""
import sys

import torch

TYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16}
PLANS = 4
aten = torch.ops.aten


def default_shapes():
    layers = [(3, 64, 224, 7, 2), (3, 64, 224, 3, 1), (64, 64, 56, 3, 1), (64, 256, 56, 1, 1),
              (128, 128, 56, 3, 2), (128, 128, 28, 3, 1), (256, 256, 14, 3, 1), (512, 512, 7, 3, 1),
              (128, 256, 56, 3, 1), (512, 512, 28, 3, 1), (512, 512, 14, 3, 1)]
    for batch in (1, 8, 32):
        for c, k, size, kernel, stride in layers:
            pad = kernel // 2
            out = (size + 2 * pad - kernel) // stride + 1
            for direction in ("forward", "data", "filter"):
                for kind in ("f32", "bf16"):
                    yield (direction, kind, "nchw", (batch, c, size, size), (k, c, kernel, kernel),
                           (batch, k, out, out), (stride,) * 2, (pad,) * 2, (1, 1))


def read_shapes(path):
    for line in open(path):
        field = line.split("#")[0].split()
        if len(field) >= 11:
            yield tuple(field[2:5]) + tuple(tuple(int(v) for v in s.split("x")) for s in field[5:11])


def requested(which):
    return torch.cuda.memory_stats()["requested_bytes.all." + which]


def scratch(run):
    """Bytes an operation asked for beyond what it returned; None when it could not run."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = requested("current")
    try:
        out = run()
    except (torch.cuda.OutOfMemoryError, RuntimeError):
        return None
    torch.cuda.synchronize()
    kept = requested("current") - before
    peak = requested("peak") - before
    del out
    return peak - kept


def operation(direction, kind, layout, x, w, y, stride, pad, dilation):
    form = {4: torch.channels_last, 5: torch.channels_last_3d}.get(len(x)) if layout == "nhwc" else None

    def make(shape):
        t = torch.zeros(shape, device="cuda", dtype=TYPES[kind])
        return t.contiguous(memory_format=form) if form else t
    groups, spatial = x[1] // w[1], len(x) - 2
    if direction == "forward":
        a, b = make(x), make(w)
        return lambda: aten.convolution(a, b, None, stride, pad, dilation, False, [0] * spatial, groups)
    a, b, g = make(x), make(w), make(y)
    mask = [direction == "data", direction == "filter", False]
    return lambda: aten.convolution_backward(g, a, b, None, stride, pad, dilation, False, [0] * spatial,
                                             groups, mask)


def taken(size):
    return torch.empty(size, device="cuda", dtype=torch.uint8)


def fill():
    """Takes every free byte of the cache; nothing may be had from the driver from now on."""
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, (torch.cuda.memory_reserved() + 4096) / total))
    rest = []
    for size in [1 << k for k in range(27, 20, -1)] + [(1 << 20) + 512] + [1 << k for k in range(20, 8, -1)]:
        try:
            while True:
                rest.append(taken(size))
        except torch.cuda.OutOfMemoryError:
            pass
    return rest


def scratch_within(run, result, room):
    """The same with `room` bytes at most beside the result."""
    torch.cuda.empty_cache()
    rest = fill()
    torch.cuda.set_per_process_memory_fraction(1.0)
    small = 1 << 20 if room > 1 << 20 else 0  # what it may have from the pool of small blocks
    holes = [taken(n) for n in (result, room, small) if n > 0]
    rest += fill()
    del holes
    n = scratch(run)
    torch.cuda.set_per_process_memory_fraction(1.0)
    return n


def plans(shape):
    """The workspace of the first plan, then of those that are taken when it is refused."""
    run = operation(*shape)
    scratch(run)  # the first call loads kernels and may keep more
    before = requested("current")
    out = run()
    result = requested("current") - before
    del out
    found = [scratch(run)]
    while found[-1] and len(found) < PLANS:
        unit = 1 << 21 if found[-1] > 10 << 20 else 512  # large segments are rounded up to 2 MiB
        n = scratch_within(run, result, (found[-1] - 1) // unit * unit)
        if n is None or n >= found[-1]:
            break
        found.append(n)
    torch.cuda.empty_cache()
    return found if found[0] is not None else []


def text(shape):
    return " ".join("x".join(map(str, f)) if isinstance(f, tuple) else f for f in shape)


def main():
    torch.backends.cudnn.benchmark = False
    p = torch.cuda.get_device_properties(0)
    v = torch.backends.cudnn.version()
    version = "%d.%d.%d" % ((v // 10000, v // 100 % 100, v % 100) if v >= 90000 else
                            (v // 1000, v // 100 % 10, v % 100))
    card = "%d.%d/%d" % (p.major, p.minor, p.multi_processor_count)
    n = 0
    with open(sys.argv[1], "w") as out:
        out.write("# %s, cuDNN %s, PyTorch %s\n" % (p.name, version, torch.__version__))
        out.write("# card cudnn direction type layout x w y stride pad dilation bytes\n")
        for shape in read_shapes(sys.argv[2]) if sys.argv[2:] else default_shapes():
            found = plans(shape)
            if found:
                out.write("%s %s %s %s\n" % (card, version, text(shape), ",".join(map(str, found))))
                n += 1
            out.flush()
    print(n, "convolutions")


main()
