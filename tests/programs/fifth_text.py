# SPDX-License-Identifier: Apache-2.0
"""Texts, sounds and sequences by packages that stood in no list before: --model NAME."""
import os
import tempfile
import warnings

os.environ.update(HF_HUB_OFFLINE="1", WANDB_DISABLED="true", TQDM_DISABLE="1")
warnings.filterwarnings("ignore")

import torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from fourth_vision import until  # noqa: E402
from fullsize import classes, images, lengths, main, padded, tokens  # noqa: E402
from newcomers_vision import learn  # noqa: E402


def bert(family="BertForSequenceClassification", layers=4, **own):
    import transformers as t
    return getattr(t, family)(t.BertConfig(vocab_size=8000, hidden_size=384, num_hidden_layers=layers, num_attention_heads=6,
                                           intermediate_size=1536, **own))


def folder_of_bert(words):
    """A small model and its tokenizer, as from a hub."""
    import transformers as t
    folder = tempfile.mkdtemp(prefix="fifth.", dir=os.environ.get("TMPDIR"))
    with open(f"{folder}/vocab.txt", "w") as f:
        f.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]))
    t.BertTokenizerFast(f"{folder}/vocab.txt").save_pretrained(folder)
    bert("BertModel").save_pretrained(folder)
    return folder


WORDS = [f"w{i}" for i in range(7000)]


def said(n):
    return [WORDS[int(i)] for i in torch.randint(0, 7000, (n,))]


def retained(batch=4):
    """torchscale: RetNet in chunks, words, bf16."""
    from torchscale.architecture.config import RetNetConfig
    from torchscale.architecture.retnet import RetNetDecoder
    words = torch.nn.Embedding(16000, 512, padding_idx=1)
    model = RetNetDecoder(RetNetConfig(
        vocab_size=16000, decoder_embed_dim=512, decoder_value_embed_dim=1024, decoder_ffn_embed_dim=1024, decoder_layers=4,
        decoder_retention_heads=4, chunkwise_recurrent=True, recurrent_chunk_size=128), embed_tokens=words).cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(4):
        ids = tokens(batch, 513, 16000)
        with torch.autocast("cuda", torch.bfloat16):
            out, _ = model(ids[:, :-1])
            loss = F.cross_entropy(out.flatten(0, 1).float(), ids[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad()


def retention(seq=256):
    """yet-another-retnet: all words at once, then word by word."""
    from yet_another_retnet.retnet import RetNet
    model = RetNet(num_tokens=8000, d_model=384, nhead=6, num_layers=4, dim_feedforward=1536, device="cuda")

    def loss():
        ids = tokens(8, seq + 1, 8000)
        return model(ids[:, :-1], ids[:, 1:])

    learn(model, loss)
    with torch.no_grad():
        states = None
        for i in range(8):
            _, states = model.forward_recurrent(tokens(8, 1, 8000)[:, 0], i, states or [])


def random_features(batch=4):
    """performer-pytorch: attention by random features that are drawn anew, letters, accumulated."""
    from performer_pytorch import AutoregressiveWrapper, PerformerLM
    model = AutoregressiveWrapper(PerformerLM(num_tokens=256, dim=384, depth=4, max_seq_len=1024, heads=6, causal=False,
                                              feature_redraw_interval=2, reversible=True, nb_features=128)).cuda()
    opt = torch.optim.Adam(model.parameters(), lr=1e-4)
    for _ in range(3):
        for _ in range(2):
            (model(tokens(batch, 1024, 256), return_loss=True) / 2).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        opt.step()
        opt.zero_grad()


def compressed(batch=4):
    """compressive-transformer-pytorch: what was read is kept, then compressed, several pieces a step."""
    from compressive_transformer_pytorch import AutoregressiveWrapper, CompressiveTransformer
    model = AutoregressiveWrapper(CompressiveTransformer(
        num_tokens=256, dim=384, depth=4, seq_len=256, mem_len=256, cmem_len=64, cmem_ratio=4, heads=6,
        memory_layers=[3, 4])).cuda()
    opt = torch.optim.Adam(model.parameters(), lr=1e-4)
    for _ in range(3):
        for loss, more, _ in model(tokens(batch, 1025, 256), max_batch_size=2, return_loss=True):
            (loss + more).backward()
        opt.step()
        opt.zero_grad()


def spans(batch=8):
    """span-marker: which spans are names, markers for each span, its trainer."""
    from datasets import Dataset
    from span_marker import SpanMarkerModel, Trainer
    from transformers import TrainingArguments
    sizes = lengths(16 * 16, 24, 90, 5)
    data = Dataset.from_dict(dict(tokens=[said(n) for n in sizes], ner_tags=[torch.randint(0, 3, (n,)).tolist() for n in sizes]))
    model = SpanMarkerModel.from_pretrained(folder_of_bert(WORDS), labels=["O", "a", "b"], model_max_length=128,
                                            marker_max_length=64, entity_max_length=6)
    Trainer(model=model, args=TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="fifth."), per_device_train_batch_size=batch, max_steps=5, save_strategy="no",
        report_to=[], disable_tqdm=True), train_dataset=data).train()


def simply(batch=8):
    """simpletransformers: classifies texts, fp16, tests while it learns, its loop."""
    import pandas
    from simpletransformers.classification import ClassificationModel
    data = pandas.DataFrame([[" ".join(said(n)), int(n) % 3] for n in lengths(8 * batch, 60, 120, 5)], columns=["text", "labels"])
    folder = tempfile.mkdtemp(prefix="fifth.")
    model = ClassificationModel("bert", folder_of_bert(WORDS), num_labels=3, use_cuda=True, args=dict(
        train_batch_size=batch, eval_batch_size=32, num_train_epochs=1, max_seq_length=128, overwrite_output_dir=True,
        output_dir=folder, best_model_dir=folder + "/b", tensorboard_dir=folder + "/t", cache_dir=folder + "/c",
        use_multiprocessing=False, use_multiprocessing_for_evaluation=False, dataloader_num_workers=0, silent=True, no_save=True,
        no_cache=True, evaluate_during_training=True, evaluate_during_training_steps=3))
    until(6)
    model.train_model(data, eval_df=data[:48], output_dir=folder)


def bottlenecks(batch=8):
    """adapters: a frozen BERT with narrow layers in between, its trainer."""
    import adapters
    from datasets import Dataset
    from transformers import TrainingArguments
    model = bert(num_labels=3, layers=6)
    adapters.init(model)
    model.add_adapter("x", config="seq_bn")
    model.train_adapter("x")
    data = Dataset.from_dict(dict(input_ids=torch.randint(5, 8000, (512, 128)).tolist(), labels=[i % 3 for i in range(512)]))
    adapters.AdapterTrainer(model=model, args=TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="fifth."), per_device_train_batch_size=batch, max_steps=4, save_strategy="no",
        report_to=[], disable_tqdm=True), train_dataset=data).train()


def looks_ahead(batch=8):
    """torch-optimizer: Yogi, whose weights follow it slowly (Lookahead)."""
    import torch_optimizer
    model = bert(num_labels=3).cuda()
    opt = torch_optimizer.Lookahead(torch_optimizer.Yogi(model.parameters(), lr=1e-3), k=2)
    for _ in range(5):
        opt.zero_grad()
        loss = model(input_ids=tokens(batch, 128, 8000), labels=classes(3, batch)).loss
        loss.backward()
        opt.step()
        loss.item()


def without_schedule(batch=8):
    """schedulefree: AdamW without a schedule, texts as long as they are, tested at the average."""
    import schedulefree
    model = bert(num_labels=3).cuda()
    opt = schedulefree.AdamWScheduleFree(model.parameters(), lr=1e-3, warmup_steps=2)
    for _ in range(2):
        model.train()
        opt.train()
        for _ in range(4):
            model(**padded(batch, 60, 256, 8000), labels=classes(3, batch)).loss.backward()
            opt.step()
            opt.zero_grad(set_to_none=True)
        model.eval()
        opt.eval()
        with torch.no_grad():
            model(**padded(2 * batch, 60, 256, 8000)).logits.argmax(-1).cpu()


def rare(batch=8):
    """entmax: attention and words that may be zero."""
    from entmax import Entmax15Loss, entmax_bisect

    class Look(torch.nn.Module):
        def __init__(self, d=256):
            super().__init__()
            self.norm, self.qkv, self.out = torch.nn.LayerNorm(d), torch.nn.Linear(d, 3 * d), torch.nn.Linear(d, d)
            self.alpha = torch.nn.Parameter(torch.full((8, 1, 1), 1.5))

        def forward(self, x):
            q, k, v = (y.unflatten(-1, (8, 32)).transpose(1, 2) for y in self.qkv(self.norm(x)).chunk(3, -1))
            scores = (q @ k.transpose(-1, -2) / 32 ** 0.5)
            share = entmax_bisect(scores, self.alpha.expand(scores.shape[0], -1, scores.shape[2], 1), n_iter=10)
            return x + self.out((share @ v).transpose(1, 2).flatten(2))

    model = torch.nn.Sequential(torch.nn.Embedding(4000, 256), *(Look() for _ in range(3)), torch.nn.Linear(256, 4000)).cuda()
    measure = Entmax15Loss(k=128)
    learn(model, lambda: measure(model(tokens(batch, 128, 4000)).flatten(0, 1), tokens(batch, 128, 4000).flatten()), steps=3)


def sound_from_noise(batch=4):
    """audio-diffusion-pytorch: diffusion of sound by a U-Net, its sampler after."""
    from audio_diffusion_pytorch import DiffusionModel, UNetV0, VDiffusion, VSampler
    model = DiffusionModel(net_t=UNetV0, in_channels=2, channels=[8, 32, 64, 128, 256], factors=[1, 4, 4, 4, 2],
                           items=[1, 2, 2, 2, 2], attentions=[0, 0, 0, 1, 1], attention_heads=8, attention_features=32,
                           diffusion_t=VDiffusion, sampler_t=VSampler).cuda()
    learn(model, lambda: model(images(batch, 2, 2 ** 16)), rate=1e-4)
    model.sample(images(2, 2, 2 ** 16), num_steps=3)


def sounds(batch=16):
    """torchlibrosa: mel bands are made on the card, some are struck out, a net of convolutions tells sounds."""
    from torchlibrosa.augmentation import SpecAugmentation
    from torchlibrosa.stft import LogmelFilterBank, Spectrogram

    def block(i, o):
        return torch.nn.Sequential(torch.nn.Conv2d(i, o, 3, padding=1, bias=False), torch.nn.BatchNorm2d(o), torch.nn.ReLU(),
                                   torch.nn.Conv2d(o, o, 3, padding=1, bias=False), torch.nn.BatchNorm2d(o), torch.nn.ReLU(),
                                   torch.nn.AvgPool2d(2), torch.nn.Dropout(0.2))
    model = torch.nn.Sequential(
        Spectrogram(n_fft=1024, hop_length=320, freeze_parameters=True),
        LogmelFilterBank(sr=32000, n_fft=1024, n_mels=64, fmin=50, fmax=14000, freeze_parameters=True),
        SpecAugmentation(time_drop_width=64, time_stripes_num=2, freq_drop_width=8, freq_stripes_num=2),
        block(1, 64), block(64, 128), block(128, 256), torch.nn.AdaptiveMaxPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(256, 50)).cuda()
    learn(model, lambda: F.binary_cross_entropy_with_logits(model(images(batch, 96000)), images(batch, 50)))


def pitch(batch=32):
    """torchcrepe: how high a voice is, CREPE learns."""
    import torchcrepe
    model = torchcrepe.Crepe("full").cuda()
    learn(model, lambda: F.binary_cross_entropy(model(images(batch, 1024)), images(batch, 360)))


def waves_from_mels(batch=8):
    """diffwave: waves out of noise and mel bands, its learner."""
    from diffwave.learner import DiffWaveLearner
    from diffwave.model import DiffWave
    from diffwave.params import params
    model = DiffWave(params).cuda()
    opt = torch.optim.Adam(model.parameters(), lr=2e-4)
    frames = params.crop_mel_frames
    data = [dict(audio=torch.rand(batch, frames * 256), spectrogram=torch.rand(batch, 80, frames)) for _ in range(3)]
    learner = DiffWaveLearner(tempfile.mkdtemp(prefix="fifth."), model, data, opt, params, fp16=True)
    learner._write_summary = lambda *_: None
    learner.train(max_steps=2)


def whose_genes(batch=2):
    """enformer-pytorch: what is read of long pieces of genomes."""
    from enformer_pytorch import Enformer
    model = Enformer.from_hparams(dim=384, depth=3, heads=4, output_heads=dict(human=500), target_length=128,
                                  use_checkpointing=True).cuda()
    learn(model, lambda: model(tokens(batch, 24576, 9) - 5, head="human", target=images(batch, 128, 500)), steps=2, rate=1e-4)


if __name__ == "__main__":
    main({f.__name__: f for f in (retained, retention, random_features, compressed, spans, simply, bottlenecks, looks_ahead,
                                  without_schedule, rare, sound_from_noise, sounds, pitch, waves_from_mels,
                                  whose_genes)})
