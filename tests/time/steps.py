# SPDX-License-Identifier: Apache-2.0
"""How long training steps take, as they are and with one thing changed: a JSON line each.

steps.py [--program A,B] [--change X,Y] [--steps 5] [--seconds 110] [--plain]

`ms` is the median step by the clock, `busy_ms` the time of the kernels of one step (torch.profiler), in it `gemm_ms` for
matrix products, `conv_ms` for convolutions and `attention_ms`; the rest moves bytes. --plain only runs the steps, for a
recording or a dry run.
"""
import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.one, self.two = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(self.one(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, w))
        return x + self.down(F.gelu(self.up(self.two(x))))


class Gpt(nn.Module):
    def __init__(self, width=1024, layers=8, words=8000):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(2048, width)
        self.blocks = nn.ModuleList(Block(width, 16) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, t):
        x = self.wte(t) + self.wpe(torch.arange(t.shape[1], device=t.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Double(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(8, b), nn.SiLU(),
                                  nn.Conv2d(b, b, 3, padding=1), nn.GroupNorm(8, b), nn.SiLU())
        self.skip = nn.Conv2d(a, b, 1)

    def forward(self, x):
        return self.body(x) + self.skip(x)


class Unet(nn.Module):
    def __init__(self, w=128):
        super().__init__()
        sizes = [w, 2 * w, 4 * w]
        self.first, self.last = nn.Conv2d(3, w, 3, padding=1), nn.Conv2d(w, 3, 3, padding=1)
        self.down = nn.ModuleList(Double(a, b) for a, b in zip([w] + sizes, sizes))
        self.middle = Double(4 * w, 4 * w)
        self.up = nn.ModuleList(Double(a, b) for a, b in ((8 * w, 2 * w), (4 * w, w), (2 * w, w)))

    def forward(self, x):
        x, kept = self.first(x), []
        for d in self.down:
            x = d(x)
            kept.append(x)
            x = F.max_pool2d(x, 2)
        x = self.middle(x)
        for u in self.up:
            x = u(torch.cat([F.interpolate(x, scale_factor=2.0), kept.pop()], 1))
        return self.last(x)


class Lstm(nn.Module):
    def __init__(self, width=1024, words=8000):
        super().__init__()
        self.embed, self.head = nn.Embedding(words, width), nn.Linear(width, words)
        self.rnn = nn.LSTM(width, width, 2, batch_first=True)

    def forward(self, t):
        return self.head(self.rnn(self.embed(t))[0])


def words(n, length, most=8000):
    return torch.randint(most, (n, length), device="cuda")


def language(model, n, length):
    t = words(n, length + 1)
    return F.cross_entropy(model(t[:, :-1]).flatten(0, 1).float(), t[:, 1:].flatten())


def images(*shape):
    def loss(model, n):
        x = torch.randn(n, *shape, device="cuda")
        if next(model.parameters()).dtype == torch.bfloat16:
            x = x.bfloat16()
        if getattr(model, "last_first", False):
            x = x.to(memory_format=torch.channels_last)
        return F.cross_entropy(model(x).float(), torch.randint(10, (n,), device="cuda"))
    return loss


def denoise(model, n):
    x = torch.randn(n, 3, 64, 64, device="cuda", dtype=next(model.parameters()).dtype)
    x = x.to(memory_format=torch.channels_last) if getattr(model, "last_first", False) else x
    return F.mse_loss(model(x).float(), x.float())


def of_transformers(config, model, **sizes):
    def make():
        import transformers
        c = getattr(transformers, config)(**sizes)
        return getattr(transformers, model)(c)
    return make


def of_torchvision(name):
    def make():
        import torchvision
        module = torchvision.models.video if name.startswith("r3d") else torchvision.models
        return getattr(module, name)(weights=None)
    return make


def causal(length):
    def loss(model, n):
        t = words(n, length)
        return model(input_ids=t, labels=t, use_cache=False).loss
    return loss


def masked(model, n):
    t = words(n, 256)
    return model(input_ids=t, labels=t).loss


def sequences(model, n):
    return model(input_ids=words(n, 256), labels=words(n, 128), use_cache=False).loss


def speech(model, n):
    x = torch.randn(n, 80, 3000, device="cuda", dtype=next(model.parameters()).dtype)
    return model(input_features=x, labels=words(n, 64), use_cache=False).loss


LLAMA = dict(vocab_size=8000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16,
             num_key_value_heads=8)
MIXTRAL = dict(LLAMA, hidden_size=512, intermediate_size=1024, num_hidden_layers=6, num_attention_heads=8,
               num_local_experts=8, num_experts_per_tok=2)
# name: (model, loss of n samples, batch, classes of layers to checkpoint, does it hold images)
PROGRAMS = {
    "gpt": (Gpt, lambda m, n: language(m, n, 512), 8, ("Block",), False),
    "resnet50": (of_torchvision("resnet50"), images(3, 224, 224), 64, ("Bottleneck",), True),
    "llama": (of_transformers("LlamaConfig", "LlamaForCausalLM", **LLAMA), causal(512), 8, ("LlamaDecoderLayer",), False),
    "unet": (Unet, denoise, 16, ("Double",), True),
    "vit": (of_torchvision("vit_b_16"), images(3, 224, 224), 32, ("EncoderBlock",), False),
    "bert": (of_transformers("BertConfig", "BertForMaskedLM", vocab_size=8000), masked, 16, ("BertLayer",), False),
    "convnext": (of_torchvision("convnext_tiny"), images(3, 224, 224), 32, ("CNBlock",), True),
    "t5": (of_transformers("T5Config", "T5ForConditionalGeneration", vocab_size=8000, decoder_start_token_id=0), sequences,
           16, ("T5Block",), False),
    "swin": (of_torchvision("swin_t"), images(3, 224, 224), 32, ("SwinTransformerBlock",), False),
    "r3d": (of_torchvision("r3d_18"), images(3, 16, 112, 112), 8, ("BasicBlock",), False),
    "lstm": (Lstm, lambda m, n: language(m, n, 256), 32, (), False),
    "whisper": (of_transformers("WhisperConfig", "WhisperForConditionalGeneration", vocab_size=8000, d_model=512,
                                encoder_layers=6, decoder_layers=6, encoder_attention_heads=8, decoder_attention_heads=8,
                                encoder_ffn_dim=2048, decoder_ffn_dim=2048, pad_token_id=0, bos_token_id=1,
                                eos_token_id=2, decoder_start_token_id=1, suppress_tokens=None,
                                begin_suppress_tokens=None), speech, 4,
                ("WhisperEncoderLayer", "WhisperDecoderLayer"), False),
    "mixtral": (of_transformers("MixtralConfig", "MixtralForCausalLM", **MIXTRAL), causal(512), 8, ("MixtralDecoderLayer",),
                False),
    "mobilenet": (of_torchvision("mobilenet_v3_large"), images(3, 224, 224), 64, ("InvertedResidual",), True),
}
CHANGES = ["base", "x2", "half", "autocast", "bf16", "tf32", "checkpoint", "accumulate2", "sgd", "fused", "channels_last",
           "autocast+x2", "autocast+checkpoint"]


def wrapped(forward):
    return lambda *a, **k: checkpoint(forward, *a, use_reentrant=False, **k)


class Job:
    def __init__(self, name, change):
        make, self.loss, self.batch, layers, pictures = PROGRAMS[name]
        parts = change.split("+")
        self.autocast, self.passes = "autocast" in parts, 2 if "accumulate2" in parts else 1
        self.batch = self.batch * 2 if "x2" in parts else self.batch // 2 if "half" in parts else self.batch
        torch.manual_seed(1)
        torch.set_float32_matmul_precision("high" if "tf32" in parts else "highest")
        m = make().cuda().train()
        if "bf16" in parts:
            m = m.bfloat16()
        if "channels_last" in parts:
            m = m.to(memory_format=torch.channels_last)
            m.last_first = True
        if "checkpoint" in parts:
            for layer in m.modules():
                if type(layer).__name__ in layers:
                    layer.forward = wrapped(layer.forward)
        w = list(m.parameters())
        self.model = m
        self.optimizer = (torch.optim.SGD(w, 1e-4) if "sgd" in parts else
                          torch.optim.AdamW(w, 1e-4, fused=True) if "fused" in parts else torch.optim.AdamW(w, 1e-4))

    def step(self):
        for _ in range(self.passes):
            with torch.autocast("cuda", torch.bfloat16, enabled=self.autocast):
                loss = self.loss(self.model, self.batch)
            loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


def can(name, change):
    layers, pictures = PROGRAMS[name][3:]
    return not ("checkpoint" in change and not layers) and not (change == "channels_last" and not pictures)


def kind_of(name):
    low = name.lower()
    if any(w in low for w in ("fmha", "flash", "sdpa")):
        return "attention"
    if "at::native" in name:
        return "other"
    if any(w in low for w in ("wgrad", "dgrad", "fprop", "conv", "cudnn", "winograd", "implicit")):
        return "conv"
    return "gemm" if any(w in low for w in ("gemm", "cutlass", "xmma", "nvjet", "cublas", "wgmma")) else "other"


def profiled(job):
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as p:
        job.step()
        torch.cuda.synchronize()
    sums, n = {}, 0
    for e in p.profiler.kineto_results.events():
        if e.device_type() == torch.autograd.DeviceType.CUDA and not e.name().startswith("ProfilerStep"):
            n += 1
            sums[kind_of(e.name())] = sums.get(kind_of(e.name()), 0) + e.duration_ns() / 1e6
    return dict({k + "_ms": round(v, 3) for k, v in sums.items()}, busy_ms=round(sum(sums.values()), 3), kernels=n)


def measure(name, change, steps):
    job = Job(name, change)
    for _ in range(3):
        job.step()
    torch.cuda.synchronize()
    took = []
    for _ in range(steps):
        t = time.perf_counter()
        job.step()
        torch.cuda.synchronize()
        took.append(1e3 * (time.perf_counter() - t))
    line = dict(program=name, change=change, batch=job.batch, ms=round(statistics.median(took), 3), least_ms=round(min(took), 3),
                reserved=torch.cuda.max_memory_reserved(), allocated=torch.cuda.max_memory_allocated())
    return dict(line, **profiled(job))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--program", default=",".join(PROGRAMS))
    p.add_argument("--change", default=",".join(CHANGES))
    p.add_argument("--steps", type=int, default=5)
    p.add_argument("--seconds", type=float, default=110)
    p.add_argument("--plain", action="store_true")
    a = p.parse_args()
    begin = time.time()
    print(json.dumps(dict(device=torch.cuda.get_device_name(), torch=torch.__version__)), flush=True)
    for name in a.program.split(","):
        for change in a.change.split(","):
            if not can(name, change):
                continue
            if time.time() - begin > a.seconds:
                print(json.dumps(dict(program=name, change=change, error="no time left")), flush=True)
                continue
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            try:
                if a.plain:
                    job = Job(name, change)
                    for _ in range(a.steps):
                        job.step()
                    torch.cuda.synchronize()
                else:
                    print(json.dumps(measure(name, change, a.steps)), flush=True)
            except Exception as e:
                print(json.dumps(dict(program=name, change=change, error=f"{type(e).__name__}: {e}"[:200])), flush=True)


if __name__ == "__main__":
    main()
