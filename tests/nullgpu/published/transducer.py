# SPDX-License-Identifier: Apache-2.0
"""transducer.py SHAPES [sorted] - transducer losses of torchaudio over the lengths of LibriSpeech's train-clean-100 in
SHAPES (frames and tokens, shape_info.pt of csukuangfj/transducer-loss-benchmarking): 30 utterances a batch, or sorted,
10,000 frames at most; prints the peaks of
batches 20 to 39 and 60 to 79, which its two profiles show."""
import sys

import torch
import torchaudio

lengths = torch.load(sys.argv[1])
if "sorted" in sys.argv:
    lengths = torch.sort(lengths, dim=0, descending=True).values
batches, batch, frames = [], [], 0
for t, u in lengths.tolist():
    if (frames + t > 10000 if "sorted" in sys.argv else len(batch) == 30) and batch:
        batches.append(batch)
        batch, frames = [], 0
    batch.append((t, u))
    frames += t

joiner = torch.nn.Linear(512, 500).cuda()
peaks = []
for i, batch in enumerate(batches[:80]):
    if i in (20, 60):
        torch.cuda.reset_peak_memory_stats()
    shape = torch.tensor(batch, dtype=torch.int32, device="cuda")
    t, u = shape.max(dim=0).values.tolist()
    encoder = torch.rand(len(batch), t, 512, requires_grad=True, device="cuda")
    decoder = torch.rand(len(batch), u + 1, 512, requires_grad=True, device="cuda")
    t_lengths, u_lengths = shape[:, 0].contiguous(), shape[:, 1].contiguous()
    targets = torch.randint(1, 500, (len(batch), u), dtype=torch.int32, device="cuda")
    encoder, decoder = encoder.unsqueeze(2), decoder.unsqueeze(1)
    x = encoder + decoder
    logits = joiner(torch.tanh(x))
    loss = torchaudio.functional.rnnt_loss(logits=logits, targets=targets, logit_lengths=t_lengths,
        target_lengths=u_lengths, blank=0, reduction="sum")
    loss.backward()
    joiner.zero_grad()
    if i in (39, 79):
        peaks.append(torch.cuda.max_memory_allocated())
print("published first", peaks[0], "second", peaks[1])
