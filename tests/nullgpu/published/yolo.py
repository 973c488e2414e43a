# SPDX-License-Identifier: Apache-2.0
"""yolo.py - the table of YOLOv5's AutoBatch with the net in PYTHONPATH: 1 to 16 images of 640 x 640 forward and backward,
three times, under autocast, by turns in one process; prints the memory reserved after each."""
from copy import deepcopy
from pathlib import Path

import models
import torch
from models.yolo import Model

model = Model(str(Path(models.__path__[0]) / "yolov5s.yaml")).cuda()
with torch.autocast("cuda"):
    model = deepcopy(model).train()
    for count in (1, 2, 4, 8, 16):
        images = torch.zeros(count, 3, 640, 640).cuda()
        images.requires_grad = True
        for _ in range(3):
            out = model(images)
            sum(y.sum() for y in out).sum().backward()
        print("published batch%d" % count, torch.cuda.memory_reserved())
        torch.cuda.empty_cache()
