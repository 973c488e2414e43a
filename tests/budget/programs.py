# SPDX-License-Identifier: Apache-2.0
"""programs.py NAME [--batch N] [--device cpu]: a training program made of other people's packages, for check.py. It prints each
loss to the last bit. NAMES says of each the batch for the card and the one for the processor.

Run with PyTorch 2.9.1, torchvision 0.24.1 (BSD), transformers 5.24, timm, diffusers, peft, accelerate, monai (Apache-2.0);
x-transformers, segmentation-models-pytorch, mambapy, and, of which nothing of ours was made or measured before, vit-pytorch,
performer-pytorch, perceiver-pytorch, denoising-diffusion-pytorch, g-mlp-pytorch, linformer, nystrom-attention, conformer,
rtdl-revisiting-models (MIT)."""
import argparse
import os
import sys

import torch
import torch.nn.functional as F

NAMES = {}


def program(card, processor):
    def put(make):
        NAMES[make.__name__] = (card, processor, make)
        return make
    return put


def images(n, side, classes=10):
    return (torch.randn(n, 3, side, side, device=a.device),), torch.randint(0, classes, (n,), device=a.device)


def tokens(n, length, most=1000):
    return torch.randint(0, most, (n, length), device=a.device)


def classify(model, side):
    return model, lambda m, n: (lambda x, y: F.cross_entropy(m(*x), y))(*images(n, side))


def next_token(model, length):
    def loss(m, n):
        x = tokens(n, length)
        return F.cross_entropy(m(x).transpose(1, 2), x)
    return model, loss


def hugging(model, length):
    def loss(m, n):
        x = tokens(n, length)
        return m(input_ids=x, labels=x).loss
    return model, loss


# ---- packages that were used before ----

@program(64, 1)
def timm_convnext():
    import timm
    return classify(timm.create_model("convnext_tiny", num_classes=10, drop_path_rate=0.1), 224 if a.batch > 2 else 64)


@program(128, 1)
def timm_swin():
    import timm
    return classify(timm.create_model("swin_tiny_patch4_window7_224", num_classes=10, drop_path_rate=0.1), 224)


@program(96, 2)
def torchvision_resnet():
    import torchvision
    return classify(torchvision.models.resnet50(num_classes=10), 224 if a.batch > 2 else 64)


@program(24, 1)
def hf_t5():
    from transformers import T5Config, T5ForConditionalGeneration
    model = T5ForConditionalGeneration(T5Config(d_model=512, num_layers=6, num_heads=8, d_ff=2048, vocab_size=8000,
                                                decoder_start_token_id=0))
    return hugging(model, 256 if a.batch > 2 else 32)


@program(16, 1)
def hf_whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration
    model = WhisperForConditionalGeneration(WhisperConfig(d_model=384, encoder_layers=4, decoder_layers=4,
                                                          encoder_attention_heads=6, decoder_attention_heads=6, dropout=0.1,
                                                          encoder_ffn_dim=1536, decoder_ffn_dim=1536))

    def loss(m, n):
        return m(input_features=torch.randn(n, 80, 3000, device=a.device), labels=tokens(n, 64)).loss
    return model, loss


@program(16, 1)
def peft_llama():
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM
    model = LlamaForCausalLM(LlamaConfig(hidden_size=768, intermediate_size=2048, num_hidden_layers=12,
                                         num_attention_heads=12, vocab_size=16000))
    return hugging(get_peft_model(model, LoraConfig(r=16, target_modules="all-linear", lora_dropout=0.1)),
                   512 if a.batch > 2 else 32)


@program(16, 1)
def smp_unet():
    import segmentation_models_pytorch as smp
    model = smp.Unet("resnet34", encoder_weights=None, classes=6)

    def loss(m, n):
        side = 256 if n > 2 else 64
        return F.cross_entropy(m(torch.randn(n, 3, side, side, device=a.device)),
                               torch.randint(0, 6, (n, side, side), device=a.device))
    return model, loss


@program(2, 1)
def monai_unet():
    from monai.networks.nets import BasicUNet
    model, side = BasicUNet(spatial_dims=3, in_channels=1, out_channels=3), 96 if a.device == "cuda" else 32

    def loss(m, n):
        return F.cross_entropy(m(torch.randn(n, 1, side, side, side, device=a.device)),
                               torch.randint(0, 3, (n, side, side, side), device=a.device))
    return model, loss


@program(16, 1)
def diffusers_unet():
    from diffusers import UNet2DModel
    model = UNet2DModel(sample_size=64, in_channels=3, out_channels=3, layers_per_block=2,
                        block_out_channels=(64, 128, 256, 256), norm_num_groups=16)

    def loss(m, n):
        side = 64 if n > 2 else 16
        x = torch.randn(n, 3, side, side, device=a.device)
        return F.mse_loss(m(x, torch.randint(0, 1000, (n,), device=a.device)).sample, x)
    return model, loss


# ---- gradients of several passes ----

@program(8, 1)
def accumulated_gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    a.accumulate = 3
    return hugging(GPT2LMHeadModel(GPT2Config(n_layer=8, n_embd=512, n_head=8, vocab_size=8000)),
                   512 if a.batch > 2 else 32)


@program(16, 1)
def accumulated_bert():
    """By accelerate's own means, in 16 bits."""
    from transformers import BertConfig, BertForSequenceClassification
    a.accelerate = 2
    model = BertForSequenceClassification(BertConfig(hidden_size=512, num_hidden_layers=8, num_attention_heads=8,
                                                     intermediate_size=2048))

    def loss(m, n):
        return m(input_ids=tokens(n, 256 if n > 2 else 32), labels=torch.randint(0, 2, (n,), device=a.device)).loss
    return model, loss


# ---- packages of which nothing was made before ----

@program(64, 1)
def vit_simple():
    from vit_pytorch import ViT
    return classify(ViT(image_size=224, patch_size=16, num_classes=10, dim=512, depth=8, heads=8, mlp_dim=2048, dropout=0.1,
                        emb_dropout=0.1), 224)


@program(16, 1)
def performer():
    from performer_pytorch import PerformerLM
    return next_token(PerformerLM(num_tokens=8000, max_seq_len=1024, dim=512, depth=6, heads=8, causal=False),
                      1024 if a.batch > 2 else 64)


@program(16, 1)
def perceiver():
    from perceiver_pytorch import Perceiver
    model = Perceiver(input_channels=3, input_axis=2, num_freq_bands=6, max_freq=10.0, depth=4, num_latents=256,
                      latent_dim=512, cross_heads=1, latent_heads=8, num_classes=10, self_per_cross_attn=2)

    def loss(m, n):
        side = 96 if n > 2 else 16
        return F.cross_entropy(m(torch.randn(n, side, side, 3, device=a.device)),
                               torch.randint(0, 10, (n,), device=a.device))
    return model, loss


@program(16, 1)
def ddpm():
    from denoising_diffusion_pytorch import GaussianDiffusion, Unet
    model = GaussianDiffusion(Unet(dim=64, dim_mults=(1, 2, 4)), image_size=64, timesteps=100)
    return model, lambda m, n: m(torch.rand(n, 3, 64, 64, device=a.device))


@program(32, 1)
def gmlp():
    from g_mlp_pytorch import gMLP
    return next_token(gMLP(num_tokens=8000, dim=512, depth=8, seq_len=256), 256)


@program(32, 1)
def linformer():
    from linformer import LinformerLM
    return next_token(LinformerLM(num_tokens=8000, dim=512, seq_len=512, depth=8, k=128, heads=8), 512)


@program(16, 1)
def nystrom():
    from nystrom_attention import Nystromformer
    model = torch.nn.Sequential(torch.nn.Embedding(8000, 512), Nystromformer(dim=512, depth=6, heads=8, num_landmarks=64),
                                torch.nn.Linear(512, 8000))
    return next_token(model, 512 if a.batch > 2 else 64)


@program(32, 1)
def conformer():
    from conformer import Conformer
    model = torch.nn.Sequential(torch.nn.Embedding(1000, 256), Conformer(dim=256, depth=8, dim_head=64, heads=4),
                                torch.nn.Linear(256, 1000))
    return next_token(model, 400 if a.batch > 2 else 50)


@program(4096, 8)
def tabular():
    from rtdl_revisiting_models import FTTransformer
    model = FTTransformer(n_cont_features=40, cat_cardinalities=[10] * 5, d_out=1, **FTTransformer.get_default_kwargs(3))

    def loss(m, n):
        x = torch.randn(n, 40, device=a.device), torch.randint(0, 10, (n, 5), device=a.device)
        return F.mse_loss(m(*x)[:, 0], torch.randn(n, device=a.device))
    return model, loss


@program(16, 1)
def x_decoder():
    from x_transformers import Decoder, TransformerWrapper
    return next_token(TransformerWrapper(num_tokens=8000, max_seq_len=512, attn_layers=Decoder(
        dim=512, depth=8, heads=8, attn_dropout=0.1, ff_dropout=0.1)), 512 if a.batch > 2 else 32)


# ---- compiled, and spread over two cards ----

@program(64, 1)
def compiled_vit():
    model, loss = vit_simple()
    a.compiled = True
    return model, loss


@program(8, 1)
def compiled_gpt2():
    model, loss = accumulated_gpt2()
    a.compiled, a.accumulate = True, 1
    return model, loss


@program(16, 1)
def fsdp_llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    model = LlamaForCausalLM(LlamaConfig(hidden_size=768, intermediate_size=2048, num_hidden_layers=8,
                                         num_attention_heads=12, vocab_size=16000))
    a.shards = lambda m: m.model.layers
    return hugging(model, 512 if a.batch > 2 else 32)


@program(64, 1)
def fsdp_vit():
    model, loss = vit_simple()
    a.shards = lambda m: [both for both in m.transformer.layers]
    return model, loss


def spread(model):
    """FSDP2: each layer a group, and the rest another one."""
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard
    if a.device == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    dist.init_process_group("nccl" if a.device == "cuda" else "gloo")
    for layer in a.shards(model):
        for part in layer if isinstance(layer, torch.nn.ModuleList) else [layer]:
            fully_shard(part)
    return fully_shard(model)


def train(model, loss_of):
    model = model.to(a.device)
    if a.shards:
        model = spread(model)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    if a.compiled:
        for m in model.modules():  # what it draws depends on what it keeps
            if isinstance(m, torch.nn.Dropout):
                m.p = 0.0
        # on the processor the same partition, but operator by operator: fused loops round as they are cut
        model = torch.compile(model, backend="aot_eager_decomp_partition" if a.device == "cpu" else "inductor")
    both = None
    if a.accelerate:
        from accelerate import Accelerator
        both = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=a.accelerate, cpu=a.device == "cpu")
        model, opt = both.prepare(model, opt)
    for _ in range(a.steps * a.accelerate if both else a.steps):
        if both:
            with both.accumulate(model):
                loss = loss_of(model, a.batch)
                both.backward(loss)
                opt.step()
                opt.zero_grad()
        else:
            for _ in range(a.accumulate):
                loss = loss_of(model, a.batch)
                (loss / a.accumulate).backward()
            opt.step()
            opt.zero_grad()
        if a.device == "cpu":
            print("loss", os.environ.get("RANK", 0), float(loss.detach()).hex(), flush=True)
    if a.shards:
        torch.distributed.destroy_process_group()


p = argparse.ArgumentParser()
p.add_argument("name", choices=NAMES)
p.add_argument("--batch", type=int)
p.add_argument("--device", default="cuda")
p.add_argument("--steps", type=int, default=2)
if __name__ == "__main__":
    a = p.parse_args()
    a.batch = a.batch or NAMES[a.name][a.device == "cpu"]
    a.accumulate, a.accelerate, a.compiled, a.shards = 1, 0, False, None
    torch.manual_seed(1)
    if a.device == "cpu":
        torch.set_num_threads(1)  # sums come in one order
    train(*NAMES[a.name][2]())
