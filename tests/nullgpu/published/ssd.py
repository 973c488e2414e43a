# SPDX-License-Identifier: Apache-2.0
"""ssd.py BATCH: steps of MLPerf's single stage detector (RetinaNet) as its train.py takes them, on empty pictures with seven
boxes each; prints what its log calls max mem after the first step and after three."""
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

for name in ("ssd_logger", "mlperf_logging", "mlperf_logging.mllog", "mlperf_logging.mllog.constants", "coco_utils", "coco_eval"):
    sys.modules[name] = MagicMock()
import model.resnet  # noqa: E402
import torch  # noqa: E402
import torchvision  # noqa: E402
from engine import train_one_epoch  # noqa: E402
from model.retinanet import retinanet_from_backbone  # noqa: E402

model.resnet.load_state_dict_from_url = lambda *args, **kwargs: torchvision.models.resnext50_32x4d().state_dict()
torch.distributed.init_process_group("nccl", init_method="tcp://localhost:29511", rank=0, world_size=1)  # torchrun of one
net = retinanet_from_backbone(backbone="resnext50_32x4d", num_classes=264, image_size=[800, 800], data_layout="channels_last",
                              pretrained=False, trainable_backbone_layers=3).cuda().to(memory_format=torch.channels_last)
net = torch.nn.parallel.DistributedDataParallel(net, device_ids=[0])
optimizer = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=1e-4)
scaler = torch.cuda.amp.GradScaler()
corner = torch.arange(7.)[:, None] * 90
boxes = torch.cat([corner, corner, corner + 150, corner + 100], 1)
many, target = int(sys.argv[1]), {"boxes": boxes, "labels": torch.ones(7, dtype=torch.long)}
batch = [torch.zeros(3, 768, 1024)] * many, [target] * many
args = SimpleNamespace(warmup_epochs=1, warmup_factor=1e-3, print_freq=20, amp=True)
for name, steps in (("first", 1), ("later", 2)):
    train_one_epoch(net, optimizer, scaler, [batch] * steps, torch.device("cuda"), 0, args)
    print("published", name, torch.cuda.max_memory_allocated() // 2 ** 20 * 2 ** 20)
