# SPDX-License-Identifier: Apache-2.0
"""flux2.py all | KIND [RANK] - FLUX.2 klein base 4B tuned as PEFT's comparison of methods does it: 512 x 512, batches
of 2, bf16, gradient checkpointing, AdamW; latents and embeddings, computed before there, are made up. Prints what
PyTorch holds after a step, averaged over 20 (100 there)."""
import sys

import peft
import torch
from diffusers import FlowMatchEulerDiscreteScheduler, Flux2KleinPipeline, Flux2Transformer2DModel
from transformers import Dinov2Config, Dinov2Model

kind, *rank = sys.argv[1:]
LAYERS = ["to_out.0", "to_add_out", "to_qkv_mlp_proj", "add_k_proj", "add_q_proj", "add_v_proj", "to_k", "to_q", "to_v",
    "linear_in", "linear_out"]
with torch.device("meta"):
    net = Flux2Transformer2DModel(num_layers=5, num_single_layers=20, num_attention_heads=24, joint_attention_dim=7680,
        guidance_embeds=False)
    judge = Dinov2Model(Dinov2Config(image_size=518))
assert sum(p.numel() for p in net.parameters()) == 3875544576  # as PEFT counted
net = net.bfloat16().to_empty(device="cpu")
net.enable_gradient_checkpointing()
first = torch.nn.Linear(1, 1).cuda()  # as there
begin = torch.cuda.max_memory_reserved()
del first
net.cuda()
if kind == "all":
    net.requires_grad_(True)
else:
    sizes = {"lora": lambda r: peft.LoraConfig(r=r, lora_alpha=r, target_modules=LAYERS),
        "dora": lambda r: peft.LoraConfig(r=r, lora_alpha=r, target_modules=LAYERS, use_dora=True),
        "vera": lambda r: peft.VeraConfig(r=r, target_modules=LAYERS),
        "ia3": lambda: peft.IA3Config(target_modules=LAYERS, feedforward_modules=LAYERS),
        "oft": lambda: peft.OFTConfig(r=0, oft_block_size=32, use_cayley_neumann=True, target_modules=LAYERS),
        "ln_tuning": lambda: peft.LNTuningConfig(target_modules=["norm_q", "norm_k"])}
    net = peft.get_peft_model(net, sizes[kind](*map(int, rank)), autocast_adapter_dtype=True)
net.to("cpu")
torch.cuda.empty_cache()
net.train()
judge.to_empty(device="cuda")  # it looks at pictures between the steps
rate = {"all": (5e-5, 0.01), "lora": (1e-4, 1e-4), "dora": (1e-4, 1e-4)}.get(kind, (1e-3, 1e-2))
optimizer = torch.optim.AdamW(net.parameters(), lr=rate[0], weight_decay=rate[1])
texts = torch.zeros(14, 512, 7680, dtype=torch.bfloat16, device="cuda")
places = torch.zeros(14, 512, 4, dtype=torch.long, device="cuda")
cache = torch.zeros(14, 128, 32, 32, dtype=torch.bfloat16, device="cuda")
net.to("cuda")
torch.cuda.empty_cache()
scheduler = FlowMatchEulerDiscreteScheduler()
source = torch.Generator(device="cuda").manual_seed(0)
held, reserved, losses = [], [], []
for _ in range(20):
    chosen = torch.randint(0, 14, (2,), device="cuda")
    latents, embeds, at = (x.index_select(0, chosen) for x in (cache, texts, places))
    ids = Flux2KleinPipeline._prepare_latent_ids(latents).to(latents.device)
    noise = torch.empty_like(latents).normal_(generator=source)
    steps = (torch.rand(2) * 1000).long()
    times = scheduler.timesteps[steps].to("cuda")
    sigmas = scheduler.sigmas.to(dtype=latents.dtype)[steps].view(-1, 1, 1, 1).to("cuda")
    packed = Flux2KleinPipeline._pack_latents((1.0 - sigmas) * latents + sigmas * noise)
    optimizer.zero_grad(set_to_none=True)
    guess = net(hidden_states=packed, timestep=times / 1000, guidance=None, encoder_hidden_states=embeds, txt_ids=at,
        img_ids=ids, return_dict=False)[0]
    guess = Flux2KleinPipeline._unpack_latents_with_ids(guess[:, :packed.size(1)], ids)
    weight, target = torch.ones_like(sigmas), noise - latents
    loss = torch.mean((weight.float() * (guess.float() - target.float()) ** 2).reshape(2, -1), 1).mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    loss = loss.detach()
    losses.append(loss)
    held.append(torch.cuda.memory_allocated() - begin)
    reserved.append(torch.cuda.memory_reserved() - begin)
torch.cuda.synchronize()
print("published held", sum(held) // 20, "reserved", sum(reserved) // 20)
