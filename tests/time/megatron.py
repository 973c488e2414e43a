# SPDX-License-Identifier: Apache-2.0
"""Training steps of a language model, split as Megatron-LM does it, in plain PyTorch: tensor (with sequence),
pipeline (1F1B), data (sharded optimizer), expert and context (all-to-all) parallel. One rank of WORLD_SIZE, for dry runs.

megatron.py --hidden 8192 --ffn 28672 --layers 12 --heads 64 --kv-heads 8 --head-dim 128 --vocab 128256 --seq 4096
    --microbatches 4 --tp 2 [--pp 1 --cp 1 --ep 1] [--experts 160 --topk 6 --moe-ffn 1536 --shared-ffn 3072
    --dense-layers 1 --mla q_rank,kv_rank,nope,rope,value] [--steps 2] [--global-batch 64: as many micro-batches as that takes]

What Transformer Engine does in one kernel is one operation here where PyTorch has it: gradients of weights are added to
fp32 ones by the product, norms are fused.
"""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from collectives import Swap

BF16 = torch.bfloat16


def parse():
    p = argparse.ArgumentParser()
    for name, default in (("hidden", 1024), ("ffn", 4096), ("layers", 2), ("heads", 16), ("kv-heads", 16), ("head-dim", 64),
                          ("vocab", 32000), ("seq", 1024), ("microbatches", 2), ("tp", 1), ("pp", 1), ("cp", 1), ("ep", 1),
                          ("experts", 0), ("topk", 0), ("moe-ffn", 0), ("shared-ffn", 0), ("dense-layers", 0),
                          ("steps", 2), ("global-batch", 0)):
        p.add_argument("--" + name, type=int, default=default)
    p.add_argument("--mla", default="")
    a = p.parse_args()
    if a.global_batch:
        a.microbatches = a.global_batch * a.tp * a.cp * a.pp // int(os.environ["WORLD_SIZE"])
        assert a.microbatches
    a.mla = [int(x) for x in a.mla.split(",")] if a.mla else None
    assert a.layers % a.pp == 0 and a.heads % (a.tp * a.cp) == 0
    return a


def groups(a):
    """Ranks go by tensor, context, data, pipeline; experts lie within data and context."""
    world, rank = dist.get_world_size(), dist.get_rank()
    dp = world // (a.tp * a.cp * a.pp)
    found = {}

    def make(name, members):
        for ranks in members:
            g = dist.new_group(ranks)
            if rank in ranks:
                found[name] = g, ranks

    block = a.tp * a.cp
    make("tp", [list(range(i, i + a.tp)) for i in range(0, world, a.tp)])
    make("cp", [[p + t + a.tp * c for c in range(a.cp)] for p in range(0, world, block) for t in range(a.tp)])
    stage = block * dp
    make("dp", [[s + t + a.tp * d for d in range(dp * a.cp)] for s in range(0, world, stage) for t in range(a.tp)])
    make("ep", [[s + e * a.ep * a.tp + t + a.tp * k for k in range(a.ep)] for s in range(0, world, stage)
                for t in range(a.tp) for e in range(dp * a.cp // a.ep)])
    make("edp", [[s + k * a.tp + t + a.tp * a.ep * e for e in range(dp * a.cp // a.ep)] for s in range(0, world, stage)
                 for t in range(a.tp) for k in range(a.ep)])
    make("pp", [[s + stage * k for k in range(a.pp)] for s in range(stage)])
    return found


class Gather(torch.autograd.Function):
    """The sequence, of all ranks; its gradient is summed and split again."""
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        y = x.new_empty((x.shape[0] * dist.get_world_size(group), *x.shape[1:]))
        dist.all_gather_into_tensor(y, x, group=group)
        return y

    @staticmethod
    def backward(ctx, g):
        y = g.new_empty((g.shape[0] // dist.get_world_size(ctx.group), *g.shape[1:]))
        dist.reduce_scatter_tensor(y, g.contiguous(), group=ctx.group)
        return y, None


class Scatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        y = x.new_empty((x.shape[0] // dist.get_world_size(group), *x.shape[1:]))
        dist.reduce_scatter_tensor(y, x.contiguous(), group=group)
        return y

    @staticmethod
    def backward(ctx, g):
        y = g.new_empty((g.shape[0] * dist.get_world_size(ctx.group), *g.shape[1:]))
        dist.all_gather_into_tensor(y, g.contiguous(), group=ctx.group)
        return y, None


class Product(torch.autograd.Function):
    """x W^T; the gradient of W is added to the fp32 one by the product that computes it."""
    @staticmethod
    def forward(ctx, x, w, into):
        ctx.save_for_backward(x, w)
        ctx.into = into
        return x @ w.t()

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        dx = g @ w
        flat, given = x.reshape(-1, x.shape[-1]), g.reshape(-1, g.shape[-1])
        torch.addmm(ctx.into, given.t(), flat, out_dtype=torch.float32, out=ctx.into)
        return dx, None, None


class Weights:
    """All weights of a kind in one buffer, as Megatron keeps them: bf16 ones, fp32 gradients, sharded states."""
    def __init__(self, group):
        self.group, self.shapes, self.at = group, [], []

    def add(self, *shape):
        self.shapes.append(shape)
        self.at.append(None)
        return self, len(self.shapes) - 1

    def make(self):
        n = sum(torch.Size(s).numel() for s in self.shapes)
        ranks = dist.get_world_size(self.group)
        n = (n + 128 * ranks - 1) // (128 * ranks) * 128 * ranks
        self.weight = torch.empty(n, dtype=BF16, device="cuda").normal_(0, 0.02)
        self.grad = torch.zeros(n, dtype=torch.float32, device="cuda")
        part = n // ranks
        first = part * dist.get_rank(self.group)
        self.mine, self.my_grad = self.weight[first:first + part], self.grad[first:first + part]
        self.main = nn.Parameter(self.mine.float())
        at = 0
        for i, s in enumerate(self.shapes):
            k = torch.Size(s).numel()
            self.at[i] = self.weight[at:at + k].view(s).requires_grad_(False), self.grad[at:at + k].view(s)
            at += k

    def reduce(self):
        if dist.get_world_size(self.group) > 1:
            dist.reduce_scatter_tensor(self.my_grad, self.grad, group=self.group)
        self.main.grad = self.my_grad

    def spread(self):
        self.mine.copy_(self.main.data)
        if dist.get_world_size(self.group) > 1:
            dist.all_gather_into_tensor(self.weight, self.mine, group=self.group)
        self.grad.zero_()


class Linear(nn.Module):
    def __init__(self, weights, inputs, outputs):
        super().__init__()
        self.ref = weights.add(outputs, inputs)

    def forward(self, x):
        return Product.apply(x, *self.ref[0].at[self.ref[1]])


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width, dtype=BF16, device="cuda"))

    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.weight)


def rotate(x, table):
    half = x.shape[-1] // 2
    return torch.addcmul(x * table, x.roll(half, -1), table)


class Attention(nn.Module):
    def __init__(self, a, g, weights):
        super().__init__()
        self.a, self.tp, self.cp = a, a.tp, a.cp
        self.cp_group = g["cp"][0]
        h = a.hidden
        if a.mla:
            q, kv, nope, rope, value = a.mla
            self.down, self.up = Linear(weights, h, q), Linear(weights, q, a.heads * (nope + rope) // a.tp)
            self.kv_down = Linear(weights, h, kv + rope)
            self.kv_up = Linear(weights, kv, a.heads * (nope + value) // a.tp)
            self.q_norm, self.kv_norm = Norm(q), Norm(kv)
            self.out = Linear(weights, a.heads * value // a.tp, h)
        else:
            self.qkv = Linear(weights, h, (a.heads + 2 * a.kv_heads) * a.head_dim // a.tp)
            self.out = Linear(weights, a.heads * a.head_dim // a.tp, h)
        width = a.mla[3] if a.mla else a.head_dim
        self.register_buffer("table", torch.ones(1, 1, a.seq // a.cp, width, dtype=BF16, device="cuda"))

    def heads(self, x):
        if self.a.mla:
            q, kv, nope, rope, value = self.a.mla
            n = self.a.heads // self.tp
            queries = self.up(self.q_norm(self.down(x))).view(*x.shape[:2], n, nope + rope)
            small = self.kv_down(x)
            rest = self.kv_up(self.kv_norm(small[..., :kv])).view(*x.shape[:2], n, nope + value)
            turned = rotate(small[..., None, kv:].permute(1, 2, 0, 3), self.table).permute(2, 0, 1, 3).expand(-1, -1, n, -1)
            q = torch.cat((queries[..., :nope], rotate(queries[..., nope:].permute(1, 2, 0, 3),
                                                       self.table).permute(2, 0, 1, 3)), -1)
            return [t.permute(1, 2, 0, 3) for t in (q, torch.cat((rest[..., :nope], turned), -1), rest[..., nope:])]
        d, n, k = self.a.head_dim, self.a.heads // self.tp, self.a.kv_heads // self.tp
        q, key, value = self.qkv(x).split((n * d, k * d, k * d), -1)
        q, key, value = [t.view(*x.shape[:2], -1, d).permute(1, 2, 0, 3) for t in (q, key, value)]
        return rotate(q, self.table), rotate(key, self.table), value

    def forward(self, x): # sequence, batch, width
        q, k, v = self.heads(x)
        if self.cp > 1: # each rank gets the whole sequence of some heads
            k, v = [t if t.shape[1] >= self.cp else t.repeat_interleave(self.cp // t.shape[1], 1) for t in (k, v)]
            q, k, v = [self.whole(t) for t in (q, k, v)]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])
        if self.cp > 1:
            b, n, s, d = y.shape
            y = Swap.apply(y.permute(2, 0, 1, 3).contiguous(), self.cp_group)
            y = y.view(self.cp, s // self.cp, b, n, d).permute(2, 0, 3, 1, 4).reshape(b, n * self.cp, s // self.cp, d)
        return self.out(y.permute(2, 0, 1, 3).reshape(*x.shape[:2], -1))

    def whole(self, t):
        b, n, s, d = t.shape
        t = t.view(b, self.cp, n // self.cp, s, d).permute(1, 3, 0, 2, 4).contiguous()
        t = Swap.apply(t.view(self.cp * s, b, n // self.cp, d), self.cp_group)
        return t.permute(1, 2, 0, 3)


class Mlp(nn.Module):
    def __init__(self, weights, hidden, ffn):
        super().__init__()
        self.up, self.down = Linear(weights, hidden, 2 * ffn), Linear(weights, ffn, hidden)

    def forward(self, x):
        a, b = self.up(x).chunk(2, -1)
        return self.down(F.silu(a) * b)


class Rows(torch.autograd.Function):
    """Rows in another order, in one kernel each way."""
    @staticmethod
    def forward(ctx, x, order, back):
        ctx.back = back
        return x.index_select(0, order)

    @staticmethod
    def backward(ctx, g):
        return g.index_select(0, ctx.back), None, None


class Deal(torch.autograd.Function):
    """Each row as often as it has experts; gradients are summed."""
    @staticmethod
    def forward(ctx, x, order, times):
        ctx.times, ctx.rows = times, x.shape[0]
        return x.index_select(0, order)

    @staticmethod
    def backward(ctx, g):
        return g[:ctx.times * ctx.rows].view(ctx.times, ctx.rows, -1).sum(0), None, None


class Grouped(torch.autograd.Function):
    """Linear layers of several experts, each on its part of the rows."""
    @staticmethod
    def forward(ctx, x, refs):
        ctx.save_for_backward(x)
        ctx.refs = refs
        y = x.new_empty((x.shape[0], refs[0][0].shape[0]))
        for part, to, (w, _) in zip(x.chunk(len(refs)), y.chunk(len(refs)), refs):
            torch.mm(part, w.t(), out=to)
        return y

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        n, dx = len(ctx.refs), torch.empty_like(x)
        for part, given, to, (w, into) in zip(x.chunk(n), g.chunk(n), dx.chunk(n), ctx.refs):
            torch.mm(given, w, out=to)
            torch.addmm(into, given.t(), part, out_dtype=torch.float32, out=into)
        return dx, None


class Experts(nn.Module):
    """Tokens go to their experts and back, as Megatron-LM's all-to-all dispatcher has it with fused permutation and
    grouped products; weights of the router are applied with the activation. Every expert gets as many."""
    def __init__(self, a, g, shared, own):
        super().__init__()
        self.a, self.group, self.own, self.orders = a, g["ep"][0], own, {}
        self.router = Linear(shared, a.hidden, a.experts)
        local = a.experts // a.ep
        self.up = [own.add(2 * a.moe_ffn, a.hidden)[1] for _ in range(local)]
        self.down = [own.add(a.hidden, a.moe_ffn)[1] for _ in range(local)]
        self.shared = Mlp(shared, a.hidden, a.shared_ffn) if a.shared_ffn else None

    def order(self, rows):
        if rows not in self.orders:
            n, local = -(-rows * self.a.topk // self.a.experts) * self.a.experts, len(self.up)
            each = torch.arange(n, device="cuda")
            there = each.view(self.a.ep, local, -1).transpose(0, 1).reshape(-1)
            back = each.view(local, self.a.ep, -1).transpose(0, 1).reshape(-1)
            self.orders[rows] = each % rows, there, back
        return self.orders[rows]

    def move(self, x, order, back):
        """By rank and expert -> by expert."""
        return Rows.apply(Swap.apply(x, self.group), order, back) if self.a.ep > 1 else x

    def forward(self, x):
        a, flat = self.a, x.reshape(-1, x.shape[-1])
        deal, there, back = self.order(flat.shape[0])
        score = self.router(flat).float().softmax(-1)
        weight, _ = score.topk(a.topk, -1)
        weight = F.pad(weight.t().reshape(-1, 1), (0, 0, 0, len(deal) - weight.numel()))
        got, weight = self.move(Deal.apply(flat, deal, a.topk), there, back), self.move(weight, there, back)
        one, two = Grouped.apply(got, [self.own.at[i] for i in self.up]).chunk(2, -1)
        out = Grouped.apply(F.silu(one) * two * weight.to(one.dtype), [self.own.at[i] for i in self.down])
        if a.ep > 1:
            out = Swap.apply(Rows.apply(out, back, there), self.group)
        out = out[:flat.shape[0] * a.topk].view(a.topk, *flat.shape).sum(0).view(x.shape)
        return out + self.shared(x) if self.shared is not None else out


class Block(nn.Module):
    def __init__(self, a, g, i, shared, own):
        super().__init__()
        self.group = g["tp"][0] if a.tp > 1 else None
        self.one, self.two = Norm(a.hidden), Norm(a.hidden)
        self.attention = Attention(a, g, shared)
        self.mlp = Experts(a, g, shared, own) if a.experts and i >= a.dense_layers else \
            Mlp(shared, a.hidden, a.ffn // a.tp)

    def part(self, x, norm, module):
        y = norm(x)
        y = module(Gather.apply(y, self.group)) if self.group else module(y)
        return x + (Scatter.apply(y, self.group) if self.group else y)

    def forward(self, x):
        return self.part(self.part(x, self.one, self.attention), self.two, self.mlp)


class Stage(nn.Module):
    """The layers of one stage of the pipeline; the first has the embedding, the last the loss."""
    def __init__(self, a, g):
        super().__init__()
        self.a, self.g = a, g
        self.stage = g["pp"][1].index(dist.get_rank())
        self.first, self.last = self.stage == 0, self.stage == a.pp - 1
        self.shared, self.own = Weights(g["dp"][0]), Weights(g["edp"][0])
        self.embed = self.shared.add(a.vocab // a.tp, a.hidden) if self.first else None
        each = a.layers // a.pp
        self.blocks = nn.ModuleList(Block(a, g, self.stage * each + i, self.shared, self.own) for i in range(each))
        self.norm = Norm(a.hidden) if self.last else None
        self.head = Linear(self.shared, a.hidden, a.vocab // a.tp) if self.last else None
        self.kinds = [w for w in (self.shared, self.own) if w.shapes]
        for w in self.kinds:
            w.make()

    def forward(self, x, tokens):
        group = self.g["tp"][0]
        if self.first:
            x = F.embedding(tokens % (self.a.vocab // self.a.tp), self.embed[0].at[self.embed[1]][0])
            if self.a.tp > 1:
                x = Scatter.apply(x, group)
            x.requires_grad_()
        for block in self.blocks:
            x = block(x)
        if not self.last:
            return x
        x = self.norm(x)
        logits = self.head(Gather.apply(x, group) if self.a.tp > 1 else x)
        return F.cross_entropy(logits.flatten(0, 1), tokens.flatten() % (self.a.vocab // self.a.tp))


def exchange(peer, sent, shape):
    """Messages to and from a neighbour, at once."""
    got = torch.empty(shape, dtype=BF16, device="cuda") if shape else None
    both = ([dist.P2POp(dist.isend, sent, peer)] if sent is not None else []) + \
        ([dist.P2POp(dist.irecv, got, peer)] if shape else [])
    for work in dist.batch_isend_irecv(both):
        work.wait()
    return got


def forward(stage, a, x, saved):
    if x is not None:
        x.requires_grad_()
    y = stage(x, torch.zeros(a.seq // a.cp, 1, dtype=torch.long, device="cuda"))
    saved.append((x, y))
    return y.detach()


def backward(grad, saved):
    x, y = saved.pop(0)
    y.backward(grad)
    return x.grad if x is not None else None


def step(stage, a, g, optimizer):
    """1F1B, as Megatron-LM's forward_backward_pipelining_without_interleaving."""
    shape, saved, ranks, at = (a.seq // a.cp // a.tp, 1, a.hidden), [], g["pp"][1], stage.stage
    before, behind = (None if stage.first else ranks[at - 1]), (None if stage.last else ranks[at + 1])
    warm = min(a.pp - at - 1, a.microbatches)

    def meet(peer, sent, wanted):
        return exchange(peer, sent, shape if wanted else None) if peer is not None else None

    for _ in range(warm):
        meet(behind, forward(stage, a, meet(before, None, True), saved), False)
    x = meet(before, None, True) if warm < a.microbatches else None
    for i in range(a.microbatches - warm):
        grad = meet(behind, forward(stage, a, x, saved), True)
        x = meet(before, backward(grad, saved), i + 1 < a.microbatches - warm)
    for _ in range(warm):
        meet(before, backward(meet(behind, None, True), saved), False)
    for w in stage.kinds:
        w.reduce()
    optimizer.step()
    for w in stage.kinds:
        w.spread()
    stage.zero_grad()


def main():
    a = parse()
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    dist.init_process_group("nccl")
    g = groups(a)
    stage = Stage(a, g)
    optimizer = torch.optim.AdamW([w.main for w in stage.kinds], fused=True)
    try:
        from vramcast import step as mark
    except ImportError:
        def mark():
            pass
    for _ in range(a.steps):
        mark()
        step(stage, a, g, optimizer)
    torch.cuda.synchronize()
    dist.destroy_process_group()


main()
