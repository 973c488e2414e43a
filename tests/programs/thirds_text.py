# SPDX-License-Identifier: Apache-2.0
"""Texts and sounds by packages and families that stood in no list, whose models, losses and loops these are: --model NAME."""
import os

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", WANDB_DISABLED="true")

import torch  # noqa: E402
import transformers as t  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from fullsize import CARD, classes, images, lengths, main, padded, tokens  # noqa: E402
from newcomers_vision import learn  # noqa: E402
from strangers_text import LIGHT, plan, saved, sentence, tokenizer  # noqa: E402


def llama(layers=6, **own):
    return t.LlamaConfig(vocab_size=16000, hidden_size=512, intermediate_size=1376, num_hidden_layers=layers,
                         num_attention_heads=8, num_key_value_heads=4, max_position_embeddings=1024, **own)


def remembers_text(seq=512, batch=4):
    """recurrent-memory-transformer-pytorch: four pieces one after another, what is kept goes from one to the next."""
    from recurrent_memory_transformer_pytorch import RecurrentMemoryTransformer, RecurrentMemoryTransformerWrapper
    net = RecurrentMemoryTransformer(num_tokens=8000, num_memory_tokens=32, dim=384, depth=4, causal=True, dim_head=48, heads=8,
                                     seq_len=seq, use_xl_memories=True, xl_mem_len=seq // 2)
    model = RecurrentMemoryTransformerWrapper(net).cuda()
    learn(model, lambda: model(tokens(batch, 4 * seq, 8000), return_loss=True)[0], steps=3, rate=1e-4)


def few_experts(batch=8):
    """st-moe-pytorch: eight experts, two see a word, each has room for so many."""
    from st_moe_pytorch import MoE, SparseMoEBlock

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.attend = torch.nn.MultiheadAttention(384, 6, batch_first=True)
            self.norm, self.block = torch.nn.LayerNorm(384), SparseMoEBlock(MoE(dim=384, num_experts=8))

        def forward(self, x):
            y = self.norm(x)
            out = self.block(x + self.attend(y, y, y, need_weights=False)[0])
            return out.outputs, out.total_aux_loss

    words, head = torch.nn.Embedding(16000, 384), torch.nn.Linear(384, 16000)
    layers = torch.nn.ModuleList([Layer() for _ in range(4)])
    model = torch.nn.ModuleList([words, head, layers]).cuda()

    def loss():
        x, more = words(tokens(batch, 256, 16000)), 0.
        for layer in layers:
            x, aux = layer(x)
            more = more + aux
        return F.cross_entropy(head(x).flatten(0, 1), classes(16000, batch * 256)) + more

    learn(model, loss, rate=1e-4)


def short_memories(batch=4):
    """transformers' LFM2, short convolutions and some attention, all in bf16, two parts a step."""
    model = t.Lfm2ForCausalLM(t.Lfm2Config(
        vocab_size=32000, hidden_size=512, intermediate_size=1536, num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=4,
        full_attn_idxs=[2, 5, 7])).cuda().bfloat16()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-5, fused=True)
    for step in range(6):
        words = tokens(batch, 512, 32000)
        (model(input_ids=words, labels=words).loss / 2).backward()
        if step % 2:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.)
            opt.step()
            opt.zero_grad(set_to_none=True)


def prefixes(batch=8):
    """peft: what is written before each layer learns (prefix tuning), the net does not."""
    from peft import PrefixTuningConfig, get_peft_model
    net = t.GPT2LMHeadModel(t.GPT2Config(n_embd=512, n_layer=8, n_head=8, vocab_size=20000))
    model = get_peft_model(net, PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=30, prefix_projection=True,
                                                   encoder_hidden_size=512)).cuda()

    def loss():
        ids = tokens(batch, 384, 20000)
        return model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids).loss

    learn(model, loss, rate=1e-3)


def products(batch=16):
    """peft: what is added to weights is a product of products (LoHa), an encoder that classifies; transformers' Trainer."""
    from peft import LoHaConfig, get_peft_model
    net = t.RobertaForSequenceClassification(t.RobertaConfig(**LIGHT, max_position_embeddings=300, num_labels=5))
    model = get_peft_model(net, LoHaConfig(task_type="SEQ_CLS", r=8, alpha=16, target_modules=["query", "value", "dense"],
                                           rank_dropout=0.1))
    data = [dict(input_ids=torch.randint(5, 30000, (256,)).tolist(), labels=i % 5) for i in range(5 * batch)]
    t.Trainer(model=model, args=plan(t.TrainingArguments, batch, max_steps=4), train_dataset=data).train()


def taught(batch=4):
    """trl: a small net learns from a larger one's words (GKD), all texts are cut at one length."""
    from datasets import Dataset
    from trl import GKDConfig, GKDTrainer
    talk = [[dict(role="user", content=sentence(120)), dict(role="assistant", content=sentence(300))] for _ in range(5 * batch)]
    words = tokenizer()
    words.chat_template = "{% for m in messages %}{{ m['content'] + ' ' }}{% endfor %}"
    GKDTrainer(model=t.LlamaForCausalLM(llama(4)), teacher_model=t.LlamaForCausalLM(llama(8)), processing_class=words,
               args=plan(GKDConfig, batch, max_length=256, max_steps=3, lmbda=0., bf16=False),
               train_dataset=Dataset.from_dict(dict(messages=talk))).train()


def masked_words(batch=16):
    """transformers' ModernBERT, words are masked and texts padded to the longest, Trainer."""
    model = t.ModernBertForMaskedLM(t.ModernBertConfig(
        vocab_size=8000, hidden_size=384, intermediate_size=576, num_hidden_layers=8, num_attention_heads=6,
        global_attn_every_n_layers=3, local_attention=128, pad_token_id=0, reference_compile=False))
    data = [dict(input_ids=torch.randint(5, 900, (n,)).tolist()) for n in lengths(6 * batch, 120, 512)]
    t.Trainer(model=model, args=plan(t.TrainingArguments, batch, max_steps=5), train_dataset=data,
              data_collator=t.DataCollatorForLanguageModeling(tokenizer(), mlm_probability=0.3)).train()


def which_is_better(batch=8):
    """trl: RewardTrainer, which of two answers is better, padded to the longer."""
    from datasets import Dataset
    from trl import RewardConfig, RewardTrainer
    model = t.LlamaForSequenceClassification(llama(num_labels=1, pad_token_id=0))
    RewardTrainer(model=model, args=plan(RewardConfig, batch, max_length=512, max_steps=5), processing_class=tokenizer(),
                  train_dataset=Dataset.from_dict(dict(
                      chosen=[sentence(n) for n in lengths(6 * batch, 90, 400)],
                      rejected=[sentence(n) for n in lengths(6 * batch, 70, 400)]))).train()


def odds(batch=4):
    """trl: ORPO, the odds of the better answer, no reference."""
    from datasets import Dataset
    from trl import ORPOConfig, ORPOTrainer
    many = 6 * batch
    ORPOTrainer(model=t.LlamaForCausalLM(llama()), processing_class=tokenizer(),
                args=plan(ORPOConfig, batch, max_length=384, max_prompt_length=128, max_steps=4),
                train_dataset=Dataset.from_dict(dict(
                    prompt=[sentence(n) for n in lengths(many, 40, 120)],
                    chosen=[sentence(n) for n in lengths(many, 80, 240)],
                    rejected=[sentence(n) for n in lengths(many, 60, 240)]))).train()


def mended(batch=16):
    """sentence-transformers: sentences with words taken out are written again (TSDAE), an encoder and a tied decoder."""
    from datasets import Dataset
    from sentence_transformers import (SentenceTransformer, SentenceTransformerTrainer,
                                       SentenceTransformerTrainingArguments, losses, models)
    where = saved(t.BertModel(t.BertConfig(**LIGHT)), 256)
    words = models.Transformer(where, max_seq_length=256)
    net = SentenceTransformer(modules=[words, models.Pooling(384, "cls")], device="cuda")
    whole = [sentence(n) for n in lengths(6 * batch, 40, 200)]
    torn = [" ".join(w for i, w in enumerate(s.split()) if i % 5 < 2) for s in whole]
    SentenceTransformerTrainer(
        model=net, args=plan(SentenceTransformerTrainingArguments, batch, max_steps=5),
        train_dataset=Dataset.from_dict(dict(torn=torn, whole=whole)),
        loss=losses.DenoisingAutoEncoderLoss(net, decoder_name_or_path=where, tie_encoder_decoder=True)).train()


def says(batch=8):
    """transformers' SpeechT5: texts become spectra, both padded to the longest."""
    model = t.SpeechT5ForTextToSpeech(t.SpeechT5Config(
        vocab_size=100, hidden_size=256, encoder_layers=4, decoder_layers=4, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=1024, decoder_ffn_dim=1024)).cuda()

    def loss():
        frames = lengths(batch, 200, 500, 40, 0.4)
        longest = -(-max(frames) // 2) * 2
        spectra = images(batch, longest, 80)
        late = torch.arange(longest)[None] >= torch.tensor(frames)[:, None]
        spectra = spectra.masked_fill(late[..., None].to(CARD), -100.)
        return model(**padded(batch, 50, 150, 80, multiple=1), speaker_embeddings=images(batch, 512), labels=spectra).loss

    learn(model, loss, steps=5, rate=1e-4)


def pitches(batch=16):
    """nnAudio: sound as a constant-Q transform whose kernels learn, seen by convolutions."""
    from nnAudio.features import CQT1992v2
    front = CQT1992v2(sr=16000, hop_length=256, n_bins=72, trainable=True, verbose=False)

    def block(one, other):
        return [torch.nn.Conv2d(one, other, 3, padding=1), torch.nn.BatchNorm2d(other), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]

    body = torch.nn.Sequential(*block(1, 32), *block(32, 64), *block(64, 128), torch.nn.AdaptiveAvgPool2d(1),
                               torch.nn.Flatten(), torch.nn.Linear(128, 88))
    model = torch.nn.ModuleList([front, body]).cuda()
    learn(model, lambda: F.cross_entropy(body(front(torch.randn(batch, 48000).to(CARD))[:, None]), classes(88, batch)),
          kind=torch.optim.Adam)


def effects(batch=8):
    """auraloss: a net of dilated convolutions does what an effect does, spectra of many sizes judge."""
    import auraloss

    class Part(torch.nn.Module):
        def __init__(self, one, other, wide):
            super().__init__()
            self.far = torch.nn.Conv1d(one, other, 13, padding=6 * wide, dilation=wide)
            self.near, self.act = torch.nn.Conv1d(one, other, 1), torch.nn.PReLU()

        def forward(self, x):
            return self.act(self.far(x)) + self.near(x)

    model = torch.nn.Sequential(Part(1, 32, 1), *[Part(32, 32, 4 ** k) for k in range(1, 5)], torch.nn.Conv1d(32, 1, 1)).cuda()
    spectra, waves = auraloss.freq.MultiResolutionSTFTLoss(w_lin_mag=1.).cuda(), auraloss.time.ESRLoss()

    def loss():
        want = torch.randn(batch, 1, 65536).to(CARD)
        made = model(want)
        return spectra(made, want) + waves(made, want)

    learn(model, loss, kind=torch.optim.Adam)


def disturbed(batch=16):
    """torch-audiomentations: sound is changed on the card, a net of raw waves classifies it, fp16."""
    import torch_audiomentations as change
    alter = change.Compose([change.Gain(p=1.), change.PolarityInversion(p=1.), change.AddColoredNoise(p=1.), change.Shift(p=1.),
                            change.LowPassFilter(p=1.)], output_type="dict")
    parts, wide = [], 1
    for k, step in ((64, 4), (128, 4), (256, 4), (512, 4)):
        parts += [torch.nn.Conv1d(wide, k, 9, stride=step, padding=4), torch.nn.BatchNorm1d(k), torch.nn.GELU()]
        wide = k
    model = torch.nn.Sequential(*parts, torch.nn.AdaptiveAvgPool1d(1), torch.nn.Flatten(), torch.nn.Linear(wide, 35)).cuda()
    opt, scaler = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), torch.amp.GradScaler()
    for _ in range(4):
        with torch.no_grad():
            sound = alter(samples=torch.randn(batch, 1, 32000).to(CARD), sample_rate=16000).samples
        with torch.autocast("cuda", torch.float16):
            loss = F.cross_entropy(model(sound), classes(35, batch))
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()


if __name__ == "__main__":
    main(globals())
