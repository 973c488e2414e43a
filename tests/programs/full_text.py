# SPDX-License-Identifier: Apache-2.0
"""Models of text at the size at which people train them: --model NAME. The sizes are those that were published."""
import torch
import torch.nn.functional as F
import transformers as t
from torch import nn

from common import adapt
from fullsize import CARD, cast, classes, filled, lengths, main, mask_of, optimizer, padded, script, tokens, trainer


def made(family, head, dtype=None, recompute=False, **own):
    """A model of transformers, made on the card."""
    config = getattr(t, family + "Config")(**own)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype or before)
    with CARD:
        model = getattr(t, family + head)(config)
    torch.set_default_dtype(before)
    if recompute:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model.config.use_cache = False
    return model


def words_of(length, vocabulary):
    """Blocks of text of one length, packed before the training."""
    def batch(n):
        ids = tokens(n, length, vocabulary)
        return dict(input_ids=ids, labels=ids)
    return batch


def call(model):
    return lambda batch: model(**batch)


def with_labels(batch, labels):
    return dict(batch, labels=labels)


def masked(labels, share=0.15):
    """Labels of a masked language model: -100 where nothing is asked."""
    return torch.where(torch.rand(labels.shape) < share, labels.cpu(), -100).to(CARD)


def bert_base(batch=32, seq=128):
    model = made("Bert", "ForSequenceClassification", num_labels=3)
    trainer(model, call(model), lambda n: with_labels(filled(n, 40, seq), classes(3, n)), batch, opt="adamw+",
            amp="bf16", tests=2 * batch)


def bert_large(batch=8, seq=384):
    model = made("Bert", "ForQuestionAnswering", hidden_size=1024, num_hidden_layers=24, num_attention_heads=16,
                 intermediate_size=4096)
    script(model, call(model), lambda n: dict(filled(n, 170, seq), start_positions=classes(seq, n),
                                              end_positions=classes(seq, n)), batch, amp="fp16", clip=1.0)


def roberta_mlm(batch=16, seq=512):
    model = made("Roberta", "ForMaskedLM", vocab_size=50265, max_position_embeddings=1026, type_vocab_size=1)

    def block(n):
        ids = tokens(n, seq, 50265)
        return dict(input_ids=ids, labels=masked(ids))
    trainer(model, call(model), block, batch, opt="adamw+", accumulate=2, amp="fp16")


def deberta_ner(batch=16):
    model = made("DebertaV2", "ForTokenClassification", vocab_size=128100, hidden_size=768, num_hidden_layers=12,
                 num_attention_heads=12, intermediate_size=3072, relative_attention=True, position_buckets=256,
                 norm_rel_ebd="layer_norm", share_att_key=True, pos_att_type=["p2c", "c2p"], type_vocab_size=0,
                 position_biased_input=False, max_relative_positions=-1, num_labels=9)

    def texts(n):
        b = padded(n, 90, 512, 128000)
        return with_labels(b, classes(9, *b["input_ids"].shape))
    trainer(model, call(model), texts, batch, steps=10, opt="adamw+", tests=2 * batch, test_steps=3, gather=False)


def electra(batch=32, seq=128):
    find = made("Electra", "ForPreTraining", embedding_size=768, hidden_size=768, num_attention_heads=12,
                intermediate_size=3072)
    guess = made("Electra", "ForMaskedLM", embedding_size=768, hidden_size=256, num_attention_heads=4,
                 intermediate_size=1024)
    guess.electra.embeddings = find.electra.embeddings
    both = nn.ModuleList([find, guess])

    def loss_of(batch):
        out = guess(**batch)
        with torch.no_grad():
            said = torch.where(batch["labels"] >= 0, out.logits.argmax(-1), batch["input_ids"])
        right = (said != batch["input_ids"]).long()
        return out.loss + 50.0 * find(input_ids=said, labels=right).loss

    def block(n):
        ids = tokens(n, seq)
        return dict(input_ids=ids, labels=masked(ids))
    script(both, loss_of, block, batch, amp="bf16", clip=1.0)


def t5_base(batch=4, seq=512):
    model = made("T5", "ForConditionalGeneration", d_model=768, d_ff=3072, num_layers=12, num_heads=12,
                 decoder_start_token_id=0)
    trainer(model, call(model), lambda n: with_labels(filled(n, 300, seq), tokens(n, 128)), batch, opt="adafactor",
            amp="bf16", tests=batch, gather=False)


def bart_base(batch=8):
    model = made("Bart", "ForConditionalGeneration", encoder_layers=6, decoder_layers=6, d_model=768, vocab_size=50265,
                 encoder_ffn_dim=3072, decoder_ffn_dim=3072, encoder_attention_heads=12, decoder_attention_heads=12)

    def texts(n):
        b = padded(n, 380, 1024, 50000)
        return with_labels(b, tokens(n, max(lengths(n, 60, 142)), 50000))

    def summaries():
        with torch.no_grad(), cast("fp16"):
            model.generate(**padded(batch, 380, 1024, 50000), max_new_tokens=24, min_new_tokens=24)
    opt = optimizer(model)
    trainer(model, call(model), texts, batch, steps=8, opt=opt, amp="fp16")
    summaries()
    trainer(model, call(model), texts, batch, steps=4, opt=opt, amp="fp16")


def gpt2_medium(batch=2, seq=1024):
    model = made("GPT2", "LMHeadModel", n_embd=1024, n_layer=24, n_head=16)
    trainer(model, call(model), words_of(seq, 50257), batch, opt="adamw+", accumulate=4, amp="bf16", tests=batch,
            gather=False, steps=3)


def opt_350m(batch=8, seq=512):
    model = made("OPT", "ForCausalLM", hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, ffn_dim=4096,
                 word_embed_proj_dim=512, do_layer_norm_before=False, vocab_size=50272)
    script(model, call(model), words_of(seq, 50272), batch, amp="fp16", clip=1.0)


def pythia_410m(batch=4, seq=2048):
    model = made("GPTNeoX", "ForCausalLM", dtype=torch.bfloat16, recompute=True, hidden_size=1024,
                 num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, vocab_size=50304)
    trainer(model, call(model), words_of(seq, 50304), batch, opt="fused")


LLAMA_1B = dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
                num_key_value_heads=8, head_dim=64, vocab_size=128256, tie_word_embeddings=True)
QWEN_HALF = dict(hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14,
                 num_key_value_heads=2, vocab_size=151936, tie_word_embeddings=True)


def llama_1b(batch=4, seq=1024):
    model = made("Llama", "ForCausalLM", dtype=torch.bfloat16, recompute=True, **LLAMA_1B)
    trainer(model, call(model), words_of(seq, 128256), batch, opt="fused", accumulate=2, steps=4)


def qwen_half(batch=4):
    """Instructions and answers, padded to the longest of the batch."""
    model = made("Qwen2", "ForCausalLM", **QWEN_HALF)

    def texts(n):
        b = padded(n, 260, 2048, 151000, spread=0.7)
        return with_labels(b, torch.where(b["attention_mask"] > 0, b["input_ids"], -100))
    trainer(model, call(model), texts, batch, steps=10, amp="bf16", opt="adamw+")


def adapters(model, rank=16, names=("q_proj", "k_proj", "v_proj", "o_proj")):
    import peft
    config = peft.LoraConfig(r=rank, lora_alpha=32, lora_dropout=0.05, target_modules=list(names))
    model.enable_input_require_grads()
    return peft.get_peft_model(model, config)


def qwen_lora(batch=4, seq=1024):
    model = adapters(made("Qwen2", "ForCausalLM", dtype=torch.bfloat16, recompute=True, hidden_size=1536,
                          intermediate_size=8960, num_hidden_layers=28, num_attention_heads=12, vocab_size=151936,
                          num_key_value_heads=2, tie_word_embeddings=True))
    trainer(model, call(model), words_of(seq, 151936), batch, amp="bf16", rate=2e-4)


def gemma_lora(batch=2, seq=512):
    model = adapters(made("Gemma", "ForCausalLM", dtype=torch.bfloat16, hidden_size=2048, intermediate_size=16384,
                          num_hidden_layers=18, num_attention_heads=8, num_key_value_heads=1, head_dim=256,
                          vocab_size=256000), 8, ("q_proj", "v_proj"))
    script(model, call(model), words_of(seq, 256000), batch, rate=2e-4)


def mistral_lora(batch=2, seq=1024):
    model = adapters(made("Mistral", "ForCausalLM", dtype=torch.bfloat16, recompute=True, hidden_size=4096,
                          intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8,
                          vocab_size=32000), 64)
    trainer(model, call(model), words_of(seq, 32000), batch, opt="adamw", amp="bf16", accumulate=2, steps=4)


def phi(batch=2, seq=512):
    model = made("Phi", "ForCausalLM", dtype=torch.bfloat16, hidden_size=2048, intermediate_size=8192,
                 num_hidden_layers=24, num_attention_heads=32, vocab_size=51200)
    trainer(model, call(model), words_of(seq, 51200), batch, rate=2e-5, tests=batch, gather=False)


def tinyllama(batch=4, seq=512):
    """Adapters written by hand, float weights under autocast."""
    model = made("Llama", "ForCausalLM", hidden_size=2048, intermediate_size=5632, num_hidden_layers=22,
                 num_attention_heads=32, num_key_value_heads=4, vocab_size=32000)
    model = adapt(model, 16, leave=("lm_head",)).to(CARD)
    script(model, call(model), words_of(seq, 32000), batch, amp="bf16", clip=1.0)


def mamba(batch=4, seq=512):
    model = made("Mamba2", "ForCausalLM", hidden_size=768, num_hidden_layers=24, num_heads=24, head_dim=64,
                 state_size=128, n_groups=1, vocab_size=50288, use_cache=False)
    trainer(model, call(model), words_of(seq, 50288), batch, steps=4, amp="bf16")


def longformer(batch=2, seq=2048):
    model = made("Longformer", "ForSequenceClassification", vocab_size=50265, max_position_embeddings=4098,
                 type_vocab_size=1, attention_window=512, num_labels=2)
    trainer(model, call(model), lambda n: with_labels(filled(n, 1100, seq, 50000), classes(2, n)), batch, amp="fp16")


class Experts(nn.Module):
    """Eight gated networks, two of them for each word; some are asked more often than others."""

    def __init__(self, width, inner, experts=8):
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.up, self.side = (nn.ModuleList(nn.Linear(width, inner, bias=False) for _ in range(experts)) for _ in "us")
        self.down = nn.ModuleList(nn.Linear(inner, width, bias=False) for _ in range(experts))
        self.liked = torch.randn(experts, device="cpu") * 0.5

    def forward(self, x):
        rows = x.flatten(0, 1)
        weight = self.gate(rows).softmax(-1, dtype=torch.float).topk(2, -1)[0].to(x.dtype)
        noise = -torch.log(-torch.log(torch.rand(rows.shape[0], len(self.down), device="cpu").clamp(1e-6, 1 - 1e-6)))
        chosen = (self.liked + noise).topk(2, -1)[1]
        out = torch.zeros_like(rows)
        for e in range(len(self.down)):
            row, which = (i.to(CARD) for i in torch.where(chosen == e))
            part = rows[row]
            part = self.down[e](F.silu(self.up[e](part)) * self.side[e](part)) * weight[row, which, None]
            out.index_add_(0, row, part.to(out.dtype))
        return out.view_as(x)


def mixture(batch=4, seq=1024):
    """A Mixtral-like model of 0.5 billion weights, which expert is asked is decided by the data."""
    model = made("Mistral", "ForCausalLM", dtype=torch.bfloat16, hidden_size=768, intermediate_size=2048,
                 num_hidden_layers=12, num_attention_heads=12, num_key_value_heads=4, vocab_size=32000)
    torch.set_default_dtype(torch.bfloat16)
    with CARD:
        for layer in model.model.layers:
            layer.mlp = Experts(768, 2048)
    torch.set_default_dtype(torch.float32)
    trainer(model, call(model), words_of(seq, 32000), batch, steps=8, opt="fused")


def dpo(batch=2):
    """Answers preferred and not, one beside the other; the reference is frozen."""
    model = made("Qwen2", "ForCausalLM", dtype=torch.bfloat16, **QWEN_HALF)
    frozen = made("Qwen2", "ForCausalLM", dtype=torch.bfloat16, **QWEN_HALF).eval().requires_grad_(False)

    def sums(net, b):
        logits = net(**b, use_cache=False).logits[:, :-1].float()
        said = torch.gather(logits.log_softmax(-1), 2, b["input_ids"][:, 1:, None])[..., 0]
        return (said * b["attention_mask"][:, 1:]).sum(-1)

    def loss_of(b):
        with torch.no_grad():
            known = sums(frozen, b)
        good, bad = (sums(model, b) - known).chunk(2)
        return -F.logsigmoid(0.1 * (good - bad)).mean()
    trainer(model, loss_of, lambda n: padded(2 * n, 160, 512, 151000), batch, steps=10, rate=5e-7)


def reward(batch=8, seq=512):
    """Pairs of answers, padded to one length."""
    model = made("Roberta", "ForSequenceClassification", vocab_size=50265, max_position_embeddings=514, num_labels=1,
                 type_vocab_size=1, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16,
                 intermediate_size=4096)

    def loss_of(b):
        good, bad = (model(**x).logits for x in b)
        return -F.logsigmoid(good - bad).mean()
    trainer(model, loss_of, lambda n: [filled(n, 280, seq, 50000) for _ in "gb"], batch, amp="bf16", tests=batch)


def rlhf(batch=16):
    """PPO on a language model: answers are written, judged by a frozen reference, then learned from."""
    model = made("GPT2", "LMHeadModel")
    value = nn.Linear(768, 1, device=CARD)
    frozen = made("GPT2", "LMHeadModel").eval().requires_grad_(False)
    opt = torch.optim.Adam([*model.parameters(), *value.parameters()], lr=1.4e-5)

    def judged(net, ids):
        out = net(input_ids=ids, output_hidden_states=True)
        said = out.logits[:, :-1].log_softmax(-1).gather(2, ids[:, 1:, None])[..., 0]
        return said, value(out.hidden_states[-1])[:, :-1, 0]

    for _ in range(3):
        asked = dict(input_ids=tokens(batch, 64), attention_mask=mask_of([64] * batch))
        with torch.no_grad():
            ids = model.generate(**asked, max_new_tokens=48, min_new_tokens=48, do_sample=True, pad_token_id=50256)
            old, worth = judged(model, ids)
            known, _ = judged(frozen, ids)
            gain = (torch.rand(batch, 1, device=CARD) - 0.1 * (old - known)) - worth
        for _ in range(4):
            for part in torch.arange(batch).chunk(2):
                said, guess = judged(model, ids[part.to(CARD)])
                ratio = (said - old[part.to(CARD)]).exp()
                g = gain[part.to(CARD)]
                loss = -torch.min(ratio * g, ratio.clamp(0.8, 1.2) * g).mean() + 0.1 * ((guess - g) ** 2).mean()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                opt.step()
                opt.zero_grad()


def sentences(batch=64):
    """Embeddings of sentences: anchors, answers and hard negatives, each padded to its longest."""
    model = made("MPNet", "Model")

    def one(b):
        h, m = model(**b).last_hidden_state, b["attention_mask"][..., None]
        return F.normalize((h * m).sum(1) / m.sum(1), dim=-1)

    def loss_of(b):
        a, p, n = (one(x) for x in b)
        return F.cross_entropy(20.0 * a @ torch.cat([p, n]).T, torch.arange(a.shape[0], device=CARD))
    trainer(model, loss_of, lambda n: [padded(n, m, 384) for m in (14, 80, 80)], batch, steps=10, amp="fp16")


def distil_bert(batch=16, seq=256):
    """A student of six layers and a frozen teacher of twelve."""
    teacher = made("Bert", "ForMaskedLM").eval().requires_grad_(False)
    student = made("DistilBert", "ForMaskedLM")

    def loss_of(b):
        with torch.no_grad():
            told = teacher(input_ids=b["input_ids"]).logits
        out = student(**b)
        soft = F.kl_div(F.log_softmax(out.logits / 2, -1), F.softmax(told / 2, -1), reduction="batchmean") * 4
        return 0.5 * out.loss + 5.0 * soft / told.shape[1]

    def block(n):
        ids = tokens(n, seq)
        return dict(input_ids=ids, labels=masked(ids))
    script(student, loss_of, block, batch, clip=5.0)


class Translator(nn.Module):
    """The big transformer of 2017."""

    def __init__(self, vocabulary=32768, width=1024):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(512, width)
        self.body = nn.Transformer(width, 16, 6, 6, 4096, batch_first=True)

    def forward(self, x, y):
        x, y = (self.words(z) + self.places(torch.arange(z.shape[1], device=CARD)) for z in (x, y))
        mask = nn.Transformer.generate_square_subsequent_mask(y.shape[1], device=CARD)
        return F.linear(self.body(x, y, tgt_mask=mask, tgt_is_causal=True), self.words.weight)


def translation(words=4096):
    """Batches of about so many words: sentences sorted by length, as many as fit."""
    with CARD:
        model = Translator()

    def pairs(most):
        pool = sorted((max(s, 3), max(3, round(s * r))) for s, r in
                      zip(lengths(20000, 22, 200), (torch.randn(20000) * 0.15 + 1.05).tolist()))
        start, end = int(torch.randint(0, 19000, (1,))), 0
        while start + end < len(pool) and (end + 1) * max(pool[start + end]) <= most:
            end += 1
        rows = pool[start:start + end]
        return tokens(len(rows), max(s for s, _ in rows)), tokens(len(rows), max(r for _, r in rows) + 1)

    def loss_of(b):
        x, y = b
        return F.cross_entropy(model(x, y[:, :-1]).flatten(0, 1), y[:, 1:].flatten(), label_smoothing=0.1)
    script(model, loss_of, pairs, words, steps=12, opt="adam", amp="fp16", clip=1.0)


class Lstm(nn.Module):
    def __init__(self, vocabulary=33278, width=400, inner=1150):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(nn.LSTM(i, o) for i, o in ((width, inner), (inner, inner), (inner, width)))

    def forward(self, x, states):
        h, after = F.dropout(self.words(x), 0.4, self.training), []
        for layer, state in zip(self.layers, states):
            h, state = layer(h, state)
            h = F.dropout(h, 0.25, self.training)
            after.append(tuple(s.detach() for s in state))
        return F.linear(h, self.words.weight), after


def lstm(batch=64, seq=70):
    """Language model of three LSTM layers whose state goes on from block to block."""
    with CARD:
        model = Lstm()
    states = [None] * 3

    def loss_of(ids):
        nonlocal states
        y, states = model(ids[:-1], states)
        return F.cross_entropy(y.flatten(0, 1), ids[1:].flatten())
    script(model, loss_of, lambda n: tokens(n, seq + 1).T.contiguous(), batch, steps=8, opt="sgd", rate=1.0, clip=0.25)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.ln_2, self.heads = nn.LayerNorm(width), nn.LayerNorm(width), heads
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.back = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, s, c = x.shape
        q, k, v = (y.view(b, s, self.heads, -1).transpose(1, 2) for y in self.c_attn(self.ln_1(x)).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).contiguous().view(b, s, c))
        return x + self.back(F.gelu(self.c_fc(self.ln_2(x))))


class Gpt(nn.Module):
    def __init__(self, width=768, layers=12, heads=12, vocabulary=50304):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(2048, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f, self.lm_head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.wte.weight = self.lm_head.weight

    def forward(self, ids, targets):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=CARD))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return logits, F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def nanogpt(batch=12, seq=1024):
    """GPT-2 from scratch: micro-batches, and an estimate of the loss before the first step."""
    with CARD:
        model = Gpt()

    def block(n):
        x = torch.randint(0, 50257, (n, seq + 1))
        return x[:, :-1].pin_memory().to(CARD, non_blocking=True), x[:, 1:].pin_memory().to(CARD, non_blocking=True)

    def loss_of(b):
        logits, loss = model(*b)
        return loss, logits
    opt = optimizer(model, "adamw+", fused=True)
    model.eval()
    with torch.no_grad(), cast("bf16"):
        for _ in range(2):
            logits, loss = model(*block(batch))
    script(model, loss_of, block, batch, steps=3, opt=opt, amp="bf16", clip=1.0, accumulate=4)


def protein(batch=4, seq=512):
    """ESM-2 of 650 million weights, on crops of proteins."""
    model = made("Esm", "ForMaskedLM", recompute=True, vocab_size=33, hidden_size=1280, num_hidden_layers=33,
                 num_attention_heads=20, intermediate_size=5120, position_embedding_type="rotary", token_dropout=True,
                 mask_token_id=32, pad_token_id=1, max_position_embeddings=1026)

    def crops(n):
        ids = tokens(n, seq, 24)
        return dict(input_ids=ids, attention_mask=torch.ones_like(ids), labels=masked(ids))
    trainer(model, call(model), crops, batch, amp="bf16", tests=batch, gather=False)


if __name__ == "__main__":
    main(globals())
