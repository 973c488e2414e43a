# SPDX-License-Identifier: Apache-2.0
"""zero.py STAGE [MODEL [fp32|bf16 [BATCH [TOKENS]]]] - a training with DeepSpeed's ZeRO stage 0 to 3, or STAGE
"plain": the same with PyTorch alone on one card. Each rank prints what it holds after the last step and
the most of the steady steps. STAGE "check": all four stages, held against ZeRO's formulas (TAP lines).

MODEL: gpt (12 layers of 768 as in GPT-2 small), wide (4 layers of 2048), tiny; hf-gpt2, hf-llama, hf-bert where
transformers is installed."""
import gc
import os
import sys

import torch
from torch import nn

RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
SHAPES = {"gpt": (12, 768, 50257), "wide": (4, 2048, 8192), "tiny": (4, 512, 1000)}


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.enter, self.leave = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, w // 64, 64).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, w))
        return x + self.leave(nn.functional.gelu(self.enter(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, layers, width, words):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, ids):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x)
        x = self.head(self.norm(x))
        return nn.functional.cross_entropy(x.flatten(0, 1), ids.flatten())


class Labelled(nn.Module):
    """A model of transformers, called with the tokens alone."""
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return self.model(input_ids=ids, labels=ids).loss


def build(name):
    torch.manual_seed(0)
    if name in SHAPES:
        return GPT(*SHAPES[name]), SHAPES[name][2]
    import transformers as t
    if name == "hf-gpt2":
        return Labelled(t.GPT2LMHeadModel(t.GPT2Config())), 50257
    if name == "hf-llama":
        config = t.LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=8,
                               num_attention_heads=16, num_key_value_heads=4, vocab_size=32000)
        return Labelled(t.LlamaForCausalLM(config)), 32000
    return Labelled(t.BertForMaskedLM(t.BertConfig())), 30522


def plain(model):
    """(forward, after the loss)"""
    model.cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def finish(loss):
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model, finish


def deepspeed(model, stage, precision, batch):
    import deepspeed as ds
    config = {"train_micro_batch_size_per_gpu": batch, "zero_optimization": {"stage": stage},
              "bf16": {"enabled": precision == "bf16"}, "zero_allow_untested_optimizer": True}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    engine, _, _, _ = ds.initialize(model=model, config=config, optimizer=optimizer)

    def finish(loss):
        engine.backward(loss)
        engine.step()
    return engine, finish


def train(stage, name, precision, batch, tokens):
    """(values of the model, bytes held after the last step, peak of the steady steps)"""
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    model, words = build(name)
    values = sum(p.numel() for p in model.parameters())
    if stage == "plain":
        forward, finish = plain(model.bfloat16() if precision == "bf16" else model)
    else:
        forward, finish = deepspeed(model, int(stage), precision, batch)
    del model
    for step in range(4):
        if step == 2:
            torch.cuda.reset_peak_memory_stats()
        ids = torch.randint(0, words, (batch, tokens)).cuda()
        finish(forward(ids))
    torch.cuda.synchronize()
    held, peak = torch.cuda.memory_allocated() - before, torch.cuda.max_memory_allocated() - before
    print("rank %d of %d stage %s model %s %s values %d held %d peak %d reserved %d" %
          (RANK, WORLD, stage, name, precision, values, held, peak, torch.cuda.max_memory_reserved()),
          flush=True)
    if stage != "plain":
        forward.destroy()
    return values, held, peak


def states(stage, precision, values):
    """Bytes a rank holds by ZeRO's table: (after a step, while there are gradients). Parameters and
    gradients in the type of training; 32-bit copy and two moments, 12 bytes a value. DeepSpeed's
    stage 0 in 32 bit needs no copy. Stage 3 keeps its shard of the gradients and one bucket of 5e8 values."""
    size = 4 if precision == "fp32" else 2
    if stage == 0:
        held = size + (8 if precision == "fp32" else 12)
        return held * values, (held + size) * values
    if stage < 3:
        held = size + 12 / WORLD
        return held * values, (held + (size if stage == 1 else size / WORLD)) * values
    held = (2 * size + 12) / WORLD * values + 5e8 * size
    return held, held


def check():
    """What is held is the table's to 1 % and 24 MiB (workspaces of cuBLAS, small tensors that are not
    sharded). A peak lies between the states with gradients, and these with the activations of
    stage 0, one bucket of 5e8 values (however small the model) and three copies of all values:
    gathered parameters, updated ones, gradients under way."""
    failed = False
    for precision in ("fp32", "bf16"):
        for stage in range(4):
            values, held, peak = train(stage, "tiny", precision, 4, 512)
            size = 4 if precision == "fp32" else 2
            want, least = states(stage, precision, values)
            activations = peak - least if stage == 0 else activations
            most = least + activations + 3 * size * values + (5e8 * size if stage in (1, 2) else 0)
            bad = "held %d, formula %d; peak %d, formula %d to %d" % (held, want, peak, least, most)
            said = [None] * WORLD
            good = want <= held <= 1.01 * want + (24 << 20) and least <= peak <= most
            torch.distributed.all_gather_object(said, "" if good else bad)
            failed |= any(said)
            if RANK == 0:
                print("%s - DeepSpeed ZeRO-%d %s: held %.0f MiB of %.0f by the formula, peak %.0f of %.0f to %.0f" %
                      ("not ok" if any(said) else "ok", stage, precision, held / 2**20, want / 2**20,
                       peak / 2**20, least / 2**20, most / 2**20))
                print("\n".join("# rank %d: %s" % (r, s) for r, s in enumerate(said) if s), flush=True)
    return failed


def main():
    stage, name, precision, batch, tokens = (sys.argv[1:] + ["gpt", "fp32", "4", "512"][len(sys.argv) - 2:])[:5]
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    failed = False
    if stage == "check":
        failed = check()
    else:
        train(stage, name, precision, int(batch), int(tokens))
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    sys.exit(failed)


main()
