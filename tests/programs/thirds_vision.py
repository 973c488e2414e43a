# SPDX-License-Identifier: Apache-2.0
"""Pictures, videos, scans and densities by packages that stood in no list before: --model NAME."""
import os
import tempfile
import warnings

os.environ.update(HF_HUB_OFFLINE="1", WANDB_DISABLED="true", TQDM_DISABLE="1")
warnings.filterwarnings("ignore")

import torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from fullsize import CARD, classes, images, main  # noqa: E402


def epoch(model, loss_of, optimizer, steps=3):
    """What most of these packages show: zero, forward, backward, step, and a number to print."""
    shown = 0.
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        shown += loss.item()
    return shown / steps


def glow(batch=32):
    """normflows: Glow of several scales, each class has its own base; then samples are drawn."""
    import normflows as nf
    bases, merges, flows = [], [], []
    for i in range(3):
        flows += [[nf.flows.GlowBlock(3 * 2 ** (4 - i), 128, split_mode="channel", scale=True) for _ in range(6)]
                  + [nf.flows.Squeeze()]]
        shape = (3 * 2 ** (4 - i), 2 ** (2 + i), 2 ** (2 + i))
        if i:
            merges += [nf.flows.Merge()]
            shape = (3 * 2 ** (3 - i), *shape[1:])
        else:
            shape = (48, 4, 4)
        bases += [nf.distributions.ClassCondDiagGaussian(shape, 10)]
    model = nf.MultiscaleFlow(bases, flows, merges).cuda()
    epoch(model, lambda: model.forward_kld(images(batch, 3, 32, 32), classes(10, batch)),
          torch.optim.Adamax(model.parameters(), lr=1e-3, weight_decay=1e-5))
    with torch.no_grad():
        model.sample(num_samples=batch // 2, y=classes(10, batch // 2))


class Speed(torch.nn.Module):
    """What odeint asks for: a derivative at time t."""

    def __init__(self, wide):
        super().__init__()
        self.body = torch.nn.ModuleList(torch.nn.Conv2d(wide + 1, wide, 3, padding=1) for _ in range(2))
        self.norms = torch.nn.ModuleList(torch.nn.GroupNorm(8, wide) for _ in range(3))

    def forward(self, t, x):
        for norm, layer in zip(self.norms, self.body):
            x = F.relu(norm(x))
            x = layer(torch.cat((torch.ones_like(x[:, :1]) * t, x), 1))
        return self.norms[2](x)


def through_time(batch=32):
    """torchdiffeq: a net whose layers are an equation, Runge-Kutta, gradients by the adjoint."""
    from torchdiffeq import odeint_adjoint
    stem = torch.nn.Sequential(torch.nn.Conv2d(3, 64, 3, 1), torch.nn.GroupNorm(8, 64), torch.nn.ReLU(),
                               torch.nn.Conv2d(64, 64, 4, 2, 1))
    speed, head = Speed(64), torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(64, 10))
    model = torch.nn.ModuleList((stem, speed, head)).cuda()
    span = torch.tensor([0., 1.], device=CARD)

    def loss():
        x = odeint_adjoint(speed, stem(images(batch, 3, 64, 64)), span, method="rk4", options=dict(step_size=0.25))[1]
        return F.cross_entropy(head(x), classes(10, batch))

    epoch(model, loss, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))


def unrolled(batch=4):
    """deepinv: steps of an optimization are layers, what is blurred becomes sharp."""
    import deepinv
    from deepinv.optim import L2, PGD
    from deepinv.optim.prior import PnP
    blur = deepinv.physics.BlurFFT((3, 96, 96), filter=deepinv.physics.blur.gaussian_blur(sigma=1.5), device="cuda",
                                   noise_model=deepinv.physics.GaussianNoise(0.03))
    priors = [PnP(deepinv.models.DnCNN(depth=7, pretrained=None, device="cuda")) for _ in range(4)]
    model = PGD(data_fidelity=L2(), prior=priors, stepsize=[1.] * 4, sigma_denoiser=[0.05] * 4, unfold=True, max_iter=4,
                trainable_params=["stepsize", "sigma_denoiser"]).cuda()

    def loss():
        sharp = images(batch, 3, 96, 96)
        return deepinv.loss.SupLoss(metric=deepinv.metric.MSE())(x=sharp, x_net=model(blur(sharp), blur)).mean()

    epoch(model, loss, torch.optim.Adam(model.parameters(), lr=1e-4))


def coils(batch=2):
    """fastmri: slices out of coils that saw every fourth line, a variational net."""
    import fastmri
    from fastmri.data.subsample import EquispacedMaskFractionFunc
    from fastmri.models import VarNet
    model = VarNet(num_cascades=4, sens_chans=4, sens_pools=3, chans=12, pools=3).cuda()
    masks = EquispacedMaskFractionFunc([0.08], [4])
    judge = fastmri.SSIMLoss().cuda()

    def loss():
        seen, lines = masks((1, 1, 160, 160, 2))[0].to(CARD), images(batch, 8, 160, 160, 2)
        made = model(lines * seen, (seen.expand(batch, 1, 160, 160, 2)[:, :, :1] > 0), 12)
        return judge(made[:, None], images(batch, 1, 160, 160), torch.ones(batch, device=CARD))

    epoch(model, loss, torch.optim.Adam(model.parameters(), lr=3e-4))


def alike(batch=8):
    """pytorch-msssim: an autoencoder, what is lost is measured at five scales."""
    from pytorch_msssim import MS_SSIM
    down = [torch.nn.Sequential(torch.nn.Conv2d(i, o, 5, 2, 2), torch.nn.GELU()) for i, o in ((3, 64), (64, 96), (96, 128))]
    up = [torch.nn.Sequential(torch.nn.ConvTranspose2d(i, o, 4, 2, 1), torch.nn.GELU()) for i, o in ((128, 96), (96, 64))]
    model = torch.nn.Sequential(*down, *up, torch.nn.ConvTranspose2d(64, 3, 4, 2, 1), torch.nn.Sigmoid()).cuda()
    measure = MS_SSIM(data_range=1., channel=3)

    def loss():
        x = images(batch, 3, 192, 192)
        y = model(x)
        return 0.84 * (1 - measure(y, x)) + 0.16 * F.l1_loss(y, x)

    epoch(model, loss, torch.optim.AdamW(model.parameters(), lr=1e-3))


def two_speeds(batch=2):
    """pytorchvideo: SlowFast reads clips at two speeds, bf16, gradients of two batches."""
    from pytorchvideo.models.slowfast import create_slowfast
    model = create_slowfast(model_num_class=100, head_pool_kernel_sizes=((4, 4, 4), (16, 4, 4))).cuda().train()
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    for step in range(4):
        clip = images(batch, 3, 16, 128, 128)
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(model([clip[:, :, ::4], clip]), classes(100, batch)) / 2
        loss.backward()
        if step % 2:
            opt.step()
            opt.zero_grad()


def doubts(batch=32):
    """blitz-bayesian-pytorch: weights are drawn, three draws a step."""
    from blitz.modules import BayesianConv2d, BayesianLinear
    from blitz.utils import variational_estimator

    @variational_estimator
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.convs = torch.nn.ModuleList(BayesianConv2d(i, o, (3, 3), padding=1) for i, o in ((3, 48), (48, 96), (96, 96)))
            self.heads = torch.nn.ModuleList((BayesianLinear(96 * 16, 256), BayesianLinear(256, 10)))

        def forward(self, x):
            for layer in self.convs:
                x = F.max_pool2d(F.relu(layer(x)), 2)
            return self.heads[1](F.relu(self.heads[0](x.flatten(1))))

    net = Net().cuda()
    epoch(net, lambda: net.sample_elbo(inputs=images(batch, 3, 32, 32), labels=classes(10, batch),
                                       criterion=torch.nn.CrossEntropyLoss(), sample_nbr=3, complexity_cost_weight=1 / 50000),
          torch.optim.Adam(net.parameters(), lr=1e-3))


def simulated(batch=2048):
    """sbi: a posterior of a simulator, its own loop and its own part that is held out."""
    from sbi.inference import NPE
    from sbi.neural_nets import posterior_nn
    from sbi.utils import BoxUniform
    from torch.utils.tensorboard import SummaryWriter
    learner = NPE(prior=BoxUniform(-2 * torch.ones(8, device=CARD), 2 * torch.ones(8, device=CARD), device="cuda"), device="cuda",
                  density_estimator=posterior_nn("maf", hidden_features=256, num_transforms=6), show_progress_bars=False,
                  summary_writer=SummaryWriter(tempfile.mkdtemp(prefix="thirds.")))
    learner.append_simulations(torch.rand(5 * batch, 8) * 4 - 2, torch.rand(5 * batch, 64), data_device="cpu")
    learner.train(training_batch_size=batch, max_num_epochs=2, learning_rate=1e-3)
    learner.build_posterior()


def edges(points=4000):
    """pykan: functions on edges, grids are moved to the data, its own loop."""
    from kan import KAN
    model = KAN(width=[4, 24, 24, 1], grid=8, k=3, seed=0, device="cuda", auto_save=False, symbolic_enabled=False)
    parts = ((kind, wide) for kind in ("train", "test") for wide in (("input", 4), ("label", 1)))
    data = {f"{kind}_{name}": torch.rand(points, wide).to(CARD) for kind, (name, wide) in parts}
    model.fit(data, opt="Adam", steps=3, lamb=0.001, grid_update_num=1, log=1)


if __name__ == "__main__":
    main(globals())
