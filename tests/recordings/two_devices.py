# SPDX-License-Identifier: Apache-2.0
import torch
ms=[torch.nn.Sequential(*[torch.nn.Linear(512,512) for _ in range(4)]).cuda(d) for d in (0,1)]
for i in range(3):
    for d in (0,1):
        ms[d](torch.randn(64*(d+1),512,device=d)).sum().backward()
