# SPDX-License-Identifier: Apache-2.0
"""Models for train.py whose changes were predicted before anything about them was looked at."""
import torch
import torch.nn.functional as F
from torch import nn


def classes(n, kinds=1000):
    return torch.randint(0, kinds, (n,), device="cuda")


def causal(model, words, samples, length):
    def loss(m, n):
        t = torch.randint(0, words, (samples(n), length), device="cuda")
        return m(input_ids=t, labels=t).loss
    return loss


def qwen():
    from transformers import Qwen2Config, Qwen2ForCausalLM
    from transformers.models.qwen2.modeling_qwen2 import Qwen2DecoderLayer
    model = Qwen2ForCausalLM(Qwen2Config(
        vocab_size=24000, hidden_size=448, intermediate_size=1216, num_hidden_layers=7, num_attention_heads=14,
        num_key_value_heads=2, tie_word_embeddings=True, use_cache=False))
    return model, (Qwen2DecoderLayer,), causal(model, 24000, lambda n: n, 320)


def neox():
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM
    from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXLayer
    model = GPTNeoXForCausalLM(GPTNeoXConfig(
        vocab_size=10240, hidden_size=640, intermediate_size=2560, num_hidden_layers=6, num_attention_heads=10,
        use_cache=False))
    return model, (GPTNeoXLayer,), causal(model, 10240, lambda n: n, 448)


def distil():
    from transformers import DistilBertConfig, DistilBertForMaskedLM
    from transformers.models.distilbert.modeling_distilbert import TransformerBlock
    model = DistilBertForMaskedLM(DistilBertConfig(vocab_size=16384, dim=576, n_layers=5, n_heads=9, hidden_dim=2304))
    return model, (TransformerBlock,), causal(model, 16384, lambda n: 3 * n // 2, 224)


def wav():
    from transformers import Wav2Vec2Config, Wav2Vec2ForSequenceClassification
    from transformers.models.wav2vec2.modeling_wav2vec2 import Wav2Vec2EncoderLayer
    model = Wav2Vec2ForSequenceClassification(Wav2Vec2Config(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=6, intermediate_size=1536, num_labels=12,
        apply_spec_augment=False))
    return model, (Wav2Vec2EncoderLayer,), lambda m, n: m(
        input_values=torch.randn(n // 2, 48000, device="cuda"), labels=classes(n // 2, 12)).loss


def images(model, kinds, side, samples):
    return model, kinds, lambda m, n: F.cross_entropy(
        m(torch.randn(samples(n), 3, side, side, device="cuda")), classes(samples(n), 100))


def mobile():
    import torchvision.models as zoo
    from torchvision.models.mobilenetv3 import InvertedResidual
    return images(zoo.mobilenet_v3_large(num_classes=100), (InvertedResidual,), 192, lambda n: 2 * n)


def dense():
    import torchvision.models as zoo
    from torchvision.models.densenet import _DenseLayer
    return images(zoo.densenet121(num_classes=100), (_DenseLayer,), 128, lambda n: n)


def shuffle():
    import torchvision.models as zoo
    from torchvision.models.shufflenetv2 import InvertedResidual
    return images(zoo.shufflenet_v2_x1_5(num_classes=100), (InvertedResidual,), 160, lambda n: 3 * n)


class Encoder(nn.Module):
    """The usual encoder of a tutorial: nn.TransformerEncoder over words and places."""
    def __init__(self, words=14000, width=416, layers=5):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.zeros(160, width))
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, 0.1, "gelu", batch_first=True, norm_first=True)
        self.inner = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, 30)

    def forward(self, t):
        return self.head(self.inner(self.words(t) + self.places).mean(1))


def encoder():
    return Encoder(), (nn.TransformerEncoderLayer,), lambda m, n: F.cross_entropy(
        m(torch.randint(0, 14000, (3 * n, 160), device="cuda")), classes(3 * n, 30))


class Dlrm(nn.Module):
    """Tables of several heights, products of pairs, two towers."""
    def __init__(self, rows=(400000, 120000, 60000, 20000, 5000, 1000), width=48):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(r, width) for r in rows)
        self.bottom = nn.Sequential(nn.Linear(13, 256), nn.ReLU(), nn.Linear(256, width), nn.ReLU())
        n = len(rows) + 1
        self.top = nn.Sequential(nn.Linear(width + n * (n - 1) // 2, 512), nn.ReLU(), nn.Linear(512, 1))
        self.register_buffer("at", torch.tril_indices(n, n, -1), persistent=False)

    def forward(self, x, ids):
        x = self.bottom(x)
        all_ = torch.stack([x] + [t(ids[:, i]) for i, t in enumerate(self.tables)], 1)
        z = torch.bmm(all_, all_.transpose(1, 2))[:, self.at[0], self.at[1]]
        return self.top(torch.cat([x, z], 1)).squeeze(1)


def dlrm():
    def loss(m, n):
        ids = torch.randint(0, 1000, (512 * n, 6), device="cuda")
        x = torch.randn(512 * n, 13, device="cuda")
        return F.binary_cross_entropy_with_logits(m(x, ids), torch.rand(512 * n, device="cuda"))
    return Dlrm(), (nn.Embedding,), loss


MORE = {f.__name__: f for f in (qwen, neox, distil, wav, mobile, dense, shuffle, encoder, dlrm)}
