# SPDX-License-Identifier: Apache-2.0
"""probe_workspaces.py OUT [SHAPES] - scratch memory of cuDNN's convolutions on this card, as rows of the
table that the null GPU reads (docs/reference/null-gpu.md): plan by plan, each refused the memory of the one before.
Before them stands what the card is, in comments: what `vramcast dryrun --card` reads (commands/card_file.h).

SHAPES: a table of the same form (`vramcast dryrun --questions` writes one); without, the layers
of a ResNet-50 and a VGG for three batch sizes, in fp32 and bf16."""
import subprocess
import sys
import time

import torch

TYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16}
PLANS = 4
LIMIT = 100  # seconds for all convolutions
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
            if "/" not in field[2]:  # what other lists name follows from no single call
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


def used():
    """{UUID: MiB in use} of the machine's cards; empty where nvidia-smi does not say."""
    try:
        said = subprocess.run(["nvidia-smi", "--query-gpu=uuid,memory.used", "--format=csv,noheader,nounits"], capture_output=True,
                              text=True, timeout=20, check=True).stdout
        return {line.split(",")[0].strip(): int(line.split(",")[1]) for line in said.splitlines()}
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return {}


def context(before):
    """Bytes of this process outside the allocator: what the card has in use more than before its first call, less what
    PyTorch reserved. None where that is not plausible: other processes came or went."""
    uuid = "GPU-" + str(getattr(torch.cuda.get_device_properties(0), "uuid", "")).removeprefix("GPU-")
    after = used()
    if uuid not in before or uuid not in after:
        return None
    more = ((after[uuid] - before[uuid]) << 20) - torch.cuda.memory_reserved()
    return more if 50 << 20 < more < 4 << 30 else None


def addresses():
    """Whether fresh segments lie below or above those before them; None where they do both. The driver takes address space
    by windows, which it fills upwards: segments as large as windows are asked for."""
    torch.cuda.empty_cache()
    size = min(1 << 30, torch.cuda.mem_get_info()[0] >> 4) >> 21 << 21
    at = [taken(size) for _ in range(6)]
    steps = {a.data_ptr() < b.data_ptr() for a, b in zip(at, at[1:])}
    return None if len(steps) > 1 else "up" if True in steps else "down"


def heading(out, before):
    torch.zeros(1, device="cuda")
    facts = {"name": torch.cuda.get_device_properties(0).name, "total": torch.cuda.mem_get_info()[1], "context": context(before),
             "addresses": addresses()}
    out.write("# vramcast card 1\n")
    for key, value in facts.items():
        if value is not None:
            out.write("# %s %s\n" % (key, value))


def main():
    before = used()
    if not torch.cuda.is_available():
        sys.exit("PyTorch %s sees no card here" % torch.__version__)
    torch.backends.cudnn.benchmark = False
    p = torch.cuda.get_device_properties(0)
    v = torch.backends.cudnn.version()
    version = "%d.%d.%d" % ((v // 10000, v // 100 % 100, v % 100) if v >= 90000 else
                            (v // 1000, v // 100 % 10, v % 100))
    card = "%d.%d/%d" % (p.major, p.minor, p.multi_processor_count)
    n = 0
    with open(sys.argv[1], "w") as out:
        heading(out, before)
        out.write("# cuDNN %s, PyTorch %s\n" % (version, torch.__version__))
        out.write("# card cudnn direction type layout x w y stride pad dilation bytes\n")
        shapes = list(read_shapes(sys.argv[2]) if sys.argv[2:] else default_shapes())
        began = time.monotonic()
        for asked, shape in enumerate(shapes):
            if time.monotonic() - began > LIMIT:
                print("%d of %d convolutions were not asked: %d seconds are over" % (len(shapes) - asked, len(shapes), LIMIT))
                break
            found = plans(shape)
            if found:
                out.write("%s %s %s %s\n" % (card, version, text(shape), ",".join(map(str, found))))
                n += 1
            out.flush()
    print(n, "convolutions")


main()
