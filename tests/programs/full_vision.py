# SPDX-License-Identifier: Apache-2.0
"""Models of pictures and films at the size at which people train them: --model NAME."""
import copy
import math

import torch
import torch.nn.functional as F
import torchvision
import transformers as t
from torch import nn

from fullsize import CARD, cast, classes, filled, images, lengths, main, optimizer, script, trainer


def vision(name, **own):
    with CARD:
        return torchvision.models.get_model(name, weights=None, **own)


def made(family, head, recompute=False, **own):
    with CARD:
        model = getattr(t, family + head)(getattr(t, family + "Config")(**own))
    if recompute:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model


def labelled(side, k=1000):
    return lambda n: (images(n, 3, side, side), classes(k, n))


def classify(model, smoothing=0.0):
    """Loss and scores of a batch of pictures with labels."""
    def out_of(batch):
        y = model(batch[0])
        y = y if isinstance(y, torch.Tensor) else y.logits
        return F.cross_entropy(y, batch[1], label_smoothing=smoothing), y
    return out_of


def resnet50(batch=64, side=224):
    model = vision("resnet50").to(memory_format=torch.channels_last)

    def load(n):
        return images(n, 3, side, side).contiguous(memory_format=torch.channels_last), classes(1000, n)
    script(model, classify(model), load, batch, opt="sgd", rate=0.1, amp="fp16", tests=2 * batch, more=2)


def resnet152(batch=32):
    model = vision("resnet152")
    script(model, classify(model), labelled(224), batch, opt="sgd", rate=0.1, tests=batch)


def vit_base(batch=32):
    model = vision("vit_b_16")
    script(model, classify(model, 0.1), labelled(224), batch, opt="adamw+", amp="bf16", clip=1.0, tests=2 * batch)


def vit_large(batch=16):
    model = made("ViT", "ForImageClassification", recompute=True, hidden_size=1024, num_hidden_layers=24,
                 num_attention_heads=16, intermediate_size=4096, num_labels=1000)
    trainer(model, classify(model), labelled(224), batch, opt="fused", amp="fp16", accumulate=2, tests=2 * batch)


def deit(batch=64):
    """A small transformer that learns from a frozen RegNet."""
    import timm
    teacher = vision("regnet_y_16gf").eval().requires_grad_(False)
    with CARD:
        model = timm.create_model("deit_small_distilled_patch16_224", num_classes=1000, drop_path_rate=0.1)
    model.set_distilled_training(True)

    def loss_of(b):
        x, y = b
        with torch.no_grad():
            told = teacher(x).argmax(1)
        a, d = model(x)
        return 0.5 * F.cross_entropy(a, y, label_smoothing=0.1) + 0.5 * F.cross_entropy(d, told)
    script(model, loss_of, labelled(224), batch, amp="fp16", average=True)


def beit(batch=32):
    """Words of pictures that were covered."""
    model = made("Beit", "ForMaskedImageModeling", use_mask_token=True, vocab_size=8192)

    def covered(n):
        mask = torch.zeros(n, 196, dtype=torch.bool)
        for row in mask:
            row[torch.randperm(196)[:75]] = True
        return dict(pixel_values=images(n, 3, 224, 224), bool_masked_pos=mask.to(CARD), labels=classes(8192, n * 75))
    script(model, lambda b: model(**b), covered, batch, amp="fp16", clip=3.0)


def swin_base(batch=16):
    model = vision("swin_b")
    script(model, classify(model, 0.1), labelled(224), batch, opt="adamw+", amp="bf16", clip=5.0, average=True)


def convnext_base(batch=16):
    model = vision("convnext_base")
    script(model, classify(model, 0.1), labelled(224), batch, opt="adamw+", average=True, tests=2 * batch)


def efficientnet(side=380, batch=16):
    model = vision("efficientnet_b4")
    script(model, classify(model), labelled(side), batch, opt="rmsprop", rate=1e-3, amp="bf16", average=True)


def regnet(batch=32):
    model = vision("regnet_y_8gf")
    script(model, classify(model), labelled(224), batch, opt="sgd", rate=0.1, amp="fp16", tests=4 * batch)


def densenet(batch=32):
    model = vision("densenet201")
    script(model, classify(model), labelled(224), batch, opt="sgd", rate=0.1)


def mobilenet(batch=128):
    model = vision("mobilenet_v3_large")
    script(model, classify(model), labelled(224), batch, opt="rmsprop", rate=1e-2, tests=2 * batch)


def vgg(batch=32):
    model = vision("vgg16_bn", num_classes=100)
    script(model, classify(model), labelled(224, 100), batch, opt="sgd", rate=1e-2, tests=batch)


def inception(batch=32):
    with CARD:
        model = torchvision.models.inception_v3(weights=None, init_weights=False)

    def loss_of(b):
        y = model(b[0])
        if not model.training:
            return F.cross_entropy(y, b[1])
        return F.cross_entropy(y.logits, b[1]) + 0.4 * F.cross_entropy(y.aux_logits, b[1])
    script(model, loss_of, labelled(299), batch, opt="sgd", rate=0.05, tests=2 * batch)


def frozen(batch=64):
    """A linear head and the last two layers of a large transformer; the others are frozen."""
    model = made("Dinov2", "ForImageClassification", hidden_size=1024, num_hidden_layers=24, num_attention_heads=16,
                 num_labels=200)
    model.requires_grad_(False)
    for part in (*model.dinov2.encoder.layer[-2:], model.classifier):
        part.requires_grad_(True)
    trainer(model, classify(model), labelled(224, 200), batch, amp="fp16", tests=2 * batch)


def segmented(side, k, key="out"):
    def load(n):
        return images(n, 3, side, side), classes(k, n, side, side)
    return load


def pixels(model):
    def out_of(b):
        y = model(b[0])
        loss = F.cross_entropy(y["out"], b[1])
        return loss + 0.5 * F.cross_entropy(y["aux"], b[1]) if "aux" in y else loss
    return out_of


def deeplab(side=513, batch=8):
    model = vision("deeplabv3_resnet101", weights_backbone=None, num_classes=21, aux_loss=True)
    script(model, pixels(model), segmented(side, 21), batch, opt="sgd", rate=0.01, tests=batch)


def fcn(batch=4, side=480):
    model = vision("fcn_resnet50", weights_backbone=None, num_classes=21, aux_loss=True)
    script(model, pixels(model), segmented(side, 21), batch, opt="sgd", rate=0.01, amp="fp16", tests=1, test_steps=4)


def segformer(batch=4, side=512):
    model = made("Segformer", "ForSemanticSegmentation", depths=[3, 4, 6, 3], hidden_sizes=[64, 128, 320, 512],
                 decoder_hidden_size=768, num_labels=150)
    trainer(model, lambda b: model(pixel_values=b[0], labels=b[1]), segmented(side, 150), batch, opt="adamw+",
            tests=batch, gather=False)


class Twice(nn.Sequential):
    def __init__(self, i, o, flat=True):
        conv, norm = (nn.Conv2d, nn.BatchNorm2d) if flat else (nn.Conv3d, nn.InstanceNorm3d)
        super().__init__(*(m for a in (i, o) for m in (conv(a, o, 3, padding=1, bias=False), norm(o),
                                                       nn.ReLU(inplace=True))))


class Unet(nn.Module):
    """The U-Net that everybody trains first; flat or in three dimensions."""

    def __init__(self, i, k, width=64, depth=4, flat=True):
        super().__init__()
        self.pool, up = (nn.MaxPool2d(2), nn.ConvTranspose2d) if flat else (nn.MaxPool3d(2), nn.ConvTranspose3d)
        w = [width << d for d in range(depth + 1)]
        self.first = Twice(i, w[0], flat)
        self.downs = nn.ModuleList(Twice(a, b, flat) for a, b in zip(w, w[1:]))
        self.ups = nn.ModuleList(up(b, a, 2, 2) for a, b in reversed(list(zip(w, w[1:]))))
        self.twice = nn.ModuleList(Twice(b, a, flat) for a, b in reversed(list(zip(w, w[1:]))))
        self.out = (nn.Conv2d if flat else nn.Conv3d)(w[0], k, 1)

    def forward(self, x):
        kept = [self.first(x)]
        for down in self.downs:
            kept.append(down(self.pool(kept[-1])))
        x = kept.pop()
        for up, twice in zip(self.ups, self.twice):
            x = twice(torch.cat([kept.pop(), up(x)], 1))
        return self.out(x)


def dice(y, k, target):
    one = F.one_hot(target, k).movedim(-1, 1).float()
    p = y.softmax(1).float()
    axes = tuple(range(2, y.ndim))
    return 1 - (2 * (p * one).sum(axes) / ((p + one).sum(axes) + 1e-6)).mean()


def unet_photos(batch=2, side=512):
    with CARD:
        model = Unet(3, 2)

    def loss_of(b):
        y = model(b[0])
        return F.cross_entropy(y, b[1]) + dice(y, 2, b[1]), y
    script(model, loss_of, segmented(side, 2), batch, opt="rmsprop", rate=1e-5, amp="fp16", clip=1.0, tests=batch)


def unet_volume(side=96, batch=2):
    """Medical volumes, cut out in cubes."""
    with CARD:
        model = Unet(4, 4, 32, 4, flat=False)

    def loss_of(b):
        y = model(b[0])
        return F.cross_entropy(y, b[1]) + dice(y, 4, b[1])
    script(model, loss_of, lambda n: (images(n, 4, side, side, side), classes(4, n, side, side, side)), batch,
           amp="fp16", tests=1)


class Detr(nn.Module):
    """ResNet-50 and a transformer that asks a hundred questions."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(*list(torchvision.models.resnet50(norm_layer=torchvision.ops.FrozenBatchNorm2d)
                                        .children())[:-2])
        self.thin, self.core = nn.Conv2d(2048, 256, 1), nn.Transformer(256, 8, 6, 6, 2048, batch_first=True)
        self.asked, self.kind, self.box = nn.Embedding(100, 256), nn.Linear(256, 92), nn.Linear(256, 4)
        self.row, self.column = nn.Embedding(64, 128), nn.Embedding(64, 128)

    def forward(self, x):
        h = self.thin(self.body(x))
        n, _, r, c = h.shape
        places = torch.cat([self.column.weight[:c][None].expand(r, -1, -1), self.row.weight[:r][:, None]
                            .expand(-1, c, -1)], -1).flatten(0, 1)
        y = self.core(h.flatten(2).transpose(1, 2) + places, self.asked.weight[None].expand(n, -1, -1))
        return self.kind(y), self.box(y).sigmoid()


def photographs(n, short, most):
    """Height and width of photographs: the shorter side as asked, but none longer than most."""
    out = []
    for ratio, upright in zip((torch.randn(n) * 0.15 + 1.4).clamp(1, 2).tolist(), torch.rand(n).tolist()):
        s = min(short, round(most / ratio))
        out.append((round(s * ratio), s) if upright < 0.25 else (s, round(s * ratio)))
    return out


def detr(batch=2):
    """Batches are padded to the tallest and the widest picture; boxes are matched."""
    with CARD:
        model = Detr()

    def load(n):
        sides = photographs(n, 32 * int(torch.randint(15, 26, (1,))), 1333)
        boxes = lengths(n, 7, 60, 1, 0.8)
        return images(n, 3, max(h for h, _ in sides), max(w for _, w in sides)), boxes

    def loss_of(b):
        kind, box = model(b[0])
        rows = torch.cat([torch.full((k,), i) for i, k in enumerate(b[1])]).to(CARD)
        asked = torch.cat([torch.randperm(100)[:k] for k in b[1]]).to(CARD)
        want = torch.full(kind.shape[:2], 91, device=CARD)
        want[rows, asked] = classes(91, len(rows))
        to = torch.rand(len(rows), 4, device=CARD)
        near = torchvision.ops.generalized_box_iou_loss(box[rows, asked], to, reduction="mean")
        return F.cross_entropy(kind.transpose(1, 2), want) + 5 * F.l1_loss(box[rows, asked], to) + 2 * near
    script(model, loss_of, load, batch, steps=12, clip=0.1, opt="adamw")


def boxes_of(n, h, w):
    corner = torch.rand(n, 2) * torch.tensor([w * 0.7, h * 0.7])
    return torch.cat([corner, corner + 10 + torch.rand(n, 2) * torch.tensor([w * 0.25, h * 0.25])], 1)


def detector(model, batch, steps, masks=False):
    """Photographs of any size with some boxes each, as torchvision's reference trains its detectors."""
    def load(n):
        pictures, targets = [], []
        for (h, w), k in zip(photographs(n, 480, 640), lengths(n, 7, 60, 1, 0.8)):
            pictures.append(images(3, h, w))
            targets.append(dict(boxes=boxes_of(k, h, w).to(CARD), labels=classes(90, k) + 1))
            if masks:
                targets[-1]["masks"] = torch.zeros(k, h, w, dtype=torch.uint8).to(CARD)
        return pictures, targets
    script(model, lambda b: sum(model(*b).values()), load, batch, steps=steps, opt="sgd", rate=0.02)


def mask_rcnn(batch=2):
    model = vision("maskrcnn_resnet50_fpn", weights_backbone=None, num_classes=91)
    detector(model, batch, 10, masks=True)


def retinanet(batch=2):
    model = vision("retinanet_resnet50_fpn", weights_backbone=None, num_classes=91)
    detector(model, batch, 10)


class Conv(nn.Sequential):
    def __init__(self, i, o, k=3, s=1):
        super().__init__(nn.Conv2d(i, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o), nn.SiLU(inplace=True))


class Split(nn.Module):
    """The block of the YOLO family: half of the channels go through a row of residual blocks."""

    def __init__(self, i, o, turns, add=True):
        super().__init__()
        self.first, self.last, self.add = Conv(i, o, 1), Conv(o // 2 * (turns + 2), o, 1), add
        self.turns = nn.ModuleList(nn.Sequential(Conv(o // 2, o // 2), Conv(o // 2, o // 2)) for _ in range(turns))

    def forward(self, x):
        y = list(self.first(x).chunk(2, 1))
        for turn in self.turns:
            y.append(y[-1] + turn(y[-1]) if self.add else turn(y[-1]))
        return self.last(torch.cat(y, 1))


class Yolo(nn.Module):
    """A detector in one look, of medium size."""

    def __init__(self, w=48, k=80):
        super().__init__()
        self.stem = Conv(3, w, 3, 2)
        self.stages = nn.ModuleList(nn.Sequential(Conv(w << i, w << i + 1, 3, 2), Split(w << i + 1, w << i + 1, d))
                                    for i, d in enumerate((2, 4, 4, 2)))
        a, b, c = w << 2, w << 3, w << 4
        self.up1, self.up2 = Split(b + c, b, 2, False), Split(a + b, a, 2, False)
        self.down1, self.down2 = Conv(a, a, 3, 2), Conv(b, b, 3, 2)
        self.mix1, self.mix2 = Split(a + b, b, 2, False), Split(b + c, c, 2, False)
        self.heads = nn.ModuleList(nn.Sequential(Conv(i, i), Conv(i, i), nn.Conv2d(i, 64 + k, 1)) for i in (a, b, c))

    def forward(self, x):
        kept = []
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
            kept.append(x)
        _, a, b, c = kept
        b = self.up1(torch.cat([F.interpolate(c, scale_factor=2), b], 1))
        a = self.up2(torch.cat([F.interpolate(b, scale_factor=2), a], 1))
        b = self.mix1(torch.cat([self.down1(a), b], 1))
        c = self.mix2(torch.cat([self.down2(b), c], 1))
        return [head(y) for head, y in zip(self.heads, (a, b, c))]


def yolo(batch=8):
    """Each batch has another side, up to half larger or smaller than 640, and so many boxes."""
    with CARD:
        model = Yolo()

    def load(n):
        side = 32 * int(torch.randint(10, 31, (1,)))
        return F.interpolate(images(n, 3, 640, 640), (side, side), mode="bilinear"), sum(lengths(n, 7, 80, 1, 0.9))

    def loss_of(b):
        x, boxes = b
        y = torch.cat([z.flatten(2) for z in model(x)], 2)
        places, kinds = y.transpose(1, 2).split((64, 80), 2)
        near = torch.randint(0, y.shape[2], (boxes * 10,)).to(CARD)
        rows = torch.randint(0, y.shape[0], (boxes * 10,)).to(CARD)
        want = torch.zeros_like(kinds)
        want[rows, near, classes(80, boxes * 10)] = 1.0
        parts = places[rows, near].view(-1, 16)
        return F.binary_cross_entropy_with_logits(kinds, want) + F.cross_entropy(parts, classes(16, parts.shape[0]))
    script(model, loss_of, load, batch, steps=14, opt="sgd", rate=0.01, amp="fp16", clip=10.0, average=True)


def pose(batch=32):
    """Heat maps of 17 joints."""
    with CARD:
        body = nn.Sequential(*list(torchvision.models.resnet50().children())[:-2])
        ups = [m for i in (2048, 256, 256) for m in (nn.ConvTranspose2d(i, 256, 4, 2, 1, bias=False),
                                                     nn.BatchNorm2d(256), nn.ReLU(inplace=True))]
        model = nn.Sequential(body, *ups, nn.Conv2d(256, 17, 1))
    script(model, lambda b: F.mse_loss(model(b[0]), b[1]), lambda n: (images(n, 3, 256, 192), images(n, 17, 64, 48)),
           batch, opt="adam", tests=batch)


def faces(batch=64):
    """Recognition of faces: an angle is added, and there are 85742 people."""
    with CARD:
        body = torchvision.models.resnet101(num_classes=512)
        people = nn.Parameter(torch.randn(85742, 512) * 0.01)
    both = nn.ModuleList([body])
    both.register_parameter("people", people)

    def loss_of(b):
        like = F.linear(F.normalize(body(b[0])), F.normalize(people)).float()
        angle = like.clamp(-0.999, 0.999).acos()
        hit = torch.zeros_like(like).scatter_(1, b[1][:, None], 1.0)
        return F.cross_entropy(64.0 * torch.where(hit > 0, (angle + 0.5).cos(), like), b[1])
    script(both, loss_of, labelled(112, 85742), batch, opt="sgd", rate=0.1, amp="fp16", clip=5.0)


def simclr(batch=64):
    with CARD:
        model = torchvision.models.resnet50()
        model.fc = nn.Sequential(nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 128))

    def loss_of(b):
        z = F.normalize(model(torch.cat(b)))
        like = (z @ z.T / 0.1).fill_diagonal_(-1e4)
        n = len(z) // 2
        return F.cross_entropy(like, (torch.arange(2 * n, device=CARD) + n) % (2 * n))
    script(model, loss_of, lambda n: [images(n, 3, 224, 224) for _ in "ab"], batch, opt="sgd", rate=0.3, amp="fp16")


def moco_resnet(batch=64):
    with CARD:
        model = torchvision.models.resnet50(num_classes=128)
        queue = F.normalize(torch.randn(128, 65536), dim=0)
    slow = copy.deepcopy(model).requires_grad_(False)

    def loss_of(b):
        q = F.normalize(model(b[0]))
        with torch.no_grad():
            for s, w in zip(slow.parameters(), model.parameters()):
                s.data = s.data * 0.999 + w.data * 0.001
            k = F.normalize(slow(b[1][torch.randperm(len(q), device=CARD)]))
        scores = torch.cat([(q * k).sum(1, keepdim=True), q @ queue.clone().detach()], 1) / 0.2
        queue[:, :len(k)] = k.T
        return F.cross_entropy(scores, torch.zeros(len(q), dtype=torch.long, device=CARD)), scores
    script(model, loss_of, lambda n: [images(n, 3, 224, 224) for _ in "qk"], batch, opt="sgd", rate=0.03)


def dino(batch=16):
    """Two large and six small crops; the teacher follows the student."""
    import timm
    with CARD:
        student = timm.create_model("vit_small_patch16_224", num_classes=0, dynamic_img_size=True)
        head = nn.Sequential(nn.Linear(384, 2048), nn.GELU(), nn.Linear(2048, 256), nn.Linear(256, 65536))
        centre = torch.zeros(65536)
    teacher = copy.deepcopy(nn.Sequential(student, head)).requires_grad_(False)
    model = nn.Sequential(student, head)

    def loss_of(b):
        large, small = b
        with torch.no_grad():
            told = ((teacher(torch.cat(large)) - centre) / 0.04).softmax(-1).chunk(2)
        said = [y.log_softmax(-1) for y in head(torch.cat([student(torch.cat(large)), student(torch.cat(small))]))
                .div(0.1).chunk(8)]
        parts = [-(p * s).sum(-1).mean() for i, p in enumerate(told) for j, s in enumerate(said) if i != j]
        return sum(parts) / len(parts)

    @torch.no_grad()
    def follow():
        for s, w in zip(teacher.parameters(), model.parameters()):
            s.mul_(0.996).add_(w.detach(), alpha=0.004)
    script(model, loss_of, lambda n: ([images(n, 3, 224, 224) for _ in "12"], [images(n, 3, 96, 96) for _ in "123456"]),
           batch, amp="fp16", clip=3.0, after=follow)


def mae(batch=64):
    model = made("ViTMAE", "ForPreTraining")
    trainer(model, lambda b: model(pixel_values=b), lambda n: images(n, 3, 224, 224), batch, opt="adamw+", amp="bf16")


def clip_base(batch=64):
    model = made("CLIP", "Model")

    def pairs(n):
        return dict(filled(n, 14, 77, 49000), pixel_values=images(n, 3, 224, 224), return_loss=True)
    script(model, lambda b: model(**b), pairs, batch, opt="adamw+", amp="fp16", clip=1.0)


def siglip(batch=32):
    model = made("Siglip", "Model")

    def loss_of(b):
        like = model(**b).logits_per_text
        return -F.logsigmoid(like * (2 * torch.eye(len(like), device=CARD) - 1)).sum(-1).mean()
    script(model, loss_of, lambda n: dict(input_ids=classes(30000, n, 64), pixel_values=images(n, 3, 224, 224)), batch,
           amp="bf16")


def blip(batch=8):
    """Captions of pictures."""
    model = made("Blip", "ForConditionalGeneration")

    def pairs(n):
        b = filled(n, 14, 32)
        return dict(b, pixel_values=images(n, 3, 384, 384), labels=b["input_ids"])
    trainer(model, lambda b: model(**b), pairs, batch, amp="fp16", rate=1e-5)


def depth(batch=4):
    """Distances from one picture; the loss does not ask for the scale."""
    model = made("DPT", "ForDepthEstimation")

    def loss_of(b):
        y = model(pixel_values=b[0]).predicted_depth
        d = (y.clamp(min=1e-3).log() - b[1].clamp(min=1e-3).log()).flatten(1)
        return ((d ** 2).mean(1) - 0.85 * d.mean(1) ** 2).mean()
    script(model, loss_of, lambda n: (images(n, 3, 384, 384), images(n, 384, 384)), batch, amp="bf16", tests=batch)


def raft(batch=2):
    model = vision("raft_large")

    def loss_of(b):
        flows = model(b[0], b[1], num_flow_updates=12)
        return sum(0.8 ** (11 - i) * (f - b[2]).abs().mean() for i, f in enumerate(flows))
    script(model, loss_of, lambda n: (images(n, 3, 368, 496), images(n, 3, 368, 496), images(n, 2, 368, 496)), batch,
           amp="fp16", clip=1.0)


def films(frames, side, k=400):
    return lambda n: dict(pixel_values=images(n, frames, 3, side, side), labels=classes(k, n))


def videomae(batch=4):
    model = made("VideoMAE", "ForVideoClassification", num_labels=400)
    trainer(model, lambda b: model(**b), films(16, 224), batch, opt="adamw+", amp="fp16", tests=batch)


def timesformer(frames=8, batch=4):
    model = made("Timesformer", "ForVideoClassification", num_frames=frames, num_labels=400)
    trainer(model, lambda b: model(**b), films(frames, 224), batch, opt="sgd", amp="bf16", accumulate=2)


def film18(batch=8):
    with CARD:
        model = torchvision.models.video.r3d_18(num_classes=400)
    script(model, classify(model), lambda n: (images(n, 3, 16, 112, 112), classes(400, n)), batch, opt="sgd", rate=0.01,
           tests=2 * batch)


def films_swin(frames=16, batch=4):
    with CARD:
        model = torchvision.models.video.swin3d_t(num_classes=400)
    script(model, classify(model), lambda n: (images(n, 3, frames, 224, 224), classes(400, n)), batch, amp="fp16")


class Residual(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.a, self.b = nn.Conv2d(w, w, 3, padding=1), nn.Conv2d(w, w, 3, padding=1)

    def forward(self, x):
        return x + 0.1 * self.b(F.relu(self.a(x)))


def edsr(batch=8, side=48):
    """Pictures made four times as large; tests are of whole pictures."""
    with CARD:
        body = nn.Sequential(*(Residual(256) for _ in range(32)))
        ups = [m for _ in "ab" for m in (nn.Conv2d(256, 1024, 3, padding=1), nn.PixelShuffle(2))]
        model = nn.Sequential(nn.Conv2d(3, 256, 3, padding=1), body, *ups, nn.Conv2d(256, 3, 3, padding=1))
    opt = optimizer(model, "adam")

    def pairs(n):
        return images(n, 3, side, side), images(n, 3, 4 * side, 4 * side)

    def whole(n):
        return images(n, 3, 180, 270), images(n, 3, 720, 1080)
    script(model, lambda b: F.l1_loss(model(b[0]), b[1]), pairs, batch, opt=opt)
    with torch.no_grad():
        for _ in range(2):
            x, y = whole(1)
            print(F.mse_loss(model(x), y).item())
    script(model, lambda b: F.l1_loss(model(b[0]), b[1]), pairs, batch, opt=opt, steps=2)


def swin2sr(batch=2):
    model = made("Swin2SR", "ForImageSuperResolution", embed_dim=180, depths=[6] * 6, num_heads=[6] * 6, upscale=2,
                 image_size=64)
    script(model, lambda b: F.l1_loss(model(pixel_values=b[0]).reconstruction, b[1]),
           lambda n: (images(n, 3, 64, 64), images(n, 3, 128, 128)), batch, opt="adam", amp="bf16", average=True)


def restore(side=128, batch=8):
    """Removes noise: a U-Net of blocks without activations."""
    class Plain(nn.Module):
        def __init__(self, w):
            super().__init__()
            self.norm, self.up, self.deep = nn.GroupNorm(1, w), nn.Conv2d(w, 2 * w, 1), nn.Conv2d(2 * w, 2 * w, 3, 1, 1,
                                                                                                  groups=2 * w)
            self.side, self.out = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(w, w, 1)), nn.Conv2d(w, w, 1)
            self.norm2, self.wide, self.thin = nn.GroupNorm(1, w), nn.Conv2d(w, 2 * w, 1), nn.Conv2d(w, w, 1)

        def forward(self, x):
            a, b = self.deep(self.up(self.norm(x))).chunk(2, 1)
            y = a * b
            x = x + self.out(y * self.side(y))
            a, b = self.wide(self.norm2(x)).chunk(2, 1)
            return x + self.thin(a * b)

    class Net(nn.Module):
        def __init__(self, w=32, depth=(2, 2, 4, 8)):
            super().__init__()
            self.first, self.last = nn.Conv2d(3, w, 3, 1, 1), nn.Conv2d(w, 3, 3, 1, 1)
            ws = [w << i for i in range(4)]
            self.enc = nn.ModuleList(nn.Sequential(*(Plain(v) for _ in range(d))) for v, d in zip(ws, depth))
            self.down = nn.ModuleList(nn.Conv2d(v, 2 * v, 2, 2) for v in ws)
            self.mid = nn.Sequential(*(Plain(w << 4) for _ in range(12)))
            self.up = nn.ModuleList(nn.Sequential(nn.Conv2d(2 * v, 4 * v, 1), nn.PixelShuffle(2)) for v in ws[::-1])
            self.dec = nn.ModuleList(nn.Sequential(Plain(v), Plain(v)) for v in ws[::-1])

        def forward(self, x):
            y, kept = self.first(x), []
            for enc, down in zip(self.enc, self.down):
                kept.append(enc(y))
                y = down(kept[-1])
            y = self.mid(y)
            for up, dec in zip(self.up, self.dec):
                y = dec(up(y) + kept.pop())
            return x + self.last(y)
    with CARD:
        model = Net()
    script(model, lambda b: -10 / math.log(10) * (F.mse_loss(model(b[0]), b[1]) + 1e-8).log().neg(),
           lambda n: [images(n, 3, side, side) for _ in "xy"], batch, clip=0.01)


if __name__ == "__main__":
    main(globals())
