# SPDX-License-Identifier: Apache-2.0
"""train_transformers.py - four steps of a small BERT with two evaluations, by the Trainer of transformers."""
import sys

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
from vramcast.huggingface import VramcastCallback


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, i):
        return {"input_ids": torch.full((64,), i), "attention_mask": torch.ones(64, dtype=torch.long),
                "labels": torch.tensor(i % 2)}


model = BertForSequenceClassification(BertConfig(hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=256,
                                                 vocab_size=1000))
args = TrainingArguments(sys.argv[1], max_steps=4, per_device_train_batch_size=8, report_to=[],
                         save_strategy="no", eval_strategy="steps", eval_steps=2)
Trainer(model, args, train_dataset=Data(), eval_dataset=Data(), callbacks=[VramcastCallback()]).train()
