# SPDX-License-Identifier: Apache-2.0
"""octocoder.py - OctoCoder in bfloat16 writes 60 tokens, as in the guide of transformers; prints the peak."""
import torch
from transformers import GPTBigCodeConfig, GPTBigCodeForCausalLM

torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    net = GPTBigCodeForCausalLM(GPTBigCodeConfig(
        vocab_size=49152, n_positions=8192, n_embd=6144, n_layer=40, n_head=48, n_inner=24576, pad_token_id=0,
        eos_token_id=-1, bos_token_id=0, attn_implementation="eager")).eval()
torch.cuda.reset_peak_memory_stats()  # before its head was tied to its embedding, which loading never holds apart
prompt = torch.randint(100, 40000, (1, 20), device="cuda")
net.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=60, min_new_tokens=60, do_sample=False)
torch.cuda.synchronize()
print("published peak", torch.cuda.max_memory_allocated())
