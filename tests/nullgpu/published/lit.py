# SPDX-License-Identifier: Apache-2.0
"""lit.py WAY - the examples of Lightning's guides to FSDP (a Transformer of a billion parameters, 35 tokens, with
its Trainer) and to tensor parallelism (three layers of 8192 x 8192, batches of 8, with Fabric), with made-up data;
prints the peak."""
import os
import sys

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn

WORDS, BLOCK, STEPS = 33278, 35, 4
WORLD = int(os.environ["WORLD_SIZE"])


class Words(torch.utils.data.Dataset):
    def __len__(self):
        return STEPS * WORLD

    def __getitem__(self, index):
        return torch.randint(0, WORDS, (BLOCK,)), torch.randint(0, WORDS, (BLOCK,))


class LanguageModel(L.LightningModule):
    def __init__(self):
        super().__init__()
        from lightning.pytorch.demos import Transformer
        self.model = Transformer(vocab_size=WORDS, nlayers=32, nhid=4096, ninp=1024, nhead=64)

    def training_step(self, batch):
        words, target = batch
        return F.nll_loss(self.model(words, target), target.view(-1))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.1)


def sharded(way):
    from lightning.pytorch.strategies import FSDPStrategy
    strategy = "ddp" if way == "DDP" else FSDPStrategy(
        auto_wrap_policy={nn.TransformerEncoderLayer, nn.TransformerDecoderLayer}, sharding_strategy=way)
    trainer = L.Trainer(accelerator="cuda", devices=WORLD, strategy=strategy, max_epochs=1, logger=False,
                        enable_checkpointing=False, enable_progress_bar=False)
    trainer.fit(LanguageModel(), torch.utils.data.DataLoader(Words()))


class FeedForward(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w1, self.w2, self.w3 = (nn.Linear(width, width, bias=False) for _ in range(3))

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


def parallel(way):
    from lightning.fabric.strategies import ModelParallelStrategy
    from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                                   parallelize_module)

    def split(model, mesh):
        return parallelize_module(model, mesh["tensor_parallel"], {
            "w1": ColwiseParallel(), "w2": RowwiseParallel(), "w3": ColwiseParallel()})
    fabric = L.Fabric(accelerator="cuda", devices=WORLD, strategy=ModelParallelStrategy(
        parallelize_fn=split, data_parallel_size=1, tensor_parallel_size=WORLD))
    fabric.launch()
    model = fabric.setup(FeedForward(8192))
    optimizer = fabric.setup_optimizers(torch.optim.AdamW(model.parameters(), lr=3e-3))
    for _ in range(8):
        fabric.backward(model(torch.randn(8, 8192).to(fabric.device)).sum())
        optimizer.step()
        optimizer.zero_grad()


(parallel if sys.argv[1] == "TP" else sharded)(sys.argv[1])
print("published peak %d" % torch.cuda.max_memory_allocated(), flush=True)
os._exit(0)  # nobody waits for this rank
