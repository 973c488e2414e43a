# SPDX-License-Identifier: Apache-2.0
"""More models for train.py: each gives the model, its repeated layers, and its loss for n samples."""
import torch
import torch.nn.functional as F
from torch import nn


def classes(n, kinds=1000):
    return torch.randint(0, kinds, (n,), device="cuda")


class Dense(nn.Module):
    def __init__(self, width, norm):
        super().__init__()
        self.fc, self.norm = nn.Linear(width, width), nn.BatchNorm1d(width) if norm else nn.LayerNorm(width)

    def forward(self, x):
        return F.relu(self.norm(self.fc(x)))


class Mlp(nn.Module):
    def __init__(self, width=2048, layers=6):
        super().__init__()
        self.first, self.last = nn.Linear(3072, width), nn.Linear(width, 1000)
        self.layers = nn.ModuleList(Dense(width, True) for _ in range(layers))

    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            x = layer(x)
        return self.last(x)


def mlp():
    return Mlp(), (Dense,), lambda m, n: F.cross_entropy(m(torch.randn(64 * n, 3072, device="cuda")), classes(64 * n))


class Tables(nn.Module):
    """Wide embeddings and a small tower: a recommender."""
    def __init__(self, tables=8, rows=100000, width=64):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(tables))
        self.tower = nn.Sequential(nn.Linear(tables * width, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(),
                                   nn.Linear(256, 1))

    def forward(self, ids):
        return self.tower(torch.cat([t(ids[:, i]) for i, t in enumerate(self.tables)], 1))


def tables():
    def loss(m, n):
        ids = torch.randint(0, 100000, (256 * n, 8), device="cuda")
        return F.binary_cross_entropy_with_logits(m(ids).squeeze(1), torch.rand(256 * n, device="cuda"))
    return Tables(), (nn.Embedding,), loss


def bert():
    from transformers import BertConfig, BertForSequenceClassification
    from transformers.models.bert.modeling_bert import BertLayer
    model = BertForSequenceClassification(BertConfig(
        vocab_size=20000, hidden_size=384, num_hidden_layers=6, num_attention_heads=6, intermediate_size=1536))

    def loss(m, n):
        t = torch.randint(0, 20000, (2 * n, 256), device="cuda")
        return m(input_ids=t, attention_mask=torch.ones_like(t), labels=classes(2 * n, 2)).loss
    return model, (BertLayer,), loss


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    from transformers.models.gpt2.modeling_gpt2 import GPT2Block
    model = GPT2LMHeadModel(GPT2Config(vocab_size=16000, n_embd=768, n_layer=5, n_head=12, n_positions=384,
                                       use_cache=False))

    def loss(m, n):
        t = torch.randint(0, 16000, (n // 2, 384), device="cuda")
        return m(input_ids=t, labels=t).loss
    return model, (GPT2Block,), loss


def convnext():
    import torchvision.models as zoo
    from torchvision.models.convnext import CNBlock
    return zoo.convnext_tiny(num_classes=100), (CNBlock,), lambda m, n: F.cross_entropy(
        m(torch.randn(n, 3, 160, 160, device="cuda")), classes(n, 100))


class Pairs(nn.Module):
    """Encoder and decoder."""
    def __init__(self, words=12000, width=320):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.inner = nn.Transformer(width, 5, 4, 3, 1280, dropout=0.1, batch_first=True)
        self.head = nn.Linear(width, words)

    def forward(self, source, target):
        return self.head(self.inner(self.words(source), self.words(target)))


def pairs():
    def loss(m, n):
        a, b = (torch.randint(0, 12000, (2 * n, k), device="cuda") for k in (192, 128))
        return F.cross_entropy(m(a, b).flatten(0, 1), b.flatten())
    return Pairs(), (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer), loss


def efficient():
    import torchvision.models as zoo
    from torchvision.models.efficientnet import MBConv
    return zoo.efficientnet_b0(num_classes=200), (MBConv,), lambda m, n: F.cross_entropy(
        m(torch.randn(n, 3, 160, 160, device="cuda")), classes(n, 200))


class Mixer(nn.Module):
    def __init__(self, tokens=196, width=448):
        super().__init__()
        self.a, self.b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.across = nn.Sequential(nn.Linear(tokens, 256), nn.GELU(), nn.Linear(256, tokens))
        self.along = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.across(self.a(x).transpose(1, 2)).transpose(1, 2)
        return x + self.along(self.b(x))


class Mixers(nn.Module):
    def __init__(self, layers=7, width=448):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 16, 16)
        self.layers = nn.ModuleList(Mixer() for _ in range(layers))
        self.head = nn.Linear(width, 500)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


def mixer():
    return Mixers(), (Mixer,), lambda m, n: F.cross_entropy(
        m(torch.randn(3 * n, 3, 224, 224, device="cuda")), classes(3 * n, 500))


def swin():
    import torchvision.models as zoo
    from torchvision.models.swin_transformer import SwinTransformerBlock
    return zoo.swin_t(num_classes=300), (SwinTransformerBlock,), lambda m, n: F.cross_entropy(
        m(torch.randn(n, 3, 224, 224, device="cuda")), classes(n, 300))


def t5():
    from transformers import T5Config, T5ForConditionalGeneration
    from transformers.models.t5.modeling_t5 import T5Block
    model = T5ForConditionalGeneration(T5Config(vocab_size=12032, d_model=384, d_kv=64, d_ff=1024, num_layers=5,
                                                num_heads=6, decoder_start_token_id=0, use_cache=False))

    def loss(m, n):
        a, b = (torch.randint(0, 12000, (n, k), device="cuda") for k in (256, 96))
        return m(input_ids=a, labels=b).loss
    return model, (T5Block,), loss


class Twice(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.first, self.second = nn.Conv2d(a, b, 3, padding=1), nn.Conv2d(b, b, 3, padding=1)
        self.n1, self.n2 = nn.GroupNorm(8, b), nn.GroupNorm(8, b)

    def forward(self, x):
        x = F.silu(self.n1(self.first(x)))
        return F.silu(self.n2(self.second(x)))


class Unet(nn.Module):
    def __init__(self, widths=(32, 64, 128, 256)):
        super().__init__()
        self.down = nn.ModuleList(Twice(a, b) for a, b in zip((3, *widths), widths))
        self.up = nn.ModuleList(Twice(a + b, a) for a, b in zip(widths[-2::-1], widths[:0:-1]))
        self.head = nn.Conv2d(widths[0], 5, 1)

    def forward(self, x):
        kept = []
        for k, layer in enumerate(self.down):
            x = layer(F.max_pool2d(x, 2) if k else x)
            kept.append(x)
        kept.pop()
        for layer in self.up:
            x = layer(torch.cat([F.interpolate(x, scale_factor=2), kept.pop()], 1))
        return self.head(x)


def unet():
    return Unet(), (Twice,), lambda m, n: F.cross_entropy(
        m(torch.randn(n, 3, 160, 160, device="cuda")), torch.randint(0, 5, (n, 160, 160), device="cuda"))


MORE = {f.__name__: f for f in (mlp, tables, bert, gpt2, convnext, pairs, efficient, mixer, swin, t5, unet)}
