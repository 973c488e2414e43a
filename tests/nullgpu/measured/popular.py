# SPDX-License-Identifier: Apache-2.0
"""Runs the configurations of one program from popular.tsv, a forked child each, and prints
"popular", program, configuration, published, ours."""
import os
import sys
import tempfile

import torch

torch.nn.init.normal_ = torch.nn.init.kaiming_uniform_ = lambda t, *a, **k: t  # values do not matter
torch.Tensor.normal_ = lambda t, *a, **k: t


def litgpt(model, micro, tokens):
    """finetune/lora.py: the first iteration has the longest example, others are shorter."""
    import lightning
    from litgpt.lora import GPT, Config, mark_only_lora_as_trainable
    from litgpt.utils import chunked_cross_entropy
    fabric = lightning.Fabric(devices=1, precision="bf16-true")
    fabric.launch()
    with fabric.init_module():
        net = GPT(Config.from_name(model, lora_r=8, lora_alpha=16, lora_dropout=0.05,
                                   lora_query=True, lora_key=False, lora_value=True))
    mark_only_lora_as_trainable(net)
    net = fabric.setup_module(net)
    weights = [p for p in net.parameters() if p.requires_grad]
    step = fabric.setup_optimizers(torch.optim.AdamW(weights, lr=3e-4, weight_decay=0.01))
    net.max_seq_length = int(tokens)
    net.train()
    for i, length in enumerate((int(tokens), 256, 256)):
        ids, labels = (fabric.to_device(torch.ones(int(micro), length, dtype=torch.int64).pin_memory())
                       for _ in range(2))
        logits = net(ids, lm_head_chunk_size=128)
        logits[-1] = logits[-1][..., :-1, :]
        fabric.backward(chunked_cross_entropy(logits, labels[..., 1:]) / 128)
        if i == 1:
            step.step()
            step.zero_grad()
    return "%.2f" % (torch.cuda.max_memory_allocated() / 1e9)


class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return {"input_ids": torch.full((512,), 100 + i), "labels": 0}


class OldSoftmax(torch.autograd.Function):
    """Keeps its input too, as PyTorch did before 1.11 (pytorch/pytorch#65242)."""
    @staticmethod
    def forward(ctx, x):
        y = torch.softmax(x, -1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return torch._softmax_backward_data(grad, y, -1, x.dtype)


def as_in_2022():
    """What the PyTorch of the Trainer's table kept: softmax's input, and gradients from one step to the
    next (zero_grad filled them with zeros before 2.0)."""
    def softmax(x, dim=None, **_):
        return OldSoftmax.apply(x.float() if torch.is_autocast_enabled() else x)
    torch.nn.functional.softmax = softmax
    for kind in (torch.nn.Module, torch.optim.Optimizer):
        now = kind.zero_grad
        kind.zero_grad = lambda self, set_to_none=False, now=now: now(self, False)


def trainer(*settings):
    import transformers as hf
    as_in_2022()
    s = dict(x.split("=") for x in settings)
    config = hf.BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16,
                           intermediate_size=4096)
    net = hf.AutoModelForSequenceClassification.from_config(config, attn_implementation="eager")
    args = hf.TrainingArguments(
        output_dir=tempfile.mkdtemp(), max_steps=3, log_level="error", report_to="none",
        save_strategy="no", disable_tqdm=True, per_device_train_batch_size=int(s["batch"]),
        gradient_accumulation_steps=int(s["accumulate"]), optim=s["optim"], fp16=s["fp16"] == "1",
        gradient_checkpointing=s["checkpoint"] == "1")
    hf.Trainer(model=net.to("cuda"), args=args, train_dataset=Texts()).train()
    return str(torch.cuda.max_memory_reserved() >> 20)


def mmseg(kind, depth, size, batch, classes):
    import segment
    height, width = map(int, size.split("x"))
    return "%.3f" % segment.train(kind, depth, height, width, int(batch), int(classes))


def mmyolo(size, levels, pixels, batch, classes, cards):
    import detect
    return "%.2f" % detect.train(size, *map(int, (levels, pixels, batch, classes, cards)))


def main(table, program):
    for line in open(table):
        f = line.rstrip("\n").split("\t")
        if f[0] != program:
            continue
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            try:
                ours = globals()[program](*f[1].split())
            except torch.OutOfMemoryError:
                ours = "oom"
            print("popular", *f, ours, sep="\t", flush=True)
            os._exit(0)
        os.waitpid(child, 0)


main(sys.argv[1], sys.argv[2])
