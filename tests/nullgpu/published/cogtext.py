# SPDX-License-Identifier: Apache-2.0
"""cogtext.py 2b|5b - a video by CogVideoX in bf16 as its Diffusers pipeline makes it by default (49 frames of 480 x 720;
two steps of 50); random weights, invented tokens; prints what the nets take, and the peak."""
import sys
from types import SimpleNamespace

import torch
from diffusers import AutoencoderKLCogVideoX, CogVideoXDDIMScheduler, CogVideoXPipeline, CogVideoXTransformer3DModel
from transformers import T5Config, T5EncoderModel


class Tokens:
    def __call__(self, prompt, max_length=226, **_):
        return SimpleNamespace(input_ids=torch.ones(len(prompt), max_length, dtype=torch.long))


large = sys.argv[1] == "5b"
with torch.device("meta"):
    parts = dict(
        text_encoder=T5EncoderModel(T5Config(d_model=4096, d_ff=10240, d_kv=64, num_layers=24, num_heads=64,
            feed_forward_proj="gated-gelu")),
        vae=AutoencoderKLCogVideoX(),
        transformer=CogVideoXTransformer3DModel(**(dict(num_attention_heads=48, num_layers=42,
            use_rotary_positional_embeddings=True) if large else {})))
parts = {name: net.bfloat16().eval().to_empty(device="cuda") for name, net in parts.items()}
pipe = CogVideoXPipeline(tokenizer=Tokens(), scheduler=CogVideoXDDIMScheduler(timestep_spacing="trailing"), **parts)
pipe.set_progress_bar_config(disable=True)
nets = torch.cuda.memory_allocated()
pipe(prompt="a panda", guidance_scale=6, use_dynamic_cfg=True, num_inference_steps=2,
    generator=torch.Generator().manual_seed(3047))
torch.cuda.synchronize()
print("published nets", nets, "peak", torch.cuda.max_memory_allocated())
