# SPDX-License-Identifier: Apache-2.0
"""Pictures and clouds by packages that stood in no list before: --model NAME."""
import os
import sys
import tempfile
import warnings

os.environ.update(HF_HUB_OFFLINE="1", WANDB_DISABLED="true", TQDM_DISABLE="1", USE_TORCH="1")
warnings.filterwarnings("ignore")

import numpy  # noqa: E402
import torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from fullsize import CARD, classes, images, main  # noqa: E402
from newcomers_vision import learn  # noqa: E402


def until(steps):
    """Loops of packages go on for epochs: after so many steps of optimizers the program ends."""
    from torch.optim.optimizer import register_optimizer_step_post_hook
    left = [steps]

    def count(*_):
        left[0] -= 1
        if not left[0]:
            sys.exit(0)
    register_optimizer_step_post_hook(count)


def folder_of(n, side):
    """A folder of N pictures."""
    from PIL import Image
    folder = tempfile.mkdtemp(prefix="fourth.", dir=os.environ.get("TMPDIR"))
    for i in range(n):
        Image.fromarray(numpy.random.randint(0, 256, (side, side, 3), dtype=numpy.uint8)).save(f"{folder}/{i:04d}.png")
    return folder


def faces_made(batch=4):
    """stylegan2-pytorch: its trainer; two optimizers, accumulated, a penalty of gradients, averaged weights."""
    from stylegan2_pytorch import Trainer
    folder = folder_of(160, 64)
    trainer = Trainer("x", folder, folder, folder, image_size=64, network_capacity=16, batch_size=batch,
                      gradient_accumulate_every=2, num_workers=0)
    trainer.set_data_src(folder)
    for _ in range(3):
        trainer.train()


def words_seen(batch=32):
    """python-doctr: CRNN reads words, its loss aligns them."""
    from doctr.models import recognition
    model = recognition.crnn_vgg16_bn(pretrained=False, pretrained_backbone=False, vocab="abcdefghijklmnopqrstuvwxyz")
    model.cuda().train()
    words = ["".join(chr(97 + int(c)) for c in torch.randint(0, 26, (int(torch.randint(3, 12, ())),))) for _ in range(batch)]
    learn(model, lambda: model(images(batch, 3, 32, 128), words)["loss"])


def cells_apart(batch=8):
    """cellpose: its loop trains its net to tell cells apart."""
    from cellpose import models, train
    seen = [numpy.random.rand(2, 256, 256).astype("float32") for _ in range(160)]
    flows = [numpy.random.rand(4, 256, 256).astype("float32") for _ in range(160)]
    until(5)
    train.train_seg(models.CellposeModel(gpu=True, pretrained_model=None).net, train_data=seen, train_labels=flows,
                    batch_size=batch, n_epochs=1, normalize=False, channel_axis=0, min_train_masks=0, compute_flows=False,
                    save_path=tempfile.mkdtemp(prefix="fourth."))


def near_points(batch=4):
    """point-transformer-pytorch: points attend to their neighbours."""
    from point_transformer_pytorch import PointTransformerLayer

    class Layers(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(3, 64)
            self.layers = torch.nn.ModuleList(
                PointTransformerLayer(dim=64, pos_mlp_hidden_dim=64, attn_mlp_hidden_mult=4, num_neighbors=16) for _ in range(3))
            self.last = torch.nn.Linear(64, 13)

        def forward(self, where):
            x = self.first(where)
            for layer in self.layers:
                x = x + layer(x, where)
            return self.last(x)

    model = Layers().cuda()
    learn(model, lambda: F.cross_entropy(model(images(batch, 1024, 3)).transpose(1, 2), classes(13, batch, 1024)))


def latents(batch=8):
    """perceiver-pytorch: few latents look at all pixels, again and again."""
    from perceiver_pytorch import Perceiver
    model = Perceiver(input_channels=3, input_axis=2, num_freq_bands=6, max_freq=10., depth=3, num_latents=128, latent_dim=256,
                      cross_heads=1, latent_heads=8, num_classes=100, self_per_cross_attn=2).cuda()
    learn(model, lambda: F.cross_entropy(model(images(batch, 96, 96, 3)), classes(100, batch)))


def straight(batch=8):
    """rectified-flow-pytorch: its trainer straightens flows; averaged weights, accelerate."""
    from rectified_flow_pytorch import ImageDataset, RectifiedFlow, Trainer, Unet
    folder = folder_of(320, 64)
    flow = RectifiedFlow(Unet(dim=64, dim_mults=(1, 2, 4)))
    until(4)
    Trainer(flow, dataset=ImageDataset(folder, image_size=64), num_train_steps=1000, batch_size=batch,
            results_folder=folder + "/r", checkpoints_folder=folder + "/c")()


def eight_bits(batch=32):
    """brevitas: weights and activations of few bits while it learns."""
    from brevitas import nn as q

    def block(i, o, stride):
        return torch.nn.Sequential(
            q.QuantConv2d(i, i, 3, stride=stride, padding=1, groups=i, bias=False, weight_bit_width=4), torch.nn.BatchNorm2d(i),
            q.QuantReLU(bit_width=4), q.QuantConv2d(i, o, 1, bias=False, weight_bit_width=4), torch.nn.BatchNorm2d(o),
            q.QuantReLU(bit_width=4))

    model = torch.nn.Sequential(
        q.QuantConv2d(3, 32, 3, stride=2, padding=1, bias=False, weight_bit_width=8), torch.nn.BatchNorm2d(32),
        q.QuantReLU(bit_width=4), block(32, 64, 1), block(64, 128, 2), block(128, 128, 1), block(128, 256, 2), block(256, 512, 2),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), q.QuantLinear(512, 100, bias=True, weight_bit_width=8)).cuda()
    learn(model, lambda: F.cross_entropy(model(images(batch, 3, 128, 128)), classes(100, batch)))


def by_runner(batch=32):
    """mmengine: its runner, its wrapper for mixed precision, gradients of two batches."""
    import torchvision
    from mmengine.evaluator import BaseMetric
    from mmengine.model import BaseModel
    from mmengine.runner import Runner

    class Net(BaseModel):
        def __init__(self):
            super().__init__()
            self.net = torchvision.models.resnet50()

        def forward(self, seen, labels, mode):
            x = self.net(seen)
            return {"loss": F.cross_entropy(x, labels)} if mode == "loss" else (x, labels)

    class Right(BaseMetric):
        def process(self, data_batch, data_samples):
            score, label = data_samples
            self.results.append({"n": len(label), "right": (score.argmax(1) == label).sum().cpu()})

        def compute_metrics(self, results):
            return dict(right=sum(int(r["right"]) for r in results))

    def loader(n, shuffle):
        seen = torch.utils.data.TensorDataset(torch.rand(n, 3, 96, 96), torch.randint(0, 1000, (n,)))
        return torch.utils.data.DataLoader(seen, batch, shuffle=shuffle)
    until(3)
    Runner(Net(), tempfile.mkdtemp(prefix="fourth."), train_dataloader=loader(1024, True), val_dataloader=loader(256, False),
           optim_wrapper=dict(type="AmpOptimWrapper", optimizer=dict(type="SGD", lr=0.1, momentum=0.9), accumulative_counts=2),
           train_cfg=dict(by_epoch=False, max_iters=100, val_interval=4), val_cfg=dict(), val_evaluator=dict(type=Right)).train()


if __name__ == "__main__":
    main({f.__name__: f for f in (faces_made, words_seen, cells_apart, near_points, latents, straight, eight_bits, by_runner)})
