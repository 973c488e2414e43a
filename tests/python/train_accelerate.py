# SPDX-License-Identifier: Apache-2.0
"""Two steps with Accelerate, which tells the recorder through its tracker."""
import torch
from accelerate import Accelerator

from vramcast.accelerate import VramcastTracker

accelerator = Accelerator(log_with=[VramcastTracker()])
accelerator.init_trackers("run", config={"batch": 8, "seq": 512, "name": "test"})
model = torch.nn.Linear(64, 64)
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
for step in range(2):
    loss = model(torch.randn(8, 64, device=accelerator.device)).sum()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    accelerator.log({"step": step}, step=step)
accelerator.end_training()
