# SPDX-License-Identifier: Apache-2.0
"""titan.py [TORCHTITAN'S OPTIONS] - torchtitan's own trainer with made-up tokens in place of a data set and a
tokenizer, which no machine without network has; prints the peaks of its last step."""
import sys
import types

import torch

VOCABULARY = {"llama3": 128256, "qwen3": 151936, "deepseek_v3": 102400, "llama4": 202048}


class Tokenizer:
    def __init__(self, job):
        self.n_words = VOCABULARY.get(job.model.name, 2048)
        self.bos_id = self.eos_id = 0

    def get_vocab_size(self):
        return self.n_words


class Tokens:
    def __init__(self, job):
        training = job.training
        self.size = (getattr(training, "local_batch_size", None) or training.batch_size,
                     training.seq_len + 1)

    def __iter__(self):
        while True:
            x = torch.randint(0, 2000, self.size)
            yield {"input": x[:, :-1]}, x[:, 1:]

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


class Absent(types.ModuleType):
    """A library that would read data or write pictures: nobody calls it."""
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def leave_out(*names):
    for name in names:
        sys.modules[name] = Absent(name)


def made_up(specs):
    """What a train spec is asked for, with tokens in place of data."""
    from dataclasses import replace
    find = specs.get_train_spec

    def get_train_spec(name):
        return replace(find(name), build_tokenizer_fn=Tokenizer,
                       build_dataloader_fn=lambda job_config, **rest: Tokens(job_config))
    specs.get_train_spec = get_train_spec


def main():
    sys.argv[1:1] = ["--metrics.log_freq", "1", "--comm.trace_buf_size", "0"]
    leave_out("datasets", "datasets.distributed", "torchdata", "torchdata.stateful_dataloader",
              "torchdata.nodes", "torch.utils.tensorboard", "tokenizers", "blobfile", "tiktoken",
              "tiktoken.load")
    import torchtitan.protocols.train_spec as specs
    import torchtitan.train as train
    made_up(specs)
    try:
        from torchtitan.tools.logging import init_logger
        from torchtitan.config import ConfigManager
    except ImportError:
        from torchtitan.config_manager import ConfigManager
    init_logger()
    trainer = train.Trainer(ConfigManager().parse_args())
    last = trainer.metrics_processor.device_memory_monitor.get_peak_stats
    peaks = []

    def seen():
        peaks.append(last())
        return peaks[-1]
    trainer.metrics_processor.device_memory_monitor.get_peak_stats = seen
    trainer.train()
    print("published first %d, reserved %d, active %d" % tuple(
        round(gib * 2 ** 30) for gib in (peaks[0].max_reserved_gib, peaks[-1].max_reserved_gib,
                                         peaks[-1].max_active_gib)), flush=True)


if __name__ == "__main__":
    main()
