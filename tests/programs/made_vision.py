# SPDX-License-Identifier: Apache-2.0
"""Pictures, films and volumes by other people's trainers: --model NAME. Ours is only the glue."""

import os
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

from fullsize import CARD, main

os.environ.update(
    HF_HUB_OFFLINE="1", WANDB_MODE="disabled", YOLO_OFFLINE="true", NO_ALBUMENTATIONS_UPDATE="1"
)


class Host(Dataset):
    """So many samples in the host's memory, all the same."""

    def __init__(self, count, sample):
        self.count, self.sample = count, sample

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return self.sample


def loader(batch, steps, sample, **own):
    return DataLoader(
        Host(batch * steps, sample), batch_size=batch, drop_last=True, pin_memory=True, **own
    )


def lightning(module, train, valid=None, steps=6, **own):
    """Trainer as it is, without what writes files."""
    import lightning.pytorch as pl

    pl.Trainer(
        accelerator="gpu",
        devices=1,
        max_steps=steps,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **own,
    ).fit(module, train, valid)


def swav(batch=32):
    """lightly's example of SwaV with crops of two sizes, by Lightning."""
    import lightning.pytorch as pl
    import torchvision
    from lightly.loss import SwaVLoss
    from lightly.models.modules import SwaVProjectionHead, SwaVPrototypes
    from lightly.utils.lars import LARS
    from lightly.utils.scheduler import CosineWarmupScheduler

    class SwaV(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.backbone = nn.Sequential(*list(torchvision.models.resnet50().children())[:-1])
            self.head, self.prototypes = SwaVProjectionHead(), SwaVPrototypes(128, 3000, 1)
            self.criterion = SwaVLoss()

        def forward(self, x):
            x = F.normalize(self.head(self.backbone(x).flatten(start_dim=1)), dim=1, p=2)
            return self.prototypes(x, self.current_epoch)

        def training_step(self, batch, i):
            self.prototypes.normalize()
            crops = [self(x) for x in batch]
            return self.criterion(crops[:2], crops[2:])

        def configure_optimizers(self):
            opt = LARS(self.parameters(), lr=0.6, momentum=0.9, weight_decay=1e-6)
            plan = CosineWarmupScheduler(opt, warmup_epochs=10, max_epochs=100)
            return [opt], [dict(scheduler=plan, interval="step")]

    views = [torch.zeros(3, 224, 224)] * 2 + [torch.zeros(3, 96, 96)] * 6
    lightning(SwaV(), loader(batch, 6, views), precision="16-mixed")


def camvid(batch=8):
    """fastai's lesson: a U-Net of a ResNet for streets, by fit_one_cycle."""
    from fastai.vision.all import (
        CrossEntropyLossFlat,
        DataLoaders,
        Mish,
        TensorImage,
        TensorMask,
        foreground_acc,
        ranger,
        resnet34,
        unet_learner,
    )

    sample = TensorImage(torch.zeros(3, 360, 480)), TensorMask(torch.zeros(360, 480).long())
    dls = DataLoaders.from_dsets(
        Host(6 * batch, sample), Host(2 * batch, sample), bs=batch, num_workers=0, device=CARD
    )
    learn = unet_learner(
        dls,
        resnet34,
        n_out=32,
        pretrained=False,
        self_attention=True,
        act_cls=Mish,
        opt_func=ranger,
        loss_func=CrossEntropyLossFlat(axis=1),
        metrics=foreground_acc,
    )
    with learn.no_bar(), learn.no_logging():
        learn.fit_one_cycle(1, 1e-3)
        learn.fit(1, 1e-4)


def imagewoof(batch=64):
    """fastai's recipe for Imagenette: XResNet with Mish, ranger and MixUp in half precision."""
    from fastai.vision.all import (
        DataLoaders,
        LabelSmoothingCrossEntropy,
        Learner,
        Mish,
        MixUp,
        TensorCategory,
        TensorImage,
        accuracy,
        ranger,
        top_k_accuracy,
        xresnet50,
    )

    sample = TensorImage(torch.zeros(3, 256, 256)), TensorCategory(torch.tensor(1))
    dls = DataLoaders.from_dsets(
        Host(6 * batch, sample), Host(2 * batch, sample), bs=batch, num_workers=0, device=CARD
    )
    learn = Learner(
        dls,
        xresnet50(n_out=10, act_cls=Mish, sa=True),
        opt_func=ranger,
        wd=1e-2,
        cbs=MixUp(0.4),
        loss_func=LabelSmoothingCrossEntropy(),
        metrics=[accuracy, top_k_accuracy],
    ).to_fp16()
    with learn.no_bar(), learn.no_logging():
        learn.fit_flat_cos(1, 8e-3)


def streets(batch=8):
    """segmentation-models-pytorch's example of many classes, by Lightning."""
    import lightning.pytorch as pl
    import segmentation_models_pytorch as smp

    class Model(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = smp.create_model(
                "FPN", "resnext50_32x4d", encoder_weights=None, in_channels=3, classes=12
            )
            self.register_buffer("mean", torch.zeros(1, 3, 1, 1))
            self.register_buffer("std", torch.ones(1, 3, 1, 1))
            self.loss_fn = smp.losses.DiceLoss(smp.losses.MULTICLASS_MODE, from_logits=True)
            self.outputs = dict(train=[], valid=[])

        def shared_step(self, batch, stage):
            image, mask = batch
            logits = self.model((image - self.mean) / self.std).contiguous()
            loss = self.loss_fn(logits, mask.long())
            found = logits.softmax(dim=1).argmax(dim=1)
            counts = smp.metrics.get_stats(found, mask, mode="multiclass", num_classes=12)
            self.outputs[stage].append((loss, *counts))
            return loss

        def training_step(self, batch, i):
            return self.shared_step(batch, "train")

        def validation_step(self, batch, i):
            return self.shared_step(batch, "valid")

        def at_end(self, stage):
            counts = [torch.cat([x[i] for x in self.outputs[stage]]) for i in range(1, 5)]
            self.log(f"{stage}_iou", smp.metrics.iou_score(*counts, reduction="micro"))
            self.outputs[stage].clear()

        def on_train_epoch_end(self):
            self.at_end("train")

        def on_validation_epoch_end(self):
            self.at_end("valid")

        def configure_optimizers(self):
            opt = torch.optim.Adam(self.parameters(), lr=2e-4)
            plan = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=100, eta_min=1e-5)
            return dict(optimizer=opt, lr_scheduler=dict(scheduler=plan, interval="step"))

    sample = torch.zeros(3, 320, 480), torch.zeros(320, 480).long()
    lightning(Model(), loader(batch, 4, sample), loader(batch, 2, sample))


def timm_a2(batch=64):
    """timm's training script with the recipe A2 of "ResNet strikes back"."""
    import timm
    from timm.data import Mixup
    from timm.loss import BinaryCrossEntropy
    from timm.optim import create_optimizer_v2
    from timm.scheduler import create_scheduler_v2
    from timm.utils import AverageMeter, ModelEmaV3, NativeScaler, accuracy

    model = timm.create_model("seresnext50_32x4d", drop_path_rate=0.05).to(
        CARD, memory_format=torch.channels_last
    )
    opt = create_optimizer_v2(model, opt="lamb", lr=5e-3, weight_decay=0.02)
    plan, _ = create_scheduler_v2(
        opt, sched="cosine", num_epochs=10, warmup_epochs=1, updates_per_epoch=6
    )
    ema, scaler = ModelEmaV3(model, decay=0.9999, use_warmup=True), NativeScaler(device="cuda")
    mixup = Mixup(mixup_alpha=0.1, cutmix_alpha=1.0, label_smoothing=0.0, num_classes=1000)
    loss_fn = BinaryCrossEntropy(target_threshold=0.2, smoothing=0.0).to(CARD)
    sample, seen = (torch.zeros(3, 224, 224), 1), AverageMeter()
    for epoch in range(2):
        model.train()
        for i, (x, y) in enumerate(loader(batch, 4, sample)):
            x, y = x.to(CARD, non_blocking=True), y.to(CARD)
            x, y = mixup(x, y)
            x = x.contiguous(memory_format=torch.channels_last)
            with torch.autocast("cuda", torch.float16):
                loss = loss_fn(model(x), y)
            seen.update(loss.item(), batch)
            opt.zero_grad()
            scaler(loss, opt, clip_grad=None, parameters=model.parameters(), need_update=True)
            ema.update(model, step=4 * epoch + i)
            plan.step_update(4 * epoch + i)
        for net in (model, ema.module):
            net.eval()
            with torch.no_grad():
                for x, y in loader(batch, 2, sample):
                    x, y = x.to(CARD).contiguous(memory_format=torch.channels_last), y.to(CARD)
                    with torch.autocast("cuda", torch.float16):
                        out = net(x)
                        seen.update(F.cross_entropy(out, y).item(), batch)
                    accuracy(out, y, topk=(1, 5))
        plan.step(epoch + 1)


def openclip(batch=64):
    """open_clip_train's loop over a ViT-B/16 in bf16."""
    import open_clip
    from open_clip_train.main import random_seed
    from open_clip_train.scheduler import cosine_lr
    from open_clip_train.train import train_one_epoch

    random_seed(1, 0)
    model = open_clip.create_model(
        "ViT-B-16", precision="amp_bf16", device="cuda", output_dict=True
    )
    model.set_grad_checkpointing()
    own = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    plain = [
        p.ndim < 2 or "bn" in n or "ln" in n or "bias" in n or "logit_scale" in n for n, p in own
    ]
    opt = torch.optim.AdamW(
        [
            dict(params=[p for (_, p), x in zip(own, plain) if x], weight_decay=0.0),
            dict(params=[p for (_, p), x in zip(own, plain) if not x], weight_decay=0.2),
        ],
        lr=5e-4,
        betas=(0.9, 0.98),
        eps=1e-6,
    )
    args = SimpleNamespace(
        device="cuda",
        precision="amp_bf16",
        distill=False,
        accum_freq=1,
        skip_scheduler=False,
        horovod=False,
        grad_clip_norm=None,
        rank=0,
        world_size=1,
        log_every_n_steps=100,
        local_rank=0,
        log_local=False,
        distributed=False,
        batch_size=batch,
        wandb=False,
    )
    feed = loader(batch, 6, (torch.zeros(3, 224, 224), torch.ones(77).long()))
    feed.num_batches, feed.num_samples = 6, 6 * batch
    train_one_epoch(
        model,
        dict(train=SimpleNamespace(dataloader=feed, set_epoch=lambda e: None)),
        open_clip.ClipLoss(local_loss=False),
        0,
        opt,
        None,
        cosine_lr(opt, 5e-4, 100, 1000),
        None,
        args,
    )


def swinir(batch=8):
    """basicsr's SwinIR, four times larger, with its options of training from scratch."""
    import sys
    import torchvision.transforms.functional as old_name

    sys.modules["torchvision.transforms.functional_tensor"] = old_name
    from basicsr.models import build_model

    net = dict(
        type="SwinIR",
        upscale=4,
        in_chans=3,
        img_size=48,
        window_size=8,
        img_range=1.0,
        depths=[6] * 6,
        embed_dim=180,
        num_heads=[6] * 6,
        mlp_ratio=2,
        upsampler="pixelshuffle",
        resi_connection="1conv",
    )
    plan = dict(type="MultiStepLR", milestones=[250000, 400000], gamma=0.5)
    model = build_model(
        dict(
            model_type="SwinIRModel",
            scale=4,
            num_gpu=1,
            dist=False,
            is_train=True,
            network_g=net,
            path={},
            train=dict(
                ema_decay=0.999,
                optim_g=dict(type="Adam", lr=2e-4, weight_decay=0, betas=[0.9, 0.99]),
                scheduler=plan,
                total_iter=500000,
                warmup_iter=-1,
                pixel_opt=dict(type="L1Loss", loss_weight=1.0, reduction="mean"),
            ),
        )
    )
    feed = loader(batch, 5, dict(lq=torch.zeros(3, 48, 48), gt=torch.zeros(3, 192, 192)))
    for i, data in enumerate(feed, 1):
        model.update_learning_rate(i, warmup_iter=-1)
        model.feed_data(data)
        model.optimize_parameters(i)
        model.get_current_log()


def land(batch=8):
    """torchgeo's task for pictures of satellites with 13 bands, by Lightning."""
    from torchgeo.trainers import SemanticSegmentationTask

    task = SemanticSegmentationTask(
        model="deeplabv3+",
        backbone="resnet50",
        in_channels=13,
        num_classes=11,
        loss="ce",
        ignore_index=0,
    )
    sample = dict(image=torch.zeros(13, 256, 256), mask=torch.ones(256, 256).long())
    lightning(task, loader(batch, 4, sample), loader(batch, 2, sample), steps=6)


def slowfast(batch=8):
    """pytorchvideo's SlowFast by ignite's engines."""
    from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
    from ignite.metrics import Accuracy, Loss
    from pytorchvideo.models import create_slowfast

    model = create_slowfast(model_num_class=400).to(CARD)
    opt, loss_fn = (
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4),
        nn.CrossEntropyLoss(),
    )

    def prepare(b, device, non_blocking):
        x, y = (
            b[0].to(device, non_blocking=non_blocking),
            b[1].to(device, non_blocking=non_blocking),
        )
        return [x[:, :, torch.linspace(0, 31, 8, device=device).long()], x], y

    engine = create_supervised_trainer(
        model,
        opt,
        loss_fn,
        device=CARD,
        non_blocking=True,
        prepare_batch=prepare,
        amp_mode="amp",
        scaler=True,
    )
    judge = create_supervised_evaluator(
        model,
        dict(accuracy=Accuracy(), loss=Loss(loss_fn)),
        device=CARD,
        prepare_batch=prepare,
        amp_mode="amp",
    )
    sample = torch.zeros(3, 32, 224, 224), 1
    engine.add_event_handler(Events.EPOCH_COMPLETED, lambda e: judge.run(loader(batch, 2, sample)))
    engine.run(loader(batch, 3, sample), max_epochs=2)


def products(batch=32):
    """pytorch-metric-learning's trainer: ConvNeXt and ArcFace over products."""
    import timm
    from pytorch_metric_learning import losses, trainers

    trunk = timm.create_model("convnext_base", num_classes=0).to(CARD)
    embedder = nn.Sequential(nn.Linear(1024, 512), nn.BatchNorm1d(512)).to(CARD)
    arc = losses.SubCenterArcFaceLoss(
        num_classes=11318, embedding_size=512, margin=28.6, scale=64
    ).to(CARD)
    trainers.MetricLossOnly(
        models=dict(trunk=trunk, embedder=embedder),
        batch_size=batch,
        loss_funcs=dict(metric_loss=arc),
        optimizers=dict(
            trunk_optimizer=torch.optim.AdamW(trunk.parameters(), lr=1e-5, weight_decay=1e-4),
            embedder_optimizer=torch.optim.AdamW(embedder.parameters(), lr=1e-4, weight_decay=1e-4),
            metric_loss_optimizer=torch.optim.AdamW(arc.parameters(), lr=1e-3),
        ),
        dataset=Host(6 * batch, (torch.zeros(3, 224, 224), 1)),
        dataloader_num_workers=0,
        data_device=CARD,
        dtype=torch.float32,
    ).train(num_epochs=1)


def byol(batch=32):
    """byol-pytorch around a ResNet-50, with an optimizer of pytorch-optimizer."""
    import torchvision
    from byol_pytorch import BYOL
    from pytorch_optimizer import Lion

    learner = BYOL(torchvision.models.resnet50(), image_size=256, hidden_layer="avgpool").to(CARD)
    opt = Lion(learner.parameters(), lr=3e-5)
    for x in loader(batch, 6, torch.zeros(3, 256, 256)):
        loss = learner(x.to(CARD))
        opt.zero_grad()
        loss.backward()
        opt.step()
        learner.update_moving_average()


def vivit(frames=16):
    """vit-pytorch's ViViT by skorch."""
    import numpy as np
    from skorch import NeuralNetClassifier
    from skorch.callbacks import GradientNormClipping, LRScheduler
    from vit_pytorch.vivit import ViViT

    with CARD:
        model = ViViT(
            image_size=224,
            frames=frames,
            image_patch_size=16,
            frame_patch_size=2,
            num_classes=174,
            dim=768,
            spatial_depth=12,
            temporal_depth=4,
            heads=12,
            mlp_dim=3072,
        )
    plan = LRScheduler(torch.optim.lr_scheduler.CosineAnnealingLR, T_max=100, step_every="batch")
    net = NeuralNetClassifier(
        model,
        criterion=nn.CrossEntropyLoss,
        optimizer=torch.optim.AdamW,
        lr=1e-4,
        max_epochs=2,
        batch_size=4,
        device="cuda",
        verbose=0,
        callbacks=[plan, GradientNormClipping(1.0)],
    )
    net.fit(np.zeros((20, 3, frames, 224, 224), dtype="float32"), np.arange(20) % 2)


if __name__ == "__main__":
    main(globals())
