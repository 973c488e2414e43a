# SPDX-License-Identifier: Apache-2.0
"""YOLOv5's nets as mmyolo's table trains them, written anew: mixed precision, SGD with momentum, a moving average of
the weights on the card, gradients kept between the steps; of the losses the one over all places."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZES = {"n": (0.33, 0.25), "s": (0.33, 0.5), "m": (0.67, 0.75), "l": (1.0, 1.0)}  # depth, width


class Conv(nn.Sequential):
    def __init__(self, i, o, kernel=1, stride=1, pad=None):
        super().__init__(nn.Conv2d(i, o, kernel, stride, kernel // 2 if pad is None else pad, bias=False),
                         nn.BatchNorm2d(o), nn.SiLU(inplace=True))


class Bottleneck(nn.Module):
    def __init__(self, c, add):
        super().__init__()
        self.add, self.convs = add, nn.Sequential(Conv(c, c), Conv(c, c, 3))

    def forward(self, x):
        return x + self.convs(x) if self.add else self.convs(x)


class Stage(nn.Module):
    def __init__(self, i, o, n, add=True):
        super().__init__()
        self.main, self.short, self.last = Conv(i, o // 2), Conv(i, o // 2), Conv(o, o)
        self.blocks = nn.Sequential(*(Bottleneck(o // 2, add) for _ in range(n)))

    def forward(self, x):
        return self.last(torch.cat([self.blocks(self.main(x)), self.short(x)], 1))


class Pool(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.first, self.last = Conv(c, c // 2), Conv(2 * c, c)

    def forward(self, x):
        x = [self.first(x)]
        for _ in range(3):
            x.append(F.max_pool2d(x[-1], 5, 1, 2))
        return self.last(torch.cat(x, 1))


class Yolo(nn.Module):
    def __init__(self, size, levels, classes):
        super().__init__()
        depth, width = SIZES[size]
        c = [64, 128, 256, 512, 1024] if levels == 5 else [64, 128, 256, 512, 768, 1024]
        c = [int(v * width + 7) // 8 * 8 for v in c]
        n = [max(round(v * depth), 1) for v in (3, 6, 9, 3, 3)]
        self.stem = Conv(3, c[0], 6, 2, 2)
        self.stages = nn.ModuleList(nn.Sequential(Conv(c[i], c[i + 1], 3, 2), Stage(c[i + 1], c[i + 1], n[i]))
                                    for i in range(levels - 1))
        self.pool = Pool(c[-1])
        f, few = c[2:], n[0]
        self.narrow = nn.ModuleList(Conv(f[i], f[i - 1]) for i in range(len(f) - 1, 0, -1))
        self.upward = nn.ModuleList(Stage(2 * f[i - 1], f[i - 1], few, False)
                                    for i in range(len(f) - 1, 0, -1))
        self.stride = nn.ModuleList(Conv(f[i], f[i], 3, 2) for i in range(len(f) - 1))
        self.downward = nn.ModuleList(Stage(2 * f[i], f[i + 1], few, False) for i in range(len(f) - 1))
        self.heads = nn.ModuleList(nn.Conv2d(v, 3 * (5 + classes), 1) for v in f)

    def forward(self, x):
        seen, x = [], self.stem(x)
        for stage in self.stages:
            x = stage(x)
            seen.append(x)
        x, ways = self.pool(x), []
        for i, (narrow, join) in enumerate(zip(self.narrow, self.upward)):
            x = narrow(x)
            ways.append(x)
            x = join(torch.cat([F.interpolate(x, scale_factor=2), seen[-2 - i]], 1))
        out = [x]
        for stride, join in zip(self.stride, self.downward):
            x = join(torch.cat([stride(x), ways.pop()], 1))
            out.append(x)
        return [head(x) for head, x in zip(self.heads, out)]


def train(size, levels, pixels, batch, classes, cards):
    """max_memory_allocated of three steps, in GiB."""
    net = Yolo(size, levels, classes).cuda().train()
    average = copy.deepcopy(net)
    step = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.937, nesterov=True)
    scale = torch.amp.GradScaler("cuda")
    buckets = torch.empty(sum(p.numel() for p in net.parameters()) if cards > 1 else 0, device="cuda")
    for _ in range(3):
        x = torch.zeros(batch, 3, pixels, pixels, dtype=torch.uint8).cuda().float() / 255
        with torch.amp.autocast("cuda"):
            loss = 0
            for y in net(x):
                y = y.unflatten(1, (3, -1))[:, :, 4]
                loss = loss + F.binary_cross_entropy_with_logits(y, torch.zeros_like(y))
        scale.scale(loss).backward()
        scale.step(step)
        scale.update()
        step.zero_grad(set_to_none=False)
    del average, buckets
    return torch.cuda.max_memory_allocated() / 2 ** 30
