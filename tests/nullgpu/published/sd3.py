# SPDX-License-Identifier: Apache-2.0
"""sd3.py [offload] [no-t5] - Stable Diffusion 3 Medium in 16 bit as its Diffusers pipeline calls it by default
(1024 x 1024; two steps of 28); random weights, invented tokens; prints the peak of the second call."""
import sys
from types import SimpleNamespace

import torch
from diffusers import AutoencoderKL, FlowMatchEulerDiscreteScheduler, SD3Transformer2DModel, StableDiffusion3Pipeline
from transformers import CLIPTextConfig, CLIPTextModelWithProjection, T5Config, T5EncoderModel


class Tokens:
    model_max_length = 77

    def __call__(self, prompt, max_length=77, **_):
        ids = torch.full((len(prompt) if isinstance(prompt, list) else 1, max_length), 7)
        ids[:, -1] = 49407 if max_length == 77 else 1
        return SimpleNamespace(input_ids=ids)


def clip(**sizes):
    return CLIPTextModelWithProjection(CLIPTextConfig(max_position_embeddings=77, eos_token_id=49407, **sizes)).half()


def t5():
    model = T5EncoderModel(T5Config(d_model=4096, d_kv=64, d_ff=10240, num_layers=24, num_heads=64, vocab_size=32128,
                                    feed_forward_proj="gated-gelu", is_encoder_decoder=False, use_cache=False)).half()
    for name, part in model.named_modules():  # as transformers loads it in 16 bit
        if name.endswith(".wo"):
            part.float()
    return model


with_t5 = "no-t5" not in sys.argv
pipe = StableDiffusion3Pipeline(
    scheduler=FlowMatchEulerDiscreteScheduler(shift=3.0),
    text_encoder=clip(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12,
                      projection_dim=768),
    text_encoder_2=clip(hidden_size=1280, intermediate_size=5120, num_hidden_layers=32, num_attention_heads=20,
                        projection_dim=1280, hidden_act="gelu"),
    text_encoder_3=t5() if with_t5 else None, tokenizer=None, tokenizer_2=None, tokenizer_3=None,
    transformer=SD3Transformer2DModel(
        sample_size=128, patch_size=2, in_channels=16, num_layers=24, attention_head_dim=64, num_attention_heads=24,
        joint_attention_dim=4096, caption_projection_dim=1536, pooled_projection_dim=2048, out_channels=16,
        pos_embed_max_size=192).half(),
    vae=AutoencoderKL(
        in_channels=3, out_channels=3, down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4, block_out_channels=(128, 256, 512, 512), layers_per_block=2,
        latent_channels=16, scaling_factor=1.5305, shift_factor=0.0609, use_quant_conv=False,
        use_post_quant_conv=False, force_upcast=True, sample_size=1024).half())
pipe.tokenizer = pipe.tokenizer_2 = Tokens()
pipe.tokenizer_max_length = 77
if with_t5:
    pipe.tokenizer_3 = Tokens()
pipe.set_progress_bar_config(disable=True)
if "offload" in sys.argv:
    pipe.enable_model_cpu_offload()
else:
    pipe.to("cuda")
for _ in range(2):
    torch.cuda.reset_peak_memory_stats()
    pipe("A cat holding a sign that says hello world", num_inference_steps=2)
torch.cuda.synchronize()
print("published peak", torch.cuda.max_memory_allocated())
