# SPDX-License-Identifier: Apache-2.0
"""users.py - short programs in the styles of many users, one after the other in one process: each must end,
and take the turns that it would take on a card. Nothing but PyTorch is needed. Prints TAP lines."""
import copy
import gc
import math
import sys
import threading
import traceback

import torch
import torch.multiprocessing
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical

DEVICE = "cuda"


def network(classes=10):
    return nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes)).to(DEVICE)


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 128

    def __getitem__(self, i):
        return torch.randn(3, 32, 32), i % 10


def batches(size=64):
    for x, y in torch.utils.data.DataLoader(Pictures(), size):
        yield x.to(DEVICE), y.to(DEVICE)


def finite(x):
    assert bool(torch.isfinite(x).all()) and not torch.isnan(x).any(), "not finite: %s" % x


def confusion_matrix():
    net = network().eval()
    matrix = torch.zeros(10, 10, dtype=torch.long, device=DEVICE)
    with torch.no_grad():
        for x, y in batches():
            chosen = net(x).argmax(1)
            matrix += torch.bincount(y * 10 + chosen, minlength=100).view(10, 10)
    assert matrix.sum(1).tolist() == [13] * 8 + [12] * 2, matrix
    finite(2 * matrix.diag() / (matrix.sum(0) + matrix.sum(1)).clamp(min=1))


def early_stopping():
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    best, bad, epochs, kept = math.inf, 0, 0, None
    while bad < 3:
        for x, y in batches():
            loss = F.cross_entropy(net(x), y)
            if torch.isnan(loss) or not torch.isfinite(loss):
                raise RuntimeError("the loss is %s" % loss)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            value = sum(F.cross_entropy(net(x), y).item() for x, y in batches())
        schedule.step(value)
        epochs += 1
        assert epochs < 20, "never stops"
        if value < best - 1e-3:
            best, bad, kept = value, 0, copy.deepcopy(net.state_dict())
        else:
            bad += 1
    net.load_state_dict(kept)


def scaled_accumulation():
    net = network().to(memory_format=torch.channels_last)
    optimizer, scaler = torch.optim.AdamW(net.parameters()), torch.amp.GradScaler("cuda")
    for i, (x, y) in enumerate(batches(16)):
        with torch.autocast("cuda", torch.float16):
            loss = F.cross_entropy(net(x.to(memory_format=torch.channels_last)), y) / 2
        scaler.scale(loss).backward()
        if i % 2:
            scaler.unscale_(optimizer)
            finite(nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True))
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    assert scaler.get_scale() >= 1024 and len(optimizer.state) > 0


def decoding():
    words, end = 50, 3
    embed, core = nn.Embedding(words, 64).to(DEVICE), nn.GRU(64, 64, batch_first=True).to(DEVICE)
    head = nn.Linear(64, words).to(DEVICE)
    text = torch.tensor([[1]], device=DEVICE)
    with torch.no_grad():
        while text[0, -1].item() != end and text.shape[1] < 60:
            scores = head(core(embed(text))[0][:, -1])
            least = scores.topk(10).values[:, [-1]]
            chances, order = scores.masked_fill(scores < least, -math.inf).softmax(-1).sort(descending=True)
            chances[chances.cumsum(-1) - chances > 0.9] = 0
            chosen = order.gather(1, torch.multinomial(chances / chances.sum(), 1))
            assert 0 <= chosen.item() < words
            text = torch.cat([text, chosen], 1)
        hypotheses, totals = [[1]] * 4, torch.zeros(4, device=DEVICE)
        for _ in range(8):
            after = head(core(embed(torch.tensor(hypotheses, device=DEVICE)))[0][:, -1]).log_softmax(-1)
            totals, at = (totals[:, None] + after).flatten().topk(4)
            hypotheses = [hypotheses[i // words] + [i % words] for i in at.tolist()]
            finite(totals)


def policy_gradient():
    policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2)).to(DEVICE)
    optimizer = torch.optim.Adam(policy.parameters(), 1e-3)
    for _ in range(2):
        seen, acts = [], []
        state = torch.zeros(4)
        while state.abs().max() < 0.1 and len(acts) < 200:
            with torch.no_grad():
                act = Categorical(logits=policy(state.to(DEVICE))).sample()
            seen.append(state)
            acts.append(act)
            state = state + 0.01 * (2 * act.item() - 1)
        seen, acts = torch.stack(seen).to(DEVICE), torch.stack(acts)
        gains = torch.arange(len(acts), 0, -1., device=DEVICE)
        gains = (gains - gains.mean()) / (gains.std() + 1e-8)
        before = Categorical(logits=policy(seen)).log_prob(acts).detach()
        for _ in range(4):
            now = Categorical(logits=policy(seen))
            loss = -((now.log_prob(acts) - before).exp() * gains).mean() - 0.01 * now.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if (before - now.log_prob(acts)).mean().item() > 0.015:
                break
        finite(loss.detach())


def clusters():
    points = torch.randn(2000, 16, device=DEVICE)
    centres = points[torch.randperm(2000, device=DEVICE)[:8]].clone()
    for turn in range(300):
        nearest = torch.cdist(points, centres).argmin(1)
        moved = torch.stack([points[nearest == k].mean(0) if (nearest == k).any() else centres[k]
                             for k in range(8)])
        if (moved - centres).norm() < 1e-4:
            return
        centres = moved
    raise AssertionError("does not converge")


def penalty():
    critic = nn.Sequential(nn.Linear(64, 128), nn.LeakyReLU(), nn.Linear(128, 1)).to(DEVICE)
    optimizer = torch.optim.Adam(critic.parameters(), 1e-4)
    for _ in range(3):
        x = torch.randn(32, 64, device=DEVICE, requires_grad=True)
        slope, = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
        loss = critic(x).mean() + 10 * (slope.norm(2, 1) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    finite(loss.detach())


def transforms():
    from torch.func import functional_call, grad, hessian, jacrev, jvp, vmap
    net = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4)).to(DEVICE)
    x, y = torch.randn(8, 16, device=DEVICE), torch.randint(0, 4, (8,), device=DEVICE)

    def loss(parameters, x, y):
        return F.cross_entropy(functional_call(net, parameters, (x[None],)), y[None])
    each = vmap(grad(loss), in_dims=(None, 0, 0))(dict(net.named_parameters()), x, y)
    assert each["0.weight"].shape == (8, 32, 16)
    assert jvp(net, (x,), (x,))[1].shape == (8, 4) and jacrev(net)(x[0]).shape == (4, 16)
    assert hessian(lambda z: net(z).sum())(x[0]).shape == (16, 16)
    assert torch.export.export(net, (x,)).module()(x).shape == (8, 4)


def graphs():
    net = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)).to(DEVICE)
    x = torch.randn(32, 256, device=DEVICE, requires_grad=True)
    captured = torch.cuda.make_graphed_callables(net, (x,))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad(set_to_none=False)
        captured(torch.randn(32, 256, device=DEVICE)).sum().backward()
        optimizer.step()


def averages():
    swa = torch.optim.swa_utils
    net = network()
    mean, optimizer = swa.AveragedModel(net), torch.optim.AdamW(net.parameters())
    for x, y in batches(32):
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
        mean.update_parameters(net)
    swa.update_bn(batches(), mean)
    assert mean.n_averaged.item() == 4


def line_search():
    x, w = torch.randn(200, 10, device=DEVICE), torch.zeros(10, 1, device=DEVICE, requires_grad=True)
    optimizer = torch.optim.LBFGS([w], max_iter=20, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(x @ w, x.sum(1, keepdim=True))
        loss.backward()
        return loss
    for _ in range(3):
        finite(optimizer.step(closure).detach())


def edges():
    ends = torch.randint(0, 500, (2, 4000), device=DEVICE)
    adjacency = torch.sparse_coo_tensor(ends, torch.ones(4000, device=DEVICE), (500, 500)).coalesce()
    assert adjacency._nnz() == len({tuple(e) for e in ends.t().tolist()})
    x = torch.randn(500, 32, device=DEVICE, requires_grad=True)
    torch.sparse.mm(adjacency, x).sum().backward()
    degrees = torch.bincount(ends[0])
    assert torch.repeat_interleave(torch.arange(len(degrees), device=DEVICE), degrees).shape == (4000,)


def largest_batch():
    rows = 64
    while True:
        try:
            torch.empty(rows, 16, 1024, 1024, device=DEVICE).mul_(2)
            rows *= 2
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
            break
    assert rows == 512, rows  # 16 GiB fit on 24 GB, 32 do not


def side_streams():
    seen = []

    def train(net):
        with torch.cuda.stream(torch.cuda.Stream()):
            for x, y in batches():
                F.cross_entropy(net(x), y).backward()
            seen.append((y > 4).nonzero().shape[0])
    threads = [threading.Thread(target=train, args=(network(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [sum(i % 10 > 4 for i in range(64, 128))] * 3, seen


def child(queue):
    nn.Linear(64, 64).to(DEVICE)(torch.randn(8, 64, device=DEVICE)).sum().backward()
    queue.put(torch.cuda.max_memory_allocated())


def spawned():
    context = torch.multiprocessing.get_context("spawn")
    queue = context.Queue()
    children = [context.Process(target=child, args=(queue,)) for _ in range(2)]
    for process in children:
        process.start()
    peaks = [queue.get(timeout=300) for _ in children]
    for process in children:
        process.join()
    assert peaks[0] == peaks[1] > 0 and all(p.exitcode == 0 for p in children)


CASES = (confusion_matrix, early_stopping, scaled_accumulation, decoding, policy_gradient, clusters, penalty,
         transforms, graphs, averages, line_search, edges, largest_batch, side_streams, spawned)


def main():
    failed = 0
    for case in CASES:
        try:
            case()
            print("ok - %s" % case.__name__, flush=True)
        except Exception as e:
            failed = 1
            print("not ok - %s: %s" % (case.__name__, e))
            traceback.print_exc(file=sys.stdout)
            sys.stdout.flush()
        gc.collect()
        torch.cuda.empty_cache()
    sys.exit(failed)


if __name__ == "__main__":
    main()
