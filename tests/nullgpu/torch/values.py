# SPDX-License-Identifier: Apache-2.0
"""values.py - decisions that a script takes from small tensors are the right ones on the null GPU, and
several trainings in one process, with a cap between them, behave as on a card. Prints TAP lines."""
import ctypes
import re
import sys
import threading

import torch
import torch.utils.checkpoint
from torch import nn

failed = 0


def ok(good, name):
    global failed
    failed |= not good
    print("%s - %s" % ("ok" if good else "not ok", name))


def packed():
    """The first of all: later the null GPU no longer looks at layer normalization."""
    norm, x = nn.LayerNorm(512).cuda(), torch.randn(8, 256, 512, device="cuda", requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (torch.special.i1e(t.detach()), t.detach())[1], lambda t: t):
        ok(norm(x * 1).shape == x.shape, "a hook that packs what is kept calls what nobody called before")


def train(batch):
    torch.cuda.reset_peak_memory_stats()
    net = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(3):
        loss = net(torch.randn(batch, 1024, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return torch.cuda.max_memory_allocated(), loss.item()


def large_values():
    """Data, masks and assignments above 1 MiB; an untrained network's outputs are zeros."""
    edges = torch.randint(0, 1000, (2, 200000)).cuda()
    host = edges.cpu()
    ok(host[:, host[0] != host[1]].shape == edges[:, edges[0] != edges[1]].shape and
       host.sum() == edges.sum().item(), "integers from the host keep their values: 3 MiB of edges")
    with torch.no_grad():
        points = torch.arange(300000, device="cuda").float().view(-1, 1).expand(-1, 4)
        inside = (points > 10).all(1) & (points < 200010).all(1)
        ok(inside.sum().item() == 199999, "boxes and masks computed on the device are right")
        wide = torch.randn(30000, 64, device="cuda")
        ok(wide[inside[:30000]].shape[0] == 29989, "a known mask selects rows of unknown values")
        far, one = torch.randn(5, 24, 18900, 4, device="cuda"), torch.ones(5, 24, 1, 1, device="cuda")
        rows = torch.randn(5, 1, 18900, 4, device="cuda").expand(-1, 24, -1, -1)
        for first, second in ((one.expand(-1, -1, 18900, 4), rows), (rows, one.expand(-1, -1, 18900, 4))):
            mask = (far.amin(3).gt_(0) * one[..., 0]).bool()
            ok(first[mask].shape == second[mask].shape == (mask.nonzero().shape[0], 4),
               "a mask that nobody knows chooses as many each time")
        logits = nn.Linear(16, 64).cuda()(torch.randn(50000, 16, device="cuda"))
        ok((logits.softmax(1) > 0.1).nonzero().shape[0] == 0, "an untrained network's scores are even")
    with torch.inference_mode():
        ok(inside.nonzero(as_tuple=True)[0].numel() == 199999, "also in inference mode")
    layer = nn.Linear(64, 64).cuda()
    rows = torch.arange(100, device="cuda") % 3 == 0
    layer(torch.randn(100, 64, device="cuda"))[rows].square().mean().backward()
    ok(layer.weight.grad.shape == (64, 64), "gradients go through a boolean index")
    maps = nn.Conv2d(4, 4, 1, device="cuda")
    maps(torch.ones(100, 4, 8, 8, device="cuda"))[rows].sum().backward()
    ok(maps.weight.grad.sum().item() == 0, "those of a convolution are not worked out, which would take long")
    ok(0 < torch.normal(0.0, 1.0, (100,), device="cuda").abs().max().item() < 10, "a normal of numbers is drawn")
    state = torch.get_rng_state()
    drawn = torch.randperm(5000, device="cuda")
    ok(drawn.sort().values.equal(torch.arange(5000, device="cuda")) and
       torch.get_rng_state().equal(state), "a permutation is one, and the host's generator untouched")


def little_of_much():
    """What is written into rows of something large, whose values are not known. Only in a recorded run the null GPU is told
    what memory is handed out anew, and it does not guess."""
    if not ctypes.CDLL("libcuda.so.1").vc_null_is_told():
        return
    mask = torch.zeros(64, 1024, 1024, device="cuda")  # 256 MiB
    row, chosen = mask[:, 0, :], torch.arange(1024, device="cuda") % 100 == 7
    row[chosen.expand(64, -1)] = 3.0
    ok((row > 0).sum().item() == 64 * 11 and (mask[:, 0, :] > 0).any().item(), "rows of a large mask hold what was written")
    ok(mask[:, 1, :].sum().item() == 0, "... and others nothing")
    mask[3, 5, :7] = 1.0
    ok(mask[3, 5, :7].sum().item() == 7 and (row == 3).sum().item() == 704, "... nor do two places disturb each other")
    mask.mul_(torch.randn(64, 1024, 1024, device="cuda"))
    ok((mask[:, 0, :] > 0).sum().item() == 0, "what is written over is not known any more")


class Asks(torch.autograd.Function):
    """A gradient written in Python that decides by what it was given."""
    seen = []

    @staticmethod
    def forward(ctx, x, rows):
        ctx.save_for_backward(rows)
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        rows, = ctx.saved_tensors
        Asks.seen.append(((rows > 4).nonzero().shape[0], rows.flip(0)[0].item()))
        return grad, None


def backward_values():
    """What a backward pass runs of Python's: custom gradients, repeated forward passes."""
    x = torch.randn(10, 512, device="cuda", requires_grad=True)
    Asks.apply(x, torch.arange(10, device="cuda")).sum().backward()
    ok(Asks.seen == [(5, 9)], "a gradient written in Python sees values")
    layer, seen = nn.Linear(512, 512).cuda(), []

    def ask(*unused):
        seen.append((torch.arange(10, device="cuda") > 4).nonzero().shape[0])
    handle = layer.register_full_backward_hook(ask)
    layer(x).sum().backward()
    ok(seen == [5], "so does a hook of a module")
    handle.remove()
    del seen[:]

    def block(h, mask):
        seen.append(mask.nonzero().shape[0])
        return h.clone().index_put((mask,), layer(h[mask]))
    for reentrant in (False, True):
        mask = torch.arange(4096, device="cuda") % 4 == 0
        h = torch.randn(4096, 512, device="cuda", requires_grad=True)
        torch.utils.checkpoint.checkpoint(block, h, mask, use_reentrant=reentrant).sum().backward()
        ok(h.grad.shape == h.shape and set(seen) == {1024} and len(seen) == 2,
           "a checkpointed block repeats its mask (use_reentrant=%s)" % reentrant)
        del seen[:]
    heads = torch.ones(4, 4).to_sparse().cuda()
    ok(heads._nnz() == 16 and heads.is_cuda, "sparse tensors move to the card")


def asked_values():
    """Sizes and checks that an operation finds out by asking for values itself."""
    counts = torch.tensor([1, 5, 2, 2, 9], device="cuda")
    ok(torch.bincount(counts).tolist() == [0, 1, 2, 0, 0, 1, 0, 0, 0, 1], "bincount is as long as it must be")
    ok(torch.repeat_interleave(counts, counts).shape[0] == 19 and
       torch.repeat_interleave(counts.repeat(100000), 2).sum().item() == 3800000, "rows are repeated")
    twice = torch.tensor([[0, 0, 1], [1, 1, 2]], device="cuda")
    ok(torch.sparse_coo_tensor(twice, torch.ones(3, device="cuda"), (5, 5)).coalesce()._nnz() == 2,
       "what a sparse tensor holds twice counts once")
    ok(torch.eye(5, device="cuda").to_sparse()._nnz() == 5, "a dense tensor becomes a sparse one")
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).cuda().eval()
    padded = torch.arange(20, device="cuda")[None] >= torch.tensor([[20], [10]], device="cuda")
    with torch.no_grad():
        out = encoder(torch.randn(2, 20, 64, device="cuda"), src_key_padding_mask=padded)
    ok(out.shape == (2, 20, 64), "padded rows pass through the encoder as a nested tensor")


def drawn_values():
    """Loops that end by a draw; logarithms and quotients of draws."""
    def tries(draw):
        return next((n for n in range(1000) if draw()), 1000)
    one = torch.empty(1, device="cuda")
    ok(max(map(tries, (lambda: one.uniform_().item() > 0.9, lambda: one.normal_().item() > 1,
                       lambda: one.bernoulli_(0.1).item(), lambda: one.random_(0, 10).item() == 3,
                       lambda: (torch.randn(8, device="cuda") > 1.5).any(),
                       lambda: torch.rand((), device="cuda") > 0.9))) < 1000, "loops over draws end")
    ok(nn.functional.gumbel_softmax(torch.zeros(8, 10, device="cuda"), hard=True).sum().item() == 8 and
       not torch.empty(500000, device="cuda").exponential_().log().isnan().any().item(),
       "draws that are divided by are not zero")
    loss = nn.functional.nll_loss(torch.zeros(4, 4, device="cuda").log(), torch.arange(4, device="cuda"))
    ok(bool(torch.isfinite(loss)) and torch.tensor([1., 2], device="cuda").log().amax().item() > 0.6,
       "a loss is finite where it is asked for on the card")


def kept_values():
    """Values stay on: in other threads, in closures of an optimizer, after a step that ran out of memory."""
    def count():
        return (torch.arange(10, device="cuda") > 4).nonzero().shape[0]
    seen = []
    threads = [threading.Thread(target=lambda: seen.append(count())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ok(seen == [5, 5, 5], "other threads see values")
    net = nn.Linear(8192, 8192).cuda()
    for how in (lambda o, f: o.step(f), lambda o, f: o.step(closure=f)):
        optimizer = torch.optim.SGD(net.parameters(), 0.1)

        def closure():
            seen.append(count())
            return net(torch.randn(4, 8192, device="cuda")).sum().backward()
        how(optimizer, closure)
    ok(seen[3:] == [5, 5], "closures of an optimizer see values")
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(0.03)
    try:
        torch.optim.AdamW(net.parameters()).step()
        died = False
    except torch.OutOfMemoryError:
        died = True
    torch.cuda.set_per_process_memory_fraction(1.0)
    ok(died and count() == 5, "after a step that ran out of memory there are values still")


def unknown_values():
    """Large results of the network count as zeros in what follows, computed or not."""
    layer = nn.Linear(512, 512, device="cuda")
    few = torch.arange(512.0, device="cuda")
    with torch.no_grad():
        y = layer(torch.randn(2048, 512, device="cuda"))
        ok((y * 3 + few)[2047].tolist() == few.tolist(), "what is added to unknown values is kept")
        ok((y.neg() / 2 + y).sigmoid()[7, 9].item() == 0.5, "a function of unknown values is that of zero")
        ok(torch.cat([y, few[None]])[2048].tolist() == few.tolist(), "known rows behind unknown ones are kept")
        ok((y * 3 + 1)[0, 0].item() == 1, "a number added to unknown values is kept")


def routed_values():
    """A router whose scores nobody computed sends as many tokens to each expert."""
    for tokens in 512, 65536:  # scores that are small, and large
        x = torch.randn(tokens, 512, device="cuda")
        scores = nn.Linear(512, 16, device="cuda")(x).softmax(-1)
        taken = scores.topk(4)[1]
        counts = torch.bincount(taken.flatten(), minlength=16).tolist()
        ok(counts == [tokens // 4] * 16, f"each expert gets as many of {tokens} tokens: {counts}")
        ok(taken.sort(1)[0].diff(dim=1).min().item() > 0, "and a token no expert twice")
        ok(torch.bincount(scores.argmax(-1), minlength=16).tolist() == [tokens // 16] * 16, "also where each takes one")
        mask = torch.zeros_like(scores)
        mask.index_put_((torch.arange(tokens, device="cuda")[:, None], taken), torch.ones(tokens, 4, device="cuda"))
        ok(mask.bool().sum(0).tolist() == counts, "and where a mask is made of it")
    torch.use_deterministic_algorithms(True, warn_only=True)
    ok(not (x * 2).bool().any().item(), "deterministic algorithms fill no memory")
    torch.use_deterministic_algorithms(False)
    known = torch.tensor([[1.0, 4, 2, 3], [5, 1, 1, 2]], device="cuda")
    ok(known.topk(2)[1].tolist() == [[1, 3], [0, 3]], "known scores decide themselves")
    ties = torch.tensor([[0.0, 9, 0, 0], [9, 0, 0, 0]], device="cuda").topk(2)[1].tolist()
    ok(ties[0][0] == 1 and ties[1][0] == 0 and ties[0][1] != ties[1][1], "of equal ones the next is taken in turn")


def checked_values():
    """Checks that a right program passes, whether its values are known or not."""
    import torch.distributions as d
    layer = nn.Linear(64, 64, device="cuda")

    def passes(rows):
        y = layer(torch.randn(rows, 64, device="cuda"))
        finite, same = torch.isfinite(y).all(), torch.allclose(y, y)
        inside = bool(((y.sigmoid() >= 0) & (y.sigmoid() <= 1)).all(-1).all())
        scale = torch.eye(64, device="cuda").expand(rows, 64, 64)
        try:
            for one in (d.Normal(y, y.exp()), d.Categorical(logits=y),
                        d.Categorical(y.softmax(-1)), d.Beta(y.exp() + 1, y.exp() + 1),
                        d.Bernoulli(y.sigmoid()), d.MultivariateNormal(y, scale_tril=scale)):
                one.log_prob(one.sample())
            torch.normal(0.0, y.exp()), torch.normal(y, y.exp())
            torch.testing.assert_close(y, y.clone())
        except (ValueError, RuntimeError, AssertionError) as e:
            return str(e)[:60]
        return "" if finite and same and inside and not torch.isnan(y).any() else "a mask"
    said = [passes(rows) for rows in (8, 20000)]
    with torch.no_grad():
        said += [passes(rows) for rows in (8, 20000)]
    ok(not any(said), "what a program checks of large tensors holds: %s" % said)
    wrong = torch.ones(300000, device="cuda")
    wrong[7] = float("nan")
    ok(not torch.isfinite(wrong).all() and not (torch.arange(300000, device="cuda") > 0).all(),
       "what is known and does not hold is found out")
    torch.manual_seed(3)
    torch.normal(torch.zeros(4, device="cuda"), torch.ones(4, device="cuda"))
    after = torch.rand(1).item()
    torch.manual_seed(3)
    ok(after == torch.rand(1).item(), "a draw on the card leaves the host's generator alone")


def higher_order():
    """Operators that take functions: they look for their kernels by themselves."""
    from torch._prims.rng_prims import run_and_save_rng_state, run_with_rng_state
    x = torch.ones(64, 64, device="cuda")
    state, _ = run_and_save_rng_state(torch.ops.aten.bernoulli.p, x, 0.5)
    ok(run_with_rng_state(state, torch.ops.aten.add.Tensor, x, x).sum().item() == 8192,
       "a region is run again with the same random numbers")

    class Later(torch._ops.HigherOrderOperator):
        def __init__(self):
            super().__init__("vramcast_test_later")

        def __call__(self, f, x):
            return super().__call__(f, x)
    later = Later()
    later.py_impl(torch._C.DispatchKey.CUDA)(lambda f, x: f(x))
    with torch._C._AutoDispatchBelowAutograd():
        ok(later(lambda x: (x > 0).nonzero(), x).shape == (4096, 2), "so is one that is made later")


def wide_values():
    """What is read back need not fit into the usual type of its kind."""
    big = torch.tensor([2 ** 63 + 5, 7], dtype=torch.uint64, device="cuda")
    ok(big[0].item() == 2 ** 63 + 5 and big[1].item() == 7 and big.tolist() == [2 ** 63 + 5, 7],
       "unsigned numbers of 64 bits are read back")
    ok(torch.tensor([float("inf")], device="cuda").item() == 0, "a single number is never infinite")


def gradients_in_place():
    """PyTorch adds to a gradient in place that nobody else holds: to look at its values is not to hold it."""
    made, seen = [], []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            made.append(g * 2)
            return made.pop()

    x = torch.randn(4, 250, device="cuda", requires_grad=True)
    y = x * 1
    y.register_hook(lambda g: seen.append(torch.cuda.memory_stats()["allocation.all.allocated"]))
    total = Double.apply(y).sum() + Double.apply(y).sum()
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    total.backward()
    ok(seen[0] - before == 3, "a gradient is added to in place: %d blocks" % (seen[0] - before))


def default_on_card():
    """Where new tensors lie on the card unless told otherwise, an optimizer counts its steps there."""
    torch.set_default_device("cuda")
    weight = nn.Linear(4, 4).weight
    weight.grad = torch.ones(4, 4)
    optimizers = [torch.optim.Adam([weight], foreach=f) for f in (True, False)]
    for optimizer in 2 * optimizers:
        optimizer.step()
    torch.set_default_device(None)
    steps = [torch.zeros((), device="cuda") for _ in range(3)]
    torch._foreach_add_(steps, 2)
    large = [torch.zeros(512, 512, device="cuda")]
    torch._foreach_add_(large, 2)
    ok([o.state[weight]["step"].item() for o in optimizers] == [2, 2] and [s.item() for s in steps] == [2, 2, 2] and
       large[0].sum().item() == 0, "steps that are counted on the card can be divided by")


def main():
    packed()
    higher_order()
    wide_values()
    large_values()
    little_of_much()
    backward_values()
    asked_values()
    drawn_values()
    kept_values()
    unknown_values()
    routed_values()
    checked_values()
    gradients_in_place()
    default_on_card()
    a = torch.arange(10, device="cuda")
    ok((a > 4).nonzero().flatten().tolist() == [5, 6, 7, 8, 9], "nonzero has the right size and values")
    ok(a[a > 6].tolist() == [7, 8, 9] and a.masked_select(a < 2).tolist() == [0, 1], "masks select")
    ok(a.sum().item() == 45 and a.float().mean().item() == 4.5, "small sums are computed")
    ok(torch.unique(a % 3).tolist() == [0, 1, 2] and bool((a == 3).any()), "unique and any are right")
    ok(torch.tensor([[1, 3, 2]], device="cuda").argmax(-1).item() == 1, "argmax is right")
    ok(a.view(2, 5).t()[1:3].cpu().tolist() == [[1, 6], [2, 7]], "what lies apart is read back")
    stale = torch.full((1000,), 7.0, device="cuda")
    del stale
    ok(nn.functional.gelu(torch.empty(1000, device="cuda")).cpu().abs().sum().item() == 0,
       "what the network computes reads as zero wherever it lies")
    lengths = torch.nn.utils.rnn.pad_sequence([a[:4], a[:2]], batch_first=True).ne(0).sum(1)
    ok(lengths.tolist() == [3, 1], "lengths of padded rows are right")
    big = torch.randn(4096, 4096, device="cuda")
    ok(big.sum().item() == 0 and big.argmax().item() == 0, "results of large operations read as zero")
    scale = torch.ones(1, device="cuda", requires_grad=True)
    ok(torch.equal(big.div(scale), big.div(scale)) and not torch.equal(big.div(scale), big[1:].div(scale)),
       "large tensors of one shape, whose values nobody knows, are equal")
    del big
    first, second = train(64), train(64)
    ok(first[0] == second[0], "two trainings in one process need the same memory")
    ok(abs(first[1]) < 1e30, "the loss is readable and finite")
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(0.01)
    try:
        train(65536)
        said = ""
    except torch.OutOfMemoryError as e:
        said = str(e)
    ok("allowed" in said or "memory fraction" in said or re.search(r"of which \d\d\.\d\d GiB is free", said),  # PyTorch 2.4 does not name it
       "a cap between them is obeyed: %.60s..." % said)
    torch.cuda.set_per_process_memory_fraction(1.0)
    ok(train(16384)[0] > first[0], "and goes away")
    layer = nn.LSTM(32, 64, 2, bidirectional=True).cuda()
    out, _ = layer(torch.randn(7, 3, 32, device="cuda"))
    out.sum().backward()
    ok(tuple(out.shape) == (7, 3, 128), "recurrent networks run through cuDNN")
    sys.exit(failed)


main()
