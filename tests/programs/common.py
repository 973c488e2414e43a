# SPDX-License-Identifier: Apache-2.0
"""What the programs of this folder share: options, the changes that can be really made, and one training loop."""
import argparse
import contextlib
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


def arguments(**own):
    """The options that every program has; `own` are further ones or other defaults."""
    usual = dict(batch=4, seq=128, steps=3, eval_batch=0, eval_steps=2, accumulate=1, lora=0, seed=1,
                 optimizer="adamw", amp="", eval_amp="yes", checkpoint=0, bf16=0)
    usual.update(own)
    p = argparse.ArgumentParser()
    for name, value in usual.items():
        p.add_argument("--" + name.replace("_", "-"), type=type(value), default=value)
    a = p.parse_args()
    torch.manual_seed(a.seed)
    return a


def half(a):
    return {"bf16": torch.bfloat16, "fp16": torch.float16}.get(a.amp)


def autocast(a, evaluates=False):
    """--amp bf16|fp16; --eval-amp no: evaluation stays outside of it."""
    if not half(a) or (evaluates and a.eval_amp == "no"):
        return contextlib.nullcontext()
    return torch.autocast("cuda", half(a))


def call(a, layer, *inputs):
    """One layer of a stack, checkpointed if wanted."""
    if a.checkpoint and torch.is_grad_enabled():
        return checkpoint(layer, *inputs, use_reentrant=False)
    return layer(*inputs)


class Adapted(nn.Module):
    """A linear layer with a low-rank adapter beside it; the layer itself is frozen."""

    def __init__(self, layer, rank):
        super().__init__()
        self.layer = layer
        self.down = nn.Linear(layer.in_features, rank, bias=False)
        self.up = nn.Linear(rank, layer.out_features, bias=False)

    def forward(self, x):
        return self.layer(x) + self.up(self.down(x)) * 2.0


def adapt(model, rank, leave=()):
    """Freezes a model and puts an adapter beside each linear layer but those named, as PEFT does for
    target_modules="all-linear", which leaves the output layer out."""
    for w in model.parameters():
        w.requires_grad_(False)
    for name, module in list(model.named_modules()):
        for child, layer in list(module.named_children()):
            full = f"{name}.{child}" if name else child
            if isinstance(layer, nn.Linear) and full not in leave and not isinstance(module, Adapted):
                setattr(module, child, Adapted(layer, rank))
    return model


def place(a, model, leave=()):
    """On the card, with --lora RANK and --bf16 1."""
    if a.lora:
        model = adapt(model, a.lora, leave)
    return model.cuda().to(torch.bfloat16 if a.bf16 else torch.float32)


def optimizer(a, model, rate=1e-4):
    w = [w for w in (model.parameters() if isinstance(model, nn.Module) else model) if w.requires_grad]
    if a.optimizer == "sgd":
        return torch.optim.SGD(w, rate)
    if a.optimizer == "momentum":
        return torch.optim.SGD(w, rate, momentum=0.9)
    if a.optimizer == "fused":
        return torch.optim.AdamW(w, rate, fused=True)
    return {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam, "adagrad": torch.optim.Adagrad,
            "rmsprop": torch.optim.RMSprop, "adafactor": torch.optim.Adafactor}[a.optimizer](w, rate)


def train(a, model, loss_of, opt=None, clip=0.0, steps=None):
    """steps x accumulate batches; loss_of(batch size) gives the loss of a new batch."""
    opt = opt or optimizer(a, model)
    scaler = torch.amp.GradScaler("cuda") if a.amp == "fp16" else None
    model.train()
    for _ in range(steps or a.steps):
        for _ in range(a.accumulate):
            with autocast(a):
                loss = loss_of(a.batch) / a.accumulate
            (scaler.scale(loss) if scaler else loss).backward()
        if clip:
            if scaler:
                scaler.unscale_(opt)
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        if scaler:
            scaler.step(opt)
            scaler.update()
        else:
            opt.step()
        opt.zero_grad(set_to_none=True)
    return opt


@torch.no_grad()
def evaluate(a, model, value_of, steps=None, batch=None):
    """value_of(batch size) on so many batches of --eval-batch (0: of the training batch)."""
    model.eval()
    total = 0.0
    for _ in range(steps or a.eval_steps):
        with autocast(a, True):
            total += value_of(batch or a.eval_batch or a.batch).float().mean().item()
    model.train()
    return total


def words(n, length, vocabulary):
    return torch.randint(1, vocabulary, (n, length)).cuda()


def next_word(a, model):
    """The loss of n rows of words, each predicted by those before it."""
    def loss_of(n):
        t = words(n, a.seq + 1, a.vocabulary)
        return F.cross_entropy(model(t[:, :-1]).flatten(0, 1), t[:, 1:].flatten())
    return loss_of


class Stack(nn.Module):
    """Layers of one kind between a table of words and an output layer."""

    def __init__(self, a, layer):
        super().__init__()
        self.words = nn.Embedding(a.vocabulary, a.width)
        self.layers = nn.ModuleList(layer() for _ in range(a.layers))
        self.head = nn.Linear(a.width, a.vocabulary)
        self.options = a

    def forward(self, t):
        x = self.words(t)
        for layer in self.layers:
            x = call(self.options, layer, x)
        return self.head(x)


class Attention(nn.Module):
    """Self-attention by the fused kernel."""

    def __init__(self, width, heads, causal=True):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.causal = heads, causal

    def forward(self, x, mask=None):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal and mask is None)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Written(Attention):
    """Self-attention written out: scores, mask, softmax, dropout, product."""

    def forward(self, x, mask=None):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(c // self.heads)
        if self.causal:
            scores = scores.masked_fill(torch.ones(t, t, device=x.device).triu(1).bool(), float("-inf"))
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        y = F.dropout(F.softmax(scores, -1), 0.1, self.training) @ v
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    """A transformer block with the norm in front."""

    def __init__(self, width, heads, attention=Attention, causal=True, times=4, activation=F.gelu):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = attention(width, heads, causal)
        self.up, self.down = nn.Linear(width, times * width), nn.Linear(times * width, width)
        self.activation = activation

    def forward(self, x, mask=None):
        x = x + self.attention(self.norm1(x), mask)
        return x + self.down(self.activation(self.up(self.norm2(x))))


class Gpt(nn.Module):
    """Blocks between tables of words and places and an output layer; tied: whose weight is that of the words."""

    def __init__(self, a, heads, attention=Attention, tied=False, bias=False):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(a.vocabulary, a.width), nn.Embedding(2048, a.width)
        self.blocks = nn.ModuleList(Block(a.width, heads, attention) for _ in range(a.layers))
        self.norm, self.head = nn.LayerNorm(a.width), nn.Linear(a.width, a.vocabulary, bias=bias)
        if tied:
            self.head.weight = self.wte.weight
        self.options = a

    def forward(self, t):
        x = self.wte(t) + self.wpe(torch.arange(t.shape[1], device=t.device))
        for block in self.blocks:
            x = call(self.options, block, x)
        return self.head(self.norm(x))
