# SPDX-License-Identifier: Apache-2.0
"""model.py FOLDER - a small Qwen2 with random weights and a tokenizer of its own, so that nothing is fetched."""
import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
tokenizer.train_from_iterator(["what is one plus two", "say something nice"] * 4, trainers.BpeTrainer(
    vocab_size=1000, special_tokens=["<pad>", "<eos>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")
fast.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
fast.save_pretrained(sys.argv[1])
torch.manual_seed(0)
config = Qwen2Config(
    vocab_size=32000, hidden_size=512, intermediate_size=2048, num_hidden_layers=6, num_attention_heads=8,
    num_key_value_heads=2, max_position_embeddings=2048, tie_word_embeddings=False, eos_token_id=1, pad_token_id=0,
    bos_token_id=None)
Qwen2ForCausalLM(config).to(torch.bfloat16).save_pretrained(sys.argv[1])
