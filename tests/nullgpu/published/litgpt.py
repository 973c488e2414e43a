# SPDX-License-Identifier: Apache-2.0
"""litgpt.py lora|adapter|adapter_v2|generate NET QUANTIZE|- [MICRO LENGTH] - what the resource tables of LitGPT were
measured with: the first step of a fine-tuning at its longest example, then the optimizer; or 50 new tokens. The
package is the one of its commit 8641822 (October 2023); weights and tokens are made up. Prints the peak."""
import importlib
import sys

import lightning
import torch
from lightning.fabric.plugins import BitsandbytesPrecision

way, net, quantize, *sizes = sys.argv[1:]
part = importlib.import_module("lit_gpt." + ("model" if way == "generate" else way))
config = importlib.import_module("lit_gpt.config" if way == "generate" else part.__name__).Config
plugins = None if quantize == "-" else BitsandbytesPrecision(quantize, torch.bfloat16)
fabric = lightning.Fabric(devices=1, precision=None if plugins else "bf16-true", plugins=plugins)
low_rank = dict(r=8, alpha=16, dropout=0.05, to_query=True, to_value=True) if way == "lora" else {}
with fabric.init_module(empty_init=way == "generate"):
    model = part.GPT(config.from_name(net, **low_rank))


def tune(micro, length):
    from lit_gpt.utils import chunked_cross_entropy
    getattr(part, f"mark_only_{way}_as_trainable")(model)
    trained = [p for p in model.parameters() if p.requires_grad]
    if plugins:
        import bitsandbytes
        optimizer = bitsandbytes.optim.PagedAdamW(trained, lr=3e-4, weight_decay=0.01)
    else:
        optimizer = torch.optim.AdamW(trained, lr=3e-4, weight_decay=0.01)
    net, optimizer = fabric.setup(model, optimizer)
    net.max_seq_length = length
    x = fabric.to_device(torch.randint(0, 1000, (micro, length)))
    y = x.clone()
    logits = net(x, lm_head_chunk_size=128)
    logits[-1] = logits[-1][..., :-1, :]
    fabric.backward(chunked_cross_entropy(logits, y[..., 1:]) / (128 // micro))
    optimizer.step()


@torch.inference_mode()
def generate(prompt=6, new=50):
    net = fabric.setup_module(model.eval())
    with torch.device("meta"):
        shapes = part.GPT(model.config).state_dict()
    net.load_state_dict({k: torch.empty(v.shape, dtype=torch.bfloat16) for k, v in shapes.items()})
    net.max_seq_length = prompt + new
    with fabric.init_tensor():
        net.set_kv_cache(batch_size=1)
    tokens = torch.zeros(prompt + new, dtype=torch.long, device=fabric.device)
    at = torch.arange(prompt, device=fabric.device)
    for _ in range(new):
        logits = net(tokens.index_select(0, at).view(1, -1), at)[0, -1] / 0.8
        best, _ = torch.topk(logits, 200)
        logits = torch.where(logits < best[[-1]], -float("inf"), logits)
        token = torch.multinomial(torch.softmax(logits, dim=-1), 1)
        at = at[-1:] + 1
        tokens = tokens.index_copy(0, at.clamp(max=len(tokens) - 1), token)


if way == "generate":
    generate()
else:
    tune(*map(int, sizes))
torch.cuda.synchronize()
print("published peak", torch.cuda.max_memory_allocated())
