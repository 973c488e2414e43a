# SPDX-License-Identifier: Apache-2.0
"""golden.py CASE - two steps of a functional test of Megatron-LM (gpt/... or moe/..., in $MEGATRON_LM), by its own script
with its own configuration, on tokens that are made up; prints the peak that its golden values name."""
import os
import re
import runpy
import sys
import typing

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


def arguments(given):
    args = ["--train-iters", "2", "--eval-iters", "0", "--num-workers", "0", "--mock-data", "--split", "99,1,0",
            "--tokenizer-type", "NullTokenizer", "--vocab-size", "50256"]  # GPT-2's words, less the one that is added
    for name, value in given.items():
        if name not in WITHOUT and value is not False:
            args += [name] if value is True else [name, *re.findall(r"\[[^]]*\]|\S+", str(value))]
    return args


root, case = os.environ["MEGATRON_LM"], sys.argv[1]
with open("%s/tests/functional_tests/test_cases/%s/model_config.yaml" % (root, case)) as file:
    config = yaml.safe_load(file)
for name, value in config["ENV_VARS"].items():
    os.environ.setdefault(name, str(value))
sys.path.insert(0, root)
script = os.path.join(root, "pretrain_gpt.py")
sys.argv = [script] + arguments(config["MODEL_ARGS"])

import torch  # noqa: E402

try:
    runpy.run_path(script, run_name="__main__")
finally:
    print("published peak %d" % torch.cuda.max_memory_allocated(), flush=True)
