# SPDX-License-Identifier: Apache-2.0
"""clips.py CONFIG: four iterations of MMAction2's tools/train.py on the videos that a file of its model zoo asks for, by their
sizes alone, with weights of no checkpoint; prints what it logs as "memory"."""
import logging
import os
import sys

import mmaction
import torch
from mmaction.models import build_model
from mmcv import Config
from mmcv.parallel import DataContainer, MMDistributedDataParallel
from mmcv.runner import build_optimizer, build_runner


def untaught(part):
    for name, value in part.items():
        if name == "pretrained":
            part[name] = None
        elif isinstance(value, dict):
            untaught(value)


def batch(cfg):
    steps = {step["type"]: step for step in cfg.data.train.pipeline}  # the last of each type counts
    many, labels = cfg.data.videos_per_gpu, {"label": torch.zeros(cfg.data.videos_per_gpu, 1, dtype=torch.long)}
    if "LoadLocalizationFeature" in steps:  # two proposals a video
        boxes = [torch.tensor([[0.1, 0.4], [0.5, 0.9]]) for _ in range(many)]
        return {"raw_feature": torch.zeros(many, cfg.model.feat_dim, cfg.model.temporal_dim),
                "gt_bbox": DataContainer([boxes], cpu_only=True)}
    if "LoadAudioFeature" in steps:
        sample, shape = steps["SampleFrames"], steps["FormatAudioShape"]
        assert shape["input_format"] == "NCTF"
        long = steps["AudioFeatureSelector"].get("fixed_length", 128)
        return {"audios": torch.zeros(many, sample["num_clips"], 1, long, 80), **labels}
    sample, shape = steps.get("DenseSampleFrames", steps.get("SampleFrames")), steps["FormatShape"]["input_format"]
    wide, high = steps["Resize"]["scale"] if "Resize" in steps else [steps["RandomCrop"]["size"]] * 2
    frames, clips = sample["clip_len"], sample.get("num_clips", 1)
    inside = {"NCHW": (frames * clips, 3, high, wide), "NCHW_Flow": (clips, 2 * frames, high, wide),
              "NCTHW": (clips, 3, frames, high, wide)}[shape]
    return {"imgs": torch.zeros(many, *inside), **labels}


cfg = Config.fromfile(os.path.join(mmaction.__path__[0], ".mim/configs", sys.argv[1] + ".py"))
untaught(cfg.model)
if cfg.get("cudnn_benchmark", False):
    torch.backends.cudnn.benchmark = True
torch.distributed.init_process_group("nccl")
torch.cuda.set_device(0)
model = build_model(cfg.model, train_cfg=cfg.get("train_cfg"), test_cfg=cfg.get("test_cfg"))
model = MMDistributedDataParallel(model.cuda(), device_ids=[0], broadcast_buffers=False,
                                  find_unused_parameters=cfg.get("find_unused_parameters", False))
runner = build_runner({"type": "EpochBasedRunner", "max_epochs": 1}, {
    "model": model, "optimizer": build_optimizer(model, cfg.optimizer), "logger": logging.getLogger("mmaction"), "work_dir": "."})
runner.register_optimizer_hook(dict(cfg.optimizer_config, type="OptimizerHook"))
runner.run([[batch(cfg)] * 4], [("train", 1)])
print("published memory", torch.cuda.max_memory_allocated() // 2 ** 20 * 2 ** 20)
