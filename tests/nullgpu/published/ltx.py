# SPDX-License-Identifier: Apache-2.0
"""ltx.py [lora] - fine-tuning of LTX-Video's transformer, or of adapters of rank 128, by finetrainers with conditions
and latents computed before: one video of 49 x 512 x 768, bf16, checkpointing, AdamW, ten steps; prints what is
allocated and the peak reserved."""
import sys

import torch
from diffusers import LTXVideoTransformer3DModel

net = LTXVideoTransformer3DModel().to(torch.bfloat16).cuda()
if "lora" in sys.argv:
    from peft import LoraConfig
    net.requires_grad_(False)
    net.add_adapter(LoraConfig(r=128, lora_alpha=128, init_lora_weights=True,
                               target_modules=["to_q", "to_k", "to_v", "to_out.0"]))
    net.to(torch.bfloat16)
net.enable_gradient_checkpointing()
net.train()
trained = [p for p in net.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=3e-5, betas=(0.9, 0.95), weight_decay=1e-4)
latents = torch.randn(1, 7 * 16 * 24, 128, device="cuda", dtype=torch.bfloat16)
prompt = torch.randn(1, 128, 4096, device="cuda", dtype=torch.bfloat16)
mask = torch.ones(1, 128, device="cuda", dtype=torch.bool)
torch.cuda.reset_peak_memory_stats()
for _ in range(10):
    noise = torch.randn_like(latents)
    sigmas = torch.rand(1, 1, 1, device="cuda", dtype=torch.bfloat16)
    noisy = (1.0 - sigmas) * latents + sigmas * noise
    with torch.autocast("cuda", torch.bfloat16):
        out = net(hidden_states=noisy, encoder_hidden_states=prompt, timestep=(sigmas * 1000).long().view(1, 1),
                  encoder_attention_mask=mask, num_frames=7, height=16, width=24,
                  rope_interpolation_scale=[1 / 3, 32, 32], return_dict=False)[0]
    loss = (out.float() - (noise - latents).float()).pow(2).mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(trained, 1.0)
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
print("published allocated", torch.cuda.memory_allocated(), "reserved", torch.cuda.max_memory_reserved())
