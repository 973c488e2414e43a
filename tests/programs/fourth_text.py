# SPDX-License-Identifier: Apache-2.0
"""Texts and speech by packages that stood in no list before: --model NAME."""
import os
import tempfile
import warnings

os.environ.update(HF_HUB_OFFLINE="1", WANDB_DISABLED="true", TQDM_DISABLE="1")
warnings.filterwarnings("ignore")

import torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from fullsize import CARD, images, lengths, main, tokens  # noqa: E402
from fourth_vision import until  # noqa: E402
from newcomers_vision import learn  # noqa: E402


def taught(batch=16):
    """textbrewer: a small BERT learns from a larger one, layer by layer, its distiller."""
    import transformers as t
    from textbrewer import DistillationConfig, GeneralDistiller, TrainingConfig

    def net(layers):
        return t.BertForSequenceClassification(t.BertConfig(
            vocab_size=8000, hidden_size=512, num_hidden_layers=layers, num_attention_heads=8, intermediate_size=2048,
            output_hidden_states=True, num_labels=3)).cuda()

    def adaptor(batch, out):
        return dict(logits=(out.logits,), hidden=out.hidden_states)
    large, small = net(8), net(3)
    data = torch.utils.data.TensorDataset(torch.randint(5, 8000, (1024, 128)))
    data = torch.utils.data.DataLoader(
        data, batch, shuffle=True, collate_fn=lambda rows: dict(input_ids=torch.stack([r[0] for r in rows])))
    distiller = GeneralDistiller(
        TrainingConfig(device="cuda", ckpt_frequency=1, log_dir=None, output_dir=tempfile.mkdtemp(prefix="fourth.")),
        DistillationConfig(temperature=8, intermediate_matches=[
            dict(layer_T=i * 8 // 3, layer_S=i, feature="hidden", loss="hidden_mse", weight=1) for i in (0, 1, 2, 3)]),
        large, small, adaptor, adaptor)
    until(5)
    with distiller:
        distiller.train(torch.optim.AdamW(small.parameters(), lr=1e-4), data, num_epochs=1, callback=None)


def low_rank(batch=4):
    """loralib: a frozen GPT with matrices of low rank beside its own, layers computed again."""
    import loralib as lora
    from torch.utils.checkpoint import checkpoint

    class Block(torch.nn.Module):
        def __init__(self, d=768):
            super().__init__()
            self.norm1, self.norm2 = torch.nn.LayerNorm(d), torch.nn.LayerNorm(d)
            self.qkv = lora.MergedLinear(d, 3 * d, r=8, lora_alpha=16, lora_dropout=0.1, enable_lora=[True, False, True])
            self.out, self.up, self.down = torch.nn.Linear(d, d), torch.nn.Linear(d, 4 * d), torch.nn.Linear(4 * d, d)

        def forward(self, x):
            q, k, v = (y.unflatten(-1, (12, 64)).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, -1))
            x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.blocks = lora.Embedding(20000, 768, r=4), torch.nn.ModuleList(Block() for _ in range(6))
            self.last = torch.nn.Linear(768, 20000, bias=False)

        def forward(self, x):
            x = self.words(x)
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=False)
            return self.last(x)

    model = Net()
    lora.mark_only_lora_as_trainable(model)
    model.cuda()

    def loss():
        ids = tokens(batch, 513, 20000)
        return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())

    learn(model, loss, rate=1e-4)


def reads_aloud(batch=4):
    """e2-tts-pytorch: speaks by matching flows, what was cut out is filled in."""
    from e2_tts_pytorch import E2TTS
    model = E2TTS(transformer=dict(dim=384, depth=4, heads=6), num_channels=100, use_vocos=False, tokenizer="char_utf8").cuda()

    def loss():
        frames = lengths(batch, 200, 600, 60, 0.4)
        said = ["".join(chr(97 + int(c)) for c in torch.randint(0, 26, (n // 12,))) for n in frames]
        return model(images(batch, max(frames), 100), text=said, lens=torch.tensor(frames).to(CARD)).loss

    learn(model, loss, rate=1e-4)


def learns_reading(seq=256):
    """titans-pytorch: a memory that learns while it reads, by gradients of its own."""
    from titans_pytorch import MemoryAsContextTransformer, MemoryMLP
    model = MemoryAsContextTransformer(
        num_tokens=256, dim=256, depth=4, segment_len=32, num_persist_mem_tokens=4, num_longterm_mem_tokens=4,
        neural_memory_layers=(2, 4), neural_memory_segment_len=16, neural_memory_batch_size=64,
        neural_memory_model=MemoryMLP(dim=64, depth=2), neural_memory_kwargs=dict(dim_head=64, heads=4)).cuda()
    learn(model, lambda: model(tokens(2, seq + 1, 256), return_loss=True), steps=3, rate=2e-4)


def soft_experts(batch=16):
    """soft-moe-pytorch: experts get mixtures of words."""
    from soft_moe_pytorch import SoftMoE

    class Block(torch.nn.Module):
        def __init__(self, d=384):
            super().__init__()
            self.norm1, self.norm2 = torch.nn.LayerNorm(d), torch.nn.LayerNorm(d)
            self.look = torch.nn.MultiheadAttention(d, 6, batch_first=True)
            self.experts = SoftMoE(dim=d, seq_len=256, num_experts=8)

        def forward(self, x):
            y = self.norm1(x)
            x = x + self.look(y, y, y, need_weights=False)[0]
            return x + self.experts(self.norm2(x))

    model = torch.nn.Sequential(torch.nn.Embedding(8000, 384), *(Block() for _ in range(4)), torch.nn.Linear(384, 8000)).cuda()
    learn(model, lambda: F.cross_entropy(model(tokens(batch, 256, 8000)).flatten(0, 1), tokens(batch, 256, 8000).flatten()))


if __name__ == "__main__":
    main({f.__name__: f for f in (taught, low_rank, reads_aloud, learns_reading, soft_experts)})
