# SPDX-License-Identifier: Apache-2.0
"""flux1.py IMAGES - FLUX.1 dev in bf16 as its Diffusers pipeline calls it by default (1024 x 1024; two steps of 28);
random weights, invented tokens; prints what the nets take, and the peak of the second call."""
import sys
from types import SimpleNamespace

import torch
from diffusers import AutoencoderKL, FlowMatchEulerDiscreteScheduler, FluxPipeline, FluxTransformer2DModel
from transformers import CLIPTextConfig, CLIPTextModel, T5Config, T5EncoderModel


class Tokens:
    model_max_length, added_tokens_encoder = 77, {}

    def __call__(self, prompt, max_length=77, **_):
        ids = torch.full((len(prompt) if isinstance(prompt, list) else 1, max_length), 7)
        ids[:, -1] = 49407 if max_length == 77 else 1
        return SimpleNamespace(input_ids=ids)

    def tokenize(self, prompt):
        return []


with torch.device("meta"):
    parts = dict(
        text_encoder=CLIPTextModel(CLIPTextConfig(max_position_embeddings=77, eos_token_id=49407, hidden_size=768,
            intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12, projection_dim=768)),
        text_encoder_2=T5EncoderModel(T5Config(d_model=4096, d_kv=64, d_ff=10240, num_layers=24, num_heads=64,
            vocab_size=32128, feed_forward_proj="gated-gelu", is_encoder_decoder=False, use_cache=False)),
        transformer=FluxTransformer2DModel(guidance_embeds=True),
        vae=AutoencoderKL(in_channels=3, out_channels=3, latent_channels=16, block_out_channels=(128, 256, 512, 512),
            down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4, layers_per_block=2,
            norm_num_groups=32, sample_size=1024, scaling_factor=0.3611, shift_factor=0.1159, use_quant_conv=False,
            use_post_quant_conv=False))
parts = {name: net.bfloat16().eval().to_empty(device="cuda") for name, net in parts.items()}
clip = parts["text_encoder"].text_model.embeddings  # not a weight, and made up it would be out of range
clip.position_ids.copy_(torch.arange(77)[None])
pipe = FluxPipeline(scheduler=FlowMatchEulerDiscreteScheduler(shift=3.0, use_dynamic_shifting=True), tokenizer=Tokens(),
    tokenizer_2=Tokens(), **parts)
pipe.set_progress_bar_config(disable=True)
nets = torch.cuda.memory_allocated()
for _ in range(2):
    torch.cuda.reset_peak_memory_stats()
    pipe(prompt="straw", num_images_per_prompt=int(sys.argv[1]), num_inference_steps=2,
        generator=torch.manual_seed(2024))
torch.cuda.synchronize()
print("published nets", nets, "peak", torch.cuda.max_memory_allocated())
