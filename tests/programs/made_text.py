# SPDX-License-Identifier: Apache-2.0
"""Texts and sounds with other people's trainers, models and losses: --model NAME."""
import os
import random
import tempfile

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", KERAS_BACKEND="torch")

import torch  # noqa: E402
import transformers as t  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from fullsize import CARD, lengths, main  # noqa: E402


def folder():
    return tempfile.mkdtemp(prefix="made.", dir=os.environ.get("TMPDIR"))


def words(n):
    return " ".join(f"w{random.randrange(900)}" for _ in range(n))


def tokenizer(specials="<pad> <unk> <s> </s> <mask>", most=512):
    """A word is a token; so few words suffice, as only the model's table has the real size."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    names = specials.split()
    vocab = {w: i for i, w in enumerate([*names, *(f"w{i}" for i in range(900))])}
    core = Tokenizer(models.WordLevel(vocab, unk_token=names[1]))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    core.post_processor = processors.TemplateProcessing(
        single=f"{names[2]} $A {names[3]}", pair=f"{names[2]} $A {names[3]} $B {names[3]}",
        special_tokens=[(names[2], 2), (names[3], 3)])
    return t.PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token=names[0], unk_token=names[1], bos_token=names[2],
        cls_token=names[2], eos_token=names[3], sep_token=names[3], mask_token=names[4],
        model_max_length=most)


def config(kind, **own):
    bare = kind.split("For")[0].removesuffix("LMHeadModel").removesuffix("Model")
    return getattr(t, bare + "Config")(**own)


def made(kind, **own):
    """From a published configuration: kind is a class such as BertForMaskedLM."""
    with CARD:
        return getattr(t, kind)(config(kind, **own))


def rows(n, **columns):
    """A data set with columns that functions draw."""
    from datasets import Dataset
    return Dataset.from_dict({name: [draw() for _ in range(n)] for name, draw in columns.items()})


def ids(n, vocabulary=900):
    return lambda: torch.randint(5, vocabulary, (n,)).tolist()


def arguments(kind, batch, **own):
    """What any run here has: few steps, nothing saved or shown."""
    own = dict(max_steps=5, **own) if "max_steps" not in own else own
    return kind(output_dir=folder(), per_device_train_batch_size=batch, save_strategy="no",
                report_to="none", disable_tqdm=True, **own)


QWEN = dict(vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24,
            num_attention_heads=14, num_key_value_heads=2, tie_word_embeddings=True,
            max_position_embeddings=32768)
ROBERTA = dict(vocab_size=50265, max_position_embeddings=514, type_vocab_size=1, pad_token_id=1)


def glue(batch=32):
    """transformers' run_glue: padded to 128 words, evaluated each few steps."""
    model = made("BertForSequenceClassification", vocab_size=28996, num_labels=2)
    tok = tokenizer()

    def data(n):
        texts = [(words(a), words(b)) for a, b in zip(lengths(n, 25, 60), lengths(n, 25, 60))]
        coded = tok(*zip(*texts), padding="max_length", max_length=128, truncation=True)
        return [dict(label=i % 2, **{k: coded[k][i] for k in ("input_ids", "attention_mask")})
                for i in range(n)]
    args = arguments(t.TrainingArguments, batch, learning_rate=2e-5, fp16=True,
                     eval_strategy="steps", eval_steps=4, per_device_eval_batch_size=batch)
    t.Trainer(model=model, args=args, train_dataset=data(3 * batch), eval_dataset=data(2 * batch),
              processing_class=tok, data_collator=t.default_data_collator).train()


def clm(batch=8):
    """transformers' run_clm: GPT-2 on texts cut into blocks of 1024 words."""
    model = made("GPT2LMHeadModel")

    def blocks(n):
        return [dict(input_ids=x, labels=x) for x in (ids(1024)() for _ in range(n))]
    args = arguments(t.TrainingArguments, batch, eval_strategy="steps", eval_steps=4,
                     per_device_eval_batch_size=batch)
    t.Trainer(model=model, args=args, train_dataset=blocks(batch), eval_dataset=blocks(2 * batch),
              data_collator=t.default_data_collator,
              preprocess_logits_for_metrics=lambda scores, labels: scores.argmax(-1),
              compute_metrics=lambda p: dict(right=float((p[0] == p[1]).mean()))).train()


def mlm(batch=8):
    """transformers' run_mlm: XLM-RoBERTa on blocks of 512 words, in half precision."""
    model = made("XLMRobertaForMaskedLM", **dict(ROBERTA, vocab_size=250002))
    tok = tokenizer("<s> <pad> </s> <unk> <mask>")
    args = arguments(t.TrainingArguments, batch, bf16=True, gradient_accumulation_steps=2)
    t.Trainer(model=model, args=args, train_dataset=rows(4 * batch, input_ids=ids(512)),
              processing_class=tok,
              data_collator=t.DataCollatorForLanguageModeling(tok, mlm_probability=0.15)).train()


def summary(batch=4):
    """transformers' run_summarization: BART, which writes summaries when it is evaluated."""
    model = made("BartForConditionalGeneration", vocab_size=50264)
    tok = tokenizer(most=1024)
    n = 8 * batch
    long, short = lengths(n, 600, 1024), lengths(n, 60, 128)
    data = [dict(input_ids=ids(a)(), labels=ids(b)()) for a, b in zip(long, short)]
    args = arguments(t.Seq2SeqTrainingArguments, batch, fp16=True, label_smoothing_factor=0.1,
                     predict_with_generate=True, generation_max_length=48, generation_num_beams=4,
                     eval_strategy="steps", eval_steps=4, per_device_eval_batch_size=batch)
    t.Seq2SeqTrainer(model=model, args=args, train_dataset=data[2 * batch:],
                     eval_dataset=data[:2 * batch], processing_class=tok,
                     data_collator=t.DataCollatorForSeq2Seq(tok, model,
                                                            pad_to_multiple_of=8)).train()


def sft(batch=4):
    """trl's SFTTrainer as it is by default: bf16, checkpointed, the longest text decides."""
    from trl import SFTConfig, SFTTrainer
    model = made("Qwen2ForCausalLM", **QWEN)
    data = rows(6 * batch, input_ids=lambda: ids(lengths(1, 350, 1024)[0])())
    args = arguments(SFTConfig, batch)
    SFTTrainer(model=model, args=args, train_dataset=data, processing_class=tokenizer()).train()


def preferences(batch=4):
    """trl's DPOTrainer: all weights, and a frozen copy of them as reference."""
    from trl import DPOConfig, DPOTrainer
    model = made("Qwen2ForCausalLM", **QWEN)
    data = rows(6 * batch, prompt=lambda: words(lengths(1, 60, 400)[0]),
                chosen=lambda: words(lengths(1, 150, 600)[0]),
                rejected=lambda: words(lengths(1, 150, 600)[0]))
    DPOTrainer(model=model, ref_model=made("Qwen2ForCausalLM", **QWEN),
               args=arguments(DPOConfig, batch), train_dataset=data,
               processing_class=tokenizer()).train()


def stored(kind, **own):
    """A folder with a model that was never trained and a tokenizer, as from_pretrained wants it."""
    place = folder()
    getattr(t, kind)(config(kind, **own)).save_pretrained(place)
    tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK]").save_pretrained(place)
    return place


def question():
    return words(lengths(1, 9, 30)[0])


def passage():
    return words(lengths(1, 70, 250)[0])


def sentences(most, kind, **own):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    return SentenceTransformer(modules=[Transformer(stored(kind, **own), max_seq_length=most),
                                        Pooling(768)], device="cuda")


def retriever(batch=32):
    """sentence-transformers: MPNet on questions, passages and hard negatives."""
    import sentence_transformers as st
    from sentence_transformers.sentence_transformer import losses
    model = sentences(256, "MPNetModel", vocab_size=30527, max_position_embeddings=514)
    data = rows(5 * batch, anchor=question, positive=passage, negative=passage)
    args = arguments(st.SentenceTransformerTrainingArguments, batch, bf16=True, warmup_steps=2)
    st.SentenceTransformerTrainer(
        model=model, args=args, train_dataset=data,
        loss=losses.MultipleNegativesRankingLoss(model)).train()


def rerank(batch=16):
    """sentence-transformers' CrossEncoder: RoBERTa-large says whether a passage answers."""
    import sentence_transformers.cross_encoder as ce
    model = ce.CrossEncoder(stored("RobertaForSequenceClassification", **ROBERTA, hidden_size=1024,
                                   num_hidden_layers=24, num_attention_heads=16,
                                   intermediate_size=4096, num_labels=1),
                            device="cuda", max_length=256)
    data = rows(5 * batch, query=lambda: words(20), text=lambda: words(280),
                label=lambda: float(random.random() < 0.2))
    args = arguments(ce.CrossEncoderTrainingArguments, batch, bf16=True)
    ce.CrossEncoderTrainer(model=model, args=args, train_dataset=data,
                           loss=ce.losses.BinaryCrossEntropyLoss(model)).train()


def splade(batch=16):
    """sentence-transformers' SparseEncoder: SPLADE, scores of all words of the vocabulary."""
    import sentence_transformers as st
    from sentence_transformers.sparse_encoder import losses
    from sentence_transformers.sparse_encoder.models import MLMTransformer, SpladePooling
    body = MLMTransformer(stored("DistilBertForMaskedLM"), max_seq_length=256)
    model = st.SparseEncoder(modules=[body, SpladePooling("max")], device="cuda")
    data = rows(5 * batch, query=lambda: words(12), document=lambda: words(300))
    args = arguments(st.SparseEncoderTrainingArguments, batch, bf16=True)
    st.SparseEncoderTrainer(
        model=model, args=args, train_dataset=data,
        loss=losses.SpladeLoss(model, losses.SparseMultipleNegativesRankingLoss(model),
                               query_regularizer_weight=5e-5,
                               document_regularizer_weight=3e-5)).train()


def enwik(batch=4):
    """x-transformers: letters of enwik8, with four batches accumulated, as its example has it."""
    from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper
    model = TransformerWrapper(num_tokens=256, max_seq_len=1024, attn_layers=Decoder(
        dim=768, depth=12, heads=12, rotary_pos_emb=True, attn_flash=True))
    model = AutoregressiveWrapper(model).cuda()
    optim = torch.optim.Adam(model.parameters(), lr=1e-4)
    letters = torch.randint(0, 256, (64 * 1025,))

    def batches():
        while True:
            at = torch.randint(0, len(letters) - 1026, (batch,))
            yield torch.stack([letters[i:i + 1025].long() for i in at]).cuda()
    train, test = batches(), batches()
    for i in range(5):
        model.train()
        for _ in range(4):
            loss = model(next(train))
            (loss / 4).backward()
        loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optim.step()
        optim.zero_grad()
        if i == 3:
            model.eval()
            with torch.no_grad():
                model(next(test)).item()


def pythia(batch=4):
    """litgpt's fit() on Lightning Fabric: Pythia in bf16, two batches accumulated, validated."""
    from pathlib import Path

    import lightning as L
    from litgpt.args import EvalArgs, TrainArgs
    from litgpt.config import Config
    from litgpt.model import GPT
    from litgpt.pretrain import fit, initialize_weights
    fabric = L.Fabric(devices=1, precision="bf16-true")
    config = Config.from_name("pythia-410m")
    with fabric.init_module(empty_init=True):
        model = GPT(config)
    initialize_weights(fabric, model, n_layer=config.n_layer, n_embd=config.n_embd)
    model.max_seq_length = 1024
    model = fabric.setup(model)
    optimizer = fabric.setup_optimizers(torch.optim.AdamW(model.parameters(), lr=4e-4, fused=True))
    text = torch.randint(0, 50000, (10 * batch, 1025))
    train, test = (fabric.setup_dataloaders(DataLoader(text, batch, shuffle=True)) for _ in "xy")
    state = dict(model=model, optimizer=optimizer, train_dataloader=train, iter_num=0, step_count=0)
    fit(fabric=fabric, devices=1, state=state, train_dataloader=train, val_dataloader=test,
        out_dir=Path(folder()), tokenizer_dir=None,
        train=TrainArgs(save_interval=None, log_interval=1, global_batch_size=2 * batch,
                        micro_batch_size=batch, max_tokens=10 * batch * 1024, max_norm=1.0,
                        min_lr=4e-5, lr_warmup_steps=2),
        eval=EvalArgs(interval=3, max_iters=2))


def speaker(batch=32):
    """speechbrain's Brain: ECAPA-TDNN recognises who speaks, as its recipe of VoxCeleb does."""
    import speechbrain as sb
    from speechbrain.lobes.features import Fbank
    from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN, Classifier
    from speechbrain.nnet.losses import AdditiveAngularMargin, LogSoftmaxWrapper
    from speechbrain.processing.features import InputNormalization

    class Speaker(sb.Brain):
        def compute_forward(self, batch, stage):
            waves, lens = batch[0].to(self.device), torch.ones(len(batch[0]), device=self.device)
            x = self.modules.norm(self.modules.fbank(waves), lens)
            return self.modules.classifier(self.modules.body(x, lens))

        def compute_objectives(self, out, batch, stage):
            return self.hparams.cost(out, batch[1].to(self.device))
    brain = Speaker(
        dict(fbank=Fbank(n_mels=80), norm=InputNormalization(norm_type="sentence", std_norm=False),
             body=ECAPA_TDNN(80, channels=[1024] * 4 + [3072]),
             classifier=Classifier(192, out_neurons=7205)),
        lambda w: torch.optim.Adam(w, lr=1e-3, weight_decay=2e-6),
        dict(cost=LogSoftmaxWrapper(AdditiveAngularMargin(margin=0.2, scale=30))),
        run_opts=dict(device="cuda", noprogressbar=True, nonfinite_patience=99))
    waves = TensorDataset(torch.randn(3 * batch, 48000), torch.randint(0, 7205, (3 * batch, 1)))
    brain.fit(range(2), DataLoader(waves, batch, drop_last=True), DataLoader(waves, batch))


def sound_diffusion(batch=8):
    """denoising-diffusion-pytorch's Trainer1D: pieces of sound, with an average of the weights."""
    from denoising_diffusion_pytorch import Dataset1D, GaussianDiffusion1D, Trainer1D, Unet1D
    from denoising_diffusion_pytorch import denoising_diffusion_pytorch_1d as one
    one.cpu_count = lambda: 0
    diffusion = GaussianDiffusion1D(Unet1D(dim=128, dim_mults=(1, 2, 4, 8), channels=2),
                                    seq_length=8192, timesteps=1000, objective="pred_v")
    Trainer1D(diffusion, dataset=Dataset1D(torch.rand(3 * batch, 2, 8192)), train_batch_size=batch,
              train_lr=8e-5, train_num_steps=6, gradient_accumulate_every=2, ema_update_every=2,
              amp=True, results_folder=folder()).train()


def whisper(batch=8):
    """transformers' Seq2SeqTrainer as for run_speech_recognition_seq2seq: Whisper small, fp16."""
    model = made("WhisperForConditionalGeneration", d_model=768, encoder_layers=12,
                 decoder_layers=12, encoder_attention_heads=12, decoder_attention_heads=12,
                 encoder_ffn_dim=3072, decoder_ffn_dim=3072, vocab_size=51865)

    class Speech(torch.utils.data.Dataset):
        def __len__(self):
            return 10 * batch

        def __getitem__(self, i):
            return dict(input_features=torch.zeros(80, 3000), labels=torch.randint(5, 900, (64,)))
    args = arguments(t.Seq2SeqTrainingArguments, batch, fp16=True, gradient_checkpointing=True,
                     learning_rate=1e-5, warmup_steps=2)
    t.Seq2SeqTrainer(model=model, args=args, train_dataset=Speech(),
                     data_collator=t.default_data_collator).train()


def mt0_lora(batch=8):
    """peft's example for sequences: adapters on mT0-large, padded to 128, its own loop."""
    from peft import LoraConfig, TaskType, get_peft_model
    model = made("MT5ForConditionalGeneration", vocab_size=250112, d_model=1024, d_kv=64, d_ff=2816,
                 num_layers=24, num_decoder_layers=24, num_heads=16, feed_forward_proj="gated-gelu",
                 tie_word_embeddings=False)
    model = get_peft_model(model, LoraConfig(task_type=TaskType.SEQ_2_SEQ_LM, inference_mode=False,
                                             r=8, lora_alpha=32, lora_dropout=0.1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    plan = t.get_linear_schedule_with_warmup(optimizer, 0, 100)
    data = DataLoader([dict(input_ids=torch.randint(5, 900, (128,)),
                            labels=torch.randint(5, 900, (16,)),
                            attention_mask=torch.ones(128, dtype=torch.long))
                       for _ in range(5 * batch)], batch, shuffle=True, pin_memory=True)
    model = model.cuda()
    model.train()
    total = 0
    for part in data:
        part = {k: v.cuda() for k, v in part.items()}
        loss = model(**part).loss
        total += loss.detach().float()
        loss.backward()
        optimizer.step()
        plan.step()
        optimizer.zero_grad()
    model.eval()
    for i, part in enumerate(data):
        part = {k: v.cuda() for k, v in part.items()}
        if i < 2:
            with torch.no_grad():
                torch.argmax(model(**part).logits, -1).detach().cpu()


def choices(batch=8):
    """accelerate, as run_swag_no_trainer: RoBERTa-large chooses one of four endings."""
    from accelerate import Accelerator
    accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
    model = made("RobertaForMultipleChoice", **ROBERTA, hidden_size=1024, num_hidden_layers=24,
                 num_attention_heads=16, intermediate_size=4096)
    bare = ("bias", "LayerNorm.weight")
    optimizer = torch.optim.AdamW(
        [dict(params=[w for n, w in model.named_parameters() if n.endswith(bare) == off],
              weight_decay=0.0 if off else 0.01) for off in (False, True)], lr=5e-5)
    data = [dict(input_ids=torch.randint(5, 900, (4, 128)), labels=torch.randint(0, 4, ()),
                 attention_mask=torch.ones(4, 128, dtype=torch.long)) for _ in range(10 * batch)]
    train, test = (DataLoader(data[:n], batch, collate_fn=t.default_data_collator)
                   for n in (10 * batch, 2 * batch))
    plan = t.get_scheduler("linear", optimizer, num_warmup_steps=0, num_training_steps=100)
    model, optimizer, train, test, plan = accelerator.prepare(model, optimizer, train, test, plan)
    for _ in range(1):
        model.train()
        for part in train:
            with accelerator.accumulate(model):
                loss = model(**part).loss
                accelerator.backward(loss)
                optimizer.step()
                plan.step()
                optimizer.zero_grad()
        model.eval()
        for part in test:
            with torch.no_grad():
                out = model(**part)
            accelerator.gather_for_metrics((out.logits.argmax(-1), part["labels"]))


if __name__ == "__main__":
    main(globals())
