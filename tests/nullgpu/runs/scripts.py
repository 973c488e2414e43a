# SPDX-License-Identifier: Apache-2.0
"""scripts.py NAME [ARG]... - small programs for check.sh: what a dry run must do the same way every time."""
import os
import sys

import torch
import torch.utils.checkpoint
from torch import nn


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, i):
        return torch.full((256,), float(i)), i % 10


def net(width=512):
    return nn.Sequential(nn.Linear(256, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, 10))


def train(model, batches):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for x, y in batches:
        x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert loss.isfinite().item()


def eager():
    train(net().cuda(), [(torch.randn(n, 256), torch.randint(0, 10, (n,))) for n in (32, 8, 64, 33)])


def casts():
    """Frees that go by the addresses of objects (weights that autocast keeps), and gradients of
    gradients, whose last pieces the thread that computed them lets go of after the pass has ended."""
    layers = [nn.TransformerEncoderLayer(128, 4, 256, batch_first=True).cuda() for _ in range(4)]
    optimizer = torch.optim.AdamW([p for layer in layers for p in layer.parameters()])
    for i in range(6):
        x = h = torch.randn(8, 32 + i, 128, device="cuda", requires_grad=True)
        with torch.autocast("cuda", torch.bfloat16):
            for layer in layers:
                h = torch.utils.checkpoint.checkpoint(layer, h, use_reentrant=bool(i % 2))
        h.float().square().mean().backward()
        critic = nn.Linear(128, 1).cuda()
        slope, = torch.autograd.grad(critic(x).tanh().sum(), x, create_graph=True)
        (slope.norm(dim=-1) - 1).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def loader(pin=""):
    data = torch.utils.data.DataLoader(Rows(), batch_size=12, num_workers=3, pin_memory=bool(pin),
                                       shuffle=True)
    model = net().cuda()
    for _ in range(2):
        train(model, data)


def late():
    """A backward pass as the last act. The thread that computed it lets go of its last tensors while
    Python ends: it is not given the lock before, and the end takes its time."""
    class Last:
        def __del__(self, sleep=__import__("time").sleep):
            sleep(0.3)
    sys.modules["__main__"].last = Last()
    model = net().cuda()
    x = torch.randn(8, 256, device="cuda")
    sys.setswitchinterval(100)
    model(x).sum().backward()


def ddp():
    import torch.distributed as dist
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    model = nn.parallel.DistributedDataParallel(net(4096).cuda())
    train(model, [(torch.randn(32, 256), torch.randint(0, 10, (32,))) for _ in range(6)])
    dist.destroy_process_group()


def peak_of(width, fraction=None):
    if fraction:
        torch.cuda.set_per_process_memory_fraction(fraction)
    torch.cuda.reset_peak_memory_stats()
    try:
        train(net(width).cuda(), [(torch.randn(64, 256), torch.randint(0, 10, (64,)))] * 3)
    except torch.OutOfMemoryError as e:
        return "out of memory" if "allowed" in str(e) else "refused: %s" % e
    return torch.cuda.max_memory_allocated()


def alone(width):
    print("peak", peak_of(int(width)))


def forked(*widths):
    """Several models, a process each, that share the import of torch."""
    for width in widths:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            print("peak", peak_of(int(width)))
            sys.stdout.flush()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0


def borrower(queue, done):
    x = queue.get()
    print("borrowed", tuple(x.shape), x.device, torch.cuda.memory_allocated())
    sys.stdout.flush()
    del x
    done.set()


def shared():
    """A tensor on the card that another process opens."""
    import torch.multiprocessing as mp
    mp.set_start_method("spawn")
    queue, done = mp.Queue(), mp.Event()
    process = mp.Process(target=borrower, args=(queue, done))
    process.start()
    x = torch.ones(1000, 1000, device="cuda")
    queue.put(x)
    done.wait(100)
    process.join()
    assert process.exitcode == 0


def capped():
    """One model after the other in one process, a cap between them."""
    first = peak_of(20000)
    second = peak_of(20000)
    torch.cuda.empty_cache()
    print("same" if first == second else "first %s, then %s" % (first, second))
    print("capped:", peak_of(20000, 0.002))
    torch.cuda.empty_cache()
    print("free again" if peak_of(20000, 1.0) == first else "the cap stays")


def total():
    print("total", torch.cuda.get_device_properties(0).total_memory)
    train(net().cuda(), [(torch.randn(8, 256), torch.randint(0, 10, (8,)))])


def killed():
    import signal
    model = net().cuda()
    train(model, [(torch.randn(8, 256), torch.randint(0, 10, (8,)))])
    os.kill(os.getpid(), signal.SIGKILL)


def main():
    torch.manual_seed(0)
    globals()[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
