# SPDX-License-Identifier: Apache-2.0
"""torch_loop.py cpu|cuda STEPS READY END [TRUTH]: trains until so many steps are done (0: until the file END is there) and
prints how many, a digest of all losses, and (cuda) how many kernels and copies torch.profiler sees in one more step. The file READY says that it has begun. Batches vary, blocks wait for another
stream, and one in a while is kept long. TRUTH (cpu): torch.profiler watches all of it; what it saw of the CPU's allocator
goes there, and the program's own account of each step: torch_truth.py compares recordings with both."""
import contextlib
import hashlib
import os
import sys

import torch
import torch.nn as nn

device, steps, ready, end = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
truth = sys.argv[5] if sys.argv[5:] else None
MARK = 1 << 20  # bytes of the tensor that marks a step in both accounts: step n has n more


def watch():
    from torch.profiler import ProfilerActivity, profile
    return profile(activities=[ProfilerActivity.CPU], profile_memory=True)


def held(*tensors):
    """Bytes of the distinct storages of these tensors, as the program knows them."""
    return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}.values())


def account(n, x, loss):
    states = [t for s in optimizer.state.values() for t in s.values() if isinstance(t, torch.Tensor)]
    own = list(layer.parameters()) + list(model.parameters()) + states + kept + [x, loss]
    told.append((n, held(*own)))
    torch.empty(MARK + n, dtype=torch.uint8)


def write(watched):
    """A line for each event, in order: size (a free: less than 0), address, PyTorch's total behind it."""
    todo, found = list(watched.profiler.kineto_results.experimental_event_tree()), []
    while todo:
        node = todo.pop()
        todo.extend(node.children)
        if node.tag.name == "Allocation" and str(node.extra_fields.device) == "cpu":
            f = node.extra_fields
            found.append((node.start_time_ns, f.alloc_size, f.ptr, f.total_allocated))
    found.sort(key=lambda e: e[0])
    with open(truth, "w") as f:
        for n, size in told:
            print("step", n, size, file=f)
        for _, size, at, total in found:
            print("event", size, at, total, file=f)


with watch() if truth else contextlib.nullcontext() as watched:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layer = nn.TransformerEncoderLayer(64, 4, 256, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    side = torch.cuda.Stream() if device == "cuda" else None
    digest, kept, told, n = hashlib.sha256(), [], [], 0
    while n < steps if steps else not os.path.exists(end):
        x = torch.randn(4 + n % 5, 32, 64).to(device)
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if side:
            with torch.cuda.stream(side):
                y = torch.empty(1234567 + n % 7, device="cuda", dtype=torch.uint8)
            y.record_stream(torch.cuda.current_stream())
        if n % 3 == 0:
            kept.append(torch.zeros(1000 + 37 * (n % 50), device=device))
            del kept[:-20]
        digest.update(loss.detach().cpu().numpy().tobytes())
        if truth:
            account(n, x, loss)
        n += 1
        if n == 2:
            open(ready, "w").close()


def profiled():
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        model(torch.ones(4, 32, 64, device=device)).pow(2).mean().backward()
        torch.cuda.synchronize()
    return sum(str(e.device_type()).endswith("CUDA") for e in p.profiler.kineto_results.events())


print(n, digest.hexdigest(), *([profiled()] if side else []))
if truth:
    write(watched)
