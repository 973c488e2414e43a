# SPDX-License-Identifier: Apache-2.0
"""models.py [CASE]... - training, evaluation and generation with the libraries that people use, models
from their configurations with random weights. Every case is a forked process that shares the imports
(the card is not touched before). Prints TAP lines; the peak of each case stands behind "peak"."""
import os
import sys
import tempfile
import traceback

import torch
from torch import nn

try:
    import transformers
    from transformers import (BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel,
                              LlamaConfig, LlamaForCausalLM, T5Config, T5ForConditionalGeneration)
    transformers.logging.set_verbosity_error()
except ImportError:
    transformers = None

WORDS = 1000


def gpt2(**more):
    return GPT2LMHeadModel(GPT2Config(vocab_size=WORDS, n_embd=256, n_layer=4, n_head=4, n_positions=256,
                                      eos_token_id=WORDS - 1, bos_token_id=0, pad_token_id=0, **more))


def llama():
    return LlamaForCausalLM(LlamaConfig(vocab_size=WORDS, hidden_size=256, intermediate_size=512,
                                        num_hidden_layers=4, num_attention_heads=4,
                                        num_key_value_heads=2, max_position_embeddings=256,
                                        eos_token_id=WORDS - 1, bos_token_id=0, pad_token_id=0))


def bert():
    return BertForSequenceClassification(BertConfig(vocab_size=WORDS, hidden_size=256,
                                                    num_hidden_layers=4, num_attention_heads=4,
                                                    intermediate_size=512))


def t5():
    return T5ForConditionalGeneration(T5Config(vocab_size=WORDS, d_model=256, d_kv=64, d_ff=512,
                                               num_layers=3, num_heads=4, decoder_start_token_id=0,
                                               eos_token_id=WORDS - 1, pad_token_id=0))


def text(rows=4, length=128, low=1):
    """Rows of different lengths, padded with zeros at the end, as a tokenizer would give them."""
    ids = torch.randint(low, WORDS - 1, (rows, length))
    mask = torch.ones_like(ids)
    for i in range(rows):
        mask[i, length - 10 * i:] = 0
    return (ids * mask).cuda(), mask.cuda()


def inputs_of(model, rows=4, length=128):
    ids, mask = text(rows, length)
    kind = model.config.model_type
    labels = torch.randint(0, 2, (rows,)).cuda() if kind == "bert" else ids
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def steps(model, n=3, rows=4, autocast=False):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    model.train()
    for _ in range(n):
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            loss = model(**inputs_of(model, rows)).loss
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    value = loss.item()
    assert value == value and abs(value) < 1e30, "the loss is %r" % value
    assert len(optimizer.state) > 0


def evaluate(model):
    model.eval()
    with torch.no_grad():
        out = model(**inputs_of(model))
    value = out.loss.item()
    assert value == value, "the loss is %r" % value
    assert out.logits.shape[0] == 4


def generate(model, **how):
    model.eval()
    ids, mask = text(2, 16)
    out = model.generate(input_ids=ids, attention_mask=mask, max_new_tokens=12, **how)
    # random weights: nothing makes the model stop before the limit but the end token
    assert out.shape[0] == 2 and 1 < out.shape[1] <= 28, "generated %s" % (tuple(out.shape),)
    return out


def language_model(make, generates=True):
    model = make().cuda()
    steps(model)
    evaluate(model)
    if generates:
        generate(model, do_sample=False)
        generate(model, do_sample=True, top_k=20)
        generate(model, num_beams=2, do_sample=False)


def end_of_text():
    """A model that must say the end token: its last layer adds to that one. Small enough that all of
    it is computed."""
    model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_embd=32, n_layer=1, n_head=2, n_positions=64,
                                       eos_token_id=63, bos_token_id=0, pad_token_id=0)).cuda()
    head = nn.Linear(32, 64).cuda()
    with torch.no_grad():
        head.weight.zero_()
        head.bias.copy_((torch.arange(64) == 63).float())
    model.lm_head = head
    ids = torch.tensor([[1, 2, 3]]).cuda()
    out = model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=20,
                         do_sample=False)
    assert out.shape[1] == 4 and out[0, -1].item() == 63, "ended with %s" % out.tolist()


def checkpointed(make):
    torch.cuda.reset_peak_memory_stats()
    steps(make().cuda(), rows=16)
    plain = torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    model = make().cuda()
    model.gradient_checkpointing_enable()
    steps(model, rows=16)
    less = torch.cuda.max_memory_allocated()
    assert less < plain, "checkpointing: %d, without: %d" % (less, plain)


def lora(make):
    from peft import LoraConfig, get_peft_model
    target = {"gpt2": ["c_attn"], "llama": ["q_proj", "v_proj"], "t5": ["q", "v"],
              "bert": ["query", "value"]}
    model = make()
    model = get_peft_model(model, LoraConfig(r=8, target_modules=target[model.config.model_type])).cuda()
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    steps(model)
    assert 0 < trainable < sum(p.numel() for p in model.parameters()) / 4


class Texts(torch.utils.data.Dataset):
    def __init__(self, kind):
        self.kind = kind

    def __len__(self):
        return 32

    def __getitem__(self, i):
        ids = torch.randint(1, WORDS - 1, (64,))
        labels = i % 2 if self.kind == "bert" else ids
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}


def trainer(make, **how):
    from transformers import Trainer, TrainingArguments
    model = make()
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(folder, per_device_train_batch_size=4, max_steps=4, report_to=[],
                                 logging_steps=2, save_strategy="no", disable_tqdm=True, **how)
        data = Texts(model.config.model_type)
        t = Trainer(model=model, args=args, train_dataset=data, eval_dataset=data)
        done = t.train()
        assert done.global_step == 4 and done.training_loss == done.training_loss
        loss = t.evaluate()["eval_loss"]
        assert loss == loss, "the evaluation loss is %r" % loss


def accelerated():
    from accelerate import Accelerator
    accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
    model = gpt2()
    optimizer = torch.optim.AdamW(model.parameters())
    loader = torch.utils.data.DataLoader(Texts("gpt2"), batch_size=4, num_workers=2, pin_memory=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        with accelerator.accumulate(model):
            loss = model(**batch).loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    gathered = accelerator.gather(loss.detach())
    assert gathered.isfinite().all().item()


def images(model, rows=4, size=64, target=None, n=3, **how):
    model = model.cuda().to(**how) if how else model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(n):
        x = torch.randn(rows, 3, size, size, device="cuda").to(**how) if how else \
            torch.randn(rows, 3, size, size, device="cuda")
        out = model(x)
        if target is None:
            loss = nn.functional.cross_entropy(out, torch.randint(0, out.shape[1], (rows,)).cuda())
        else:
            assert out.shape[-2:] == x.shape[-2:], "the picture has %s" % (tuple(out.shape),)
            loss = nn.functional.mse_loss(out, x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    value = loss.item()
    assert value == value and abs(value) < 1e30, "the loss is %r" % value
    model.eval()
    with torch.no_grad():
        assert model(x).shape[0] == rows


def resnet(**how):
    import torchvision
    images(torchvision.models.resnet50(), **how)


class UNet(nn.Module):
    """Two levels down and up, skip connections, group norm, transposed convolutions."""

    def __init__(self, width=32):
        super().__init__()
        self.enter = self.block(3, width)
        self.down = nn.ModuleList([self.block(width, 2 * width), self.block(2 * width, 4 * width)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(4 * width, 2 * width, 2, 2),
                                 nn.ConvTranspose2d(2 * width, width, 2, 2)])
        self.join = nn.ModuleList([self.block(4 * width, 2 * width), self.block(2 * width, width)])
        self.leave = nn.Conv2d(width, 3, 1)

    @staticmethod
    def block(a, b):
        return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(8, b), nn.SiLU(),
                             nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.SiLU())

    def forward(self, x):
        x = self.enter(x)
        kept = []
        for layer in self.down:
            kept.append(x)
            x = layer(nn.functional.max_pool2d(x, 2))
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([kept.pop(), up(x)], 1))
        return self.leave(x)


class Tagger(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.words = nn.Embedding(WORDS, 128)
        self.net = cell(128, 256, 2, batch_first=True, bidirectional=True, dropout=0.1)
        self.tags = nn.Linear(512, 10)

    def forward(self, ids, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.words(ids), lengths, batch_first=True,
                                                   enforce_sorted=False)
        out, _ = nn.utils.rnn.pad_packed_sequence(self.net(packed)[0], batch_first=True)
        return self.tags(out)


def recurrent(cell):
    model = Tagger(cell).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for longest in (50, 30, 50):
        ids = torch.randint(0, WORDS, (6, longest)).cuda()
        lengths = torch.tensor([longest, 3, 7, 20, 11, 5])
        out = model(ids, lengths)
        assert out.shape[1] == longest, "the longest row has %d, not %d" % (out.shape[1], longest)
        loss = nn.functional.cross_entropy(out.flatten(0, 1), torch.randint(0, 10, (6 * longest,)).cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert loss.isfinite().item()


def compiled(mode="default"):
    model = torch.compile(gpt2().cuda(), mode=mode)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        ids, _ = text()
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    value = loss.item()
    assert value == value and abs(value) < 1e30, "the loss is %r" % value


CASES = {
    "GPT-2 trains, evaluates, generates": lambda: language_model(gpt2),
    "a Llama-like model trains, evaluates, generates": lambda: language_model(llama),
    "BERT trains, evaluates": lambda: language_model(bert, False),
    "T5 trains, evaluates, generates": lambda: language_model(t5),
    "generation stops at the end of the text": end_of_text,
    "GPT-2 with gradient checkpointing": lambda: checkpointed(gpt2),
    "a Llama-like model with gradient checkpointing": lambda: checkpointed(llama),
    "T5 with gradient checkpointing": lambda: checkpointed(t5),
    "BERT with gradient checkpointing": lambda: checkpointed(bert),
    "LoRA on GPT-2": lambda: lora(gpt2),
    "LoRA on a Llama-like model": lambda: lora(llama),
    "LoRA on T5": lambda: lora(t5),
    "LoRA on BERT": lambda: lora(bert),
    "Trainer, GPT-2": lambda: trainer(gpt2),
    "Trainer, BERT, bf16": lambda: trainer(bert, bf16=True),
    "Trainer, T5, fp16 and gradient accumulation":
        lambda: trainer(t5, fp16=True, gradient_accumulation_steps=2),
    "Trainer, Llama-like, gradient checkpointing": lambda: trainer(llama, gradient_checkpointing=True),
    "Accelerate, bf16, gradient accumulation, workers": accelerated,
    "ResNet-50": resnet,
    "ResNet-50, channels last": lambda: resnet(memory_format=torch.channels_last),
    "a U-Net": lambda: images(UNet(), target="picture"),
    "an LSTM over packed rows": lambda: recurrent(nn.LSTM),
    "a GRU over packed rows": lambda: recurrent(nn.GRU),
    "torch.compile, GPT-2": compiled,
}


def run(case):
    """In a child; its peak, or what went wrong."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(r)
        said, code = "", 0
        try:
            torch.manual_seed(0)
            CASES[case]()
            torch.cuda.synchronize()
            said = "peak %d" % torch.cuda.max_memory_allocated()
        except BaseException:
            said, code = traceback.format_exc(), 1
        os.write(w, said.encode()[-60000:])
        os.close(w)
        sys.stdout.flush()
        if code:
            os._exit(code)
        sys.exit(0)
    os.close(w)
    said = b""
    while True:
        more = os.read(r, 65536)
        if not more:
            break
        said += more
    os.close(r)
    return os.waitpid(pid, 0)[1], said.decode()


def main():
    import importlib.util
    chosen = sys.argv[1:] or list(CASES)
    failed = 0
    if not importlib.util.find_spec("triton"):
        chosen = [c for c in chosen if "compile" not in c]
    for case in chosen:
        status, said = run(case)
        good = status == 0 and said.startswith("peak ")
        failed |= not good
        print("%s - %s%s" % ("ok" if good else "not ok", case, " # " + said if good else ""))
        if not good:
            print("\n".join("# " + line for line in ("status %d\n%s" % (status, said)).splitlines()[-12:]))
        sys.stdout.flush()
    sys.exit(failed)


if __name__ == "__main__":
    main()
