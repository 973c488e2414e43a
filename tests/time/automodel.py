# SPDX-License-Identifier: Apache-2.0
"""Training steps of language models as NeMo Automodel ran them (its performance summary at 36044ad, with the examples and the
code of the time of each row: October 2025 for mixtures without states), in plain PyTorch: FSDP2 over layers, tensor, context,
pipeline (interleaved 1F1B) and expert parallel, low-rank adapters, mixtures of experts, states of Mamba-2. One rank of WORLD_SIZE,
for dry runs.

automodel.py ROW [--steps 2]

A kernel of Transformer Engine, Triton or DeepEP is one kernel of PyTorch's that moves or computes as much. The router is
Automodel's fake balanced one, which computes nothing: a token's experts are neighbours, so that it goes to few ranks."""
import argparse
import functools
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils.checkpoint import checkpoint

from collectives import Swap

BF16 = torch.bfloat16
LLAMA8 = dict(hidden=4096, layers=32, heads=32, kv=8, dim=128, ffn=14336, vocab=128256)
LLAMA70 = dict(hidden=8192, layers=80, heads=64, kv=8, dim=128, ffn=28672, vocab=128256)
QWEN7 = dict(hidden=3584, layers=28, heads=28, kv=4, dim=128, ffn=18944, vocab=152064, bias=True)
QWEN32 = dict(hidden=5120, layers=64, heads=40, kv=8, dim=128, ffn=27648, vocab=152064, bias=True)
QWEN3 = dict(hidden=2048, layers=48, heads=32, kv=4, dim=128, experts=128, topk=8, moe=768, vocab=151936, te=True, stay=True,
             unfused=True, head_norms=True)
OSS = dict(hidden=2880, heads=64, kv=8, dim=64, topk=4, moe=2880, vocab=201088, window=128, bias=True, sinks=True,
           unfused=True)
MLA = dict(te=True, hidden=7168, layers=61, mla=(1536, 512, 128, 64, 128), ffn=18432, topk=8, moe=2048, shared=2048)
NANO = dict(hidden=2688, pattern="MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME", heads=32, kv=2, dim=128, experts=128,
            stay=True, topk=6, moe=1856, shared=3712, gated=False, states=(64, 64, 8, 128), vocab=131072)
SUPER = dict(hidden=4096, pattern="MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME",
             heads=32, kv=2, dim=128, experts=512, topk=22, moe=2688, shared=5376, latent=1024, gated=False,
             states=(128, 64, 8, 128), vocab=131072)
# Transformer Engine has cuDNN's attention.
KERNELS = {True: [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION],
           False: [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]}
# model, cards, batch of a rank at a time, how often, tokens, and what else the row and its file say
ROWS = {
    "lora_llama_8b": (LLAMA8, dict(world=1, micro=2, times=16, lora=16)),
    "lora_qwen_7b": (QWEN7, dict(world=1, micro=2, times=16, lora=16)),
    "lora_llama_70b": (LLAMA70, dict(world=8, micro=2, times=4, lora=16, tp=2, again=True, sequence=True)),
    "lora_qwen_32b": (QWEN32, dict(world=8, micro=2, times=4, lora=16, tp=2, again=True)),
    "lora_llama_70b_2": (LLAMA70, dict(world=16, micro=2, times=2, lora=16, tp=2, again=True, sequence=True)),
    "lora_qwen_32b_2": (QWEN32, dict(world=16, micro=2, times=2, lora=16, tp=2, again=True)),
    "llama_70b": (LLAMA70, dict(world=64, micro=1, times=4, seq=8192, cp=2, again=True, sync=True)),
    "qwen3_moe_30b": (QWEN3, dict(world=8, micro=4, times=16, ep=8, again=True)),
    "gpt_oss_20b": (dict(OSS, layers=24, experts=32), dict(world=8, micro=2, times=16, ep=8, again=True)),
    "gpt_oss_120b": (dict(OSS, layers=36, experts=128), dict(world=64, micro=2, times=4, ep=64)),
    "nemotron_nano": (NANO, dict(world=8, micro=4, times=16, ep=8, again=True)),
    "nemotron_super": (SUPER, dict(world=64, micro=2, times=4, ep=64, again=True)),
    "deepseek_v3_256": (dict(MLA, heads=128, dense=3, experts=256, vocab=129280),
                        dict(world=256, micro=8, times=1, ep=64, pp=4, each=2, again=True)),
    "deepseek_v3_1024": (dict(MLA, heads=128, dense=3, experts=256, vocab=129280),
                         dict(world=1024, micro=8, times=4, ep=64, pp=4, each=2, again=True)),
    "kimi_k2": (dict(MLA, heads=64, dense=1, experts=384, vocab=163840),
                dict(world=256, micro=8, times=2, ep=32, pp=8, each=2, again=True)),
}


class Fused(torch.autograd.Function):
    """One kernel that reads and writes x: rotary embeddings."""
    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return g * 1.0


class Gate(torch.autograd.Function):
    """silu(a) b in one kernel; two backwards."""
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b, g * a


class Halves(torch.autograd.Function):
    """The same of the two halves of one tensor."""
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        a, b = x.view(2, x.shape[0], -1)
        return a * b

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        y = torch.empty_like(x)
        for part, other in zip(y.view(2, x.shape[0], -1), x.view(2, x.shape[0], -1)[[1, 0]]):
            torch.mul(g, other, out=part)
        return y


class Squared(torch.autograd.Function):
    """relu(x) relu(x) in one kernel; one backwards."""
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class Sum(torch.autograd.Function):
    """Ranks add what each has: after a layer that is split by its inputs."""
    @staticmethod
    def forward(ctx, x, group):
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, g):
        return g, None


class Spread(torch.autograd.Function):
    """Before a layer that is split by its outputs: gradients are added."""
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous()
        dist.all_reduce(g, group=ctx.group)
        return g, None


class Collect(torch.autograd.Function):
    """Keys and values of the whole sequence."""
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        y = x.new_empty((dist.get_world_size(group), *x.shape))
        dist.all_gather_into_tensor(y, x.contiguous(), group=group)
        return y

    @staticmethod
    def backward(ctx, g):
        y = torch.empty_like(g[0])
        dist.reduce_scatter_tensor(y, g.contiguous(), group=ctx.group)
        return y, None


class Linear(nn.Module):
    def __init__(self, a, inputs, outputs, bias=False):
        super().__init__()
        rank = a.lora
        self.weight = nn.Parameter(torch.empty(outputs, inputs, dtype=BF16), requires_grad=not rank)
        self.bias = nn.Parameter(torch.empty(outputs, dtype=BF16), requires_grad=not rank) if bias else None
        if rank:
            self.down = nn.Parameter(torch.empty(rank, inputs, dtype=BF16))
            self.up = nn.Parameter(torch.empty(outputs, rank, dtype=BF16))
        self.rank = rank

    def forward(self, x):
        y = F.linear(x, self.weight, self.bias)
        return y + F.linear(F.linear(x, self.down), self.up) if self.rank else y


class Norm(nn.Module):
    def __init__(self, a, width):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, dtype=BF16), requires_grad=not a.lora)

    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.weight)


def rotated(x):
    """Rotary embeddings without a kernel of their own."""
    cos, sin = torch.empty(2, x.shape[1], 1, x.shape[-1] // 2, dtype=x.dtype, device="cuda")
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def turned(x):
    """The same as complex numbers."""
    angles = torch.empty(x.shape[1], 1, x.shape[-1] // 2, dtype=torch.complex64, device="cuda")
    pairs = torch.view_as_complex(x.float().view(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * angles).flatten(3).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, a, i):
        super().__init__()
        self.a, n, k = a, a.heads // a.tp, max(1, a.kv // a.tp) if a.kv else 0
        self.window = a.window if i % 2 == 0 else 0
        if a.mla:
            q, kv, nope, rope, value = a.mla
            self.down, self.up = Linear(a, a.hidden, q), Linear(a, q, n * (nope + rope))
            self.kv_down, self.kv_up = Linear(a, a.hidden, kv + rope), Linear(a, kv, n * (nope + value))
            self.q_norm, self.kv_norm = Norm(a, q), Norm(a, kv)
            self.out = Linear(a, n * value, a.hidden)
        else:
            self.q, self.out = Linear(a, a.hidden, n * a.dim, a.bias), Linear(a, n * a.dim, a.hidden, a.sinks)
            self.k, self.v = Linear(a, a.hidden, k * a.dim, a.bias), Linear(a, a.hidden, k * a.dim, a.bias)
        self.norms = nn.ModuleList((Norm(a, a.dim), Norm(a, a.dim))) if a.head_norms else None

    def heads(self, x):
        """Queries, keys and values, (batch, tokens, heads, width)."""
        a = self.a
        if not a.mla:
            q, k, v = [t(x).view(*x.shape[:2], -1, a.dim) for t in (self.q, self.k, self.v)]
            if self.norms is not None:
                q, k = self.norms[0](q), self.norms[1](k)
            return (rotated(q), rotated(k), v) if a.unfused else (Fused.apply(q), Fused.apply(k), v)
        q, kv, nope, rope, value = a.mla
        queries = self.up(self.q_norm(self.down(x))).view(*x.shape[:2], -1, nope + rope)
        queries = torch.cat((queries[..., :nope], turned(queries[..., nope:])), -1)
        small = self.kv_down(x)
        rest = self.kv_up(self.kv_norm(small[..., :kv].contiguous())).view(*x.shape[:2], -1, nope + value)
        key = turned(small[..., None, kv:]).expand(-1, -1, rest.shape[2], -1)
        return queries, torch.cat((rest[..., :nope], key), -1), rest[..., nope:]

    def forward(self, x):
        q, k, v = [t.transpose(1, 2).contiguous() if self.a.sinks else t.transpose(1, 2) for t in self.heads(x)]
        many = q.shape[1] != k.shape[1]
        if self.a.cp > 1:  # a ring: the own part, and as much of the others' as a balanced mask leaves
            k, v = [Collect.apply(t, self.a.groups["cp"]) for t in (k, v)]
            y = F.scaled_dot_product_attention(q, k[0], v[0], is_causal=True, enable_gqa=many)
            half = k.shape[3] // 2
            y = y + F.scaled_dot_product_attention(q, k[1][:, :, :half], v[1][:, :, :half], enable_gqa=many)
        elif self.window:  # blocks of twice the window
            w, d = 2 * self.window, q.shape[-1]
            q, k, v = [t.reshape(-1, t.shape[1], w, d) for t in (q, k, v)]
            y = F.scaled_dot_product_attention(q, k, v, enable_gqa=many).reshape(x.shape[0], -1, x.shape[1], d)
        else:
            with sdpa_kernel(KERNELS[self.a.te], set_priority=True):
                y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=many)
        if self.a.sinks:  # a part of the softmax goes to no token
            y = (y * torch.empty(*y.shape[:3], 1, device="cuda")).to(BF16)
        return self.out(y.transpose(1, 2).reshape(*x.shape[:2], -1))


class States(nn.Module):
    """Mamba-2 by chunks, a product for each kernel of its scan."""
    CHUNK = 128

    def __init__(self, a):
        super().__init__()
        self.a = a
        self.n, self.d, self.g, self.s = a.states
        inner = self.n * self.d
        self.inner, self.wide = inner, inner + 2 * self.g * self.s
        self.into = Linear(a, a.hidden, inner + self.wide + self.n)
        self.filter = nn.Parameter(torch.empty(self.wide, dtype=BF16))
        self.norm, self.out = Norm(a, inner), Linear(a, inner, a.hidden)

    def forward(self, x):
        b, s, c = x.shape[0], x.shape[1], self.CHUNK
        z, mixed, dt = self.into(x).split((self.inner, self.wide, self.n), -1)
        mixed = mixed * self.filter  # the convolution
        u, key, query = mixed.split((self.inner, self.g * self.s, self.g * self.s), -1)
        chunks = b * s // c

        def part(t):  # by group: its heads share keys and queries
            return t.reshape(chunks, c, self.g, -1).transpose(1, 2).reshape(chunks * self.g, c, -1)
        u, key, query = part(u), part(key), part(query)
        held = Fused.apply(torch.bmm(u.transpose(1, 2), key))  # what each chunk adds to the state; passed on
        near = torch.bmm(query, key.transpose(1, 2))
        y = torch.baddbmm(torch.bmm(near, u), query, held.transpose(1, 2))
        y = y.view(chunks, self.g, c, -1).transpose(1, 2).reshape(b, s, self.inner)
        return self.out(self.norm(Gate.apply(y, z.contiguous())))


class Mlp(nn.Module):
    def __init__(self, a, hidden, ffn):
        super().__init__()
        self.up, self.down = Linear(a, hidden, ffn), Linear(a, ffn, hidden)
        self.gate = Linear(a, hidden, ffn) if a.gated else None

    def forward(self, x):
        up = self.up(x)
        return self.down(Gate.apply(self.gate(x), up) if self.gate is not None else Squared.apply(up))


class Grouped(torch.autograd.Function):
    """Linear layers of several experts, each on its part of the rows."""
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        y = x.new_empty((x.shape[0], w.shape[1]))
        for part, to, one in zip(x.chunk(len(w)), y.chunk(len(w)), w):
            torch.mm(part, one.t(), out=to)
        return y

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        n, dx, dw = len(w), torch.empty_like(x), torch.empty_like(w)
        for i, (part, given, to) in enumerate(zip(x.chunk(n), g.chunk(n), dx.chunk(n))):
            torch.mm(given, w[i], out=to)
            torch.mm(given.t(), part, out=dw[i])
        return dx, dw


class Rows(torch.autograd.Function):
    """Rows in another order, some of them several times, in one kernel each way."""
    @staticmethod
    def forward(ctx, x, order):
        ctx.rows, ctx.order = x.shape[0], order
        return x.index_select(0, order)

    @staticmethod
    def backward(ctx, g):
        return fold(g, ctx.rows), None


class Fold(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, rows, order):
        ctx.order = order
        return fold(x, rows)

    @staticmethod
    def backward(ctx, g):
        return g.index_select(0, ctx.order), None, None


def fold(x, rows):
    return x if x.shape[0] == rows else x.view(-1, rows, x.shape[-1]).sum(0)


def biased(x, bias, probs=None):
    """As Automodel of October 2025 adds it, weighted by how likely an expert is."""
    parts = x.chunk(len(bias))
    if probs is None:
        return torch.cat([t + b for t, b in zip(parts, bias)])
    return torch.cat([t + b * p for t, b, p in zip(parts, bias, probs.chunk(len(bias)))]).to(x.dtype)


class Experts(nn.Module):
    def __init__(self, a, width):
        super().__init__()
        local = a.experts // a.ep
        self.up = nn.Parameter(torch.empty(local, (2 if a.gated else 1) * a.moe, width, dtype=BF16))
        self.down = nn.Parameter(torch.empty(local, width, a.moe, dtype=BF16))
        self.up_bias = nn.Parameter(torch.empty(local, 2 * a.moe, dtype=BF16)) if a.sinks else None
        self.down_bias = nn.Parameter(torch.empty(local, width, dtype=BF16)) if a.sinks else None

    def forward(self, x):
        y = Grouped.apply(x, self.up)
        if self.up_bias is not None:
            y = biased(y, self.up_bias)
        y = Grouped.apply(Halves.apply(y) if y.shape[1] > self.down.shape[2] else Squared.apply(y), self.down)
        if self.down_bias is not None:
            y = biased(y, self.down_bias, torch.empty(y.shape[0], 1, device="cuda"))
        return y


@functools.cache
def side_stream():
    return torch.cuda.Stream()


class Mixture(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.a = a
        width = a.latent or a.hidden
        self.experts = Experts(a, width)
        self.less, self.more = (Linear(a, a.hidden, width), Linear(a, width, a.hidden)) if a.latent else (None, None)
        self.shared = Mlp(a, a.hidden, a.shared) if a.shared else None
        self.orders = {}
        # neighbours of `topk` experts lie on so many nodes (or ranks, within one)
        each = a.experts // a.ep * (8 if a.ep > 8 else 1)
        self.copies = 1 + (a.topk - 1) / each

    def order(self, rows, times):
        if (rows, times) not in self.orders:
            self.orders[rows, times] = torch.arange(rows * times, device="cuda") % rows
        return self.orders[rows, times]

    def forward(self, x):
        if self.shared is None:
            return self.routed(x)
        side, here = side_stream(), torch.cuda.current_stream()
        side.wait_stream(here)
        with torch.cuda.stream(side):  # beside the messages
            z = self.shared(x)
        y = self.routed(x)
        here.wait_stream(side)
        return y + z

    def routed(self, x):
        a, flat = self.a, x.reshape(-1, x.shape[-1])
        inner = self.less(flat) if self.less is not None else flat
        rows = inner.shape[0]
        sent = int(rows * self.copies) // a.ep * a.ep
        out = torch.cat((inner, inner[:sent - rows])) if sent > rows else inner  # DeepEP's copies for other ranks
        got = Swap.apply(out, a.groups["ep"])[:rows]
        y = self.experts(Rows.apply(got, self.order(rows, a.topk)))
        y = Fold.apply(y, rows, self.order(rows, a.topk))
        y = torch.cat((y, y[:sent - rows])) if sent > rows else y
        y = Swap.apply(y, a.groups["ep"])[:rows]
        y = self.more(y) if self.more is not None else y
        return y.view(x.shape)


class Block(nn.Module):
    """One layer: M, E and * of Nemotron are one module each, others attention and a network."""
    def __init__(self, a, i):
        super().__init__()
        kind = a.pattern[i] if a.pattern else ""
        dense = not a.experts or i < a.dense
        self.a, self.parts = a, nn.ModuleList()
        if kind == "M":
            self.parts.append(States(a))
        if kind in ("", "*"):
            self.parts.append(Attention(a, i))
        if kind in ("", "E"):
            self.parts.append(Mlp(a, a.hidden, a.ffn // a.tp) if dense else Mixture(a))
        self.norms = nn.ModuleList(Norm(a, a.hidden) for _ in self.parts)

    def forward(self, x):
        for norm, part in zip(self.norms, self.parts):
            y = norm(x)
            if self.a.tp > 1:
                y = Sum.apply(part(Spread.apply(y, self.a.groups["tp"])), self.a.groups["tp"])
            else:
                y = part(y)
            x = x + y
        return x


class Model(nn.Module):
    """Some layers; with the embedding, if first, and the loss, if last."""
    def __init__(self, a, start, end, first, last):
        super().__init__()
        self.a, self.first, self.last = a, first, last
        self.embed = nn.Parameter(torch.empty(a.vocab, a.hidden, dtype=BF16), requires_grad=not a.lora) if self.first else None
        self.blocks = nn.ModuleList(Block(a, i) for i in range(start, end))
        self.norm = Norm(a, a.hidden) if self.last else None
        self.head = nn.Parameter(torch.empty(a.vocab, a.hidden, dtype=BF16), requires_grad=not a.lora) if self.last else None

    def forward(self, x):
        if self.first:
            x = F.embedding(x, self.embed)
            if self.a.lora:
                x.requires_grad_()
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.a.again else block(x)
        if not self.last:
            return x
        logits = F.linear(self.norm(x), self.head).flatten(0, 1)
        return F.cross_entropy(logits, torch.zeros(logits.shape[0], dtype=torch.long, device="cuda"))


def settings(name):
    a = argparse.Namespace(tp=1, cp=1, pp=1, ep=1, lora=0, seq=4096, again=False, sequence=False, sync=False, each=0, ffn=0,
                           experts=0, topk=0, moe=0, shared=0, dense=0, latent=0, gated=True, window=0, bias=False, sinks=False,
                           te=False, stay=False, unfused=False, head_norms=False, pattern="",
                           states=None, mla=None, kv=0, dim=0)
    for part in ROWS[name]:
        vars(a).update(part)
    a.layers = len(a.pattern) or a.layers
    assert dist.get_world_size() == a.world, "wants --world %d" % a.world
    return a


def shard(a, model, whole, experts):
    policy = MixedPrecisionPolicy(param_dtype=BF16, reduce_dtype=torch.float32)
    for block in model.blocks:
        own = [m.experts for m in block.parts if isinstance(m, Mixture)]
        mine = {p for m in own for p in m.parameters()}
        for m in own:
            if experts is not None:
                fully_shard(m, mesh=experts, mp_policy=policy, reshard_after_forward=False,
                            shard_placement_fn=lambda p: torch.distributed.tensor.Shard(1))
        fully_shard(block, mesh=whole, mp_policy=policy, reshard_after_forward=a.pp == 1 and not a.stay, ignored_params=mine)
    ignored = {p for b in model.blocks for m in b.parts if isinstance(m, Mixture) for p in m.experts.parameters()}
    return fully_shard(model, mesh=whole, mp_policy=policy, reshard_after_forward=False, ignored_params=ignored)


def order(a, rank):
    """Interleaved 1F1B as torch.distributed.pipelining has it: (stage, micro-batch, forwards?)."""
    n, micro = len(a.sizes) // a.pp, a.micro
    warm = min((n - 1) * a.pp + 2 * (a.pp - 1 - rank), n * micro)

    def at(i, back):
        k = i // a.pp % n
        return (n - 1 - k if back else k) * a.pp + rank, i // (a.pp * n) * a.pp + i % a.pp, not back
    ops = [at(i, False) for i in range(warm)]
    for i in range(n * micro - warm):
        ops += [at(warm + i, False), at(i, True)]
    return ops + [at(i, True) for i in range(n * micro - warm, n * micro)]


def timeline(a):
    """Of each rank what it does by the moment, or None: where a neighbour is not ready yet."""
    left, done, plans, last = [order(a, r)[::-1] for r in range(a.pp)], set(), [[] for _ in range(a.pp)], len(a.sizes) - 1
    while any(left):
        for ops, plan in zip(left, plans):
            s, m, forwards = ops[-1] if ops else (0, 0, True)
            wants = None if forwards and s == 0 else (s - 1, m, True) if forwards else \
                (s, m, True) if s == last else (s + 1, m, False)
            plan.append(ops.pop() if ops and (wants is None or wants in done) else None)
        done |= {p[-1] for p in plans}
    return plans


def pipeline(a, stages, tokens):
    """Each action, and then what neighbours need of it and this rank of theirs, as one operation."""
    mine, ranks, plans = a.place["pp"], dist.get_process_group_ranks(a.groups["pp"]), timeline(a)
    last, got, sent = len(a.sizes) - 1, {}, {}
    for t in range(max(map(len, plans))):
        ops, act = [], plans[mine][t] if t < len(plans[mine]) else None
        if act:
            s, m, forwards = act
            if forwards:
                x = tokens[:1] if s == 0 else got.pop((s, m, True)).requires_grad_()
                y = stages[s // a.pp](x)
                sent[s, m] = x, y
                if s < last:
                    ops.append(dist.P2POp(dist.isend, y.detach(), ranks[(mine + 1) % a.pp], a.groups["pp"]))
            else:
                x, y = sent.pop((s, m))
                y.backward(None if s == last else got.pop((s, m, False)))
                if s > 0:
                    ops.append(dist.P2POp(dist.isend, x.grad, ranks[(mine - 1) % a.pp], a.groups["pp"]))
        for forwards, peer in ((True, (mine - 1) % a.pp), (False, (mine + 1) % a.pp)):
            theirs = plans[peer][t] if t < len(plans[peer]) else None
            s = theirs and theirs[0] + (1 if forwards else -1)
            if theirs and theirs[2] == forwards and 0 <= s <= last and s % a.pp == mine:
                got[s, theirs[1], forwards] = torch.empty(1, a.seq, a.hidden, dtype=BF16, device="cuda")
                ops.append(dist.P2POp(dist.irecv, got[s, theirs[1], forwards], ranks[peer], a.groups["pp"]))
        for work in dist.batch_isend_irecv(ops) if ops else []:
            work.wait()


def meshes(a):
    """Ranks go by tensor, context, data, pipeline; experts lie within data."""
    a.groups, a.place = {}, {}
    data = a.world // (a.pp * a.cp * a.tp)
    mesh = init_device_mesh("cuda", (a.pp, data, a.cp, a.tp), mesh_dim_names=("pp", "dp", "cp", "tp"))
    for name in ("pp", "cp", "tp"):
        a.groups[name], a.place[name] = mesh[name].get_group(), mesh[name].get_local_rank()
    whole = mesh["dp", "cp"]._flatten("all") if a.cp > 1 else mesh["dp"]
    experts = None
    if a.ep > 1:
        two = init_device_mesh("cuda", (a.pp, data // a.ep, a.ep), mesh_dim_names=("p", "s", "ep"))
        a.groups["ep"] = two["ep"].get_group()
        experts = two["s"] if data > a.ep else None
    return whole, experts


def main():
    p = argparse.ArgumentParser()
    p.add_argument("row", choices=ROWS)
    p.add_argument("--steps", type=int, default=2)
    given = p.parse_args()
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29501")):
        os.environ.setdefault(name, value)
    dist.init_process_group("nccl")
    a = settings(given.row)
    whole, experts = meshes(a)
    a.sizes = [a.layers]
    if a.pp > 1:  # the embedding and the head count as a layer
        n = (a.layers + 2 + a.each - 1) // a.each // a.pp * a.pp
        a.sizes = [(a.layers + 2) // n + (i < (a.layers + 2) % n) - (i in (0, n - 1)) for i in range(n)]
    ends = [sum(a.sizes[:i + 1]) for i in range(len(a.sizes))]
    with torch.device("meta"):
        stages = [Model(a, ends[i] - a.sizes[i], ends[i], i == 0, i == len(ends) - 1)
                  for i in range(a.place["pp"], len(ends), a.pp)]
    stages = [shard(a, s, whole, experts) if a.world > 1 else s for s in stages]
    for s in stages:
        s.to_empty(device="cuda")
    kinds = {}  # those of experts are not spread over the same ranks, or not at all
    for w in (p for s in stages for p in s.parameters() if p.requires_grad):
        kinds.setdefault(getattr(w, "device_mesh", None), []).append(w)
    optimizer = torch.optim.Adam([{"params": k} for k in kinds.values()])
    tokens = torch.zeros(1 if a.pp > 1 else a.micro, a.seq // a.cp, dtype=torch.long, device="cuda")
    for _ in range(given.steps):
        for t in range(a.times):
            for s in stages if a.world > 1 else []:
                s.set_requires_gradient_sync(a.sync or t == a.times - 1)
            pipeline(a, stages, tokens) if a.pp > 1 else stages[0](tokens).backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    dist.destroy_process_group()


main()
