# SPDX-License-Identifier: Apache-2.0
"""nets.py - one training step of twelve small convolution nets, each in fp32 and mixed precision, channels first and last: the
shapes that cuDNN is asked for."""
import torch
from torch import nn

F = nn.functional


def conv(c, k, kernel=3, stride=1, groups=1, dilation=1, bn=True):
    layers = [nn.Conv2d(c, k, kernel, stride, dilation * (kernel // 2), dilation, groups, bias=not bn)]
    return nn.Sequential(*layers, nn.BatchNorm2d(k), nn.ReLU()) if bn else layers[0]


class Residual(nn.Module):
    def __init__(self, c, inner, k, stride=1, groups=1, dilation=1):
        super().__init__()
        self.body = nn.Sequential(conv(c, inner, 1), conv(inner, inner, 3, stride, groups, dilation), conv(inner, k, 1, bn=False))
        self.way = conv(c, k, 1, stride, bn=False) if c != k or stride > 1 else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.way(x))


class Dense(nn.Module):
    def __init__(self, c, growth, n):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(conv(c + i * growth, 4 * growth, 1), conv(4 * growth, growth)) for i in range(n))

    def forward(self, x):
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return x


class Squeeze(nn.Module):
    def __init__(self, c, inner):
        super().__init__()
        self.down, self.up = nn.Conv2d(c, inner, 1), nn.Conv2d(inner, c, 1)

    def forward(self, x):
        return x * torch.sigmoid(self.up(F.relu(self.down(F.adaptive_avg_pool2d(x, 1)))))


def nets():
    image = (16, 3, 96, 96)
    yield "resnet", nn.Sequential(conv(3, 64, 7, 2), nn.MaxPool2d(2), Residual(64, 64, 256), Residual(256, 128, 512, 2)), image
    yield "resnext", nn.Sequential(conv(3, 64, 7, 2), Residual(64, 128, 256, 2, 32), Residual(256, 256, 512, 1, 32)), image
    yield "vgg", nn.Sequential(conv(3, 64, bn=False), nn.ReLU(), conv(64, 64), nn.MaxPool2d(2), conv(64, 128), conv(128, 256)), image
    yield "mobilenet", nn.Sequential(conv(3, 32, 3, 2), conv(32, 32, groups=32), conv(32, 96, 1), conv(96, 96, 5, 2, 96),
                                     Squeeze(96, 24), conv(96, 160, 1)), image
    yield "densenet", nn.Sequential(conv(3, 64, 7, 2), nn.MaxPool2d(2), Dense(64, 32, 3), conv(160, 80, 1)), image
    yield "convnext", nn.Sequential(nn.Conv2d(3, 96, 4, 4), nn.Conv2d(96, 96, 7, 1, 3, groups=96), nn.Conv2d(96, 192, 2, 2)), image
    yield "regnet", nn.Sequential(conv(3, 32, 3, 2), Residual(32, 48, 48, 2, 6), Residual(48, 104, 104, 2, 13)), image
    yield "dilated", nn.Sequential(conv(3, 64, 7, 2), Residual(64, 64, 256, 1, 1, 2), Residual(256, 256, 512, 2, 1, 4)), image
    yield "unet", nn.Sequential(conv(3, 32), nn.MaxPool2d(2), conv(32, 64), nn.ConvTranspose2d(64, 32, 2, 2),
                                nn.Conv2d(32, 7, 1)), (4, 3, 80, 80)
    yield "superres", nn.Sequential(nn.Conv2d(3, 64, 9, 1, 4), nn.ReLU(), nn.Conv2d(64, 32, 5, 1, 2),
                                    nn.ConvTranspose2d(32, 3, 4, 2, 1)), (3, 3, 61, 47)
    yield "video", nn.Sequential(nn.Conv3d(3, 32, (3, 7, 7), (1, 2, 2), (1, 3, 3)), nn.Conv3d(32, 64, 3, 1, 1),
                                 nn.Conv3d(64, 64, 1)), (2, 3, 8, 64, 64)
    yield "wave", nn.Sequential(nn.Conv1d(16, 64, 9, 1, 4), nn.Conv1d(64, 64, 3, 1, 8, 8), nn.ConvTranspose1d(64, 16, 4, 2, 1)), \
        (8, 16, 2000)


def main():
    for name, net, shape in nets():
        for half in (False, True):
            for last in (False, True):
                form = {4: torch.channels_last, 5: torch.channels_last_3d}.get(len(shape)) if last else None
                if last and not form:
                    continue
                model, x = net.cuda(), torch.zeros(shape, device="cuda")
                if form:
                    model, x = model.to(memory_format=form), x.contiguous(memory_format=form)
                with torch.autocast("cuda", torch.bfloat16, enabled=half):
                    y = model(x)
                y.float().sum().backward()
        print(name)


main()
