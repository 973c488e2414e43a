# SPDX-License-Identifier: Apache-2.0
"""compile.py MODE... - transformers' GPT-2 (two layers) trains five steps as it is, then compiled in each MODE:
default, reduce-overhead (captured graphs), dynamic (another length each step), masked (padded rows).
Needs triton. TAP lines with the peak of the last two steps: a compiled step keeps less than an eager one."""
import gc
import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel


def train(mode):
    torch._dynamo.reset()
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    model = GPT2LMHeadModel(GPT2Config(n_layer=2)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    run = model
    if mode != "eager":
        run = torch.compile(model, mode="reduce-overhead" if mode == "reduce-overhead" else None,
                            dynamic=True if mode == "dynamic" else None)
    for step in range(5):
        length = 128 + 32 * step if mode == "dynamic" else 256
        ids = torch.randint(0, 50257, (4, length), device="cuda")
        mask = torch.ones_like(ids)
        mask[:, length - 20:] = 0
        if step == 3:
            torch.cuda.reset_peak_memory_stats()
        loss = run(input_ids=ids, labels=ids, **({"attention_mask": mask} if mode == "masked" else {})).loss
        assert torch.isfinite(loss) and ids.ne(-1).sum().item() == ids.numel()  # values between the steps
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return torch.cuda.max_memory_allocated() - before


def main():
    failed = False
    eager = train("eager")
    for mode in sys.argv[1:]:
        try:
            peak = train(mode)
            # the length of the last step is that of the others
            good = 0.5 * eager <= peak <= 1.05 * eager
            said = "peak %.0f MiB, eager %.0f" % (peak / 2**20, eager / 2**20)
        except Exception as e:
            good, said = False, "%s: %.300s" % (type(e).__name__, str(e).replace("\n", " "))
        failed |= not good
        print("%s - torch.compile, %s: %s" % ("ok" if good else "not ok", mode, said), flush=True)
    sys.exit(failed)


main()
