# SPDX-License-Identifier: Apache-2.0
"""What the programs of real size share: their options, the data of a step, and two ways to write a training loop.

Sizes that the data decide are drawn on the CPU with a seeded generator: no kernel runs where this is recorded."""
import argparse
import contextlib
import math

import torch
from torch import nn

CARD = torch.device("cuda")
longer = 1  # how many times as many steps as written


def main(programs):
    """--model NAME and the options of its function, which are all whole numbers."""
    p = argparse.ArgumentParser()
    p.add_argument("--model", required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--longer", type=int, default=1)
    a, rest = p.parse_known_args()
    if not a.seed:  # each run is another one
        a.seed = torch.seed() % (1 << 31)
    torch.manual_seed(a.seed)
    global longer
    longer = a.longer
    programs[a.model](**{name[2:].replace("-", "_"): int(value) for name, value in zip(rest[::2], rest[1::2])})


def images(n, *shape):
    """A batch that a loader made: where it comes from is the host's memory, what is in it does not matter."""
    return torch.rand(n, *shape).to(CARD, non_blocking=True)


def tokens(n, length, vocabulary=30000):
    return torch.randint(5, vocabulary, (n, length)).to(CARD)


def classes(k, *shape):
    return torch.randint(0, k, shape).to(CARD)


def lengths(n, middle, most, least=4, spread=0.6):
    """So many lengths, log-normal: most of texts, utterances and sessions are."""
    return (torch.randn(n) * spread + math.log(middle)).exp().round().clamp(least, most).long().tolist()


def mask_of(lens, length=None):
    return (torch.arange(length or max(lens))[None] < torch.tensor(lens)[:, None]).long().to(CARD)


def padded(n, middle, most, vocabulary=30000, multiple=8, spread=0.6):
    """Texts padded to the longest of the batch, as a collator does: dict(input_ids, attention_mask)."""
    lens = lengths(n, middle, most, spread=spread)
    longest = min(-(-max(lens) // multiple) * multiple, most)
    return dict(input_ids=tokens(n, longest, vocabulary), attention_mask=mask_of(lens, longest))


def filled(n, middle, length, vocabulary=30000):
    """Texts padded to one length: the sizes are the same each step."""
    return dict(input_ids=tokens(n, length, vocabulary), attention_mask=mask_of(lengths(n, middle, length), length))


def half(amp):
    return {"bf16": torch.bfloat16, "fp16": torch.float16}[amp]


def cast(amp):
    return torch.autocast("cuda", half(amp)) if amp else contextlib.nullcontext()


def groups(model, decay=0.01):
    """Weights with decay and those without, as most recipes part them."""
    own = [(n, w) for n, w in model.named_parameters() if w.requires_grad]
    return [dict(params=[w for n, w in own if w.ndim > 1], weight_decay=decay),
            dict(params=[w for n, w in own if w.ndim < 2], weight_decay=0.0)]


def optimizer(model, name="adamw", rate=1e-4, **more):
    """By its usual name; "adamw+" is AdamW with two groups."""
    if name == "adamw+":
        return torch.optim.AdamW(groups(model), lr=rate, **more)
    w = [w for w in (model.parameters() if isinstance(model, nn.Module) else model) if w.requires_grad]
    if name == "sgd":
        return torch.optim.SGD(w, lr=rate, momentum=0.9, weight_decay=1e-4, **more)
    if name == "fused":
        return torch.optim.AdamW(w, lr=rate, fused=True, **more)
    return {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop,
            "adafactor": torch.optim.Adafactor, "radam": torch.optim.RAdam}[name](w, lr=rate, **more)


class Average:
    """An exponential moving average of the weights, a copy on the card."""

    def __init__(self, model, keep=0.999):
        self.keep, self.weights = keep, [w.detach().clone() for w in model.parameters()]

    @torch.no_grad()
    def update(self, model):
        torch._foreach_mul_(self.weights, self.keep)
        torch._foreach_add_(self.weights, [w.detach() for w in model.parameters()], alpha=1 - self.keep)


def loss_in(out):
    return out.loss if hasattr(out, "loss") else out[0] if isinstance(out, tuple) else out


@torch.no_grad()
def evaluate(model, out_of, batch_of, n, steps=2, amp=None, gather=False):
    """gather: predictions stay on the card until all are there, as Trainer keeps them."""
    model.eval()
    total, kept = 0.0, []
    for _ in range(steps):
        with cast(amp):
            out = out_of(batch_of(n))
        total += loss_in(out).item()
        if hasattr(out, "logits"):
            kept.append(out.logits if gather else out.logits.argmax(-1).cpu())
    if gather and kept:
        kept = torch.cat(kept).cpu()
    model.train()
    return total


def script(model, out_of, batch_of, n, steps=5, opt="adamw", rate=1e-4, amp=None, clip=0.0, accumulate=1, average=False,
           tests=0, test_steps=2, more=1, after=None):
    """One loop at the top of a file: batch, output and loss of a step are there until the next has its own.
    tests: the size of the batches of an evaluation, after which `more` steps follow."""
    opt = opt if isinstance(opt, torch.optim.Optimizer) else optimizer(model, opt, rate)
    plan = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 100)
    scaler = torch.amp.GradScaler("cuda", enabled=amp == "fp16")
    ema = Average(model) if average else None
    model.train()
    losses = []
    steps *= longer
    for step in range(steps + (more if tests else 0)):
        if tests and step == steps:
            evaluate(model, out_of, batch_of, tests, test_steps, amp)
        for _ in range(accumulate):
            batch = batch_of(n)
            with cast(amp):
                out = out_of(batch)
                loss = loss_in(out) / accumulate
            scaler.scale(loss).backward()
        if clip:
            scaler.unscale_(opt)
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        scaler.step(opt)
        scaler.update()
        opt.zero_grad(set_to_none=True)
        plan.step()
        if ema:
            ema.update(model)
        if after:
            after()
        losses.append(loss.item())


def trainer(model, out_of, batch_of, n, steps=5, opt="adamw", rate=1e-4, amp=None, clip=1.0, accumulate=1, tests=0,
            test_steps=2, more=1, gather=True, after=None):
    """A function a step, as in Trainer and Lightning: what a step computed is gone when it returns. Gradients are
    set free at its start, or at its end."""
    opt = opt if isinstance(opt, torch.optim.Optimizer) else optimizer(model, opt, rate)
    plan = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 10))
    scaler = torch.amp.GradScaler("cuda") if amp == "fp16" else None
    total = torch.zeros((), device=CARD)

    def training_step(batch):
        model.train()
        with cast(amp):
            loss = loss_in(out_of(batch)) / accumulate
        (scaler.scale(loss) if scaler else loss).backward()
        return loss.detach()

    steps *= longer
    for step in range(steps + (more if tests else 0)):
        if tests and step == steps:
            evaluate(model, out_of, batch_of, tests, test_steps, amp, gather)
        for _ in range(accumulate):
            total += training_step(batch_of(n))
        if scaler:
            scaler.unscale_(opt)
        if clip:
            nn.utils.clip_grad_norm_([w for w in model.parameters() if w.requires_grad], clip)
        if scaler:
            scaler.step(opt)
            scaler.update()
        else:
            opt.step()
        plan.step()
        model.zero_grad(set_to_none=True)
        if after:
            after()
    return total.item()
