# SPDX-License-Identifier: Apache-2.0
"""autofind.py BATCH|auto:BATCH - GPT-2 small with the Trainer. auto: starts there and lets the Trainer shrink
the batch until it fits; prints the sizes it tried, and last the one it ended at."""
import sys
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, i):
        ids = torch.full((1024,), i, dtype=torch.long)
        return {"input_ids": ids, "labels": ids}


tried = []


class Watching(Trainer):
    def _inner_training_loop(self, batch_size=None, **kwargs):
        tried.append(batch_size)
        return super()._inner_training_loop(batch_size=batch_size, **kwargs)


def main():
    auto, start = sys.argv[1].startswith("auto:"), int(sys.argv[1].split(":")[-1])
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(folder, per_device_train_batch_size=start,
                                 auto_find_batch_size=auto, max_steps=3, report_to=[],
                                 save_strategy="no", disable_tqdm=True)
        Watching(model=GPT2LMHeadModel(GPT2Config()), args=args, train_dataset=Texts()).train()
    print("tried", *tried)
    print("ended at", tried[-1])


main()
