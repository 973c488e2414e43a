# SPDX-License-Identifier: Apache-2.0
"""cogvideox.py 2b|5b RANK BATCH [checkpoint] - adapters of CogVideoX tuned as cogvideox-factory
does it: 49 frames of 480 x 720, latents and embeddings from files, AdamW, bf16; three steps with made-up tensors.
Prints what is reserved before training, and at most until the first validation."""
import gc
import sys

import accelerate
import torch
from diffusers import AutoencoderKLCogVideoX, CogVideoXDPMScheduler, CogVideoXTransformer3DModel
from diffusers.models.autoencoders.vae import DiagonalGaussianDistribution
from diffusers.models.embeddings import get_3d_rotary_pos_embed
from peft import LoraConfig
from transformers import T5Config, T5EncoderModel

net, rank, batch, *more = sys.argv[1:]
batch = int(batch)
large = net == "5b"
half = torch.bfloat16
accelerator = accelerate.Accelerator(mixed_precision="bf16")


def place(model):
    return model.requires_grad_(False).to(half).to_empty(device="cuda")


def free():
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


with torch.device("meta"):
    text = T5EncoderModel(T5Config(d_model=4096, d_ff=10240, d_kv=64, num_layers=24, num_heads=64,
        feed_forward_proj="gated-gelu"))
    vae = AutoencoderKLCogVideoX()
    net = CogVideoXTransformer3DModel(**(dict(num_attention_heads=48, num_layers=42,
        use_rotary_positional_embeddings=True) if large else {}))
text, net, vae = place(text), place(net), place(vae)
if "checkpoint" in more:
    net.enable_gradient_checkpointing()
net.add_adapter(LoraConfig(r=int(rank), lora_alpha=int(rank), init_lora_weights=True,
    target_modules=["to_k", "to_q", "to_v", "to_out.0"]))
scheduler = CogVideoXDPMScheduler(prediction_type="v_prediction", rescale_betas_zero_snr=True)
optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=1e-4, betas=(0.9, 0.95),
    weight_decay=1e-4)
net, optimizer = accelerator.prepare(net, optimizer)
free()
before = torch.cuda.max_memory_reserved()
del text, vae
gc.collect()
torch.cuda.empty_cache()
alphas = scheduler.alphas_cumprod.to("cuda", torch.float32)


def norm(parameters):
    return sum(p.grad.detach().data.norm(2).item() ** 2 for p in parameters if p.grad is not None) ** 0.5


net.train()
for _ in range(3):
    videos = torch.zeros(batch, 32, 13, 60, 90, dtype=half).cuda()
    latents = (DiagonalGaussianDistribution(videos).sample() * 0.7).permute(0, 2, 1, 3, 4)
    videos = latents.to(memory_format=torch.contiguous_format, dtype=half)
    prompts = torch.zeros(batch, 226, 4096, dtype=half)
    noise = torch.randn_like(videos)
    times = torch.randint(0, 1000, (batch,), device="cuda")
    turns = [t.cuda() for t in get_3d_rotary_pos_embed(64, ((0, 0), (30, 45)), (30, 45), 13)] if large else None
    noisy = scheduler.add_noise(videos, noise, times)
    out = net(hidden_states=noisy, encoder_hidden_states=prompts.cuda(), timestep=times, image_rotary_emb=turns,
        return_dict=False)[0]
    guess = scheduler.get_velocity(out, noisy, times)
    weights = (1 / (1 - alphas[times])).view(-1, 1, 1, 1, 1)
    loss = torch.mean((weights * (guess - videos) ** 2).reshape(batch, -1), dim=1).mean()
    accelerator.backward(loss)
    norm(net.parameters())
    accelerator.clip_grad_norm_(net.parameters(), 1.0)
    norm(net.parameters())
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
print("published before", before, "reserved", torch.cuda.max_memory_reserved())
