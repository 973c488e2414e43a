# SPDX-License-Identifier: Apache-2.0
"""model.py - a training loop of a model of which only the configuration is there:

    vramcast dryrun -g rtx4090 -- python -m vramcast.model config.json --batch 4 --seq 2048

The model is made by transformers, with no weights to load; the dry run then is a real stream of
events, where `vramcast estimate --config config.json` is formulas. Nothing is fetched: the
configuration is a file, a folder, or the name of a model in the local cache of the hub."""
from __future__ import annotations

import argparse
import importlib
import os
from typing import Any, List, Optional


def arguments(words: Optional[List[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m vramcast.model",
                                     description="train a model of which only the configuration is there")
    parser.add_argument("config", help="config.json, a folder with one, or a name in the hub's cache")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seq", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--optimizer", default="AdamW", help="a class of torch.optim [AdamW]")
    parser.add_argument("--dtype", default="float32", help="of the parameters [float32]")
    parser.add_argument("--autocast", action="store_true", help="bfloat16 in the forward pass")
    parser.add_argument("--checkpoint", action="store_true", help="recompute activations")
    parser.add_argument("--lora", type=int, metavar="RANK", help="train adapters only (peft)")
    parser.add_argument("--inference", action="store_true", help="forward passes only")
    return parser.parse_args(words)


def build(given: argparse.Namespace) -> Any:
    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")
    config = transformers.AutoConfig.from_pretrained(given.config, local_files_only=True)
    config.use_cache = False
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, given.dtype))
    try:
        with torch.device("cuda"):
            model = transformers.AutoModelForCausalLM.from_config(config)
    finally:
        torch.set_default_dtype(before)
    if given.checkpoint:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    if given.lora:
        peft: Any = importlib.import_module("peft")
        model = peft.get_peft_model(model, peft.LoraConfig(r=given.lora, target_modules="all-linear"))
    return model


def main(words: Optional[List[str]] = None) -> None:
    given = arguments(words)
    os.environ["HF_HUB_OFFLINE"] = "1"
    torch: Any = importlib.import_module("torch")
    model = build(given)
    if not given.inference:
        model.train()
        optimizer = getattr(torch.optim, given.optimizer)([p for p in model.parameters() if p.requires_grad],
                                                          lr=1e-4)
    for _ in range(given.steps):
        tokens = torch.zeros((given.batch, given.seq), dtype=torch.long, device="cuda")
        with torch.set_grad_enabled(not given.inference), \
                torch.autocast("cuda", torch.bfloat16, enabled=given.autocast):
            answer = model(input_ids=tokens, labels=None if given.inference else tokens)
        if not given.inference:
            answer.loss.backward()
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    main()
