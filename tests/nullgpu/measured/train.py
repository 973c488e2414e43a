# SPDX-License-Identifier: Apache-2.0
"""Runs the configurations of one card from measured.tsv, a forked child each, and prints
family, model, optimizer, batch, card, measured peak, measured oom, reserved peak, reserved before
the measurement began (MiB), oom. After a capped run: "near" and whether it ran out with a cap less,
and more, by what a dry run can be off."""
import os
import sys

import torch
import torchvision
import transformers as hf
from torchvision.models import mobilenetv3

vision = torchvision.models
for name in ("kaiming_normal_", "normal_", "trunc_normal_", "uniform_", "kaiming_uniform_"):
    setattr(torch.nn.init, name, lambda t, *a, **k: t)  # values do not matter, time does
torch.Tensor.normal_ = lambda t, *a, **k: t


def v3(arch):
    conf, last = mobilenetv3._mobilenet_v3_conf(arch)
    return mobilenetv3.MobileNetV3(conf, last_channel=last, num_classes=10)


CONV = {
    "VGG16": vision.vgg16, "VGG19": vision.vgg19, "ResNet101": vision.resnet101,
    "ResNet152": vision.resnet152, "MobileNetV2": vision.mobilenet_v2,
    "MobeNetV3Small": lambda: v3("mobilenet_v3_small"),
    "MobeNetV3Large": lambda: v3("mobilenet_v3_large"),
    "MnasNet": lambda: vision.MNASNet(alpha=1.0, num_classes=10),
    "ConvNeXtTiny": vision.convnext_tiny, "ConvNeXtBase": vision.convnext_base,
    "RegNetX400MF": vision.regnet_x_400mf, "RegNetY400MF": vision.regnet_y_400mf,
}
OPT = dict(vocab_size=50272)
TEXT = {
    "gpt2": lambda: hf.GPT2Config(), "distilgpt2": lambda: hf.GPT2Config(n_layer=6),
    "cerebras": lambda: hf.GPT2Config(n_embd=768, n_layer=10, n_head=12, n_inner=3072,
                                      n_positions=2048, activation_function="gelu"),
    "gpt-neo": lambda: hf.GPTNeoConfig(hidden_size=768, num_layers=12, num_heads=12,
                                       attention_types=[[["global", "local"], 6]]),
    "opt-125m": lambda: hf.OPTConfig(hidden_size=768, num_hidden_layers=12, ffn_dim=3072,
                                     num_attention_heads=12, word_embed_proj_dim=768, **OPT),
    "opt-350m": lambda: hf.OPTConfig(hidden_size=1024, num_hidden_layers=24, ffn_dim=4096,
                                     num_attention_heads=16, word_embed_proj_dim=512,
                                     do_layer_norm_before=False, **OPT),
    "T5-small": lambda: hf.T5Config(decoder_start_token_id=0, d_model=512, d_ff=2048,
                                    num_layers=6, num_heads=8),
    "t5-base": lambda: hf.T5Config(decoder_start_token_id=0, d_model=768, d_ff=3072,
                                   num_layers=12, num_heads=12),
}


def conv(name, optimizer, batch, device, before, zero):
    model = CONV[name]().to(device).train()
    step = getattr(torch.optim, optimizer)(model.parameters(), lr=0.001)
    before.append(torch.cuda.memory_reserved())
    for _ in range(4):
        x, y = torch.zeros(batch, 3, 86, 86), torch.zeros(batch, dtype=torch.int64)
        if zero == 0:
            step.zero_grad()
        x, y = x.to(device), y.to(device)
        out = model(x)
        loss = torch.nn.functional.cross_entropy(out, y)
        if zero == 1:
            step.zero_grad()
        loss.backward()
        step.step()
        _, best = torch.max(out, 1)
        if zero == 2:
            step.zero_grad()


def text(name, optimizer, batch, device, before, zero):
    kind = hf.AutoModelForSeq2SeqLM if name[0] in "tT" else hf.AutoModelForCausalLM
    model = kind.from_config(TEXT[name]()).train()
    step = getattr(torch.optim, optimizer)(model.parameters(), lr=0.001)
    model.to(device)
    for _ in range(4):
        if zero == 0:
            step.zero_grad()
        ids = torch.ones(batch, 128, dtype=torch.int64)
        mask = torch.ones(batch, 128, dtype=torch.int64)
        for row in range(1, batch):
            mask[row, 1 + 37 * row % 128:] = 0
        data = dict(input_ids=ids, attention_mask=mask, labels=ids.masked_fill(mask == 0, -100))
        out = model(**{k: v.to(device) for k, v in data.items()})
        if zero == 1:
            step.zero_grad()
        loss = out.loss
        loss.backward()
        step.step()
        if zero == 2:
            step.zero_grad()


NEAR = 0.05  # the stated margin of convolution nets: docs/reference/null-gpu.md


def play(f, share):
    """A child of its own: prints its line, or with a share of the cap only how it ended there."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    oom, before = 0, []
    torch.cuda.set_per_process_memory_fraction(min(1.0, share * float(f[8])) if len(f) > 8 else 1.0)
    try:
        (text if "text" in f[0] else conv)(f[1], f[2], int(f[3]), torch.device("cuda"), before,
                                           int(f[7]) if len(f) > 7 else 0)
    except torch.OutOfMemoryError:
        oom = 1
    peak = torch.cuda.memory_stats()["reserved_bytes.all.peak"] >> 20
    if share == 1:
        print("run", *f[:7], peak, sum(before) >> 20, oom, flush=True)
    else:
        print("near", oom, flush=True)
    os._exit(0)


def main(table, card):
    for line in open(table):
        f = line.split()
        if line[0] == "#" or f[4] != card:
            continue
        play(f, 1)
        for share in (1 - NEAR, 1 + NEAR) if f[0] == "capped" else ():
            play(f, share)


main(sys.argv[1], sys.argv[2])
