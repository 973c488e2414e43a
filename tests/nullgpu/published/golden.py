# SPDX-License-Identifier: Apache-2.0
"""golden.py CASE - two steps of a functional test of Megatron-LM (gpt/..., moe/..., t5/..., bert/... or hybrid/..., whose
checkout is in PYTHONPATH), by its own script with its own configuration, on tokens that are made up; prints the peak that
its golden values name."""
import os
import re
import runpy
import sys
import types
import typing

import numpy
import typing_extensions
import yaml

if not hasattr(typing, "override"):  # Python 3.11
    typing.override = typing_extensions.override

# what is written or read, or another number of steps
WITHOUT = {"--tensorboard-dir", "--save", "--load", "--save-interval", "--async-save", "--use-persistent-ckpt-worker",
           "--log-memory-to-tensorboard", "--log-timers-to-tensorboard", "--log-validation-ppl-to-tensorboard",
           "--vocab-file", "--merge-file", "--data-path", "--split", "--data-cache-path", "--tokenizer-type",
           "--train-iters", "--eval-iters", "--tiktoken-pattern", "--tokenizer-model", "--exit-interval",
           "--dist-ckpt-strictness", "--logging-level"}
# the words of its tokenizer, GPT-2's, BERT's lower case, BERT's with 100 of T5, less the one that is added
WORDS = {"bert": 30521, "t5": 29095}


def arguments(given, kind):
    args = ["--train-iters", "2", "--eval-iters", "0", "--num-workers", "0", "--mock-data", "--split", "99,1,0",
            "--tokenizer-type", "NullTokenizer", "--vocab-size", str(WORDS.get(kind, 50256))]
    for name, value in given.items():
        if name not in WITHOUT and value is not False:
            args += [name] if value is True else [name, *re.findall(r"\[[^]]*\]|\S+", str(value))]
    return args


class Masked:
    """What the datasets of BERT and T5 hand out: numbers of a given length, and masks."""
    def __init__(self, config):
        long, short = config.sequence_length, getattr(config, "sequence_length_decoder", config.sequence_length)
        ones = dict.fromkeys(("text", "types", "labels", "loss_mask", "padding_mask"), long)
        if short != long:
            ones = {"text_enc": long, "text_dec": short, "labels": short, "loss_mask": short, "enc_mask": long,
                    "dec_mask": short}
        self.sample = {name: numpy.ones(n, dtype=numpy.int64) for name, n in ones.items()}
        self.sample["is_random"] = 0

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        return self.sample


case = sys.argv[1]
root = next(path for path in sys.path if os.path.exists(path + "/pretrain_gpt.py"))
with open("%s/tests/functional_tests/test_cases/%s/model_config.yaml" % (root, case)) as file:
    config = yaml.safe_load(file)
for name, value in config["ENV_VARS"].items():
    os.environ.setdefault(name, str(value))
kind = case.split("/")[0]
script = os.path.join(root, "pretrain_%s.py" % (kind if kind in ("bert", "t5", "hybrid") else "gpt"))
sys.argv = [script] + arguments(config["MODEL_ARGS"], kind)

import torch  # noqa: E402


class Norm(torch.autograd.Function):
    """A layer norm of Apex's: it keeps its input and two numbers a row, and sums gradients of weights in parts."""
    @staticmethod
    def forward(ctx, x, weight, bias, eps, *rest):
        rows, ctx.others = x.numel() // x.shape[-1], 1 + len(rest)
        ctx.save_for_backward(x, weight, *(torch.empty(rows, device=x.device) for _ in range(2)))
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors[:2]
        parts = [torch.empty(torch.cuda.get_device_properties(0).multi_processor_count, x.shape[-1], device=x.device)
                 for _ in range(2)]
        return torch.empty_like(x), *(torch.empty_like(weight) for _ in parts), *[None] * ctx.others


def apex():
    """Its kernels are not installed: products that add to a gradient allocate nothing, softmaxes what mcore.py says."""
    from mcore import fused_softmax
    for name, what in (("apex.contrib.layer_norm.layer_norm", "FastLayerNormFN"),
                       ("apex.normalization.fused_layer_norm", "FusedLayerNormAffineFunction")):
        for i in range(len(name.split("."))):
            sys.modules.setdefault(".".join(name.split(".")[:i + 1]), types.ModuleType(name))
        setattr(sys.modules[name], what, Norm)
    fused_softmax()
    module = types.ModuleType("fused_weight_gradient_mlp_cuda")
    for name in ("wgrad_gemm_accum_fp32", "wgrad_gemm_accum_fp16"):
        setattr(module, name, lambda x, grad, into: None)
    sys.modules[module.__name__] = module


def made_up():
    from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
    from megatron.core.datasets.t5_dataset import T5MaskedWordPieceDatasetConfig
    T5MaskedWordPieceDatasetConfig.__post_init__ = lambda self: None  # it asks a tokenizer for the words it masks with
    BlendedMegatronDatasetBuilder.build = lambda self: [Masked(self.config)] * 3


apex()
if kind in ("bert", "t5"):
    made_up()
try:
    runpy.run_path(script, run_name="__main__")
finally:
    print("published peak %d" % torch.cuda.max_memory_allocated(), flush=True)
