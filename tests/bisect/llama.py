# SPDX-License-Identifier: Apache-2.0
"""A small Llama of transformers: from 4.36.0 on its attention is fused."""
import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(vocab_size=1000, hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=8, use_cache=False)
model = LlamaForCausalLM(config).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(2):
    x = torch.randint(0, 1000, (2, 1024), device="cuda")
    model(input_ids=x, labels=x).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
