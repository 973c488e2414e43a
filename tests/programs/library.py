# SPDX-License-Identifier: Apache-2.0
"""Models of torchvision and of transformers, made small, trained and evaluated by one plain loop: --model NAME."""
import torch
import torch.nn.functional as F

from common import arguments, evaluate, place, train, words

a = arguments(model="", side=96, vocabulary=4096)
# Evaluated on batches four times as large as those of training.
LARGE = ("opt", "roberta", "beit", "regnet", "squeezenet", "segformer", "mistral", "electra",
         "falcon", "qwen", "megatron", "dinov", "poolformer", "resnext", "granite")
SMALL = dict(hidden_size=192, num_hidden_layers=4, num_attention_heads=4, intermediate_size=768)


def text(family, head, **own):
    """A model of words: scores for the next word, or for the same one."""
    import transformers as t
    config = getattr(t, family + "Config")(**{**SMALL, "vocab_size": a.vocabulary, "use_cache": False, **own})
    model = getattr(t, family + head)(config)
    if a.checkpoint:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    kept = tuple(n for n, _ in model.named_modules() if n.endswith("head") or n.endswith("decoder"))
    model = place(a, model, leave=kept)

    def loss_of(n):
        ids = words(n, a.seq, a.vocabulary)
        return model(input_ids=ids, labels=ids).loss
    return model, loss_of


def image_of(n):
    x = torch.randn(n, 3, a.side, a.side, device="cuda")
    return x.to(torch.bfloat16) if a.bf16 else x


def picture(family, head="ForImageClassification", **own):
    """A model of pictures of transformers: a class for each."""
    import transformers as t
    model = getattr(t, family + head)(getattr(t, family + "Config")(**{"num_labels": 20, "image_size": a.side, **own}))
    if a.checkpoint:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    model = place(a, model, leave=("classifier",))
    return model, lambda n: F.cross_entropy(model(pixel_values=image_of(n)).logits, torch.randint(0, 20, (n,)).cuda())


def vision(name, **own):
    """A model of torchvision: a class for each picture."""
    import torchvision
    model = place(a, getattr(torchvision.models, name)(num_classes=20, **own))
    return model, lambda n: F.cross_entropy(model(image_of(n)), torch.randint(0, 20, (n,)).cuda())


VIEW = {**SMALL, "patch_size": 16}
MODELS = {
    "opt": lambda: text("OPT", "ForCausalLM", ffn_dim=768, word_embed_proj_dim=192, max_position_embeddings=512),
    "roberta": lambda: text("Roberta", "ForMaskedLM"),
    "mistral": lambda: text("Mistral", "ForCausalLM", num_key_value_heads=2),
    "electra": lambda: text("Electra", "ForMaskedLM", embedding_size=96),
    "gemma": lambda: text("Gemma2", "ForCausalLM", num_key_value_heads=2, head_dim=48),
    "bloom": lambda: text("Bloom", "ForCausalLM", n_layer=4, n_head=4),
    "albert": lambda: text("Albert", "ForMaskedLM", embedding_size=96),
    "phi": lambda: text("Phi", "ForCausalLM"),
    "olmo": lambda: text("Olmo2", "ForCausalLM", num_key_value_heads=4),
    "falcon": lambda: text("Falcon", "ForCausalLM", ffn_hidden_size=768),
    "qwen": lambda: text("Qwen3", "ForCausalLM", num_key_value_heads=2, head_dim=48),
    "granite": lambda: text("Granite", "ForCausalLM", num_key_value_heads=2),
    "stablelm": lambda: text("StableLm", "ForCausalLM", num_key_value_heads=4),
    "cohere": lambda: text("Cohere", "ForCausalLM", num_key_value_heads=2),
    "neo": lambda: text("GPTNeo", "ForCausalLM", num_layers=4, num_heads=4, attention_types=[[["global", "local"], 2]],
                        max_position_embeddings=512, window_size=64),
    "megatron": lambda: text("MegatronBert", "ForMaskedLM"),
    "squeezebert": lambda: text("SqueezeBert", "ForMaskedLM", embedding_size=192),
    "dinov": lambda: picture("Dinov2", hidden_size=192, num_hidden_layers=4, num_attention_heads=4, patch_size=16),
    "poolformer": lambda: picture("PoolFormer", hidden_sizes=[32, 64, 128, 256], depths=[2, 2, 2, 2]),
    "swinv": lambda: picture("Swinv2", embed_dim=48, depths=[2, 2], num_heads=[3, 6], window_size=6),
    "resnext": lambda: vision("resnext50_32x4d"),
    "efficientnet": lambda: vision("efficientnet_b1"),
    "wide": lambda: vision("wide_resnet50_2"),
    "beit": lambda: picture("Beit", **VIEW),
    "deit": lambda: picture("DeiT", **VIEW),
    "segformer": lambda: picture("Segformer"),
    "regnet": lambda: vision("regnet_y_400mf"),
    "squeezenet": lambda: vision("squeezenet1_1"),
    "vgg": lambda: vision("vgg11_bn"),
    "mnasnet": lambda: vision("mnasnet0_5"),
}
model, loss_of = MODELS[a.model]()
many = 4 * a.batch if a.model in LARGE else a.batch
opt = train(a, model, loss_of, clip=1.0)
evaluate(a, model, loss_of, batch=a.eval_batch or many)
train(a, model, loss_of, opt, clip=1.0, steps=1)
