# SPDX-License-Identifier: Apache-2.0
"""Tables, series and mathematics by packages that stood in no list before: --model NAME."""
import os
import tempfile
import warnings

os.environ.update(HF_HUB_OFFLINE="1", WANDB_DISABLED="true", TQDM_DISABLE="1")
warnings.filterwarnings("ignore")

import numpy  # noqa: E402
import torch  # noqa: E402
import torchvision  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from fullsize import CARD, classes, images, main  # noqa: E402
from fourth_vision import until  # noqa: E402
from newcomers_vision import learn  # noqa: E402


def surface(points=512):
    """botorch: a Gaussian process, fitted by L-BFGS, and what it says of other points."""
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood
    x = torch.rand(points, 6, dtype=torch.double).to(CARD)
    y = torch.rand(points, 1, dtype=torch.double).to(CARD)
    gp = SingleTaskGP(x, y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(gp.likelihood, gp), optimizer_kwargs=dict(options=dict(maxiter=5)))
    with torch.no_grad():
        gp.posterior(torch.rand(4 * points, 6, dtype=torch.double).to(CARD)).variance.cpu()


def two_aims(batch=32):
    """torchjd: two tasks share a net, their gradients are brought together."""
    from torchjd.aggregation import UPGrad
    from torchjd.autojac import jac_to_grad, mtl_backward
    shared = torchvision.models.resnet18(num_classes=256).cuda()
    heads = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(256, k)) for k in (40, 4)).cuda()
    opt, bring = torch.optim.Adam([*shared.parameters(), *heads.parameters()], lr=1e-3), UPGrad()
    for _ in range(4):
        seen = shared(images(batch, 3, 112, 112))
        losses = [F.cross_entropy(heads[0](seen), classes(40, batch)), F.mse_loss(heads[1](seen), images(batch, 4))]
        mtl_backward(losses, features=seen)
        jac_to_grad(shared.parameters(), bring)
        opt.step()
        opt.zero_grad()


def neurons(batch=512):
    """cebra: neurons at like times lie near each other, its loop."""
    import cebra
    made = cebra.CEBRA(model_architecture="offset10-model", batch_size=batch, max_iterations=6, device="cuda", output_dimension=8,
                       num_hidden_units=128, time_offsets=10, verbose=False)
    seen = numpy.random.rand(20000, 120).astype("float32")
    made.fit(seen, numpy.random.rand(20000, 3).astype("float32"))
    made.transform(seen[:4000])


def gaps(batch=64):
    """pypots: SAITS fills gaps in series, its loop."""
    from pypots.imputation import SAITS
    seen = numpy.random.rand(3000, 96, 37)
    seen[numpy.random.rand(*seen.shape) < 0.1] = numpy.nan
    until(5)
    SAITS(n_steps=96, n_features=37, n_layers=2, d_model=256, n_heads=4, d_k=64, d_v=64, d_ffn=512, dropout=0.1, batch_size=batch,
          epochs=1, device="cuda").fit(dict(X=seen))


def wide_and_deep(batch=512):
    """pytorch-widedeep: rows attend to columns and to other rows, beside a wide model, its loop."""
    from pytorch_widedeep import Trainer
    from pytorch_widedeep.models import SAINT, Wide, WideDeep
    n, columns = 20000, [f"c{i}" for i in range(12)]
    deep = SAINT(column_idx={c: i for i, c in enumerate(columns)}, cat_embed_input=[(c, 30) for c in columns[:8]],
                 continuous_cols=columns[8:], input_dim=32, n_heads=4, n_blocks=2, mlp_hidden_dims=[128, 64])
    rows = numpy.concatenate((numpy.random.randint(1, 30, (n, 8)), numpy.random.rand(n, 4)), 1).astype("float32")
    until(6)
    Trainer(WideDeep(wide=Wide(input_dim=2000), deeptabular=deep), objective="binary", verbose=0).fit(
        X_wide=numpy.random.randint(1, 2000, (n, 20)), X_tab=rows, target=numpy.random.randint(0, 2, n), n_epochs=1,
        batch_size=batch)


def driven(batch=64):
    """torchcde: an equation that a series drives, gradients by the adjoint."""
    import torchcde

    class Field(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(
                torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64 * 9), torch.nn.Tanh())

        def forward(self, t, z):
            return self.layers(z).view(*z.shape[:-1], 64, 9)

    field, first, last = Field().cuda(), torch.nn.Linear(9, 64).cuda(), torch.nn.Linear(64, 10).cuda()
    model = torch.nn.ModuleList((field, first, last))

    def loss():
        way = torchcde.CubicSpline(torchcde.hermite_cubic_coefficients_with_backward_differences(images(batch, 40, 9)))
        z = torchcde.cdeint(X=way, func=field, z0=first(way.evaluate(way.interval[0])), t=way.interval, method="rk4",
                            options=dict(step_size=1.0))
        return F.cross_entropy(last(z[:, 1]), classes(10, batch))

    learn(model, loss, steps=3)


def sharpest(batch=32):
    """pyhessian: the largest eigenvalues and the trace of a net's second derivatives."""
    from pyhessian import hessian
    model = torchvision.models.resnet18(num_classes=10).cuda()
    learn(model, lambda: F.cross_entropy(model(images(batch, 3, 64, 64)), classes(10, batch)), steps=2)
    model.eval()
    data = torch.rand(batch, 3, 64, 64), torch.randint(0, 10, (batch,))
    seen = hessian(model, torch.nn.CrossEntropyLoss(), data=data, cuda=True)
    seen.eigenvalues(maxIter=4)
    seen.trace(maxIter=3)


def hidden(batch=128):
    """pomegranate: a hidden Markov model of normal distributions, without gradients."""
    from pomegranate.distributions import Normal
    from pomegranate.hmm import DenseHMM
    model = DenseHMM([Normal(torch.rand(8), torch.eye(8) + 0.1).cuda() for _ in range(24)], edges=torch.full((24, 24), 1 / 24),
                     starts=torch.full((24,), 1 / 24), max_iter=3, tol=0.0).cuda()
    model.fit(images(batch, 200, 8))
    model.predict_proba(images(batch, 200, 8))


def one_by_one(batch=32):
    """avalanche-lib: kinds of pictures come one after another, some are kept and shown again, tested in between, its loop."""
    from avalanche.benchmarks import nc_benchmark
    from avalanche.training import Replay

    class Seen(torch.utils.data.Dataset):
        def __init__(self, n):
            self.data, self.targets = torch.rand(n, 3, 32, 32), (torch.arange(n) % 10).tolist()

        def __len__(self):
            return len(self.targets)

        def __getitem__(self, i):
            return self.data[i], self.targets[i]
    way = nc_benchmark(Seen(10 * 256), Seen(10 * 40), n_experiences=5, task_labels=False, seed=1)
    model = torchvision.models.resnet18(num_classes=10)
    how = Replay(model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
                 criterion=torch.nn.CrossEntropyLoss(), mem_size=500, train_mb_size=batch, train_epochs=1,
                 eval_mb_size=64, device="cuda", evaluator=None)
    for some in list(way.train_stream)[:3]:
        how.train(some, num_workers=0)
        how.eval(way.test_stream[:2], num_workers=0)


def stacks(batch=128):
    """darts: N-BEATS forecasts series, its loop (lightning)."""
    import pandas
    from darts import TimeSeries
    from darts.models import NBEATSModel
    time = pandas.date_range("2026-01-01", periods=4000, freq="h")
    series = [TimeSeries.from_times_and_values(time, numpy.random.rand(4000).astype("float32")) for _ in range(2)]
    model = NBEATSModel(input_chunk_length=168, output_chunk_length=24, generic_architecture=True, num_stacks=6, layer_widths=512,
                        batch_size=batch, n_epochs=1, work_dir=tempfile.mkdtemp(prefix="fourth."),
                        pl_trainer_kwargs=dict(accelerator="gpu", devices=1, max_steps=5, enable_progress_bar=False,
                                               logger=False, enable_model_summary=False))
    model.fit(series)


def accelerated(batch=16):
    """pytorch-accelerated: its trainer, a small ConvNeXt, averaged weights, a test after."""
    from pytorch_accelerated import Trainer
    from pytorch_accelerated.callbacks import ModelEmaCallback
    from pytorch_accelerated.trainer import DEFAULT_CALLBACKS

    def some(n):
        return torch.utils.data.TensorDataset(torch.rand(n, 3, 112, 112), torch.randint(0, 100, (n,)))
    model = torchvision.models.convnext_tiny(num_classes=100)
    until(4)
    Trainer(model, loss_func=torch.nn.CrossEntropyLoss(), optimizer=torch.optim.AdamW(model.parameters(), lr=1e-4),
            callbacks=(*DEFAULT_CALLBACKS, ModelEmaCallback(save_path=tempfile.mkdtemp(prefix="fourth.")))).train(
        train_dataset=some(512), eval_dataset=some(64), num_epochs=1, per_device_batch_size=batch)


if __name__ == "__main__":
    main({f.__name__: f for f in (surface, two_aims, neurons, gaps, wide_and_deep, driven, sharpest, hidden, one_by_one, stacks,
                                  accelerated)})
