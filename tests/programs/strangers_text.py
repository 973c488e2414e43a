# SPDX-License-Identifier: Apache-2.0
"""Texts by the packages of others, whose models, losses, loops and loaders these are: --model NAME."""
import os
import tempfile

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", WANDB_DISABLED="true")

import torch  # noqa: E402
import transformers as t  # noqa: E402

from fullsize import CARD, lengths, main, tokens  # noqa: E402

LIGHT = dict(vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)


def folder():
    return tempfile.mkdtemp(prefix="strangers.", dir=os.environ.get("TMPDIR"))


def sentence(words):
    return " ".join(f"w{int(torch.randint(0, 900, ()))}" for _ in range(words))


def tokenizer(most=512):
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocab = {w: i for i, w in enumerate([*names, *(f"w{i}" for i in range(900))])}
    core = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    core.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return t.PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", bos_token="[CLS]", eos_token="[SEP]", model_max_length=most)


def saved(model, most=512):
    """A folder with a model and its tokenizer, as one that was downloaded."""
    where = folder()
    model.save_pretrained(where)
    tokenizer(most).save_pretrained(where)
    return where


def plan(kind, batch, **own):
    return kind(**{**dict(output_dir=folder(), per_device_train_batch_size=batch, max_steps=5, save_strategy="no",
                          report_to="none", disable_tqdm=True, seed=torch.initial_seed()), **own})


def grouped(batch=16):
    """transformers' Trainer with group_by_length: each batch is padded to its longest text."""
    model = t.DistilBertForSequenceClassification(t.DistilBertConfig(num_labels=4))
    data = [dict(input_ids=torch.randint(5, 30000, (n,)).tolist(), labels=n % 4) for n in lengths(60 * batch, 90, 512)]
    t.Trainer(model=model, args=plan(t.TrainingArguments, batch, group_by_length=True, max_steps=6), train_dataset=data,
              data_collator=t.DataCollatorWithPadding(tokenizer())).train()


def cached_pairs(batch=64):
    """sentence-transformers: a large batch of pairs whose gradients are cached, sixteen at a time."""
    from datasets import Dataset
    from sentence_transformers import (SentenceTransformer, SentenceTransformerTrainer,
                                       SentenceTransformerTrainingArguments, losses, models)
    words = models.Transformer(saved(t.BertModel(t.BertConfig(**LIGHT)), 128))
    net = SentenceTransformer(modules=[words, models.Pooling(words.get_word_embedding_dimension())], device="cuda")
    draw = [[sentence(n) for n in lengths(6 * batch, middle, 120)] for middle in (12, 60)]
    SentenceTransformerTrainer(
        model=net, args=plan(SentenceTransformerTrainingArguments, batch, max_steps=4),
        train_dataset=Dataset.from_dict(dict(anchor=draw[0], positive=draw[1])),
        loss=losses.CachedMultipleNegativesRankingLoss(net, mini_batch_size=16)).train()


def nested(batch=32):
    """sentence-transformers: similar sentences, embeddings that may be cut (Matryoshka, CoSENT)."""
    from datasets import Dataset
    from sentence_transformers import (SentenceTransformer, SentenceTransformerTrainer,
                                       SentenceTransformerTrainingArguments, losses, models)
    words = models.Transformer(saved(t.MPNetModel(t.MPNetConfig(
        vocab_size=1000, hidden_size=384, num_hidden_layers=6, intermediate_size=1536)), 128))
    net = SentenceTransformer(modules=[words, models.Pooling(384), models.Dense(384, 256)], device="cuda")
    draw = [[sentence(n) for n in lengths(6 * batch, 30, 120)] for _ in range(2)]
    SentenceTransformerTrainer(
        model=net, args=plan(SentenceTransformerTrainingArguments, batch, fp16=True),
        train_dataset=Dataset.from_dict(dict(a=draw[0], b=draw[1], score=torch.rand(6 * batch).tolist())),
        loss=losses.MatryoshkaLoss(net, losses.CoSENTLoss(net), [256, 128, 64])).train()


def kto(batch=8):
    """trl: KTO, answers that are wanted or not, with a frozen reference."""
    from datasets import Dataset
    from trl import KTOConfig, KTOTrainer
    config = t.LlamaConfig(vocab_size=16000, hidden_size=512, intermediate_size=1376, num_hidden_layers=6,
                           num_attention_heads=8, max_position_embeddings=512)
    many = 6 * batch
    KTOTrainer(
        model=t.LlamaForCausalLM(config), ref_model=t.LlamaForCausalLM(config), processing_class=tokenizer(),
        args=plan(KTOConfig, batch, max_length=256, max_prompt_length=128, max_steps=4),
        train_dataset=Dataset.from_dict(dict(
            prompt=[sentence(n) for n in lengths(many, 40, 120)], label=[i % 2 == 0 for i in range(many)],
            completion=[sentence(n) for n in lengths(many, 50, 120)]))).train()


def reformer(seq=1024, batch=4):
    """reformer-pytorch: letters by LSH attention in reversible layers, loss in chunks of the feed forward."""
    from reformer_pytorch import ReformerLM
    from reformer_pytorch.generative_tools import TrainingWrapper
    model = TrainingWrapper(ReformerLM(
        num_tokens=256, dim=512, depth=6, max_seq_len=seq, heads=8, bucket_size=64, n_hashes=4, ff_chunks=10,
        lsh_dropout=0.1, weight_tie=True, causal=True, n_local_attn_heads=4, use_full_attn=False)).cuda()
    opt = torch.optim.Adam(model.parameters(), lr=1e-4)
    for _ in range(3):
        for _ in range(2):
            model(tokens(batch, seq, 256), return_loss=True).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        opt.step()
        opt.zero_grad()


def copying(batch=32):
    """x-transformers: its toy of an encoder and a decoder that copies, which also writes."""
    from x_transformers import XTransformer
    model = XTransformer(
        dim=512, enc_num_tokens=258, enc_depth=3, enc_heads=8, enc_max_seq_len=64, dec_num_tokens=258, dec_depth=3,
        dec_heads=8, dec_max_seq_len=129, tie_token_emb=True, cross_attn_tokens_dropout=0.25).cuda()
    opt = torch.optim.Adam(model.parameters(), lr=3e-4)
    for i in range(5):
        model.train()
        src = torch.randint(2, 258, (batch, 64)).long().cuda()
        tgt = torch.cat((torch.ones((batch, 1)).long().cuda(), src, src), 1)
        mask = torch.ones(batch, 64).bool().cuda()
        model(src, tgt, mask=mask).backward()
        opt.step()
        opt.zero_grad()
        if i % 4 == 3:
            model.eval()
            model.generate(src[:1], tgt[:1, :1], 64, mask=mask[:1])


def mamba_words(seq=256, batch=8):
    """mambapy: a language model of state spaces, by a parallel scan in plain PyTorch."""
    from mambapy.mamba import Mamba, MambaConfig
    model = torch.nn.Sequential(torch.nn.Embedding(8192, 384), Mamba(MambaConfig(d_model=384, n_layers=4)),
                                torch.nn.Linear(384, 8192, bias=False)).cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(4):
        x = tokens(batch, seq + 1, 8192)
        logits = model(x[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.size(-1)), x[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()


def blocks(seq=1024, batch=4):
    """transformers: BigBird's sparse attention asks documents for a class."""
    model = t.BigBirdForSequenceClassification(t.BigBirdConfig(
        **{**LIGHT, "max_position_embeddings": 4096}, block_size=32, num_random_blocks=2)).cuda()
    opt = t.Adafactor(model.parameters(), scale_parameter=True, relative_step=True, warmup_init=True, lr=None)
    for _ in range(4):
        out = model(input_ids=tokens(batch, seq), attention_mask=torch.ones(batch, seq, device=CARD),
                    labels=torch.zeros(batch, dtype=torch.long, device=CARD))
        out.loss.backward()
        opt.step()
        opt.zero_grad()


def switches(batch=8):
    """transformers: Switch Transformers, eight experts with room for so many words each, by Seq2SeqTrainer."""
    model = t.SwitchTransformersForConditionalGeneration(t.SwitchTransformersConfig(
        vocab_size=32128, d_model=384, d_kv=48, d_ff=1536, num_layers=4, num_decoder_layers=4, num_heads=8, num_experts=8,
        expert_capacity=64, decoder_start_token_id=0))
    pairs = zip(lengths(20 * batch, 60, 256), lengths(20 * batch, 20, 64))
    data = [dict(input_ids=torch.randint(5, 900, (a,)).tolist(), labels=torch.randint(5, 900, (b,)).tolist())
            for a, b in pairs]
    t.Seq2SeqTrainer(model=model, args=plan(t.Seq2SeqTrainingArguments, batch, max_steps=4), train_dataset=data,
                     data_collator=t.DataCollatorForSeq2Seq(tokenizer(), model, pad_to_multiple_of=8)).train()


def beams(batch=8):
    """transformers: a Marian translates sentences by four beams, so many sentences at a time; nothing is trained."""
    model = t.MarianMTModel(t.MarianConfig(
        vocab_size=32000, d_model=512, encoder_layers=6, decoder_layers=6, encoder_attention_heads=8,
        decoder_attention_heads=8, encoder_ffn_dim=2048, decoder_ffn_dim=2048, pad_token_id=0, eos_token_id=3,
        decoder_start_token_id=0, forced_eos_token_id=3)).eval()
    said = t.pipeline("text2text-generation", model=model, tokenizer=tokenizer(), device=0)
    said([sentence(n) for n in lengths(3 * batch, 25, 120)], batch_size=batch, num_beams=4, max_new_tokens=24)


def reads(batch=8):
    """transformers: Donut reads pages, a Swin and a BART, by Seq2SeqTrainer in half precision."""
    encoder = t.DonutSwinConfig(image_size=[320, 240], embed_dim=64, depths=[2, 2, 6], num_heads=[2, 4, 8], window_size=5)
    decoder = t.MBartConfig(vocab_size=8000, d_model=256, decoder_layers=4, decoder_attention_heads=8, decoder_ffn_dim=1024,
                            is_decoder=True, add_cross_attention=True, encoder_layers=0, max_position_embeddings=256)
    model = t.VisionEncoderDecoderModel(t.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder))
    model.config.pad_token_id, model.config.decoder_start_token_id = 0, 2

    def collate(rows):
        most = max(len(r["labels"]) for r in rows)
        return dict(pixel_values=torch.stack([r["pixel_values"] for r in rows]),
                    labels=torch.tensor([r["labels"] + [-100] * (most - len(r["labels"])) for r in rows]))
    data = [dict(pixel_values=torch.zeros(3, 320, 240), labels=torch.randint(5, 900, (n,)).tolist())
            for n in lengths(6 * batch, 60, 200)]
    t.Seq2SeqTrainer(model=model, args=plan(t.Seq2SeqTrainingArguments, batch, fp16=True, remove_unused_columns=False),
                     train_dataset=data, data_collator=collate).train()


if __name__ == "__main__":
    main(globals())
