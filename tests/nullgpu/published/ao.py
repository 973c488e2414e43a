# SPDX-License-Identifier: Apache-2.0
"""ao.py NET TYPE [cache=N] [kv] [linear] - text from the Llama that torchao brings along, as its benchmark results
were made: a prompt of 6 tokens, 200 new ones, one of the five samples; prints what was reserved since the first."""
import sys

import torch
from torchao._models.llama.model import Transformer

net, kind, *more = sys.argv[1:]
cache = next((int(m[6:]) for m in more if m.startswith("cache=")), None)
with torch.device("meta"):
    model = Transformer.from_name(net)
model = model.to_empty(device="cpu").to(device="cuda", dtype=getattr(torch, kind)).eval()


def sample(logits):
    logits = logits[:, -1] / 0.8
    best, _ = torch.topk(logits, 200)
    logits = torch.where(logits < best.select(-1, -1).unsqueeze(-1), -float("inf"), logits)
    shares = torch.softmax(logits, dim=-1)
    return torch.argmax(shares / torch.empty_like(shares).exponential_(1), dim=-1, keepdim=True).int(), shares


@torch.no_grad()
def text(prompt, new=200):
    count = len(prompt)
    whole = torch.empty(1, count + new, dtype=torch.int, device="cuda")
    whole[:, :count] = prompt
    with torch.device("cuda"):
        model.setup_caches(max_batch_size=1, max_seq_length=cache or count + new, kv_cache_quantization="kv" in more,
            linear_causal_mask="linear" in more, prompt_length=count)
    token = sample(model(prompt[None], torch.arange(count, device="cuda")))[0].clone()
    at, tokens, kept = torch.tensor([count], device="cuda", dtype=torch.int), [], []
    for _ in range(new - 1):
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            token, shares = sample(model(token.view(1, -1), at))
            token, shares = token.clone(), shares.clone()
        at += 1
        tokens.append(token)
        kept.append(shares)  # as there
    return torch.cat((whole[:, :count + 1], *tokens), dim=-1)


prompt = torch.zeros(6, dtype=torch.int, device="cuda")
torch.cuda.reset_peak_memory_stats()
kept = text(prompt)
torch.cuda.synchronize()
print("published peak", torch.cuda.max_memory_reserved())
