# SPDX-License-Identifier: Apache-2.0
"""One training script, and every change that a transform claims to predict, really made.

python train.py MODEL [change...]: see the options. Run by check.sh under vramcast dryrun."""
import argparse
import contextlib
import functools
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from models import MORE as SEEN  # noqa: E402
from strangers import MORE as STRANGERS  # noqa: E402

MORE = {**SEEN, **STRANGERS}

p = argparse.ArgumentParser()
p.add_argument("model", choices=["gpt", "llama", "conv", "vit", *MORE])
p.add_argument("--batch", type=int, default=8)
p.add_argument("--steps", type=int, default=3)
p.add_argument("--optimizer", default="adamw")
p.add_argument("--step", default="foreach", choices=["foreach", "fused", "loop"])
p.add_argument("--precision", default="fp32", choices=["fp32", "amp", "fp16", "bf16"])
p.add_argument("--checkpoint", type=int, default=0, help="layers per checkpointed segment")
p.add_argument("--stride", type=int, default=1, help="with --checkpoint 1: every so many layers only")
p.add_argument("--some", default="", help="with --checkpoint 1: FIRST,COUNT of the layers only")
p.add_argument("--selective", action="store_true", help="recompute attention only")
p.add_argument("--lora", type=int, default=0)
p.add_argument("--targets", default="all-linear")
p.add_argument("--dropout", type=float, default=0.0, help="of the adapters")
p.add_argument("--qlora", action="store_true", help="linear layers but the last in 4 bit (bitsandbytes)")
p.add_argument("--ddp", choices=["copy", "view"])
p.add_argument("--bucket", type=int, help="MiB; without it PyTorch's default, whose first bucket is smaller")
p.add_argument("--fsdp", type=int, default=0, choices=[0, 1, 2])
p.add_argument("--wrap", default="block", help="block, whole, or the least number of values of a unit")
p.add_argument("--no-reshard", action="store_true")
p.add_argument("--mixed", action="store_true", help="bf16 units under FSDP")
p.add_argument("--zero1", action="store_true")
p.add_argument("--offload", action="store_true")
p.add_argument("--tp", action="store_true")
p.add_argument("--accumulate", type=int, default=1)
p.add_argument("--tail", type=float, default=0.0, help="one more batch of this share, then a usual one")
p.add_argument("--mixture", default="", help="shares of the batch, one a step, after the usual ones")
p.add_argument("--snapshot", help="PyTorch's own snapshot of the last step alone, with Python's frames, goes there")
p.add_argument("--window", type=int, default=1, help="so many steps in it")
a = p.parse_args()
WORDS, LENGTH, WIDTH, LAYERS, HEADS = 8192, 512, 512, 8, 8


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, HEADS, c // HEADS).transpose(1, 2) for y in self.qkv(x).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2, self.attention = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), Attention()
        self.fc, self.out = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        if a.selective:
            x = x + checkpoint(self.attention, self.ln1(x), use_reentrant=False)
        else:
            x = x + self.attention(self.ln1(x))
        return x + self.out(F.gelu(self.fc(self.ln2(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        x = layers(self.blocks, x)
        return self.head(self.ln(x))


def chosen(i):
    """Is layer i checkpointed, with --stride and --some?"""
    first, count = (int(k) for k in a.some.split(",")) if a.some else (0, 1 << 30)
    return i % a.stride == 0 and first <= i < first + count


def layers(blocks, x):
    """The blocks in turn, in checkpointed segments of so many if wanted."""
    if not a.checkpoint:
        for block in blocks:
            x = block(x)
        return x
    if a.stride > 1 or a.some:
        for i, block in enumerate(blocks):
            x = checkpoint(block, x, use_reentrant=False) if chosen(i) else block(x)
        return x
    for i in range(0, len(blocks), a.checkpoint):
        def run(x, part=list(blocks)[i:i + a.checkpoint]):
            for block in part:
                x = block(x)
            return x
        x = checkpoint(run, x, use_reentrant=False)
    return x


def build():
    """The model, its repeated layers, and a function from a batch size to the loss."""
    if a.model in MORE:
        model, kinds, loss = MORE[a.model]()
        if a.checkpoint:
            for i, m in enumerate(m for m in model.modules() if isinstance(m, kinds)):
                if chosen(i):
                    m.forward = functools.partial(checkpoint, m.forward, use_reentrant=False)
        return model, kinds, loss
    if a.model == "gpt":
        model = Gpt()

        def loss(m, n):
            t = torch.randint(0, WORDS, (n, LENGTH), device="cuda")
            return F.cross_entropy(m(t).view(-1, WORDS), t.view(-1))
        return model, (Block,), loss
    if a.model == "llama":
        from transformers import LlamaConfig, LlamaForCausalLM
        from transformers.models.llama.modeling_llama import LlamaDecoderLayer
        model = LlamaForCausalLM(LlamaConfig(
            vocab_size=WORDS, hidden_size=WIDTH, intermediate_size=1376, num_hidden_layers=LAYERS,
            num_attention_heads=HEADS, num_key_value_heads=4, use_cache=False))
        if a.checkpoint:
            model.gradient_checkpointing_enable({"use_reentrant": False})

        def loss(m, n):
            t = torch.randint(0, WORDS, (n, LENGTH), device="cuda")
            return m(input_ids=t, labels=t).loss
        return model, (LlamaDecoderLayer,), loss
    import torchvision.models as zoo
    if a.model == "conv":
        from torchvision.models.resnet import Bottleneck
        model, kind, side = zoo.resnet50(num_classes=1000), (Bottleneck,), 160
        if a.checkpoint:
            inner = model._forward_impl

            def forward(x):
                for m in (model.conv1, model.bn1, model.relu, model.maxpool):
                    x = m(x)
                x = layers([b for k in (1, 2, 3, 4) for b in getattr(model, f"layer{k}")], x)
                return model.fc(torch.flatten(model.avgpool(x), 1))
            model._forward_impl = forward
            del inner
    else:
        from torchvision.models.vision_transformer import EncoderBlock
        model, kind, side = zoo.VisionTransformer(224, 16, 8, 8, 512, 2048), (EncoderBlock,), 224
        if a.checkpoint:
            enc = model.encoder
            enc.forward = lambda x: enc.ln(layers(enc.layers, enc.dropout(x + enc.pos_embedding)))

    def loss(m, n):
        x = torch.randn(n, 3, side, side, device="cuda")
        if a.precision == "bf16":
            x = x.bfloat16()
        return F.cross_entropy(m(x), torch.randint(0, 1000, (n,), device="cuda"))
    return model, kind, loss


def make_optimizer(params):
    how = {"foreach": {"foreach": True}, "fused": {"fused": True}, "loop": {"foreach": False}}[a.step]
    if a.optimizer == "adafactor-hf":
        from transformers.optimization import Adafactor
        return Adafactor, {}
    if a.optimizer == "lion":
        from lion_pytorch import Lion
        return Lion, {}
    if a.optimizer in ("adam8bit", "lion8bit"):
        import bitsandbytes as bnb
        return {"adam8bit": bnb.optim.AdamW8bit, "lion8bit": bnb.optim.Lion8bit}[a.optimizer], {}
    kinds = {"sgd": (torch.optim.SGD, {"lr": 0.1}), "momentum": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
             "adam": (torch.optim.Adam, {}), "adamw": (torch.optim.AdamW, {}),
             "amsgrad": (torch.optim.AdamW, {"amsgrad": True}), "rmsprop": (torch.optim.RMSprop, {}),
             "adagrad": (torch.optim.Adagrad, {}), "adafactor": (torch.optim.Adafactor, {})}
    if hasattr(torch.optim, "Muon"):
        kinds["muon"] = (torch.optim.Muon, {})
    kind, args = kinds[a.optimizer]
    if a.optimizer not in ("muon",):
        args = {**args, **how}
    return kind, args


from torch.utils.checkpoint import checkpoint  # noqa: E402

ranks = int(os.environ.get("WORLD_SIZE", "1"))
if ranks > 1:
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    torch.distributed.init_process_group("nccl")
with torch.device("cuda"):
    model, kinds, loss_of = build()
if a.precision == "bf16":
    model = model.bfloat16()
    if a.model in MORE:  # which give their data in float
        def narrow(x):
            return x.bfloat16() if torch.is_tensor(x) and x.is_floating_point() else x
        model.register_forward_pre_hook(lambda m, args, named: (
            tuple(map(narrow, args)), {k: narrow(v) for k, v in named.items()}), with_kwargs=True)
if a.qlora:
    import bitsandbytes as bnb
    linear = [(m, name, y) for m in model.modules() for name, y in m.named_children() if type(y) is nn.Linear]
    for m, name, y in linear[:-1]:
        four = bnb.nn.Linear4bit(y.in_features, y.out_features, y.bias is not None, torch.bfloat16, quant_type="nf4",
                                 device="meta")
        four.weight = bnb.nn.Params4bit(y.weight.data, requires_grad=False, quant_type="nf4", module=four)
        four.bias = y.bias
        setattr(m, name, four.cuda())
    for w in model.parameters():
        w.requires_grad = False
    del linear, m, y, four
if a.lora:
    from peft import LoraConfig, get_peft_model
    targets = a.targets if a.targets == "all-linear" else a.targets.split(",")
    if a.checkpoint and a.model == "llama":
        model.enable_input_require_grads()
    model = get_peft_model(model, LoraConfig(r=a.lora, target_modules=targets, lora_dropout=a.dropout,
                                             task_type="CAUSAL_LM" if a.model == "llama" else None))
if a.tp:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    mesh = init_device_mesh("cuda", (ranks,))
    col, row = ColwiseParallel, RowwiseParallel
    names = {"self_attn.q_proj": col, "self_attn.k_proj": col, "self_attn.v_proj": col, "self_attn.o_proj": row,
             "mlp.gate_proj": col, "mlp.up_proj": col, "mlp.down_proj": row}
    for layer in model.model.layers:
        parallelize_module(layer, mesh, {k: v() for k, v in names.items()})
if a.ddp:
    model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=a.bucket, gradient_as_bucket_view=a.ddp == "view")
if a.fsdp == 1:
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, ShardingStrategy
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy, size_based_auto_wrap_policy
    policy = None if a.wrap == "whole" else ModuleWrapPolicy(set(kinds)) if a.wrap == "block" else \
        functools.partial(size_based_auto_wrap_policy, min_num_params=int(a.wrap))
    model = FullyShardedDataParallel(
        model, auto_wrap_policy=policy, use_orig_params=True, device_id=torch.cuda.current_device(),
        mixed_precision=MixedPrecision(torch.bfloat16, torch.bfloat16, torch.bfloat16) if a.mixed else None,
        sharding_strategy=ShardingStrategy.SHARD_GRAD_OP if a.no_reshard else None)
elif a.fsdp == 2:
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    how = {"reshard_after_forward": not a.no_reshard}
    if a.mixed:
        how["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16)
    for m in model.modules() if a.wrap == "block" else ():
        if isinstance(m, kinds):
            fully_shard(m, **how)
    fully_shard(model, **how)
trained = [w for w in model.parameters() if w.requires_grad]
kind, args = make_optimizer(trained)
if a.zero1:
    from torch.distributed.optim import ZeroRedundancyOptimizer
    optimizer = ZeroRedundancyOptimizer(trained, optimizer_class=kind, **args)
else:
    optimizer = kind(trained, **args)
half = {"amp": torch.bfloat16, "fp16": torch.float16}.get(a.precision)
scaler = torch.amp.GradScaler("cuda") if a.precision == "fp16" else None


def step(n):
    for _ in range(a.accumulate):
        with contextlib.ExitStack() as stack:
            if half:
                stack.enter_context(torch.autocast("cuda", half))
            if a.offload:
                stack.enter_context(torch.autograd.graph.save_on_cpu(pin_memory=True))
            loss = loss_of(model, n)
        (scaler.scale(loss) if scaler else loss).backward()
        del loss
    if ranks > 1:  # on a card this takes longer than the 100 ms between two looks of the watchdog of NCCL,
        torch.cuda.synchronize()  # which holds tensors that were sent until then
        time.sleep(0.3)
    if scaler:
        scaler.step(optimizer)
        scaler.update()
    else:
        optimizer.step()
    optimizer.zero_grad()


for n in range(a.steps):
    if a.snapshot and n == a.steps - a.window:
        torch.cuda.memory._record_memory_history(stacks="python")
    step(a.batch)
if a.snapshot:
    torch.cuda.memory._dump_snapshot(a.snapshot)
if a.tail:
    step(round(a.batch * a.tail))
    step(a.batch)
for share in a.mixture.split(",") if a.mixture else ():
    step(round(a.batch * float(share)))
print("done")
if ranks > 1:
    torch.cuda.synchronize()
    torch.distributed.destroy_process_group()
