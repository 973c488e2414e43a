# SPDX-License-Identifier: Apache-2.0
"""Texts and sounds by packages that came later, whose models, losses and loops these are: --model NAME."""
import os

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", WANDB_DISABLED="true")

import torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from fullsize import CARD, classes, images, lengths, main, padded, tokens  # noqa: E402
from newcomers_vision import learn  # noqa: E402


def near_and_far(seq=1024):
    """linear-attention-transformer: letters, some heads see what is near, others all in linear time."""
    from linear_attention_transformer import LinearAttentionTransformerLM
    model = LinearAttentionTransformerLM(num_tokens=256, dim=256, heads=8, depth=4, max_seq_len=seq, causal=False,
                                         n_local_attn_heads=4, local_attn_window_size=128).cuda()
    learn(model, lambda: F.cross_entropy(model(tokens(4, seq, 256)).flatten(0, 1), classes(256, 4 * seq)), rate=1e-4)


def gates(batch=16):
    """xlstm: a stack of matrix and scalar memories."""
    from xlstm import (FeedForwardConfig, mLSTMBlockConfig, mLSTMLayerConfig, sLSTMBlockConfig, sLSTMLayerConfig,
                       xLSTMLMModel, xLSTMLMModelConfig)
    model = xLSTMLMModel(xLSTMLMModelConfig(
        mlstm_block=mLSTMBlockConfig(mlstm=mLSTMLayerConfig(conv1d_kernel_size=4, qkv_proj_blocksize=4, num_heads=4)),
        slstm_block=sLSTMBlockConfig(slstm=sLSTMLayerConfig(backend="vanilla", num_heads=4, conv1d_kernel_size=4),
                                     feedforward=FeedForwardConfig(proj_factor=1.3, act_fn="gelu")),
        vocab_size=8000, context_length=64, num_blocks=4, embedding_dim=256, slstm_at=[1])).cuda()
    learn(model, lambda: F.cross_entropy(model(tokens(batch, 64, 8000)).flatten(0, 1), classes(8000, batch * 64)), steps=3)


def tags(batch=32):
    """pytorch-crf: words get tags, an LSTM and a field over the longest of the batch."""
    from torchcrf import CRF
    body = torch.nn.LSTM(256, 256, bidirectional=True, batch_first=True, num_layers=2).cuda()
    words = torch.nn.Embedding(30000, 256).cuda()
    head, field = torch.nn.Linear(512, 17).cuda(), CRF(17, batch_first=True).cuda()
    model = torch.nn.ModuleList([body, words, head, field])

    def loss():
        ids, mask = padded(batch, 24, 120, multiple=1).values()
        return -field(head(body(words(ids))[0]), classes(17, *ids.shape), mask=mask.bool(), reduction="token_mean")

    learn(model, loss, steps=5, kind=torch.optim.Adam)


def named_things(batch=8):
    """gliner: spans of texts against the names of kinds, and its loop."""
    import transformers as t
    from gliner import GLiNER
    from strangers_text import LIGHT, folder, saved, sentence
    where = saved(t.BertModel(t.BertConfig(**LIGHT)), 512)
    model = GLiNER.from_config(dict(model_name=where, hidden_size=256, max_width=8, span_mode="markerV0", max_len=200,
                                         has_rnn=True, fine_tune=True), map_location="cuda", backbone_from_pretrained=True)
    kinds = [f"w{i}" for i in range(30)]

    def text(n):
        return dict(tokenized_text=sentence(n).split(), ner=[[i, i + i % 3, kinds[(n + i) % 30]] for i in range(0, n - 4, 6)])

    data = [text(n) for n in lengths(6 * batch, 40, 180)]
    model.train_model(data, data[:2], output_dir=folder(), per_device_train_batch_size=batch, max_steps=5, report_to="none",
                      save_steps=1000, dataloader_num_workers=0)


def few_shots(batch=16):
    """setfit: pairs of few examples, then a head."""
    import transformers as t
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, models
    from setfit import SetFitModel, Trainer, TrainingArguments
    from strangers_text import LIGHT, folder, saved, sentence
    where = saved(t.BertModel(t.BertConfig(**LIGHT)), 256)
    part = models.Transformer(where, max_seq_length=256)
    body = SentenceTransformer(modules=[part, models.Pooling(part.get_word_embedding_dimension())], device="cuda")
    model = SetFitModel(model_body=body, model_head=torch.nn.Linear(1, 1))
    plan = TrainingArguments(output_dir=folder(), batch_size=(batch, 2), max_steps=5, num_epochs=1, report_to="none",
                             save_strategy="no", show_progress_bar=False)
    data = Dataset.from_dict(dict(text=[sentence(n) for n in lengths(64, 20, 200)], label=[i % 4 for i in range(64)]))
    trainer = Trainer(model=model, args=plan, train_dataset=data)
    trainer.train_embeddings(data["text"], data["label"], args=plan)


def codes(batch=8):
    """encodec: sound as words of dictionaries, with its loss over scales."""
    from encodec import EncodecModel
    model = EncodecModel._get_model([1.5, 3., 6.], 24000, 1, causal=True, model_norm="weight_norm").cuda()
    model.train()
    spectra = [(n, torch.hann_window(n, device=CARD)) for n in (512, 1024, 2048)]

    def seen(sound, n, window):
        return torch.stft(sound[:, 0], n, n // 4, n, window, return_complex=True).abs()

    def loss():
        want = torch.randn(batch, 1, 24000).to(CARD)
        parts = model.encoder(want)
        kept = model.quantizer(parts, model.frame_rate, 6.)
        made = model.decoder(kept.quantized)[..., :want.shape[-1]]
        return F.l1_loss(made, want) + kept.penalty + sum(F.l1_loss(seen(made, *s), seen(want, *s)) for s in spectra)

    learn(model, loss, rate=3e-4, kind=torch.optim.Adam)


def unmixed(batch=8):
    """openunmix: one voice out of a mixture, whose spectrogram is made on the card."""
    from openunmix.model import OpenUnmix
    from openunmix.transforms import ComplexNorm, make_filterbanks
    forth, _ = make_filterbanks(n_fft=2048, n_hop=512, sample_rate=44100.)
    spectrum = torch.nn.Sequential(forth, ComplexNorm()).cuda()
    model = OpenUnmix(nb_bins=1025, nb_channels=2, hidden_size=256, max_bin=700).cuda()

    def loss():
        mixture, voice = torch.randn(batch, 2, 88200).to(CARD), torch.randn(batch, 2, 88200).to(CARD)
        return F.mse_loss(model(spectrum(mixture)), spectrum(voice))

    learn(model, loss, kind=torch.optim.Adam, weight_decay=1e-5)


def vocoder(batch=16):
    """vocos: waves from mel bands, with two kinds of critics."""
    from vocos.discriminators import MultiPeriodDiscriminator, MultiResolutionDiscriminator
    from vocos.feature_extractors import MelSpectrogramFeatures
    from vocos.heads import ISTFTHead
    from vocos.loss import DiscriminatorLoss, FeatureMatchingLoss, GeneratorLoss
    from vocos.models import VocosBackbone
    bands, body = MelSpectrogramFeatures(padding="same").cuda(), VocosBackbone(100, 256, 768, 6).cuda()
    head, critics = ISTFTHead(256, 1024, 256).cuda(), [MultiPeriodDiscriminator().cuda(), MultiResolutionDiscriminator().cuda()]
    ours = torch.optim.AdamW([*body.parameters(), *head.parameters()], lr=2e-4, betas=(0.8, 0.9))
    theirs = torch.optim.AdamW([w for c in critics for w in c.parameters()], lr=2e-4, betas=(0.8, 0.9))
    judged, fooled, alike = DiscriminatorLoss(), GeneratorLoss(), FeatureMatchingLoss()
    for _ in range(3):
        want = torch.randn(batch, 16384).to(CARD)
        with torch.no_grad():
            made = head(body(bands(want)))
        loss = 0.
        for c in critics:
            real, fake, _, _ = c(y=want, y_hat=made)
            loss = loss + judged(disc_real_outputs=real, disc_generated_outputs=fake)[0]
        theirs.zero_grad()
        loss.backward()
        theirs.step()
        made = head(body(bands(want)))
        loss = 45 * F.l1_loss(bands(made), bands(want))
        for c in critics:
            _, fake, real_seen, fake_seen = c(y=want, y_hat=made)
            loss = loss + fooled(disc_outputs=fake)[0] + alike(fmap_r=real_seen, fmap_g=fake_seen)
        ours.zero_grad()
        loss.backward()
        ours.step()


def stems(batch=2):
    """demucs: a song falls into four, waves only, weights are averaged."""
    from demucs.demucs import Demucs
    from demucs.ema import ModelEMA
    model = Demucs(["drums", "bass", "other", "vocals"], channels=24, depth=5, lstm_layers=2, dconv_lstm=4).cuda()
    opt, average = torch.optim.Adam(model.parameters(), lr=3e-4), ModelEMA(model, 0.99, device="cuda")
    for _ in range(4):
        made = model(torch.randn(batch, 2, 44100).to(CARD))
        loss = F.l1_loss(made, torch.randn(batch, 4, 2, made.shape[-1]).to(CARD))
        loss.backward()
        opt.step()
        average.update()
        opt.zero_grad()


def voices(batch=4):
    """asteroid: two voices fall apart, whoever is who, padded to the longest mixture."""
    from asteroid.losses import PITLossWrapper, pairwise_neg_sisdr
    from asteroid.models import ConvTasNet
    model = ConvTasNet(n_src=2, n_blocks=5, n_repeats=2, n_filters=256, hid_chan=256, bn_chan=96).cuda()
    apart = PITLossWrapper(pairwise_neg_sisdr, pit_from="pw_mtx")

    def loss():
        longest = max(lengths(batch, 16000, 48000, 4000, 0.4))
        return apart(model(torch.randn(batch, longest).to(CARD)), torch.randn(batch, 2, longest).to(CARD))

    learn(model, loss, steps=5, kind=torch.optim.Adam)


def listens(batch=8):
    """openai-whisper: half a minute of sound is written down, texts are padded to the longest."""
    from whisper.model import ModelDimensions, Whisper
    model = Whisper(ModelDimensions(n_mels=80, n_audio_ctx=500, n_audio_state=256, n_audio_head=4, n_audio_layer=4,
                                    n_vocab=51865, n_text_ctx=224, n_text_state=256, n_text_head=4, n_text_layer=4)).cuda()

    def loss():
        words = padded(batch, 30, 220, 50000, multiple=1)["input_ids"]
        said = model(images(batch, 80, 1000), words[:, :-1])
        return F.cross_entropy(said.transpose(1, 2), words[:, 1:])

    learn(model, loss, steps=5, rate=1e-4)


if __name__ == "__main__":
    main(globals())
