# SPDX-License-Identifier: Apache-2.0
"""The nets of mmsegmentation's tables, written anew: FCN, PSPNet and DeepLabV3 on dilated ResNets (a stem of
three convolutions, an auxiliary head), and U-Nets; one training as its tables' runs did it: SGD with momentum,
gradients kept between the steps, buckets of data-parallel training, and log_softmax of the PyTorch of 2020, which
kept its input."""
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision


def block(i, o, kernel=3, stride=1, dilation=1):
    return nn.Sequential(nn.Conv2d(i, o, kernel, stride, (kernel // 2) * dilation, dilation, bias=False),
                         nn.BatchNorm2d(o), nn.ReLU(inplace=True))


def grown(x, like):
    return F.interpolate(x, like.shape[2:], mode="bilinear")


def resnet(depth, deep):
    """Output stride 8: the last two stages are dilated instead. deep: a stem of three convolutions."""
    if depth != 18:
        net = getattr(torchvision.models, f"resnet{depth}")(replace_stride_with_dilation=[False, True, True])
    else:
        net = torchvision.models.resnet18()
        for stage, dilation in ((net.layer3, 2), (net.layer4, 4)):
            for b in stage:
                b.conv1.stride, b.conv1.dilation, b.conv1.padding = (1, 1), (dilation,) * 2, (dilation,) * 2
                if b.downsample is not None:
                    b.downsample[0].stride = (1, 1)
    net.fc = nn.Identity()
    if deep:
        net.conv1 = nn.Sequential(block(3, 32, stride=2), block(32, 32),
                                  nn.Conv2d(32, 64, 3, 1, 1, bias=False))
    return net


class Pyramid(nn.ModuleList):
    def __init__(self, i, o):
        super().__init__(nn.Sequential(nn.AdaptiveAvgPool2d(k), block(i, o, 1)) for k in (1, 2, 3, 6))

    def forward(self, x):
        return torch.cat([x] + [grown(p(x), x) for p in self], 1)


class Atrous(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.whole = nn.Sequential(nn.AdaptiveAvgPool2d(1), block(i, o, 1))
        self.parts = nn.ModuleList(block(i, o, 1 if d == 1 else 3, 1, d) for d in (1, 12, 24, 36))

    def forward(self, x):
        return torch.cat([grown(self.whole(x), x)] + [p(x) for p in self.parts], 1)


class Twice(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.convs = nn.Sequential(block(i, o), block(o, o))

    def forward(self, x):
        return torch.cat([x, self.convs(x)], 1)


def classes_of(i, classes):
    return nn.Sequential(nn.Dropout2d(0.1), nn.Conv2d(i, classes, 1))


class Dilated(nn.Module):
    def __init__(self, kind, depth, classes):
        super().__init__()
        layers = int(depth.rstrip("b"))
        last, inner, wide, aux = (512, 256, 128, 64) if layers == 18 else (2048, 1024, 512, 256)
        made = {"fcn": (Twice, last + wide), "psp": (Pyramid, last + 4 * wide), "aspp": (Atrous, 5 * wide)}
        head, width = made[kind]
        self.body = resnet(layers, not depth.endswith("b"))
        self.head = nn.Sequential(head(last, wide), block(width, wide), classes_of(wide, classes))
        self.aux = nn.Sequential(block(inner, aux), classes_of(aux, classes))

    def forward(self, x):
        b = self.body
        x = b.layer2(b.layer1(b.maxpool(b.relu(b.bn1(b.conv1(x))))))
        inner = b.layer3(x)
        return self.head(b.layer4(inner)), self.aux(inner)


def pair(i, o):
    return nn.Sequential(block(i, o), block(o, o))


class UNet(nn.Module):
    def __init__(self, kind, _, classes):
        super().__init__()
        c = [64, 128, 256, 512, 1024]
        self.down = nn.ModuleList(pair(c[i - 1] if i else 3, c[i]) for i in range(5))
        self.up = nn.ModuleList(block(c[i + 1], c[i], 1) for i in range(4))
        self.join = nn.ModuleList(pair(2 * c[i], c[i]) for i in range(4))
        head = block(64, 64) if kind == "unet-fcn" else nn.Sequential(Pyramid(64, 16), block(128, 16))
        self.head = nn.Sequential(head, classes_of(64 if kind == "unet-fcn" else 16, classes))
        self.aux = nn.Sequential(block(128, 64), classes_of(64, classes))

    def forward(self, x):
        seen, inner = [], None
        for i, stage in enumerate(self.down):
            x = stage(F.max_pool2d(x, 2) if i else x)
            seen.append(x)
        for i in (3, 2, 1, 0):
            x = F.interpolate(x, scale_factor=2, mode="bilinear")
            x = self.join[i](torch.cat([seen[i], self.up[i](x)], 1))
            inner = x if i == 1 else inner
        return self.head(x), self.aux(inner)


class OldLogSoftmax(torch.autograd.Function):
    """Keeps its input too, as PyTorch did before 1.11 (pytorch/pytorch#65242)."""
    @staticmethod
    def forward(ctx, x):
        y = torch.log_softmax(x, 1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return torch._log_softmax_backward_data(grad, y, 1, x.dtype)


def halved(net):
    """As mmcv did it in 2020: half weights, but batch norm's; the optimizer has copies of its own."""
    net.half()
    for m in net.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.float()
    return [torch.zeros(p.shape, device="cuda", requires_grad=True) for p in net.parameters()]


def exchange(net, weights):
    """A step of the optimizer's own weights: gradients there, weights back."""
    for p, own in zip(net.parameters(), weights):
        if own.grad is None:
            own.grad = torch.empty_like(own)
        own.grad.copy_(p.grad)
    yield
    with torch.no_grad():
        for p, own in zip(net.parameters(), weights):
            p.copy_(own)


def train(kind, depth, height, width, batch, classes):
    """max_memory_allocated of three steps, in GiB."""
    kind, half = kind.replace("-fp16", ""), kind.endswith("-fp16")
    net = (UNet if kind.startswith("unet") else Dilated)(kind, depth, classes).cuda().train()
    weights = halved(net) if half else list(net.parameters())
    step = torch.optim.SGD(weights, lr=0.01, momentum=0.9, weight_decay=5e-4)
    buckets = torch.empty(sum(p.numel() for p in weights), device="cuda",
                          dtype=torch.float16 if half else torch.float32)
    for _ in range(3):
        x = torch.zeros(batch, 3, height, width).cuda()
        labels = torch.zeros(batch, height, width, dtype=torch.int64).cuda()
        loss = 0
        for scores in net(x.half() if half else x):
            scores = grown(scores.float(), x)
            loss = loss + F.nll_loss(OldLogSoftmax.apply(scores), labels, reduction="none").mean()
        net.zero_grad(set_to_none=False)
        step.zero_grad(set_to_none=False)
        loss.backward()
        moved = exchange(net, weights) if half else iter(())
        next(moved, None)
        step.step()
        next(moved, None)
    del buckets
    return torch.cuda.max_memory_allocated() / 2 ** 30
