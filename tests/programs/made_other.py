# SPDX-License-Identifier: Apache-2.0
"""Games, tables, series, physics, medicine, molecules, by the packages of others: --model NAME."""
import os
import warnings

os.environ.update(DDE_BACKEND="pytorch", KERAS_BACKEND="torch", HF_HUB_OFFLINE="1")
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

from fullsize import main  # noqa: E402

CARD = "cuda"


def pairs(n, *kinds):
    """Data in the host's memory: a shape is of plain numbers, (shape, k) of whole ones below k."""
    made = [torch.randint(0, k[1], (n, *k[0])) if len(k) == 2 and isinstance(k[0], tuple)
            else torch.zeros(n, *k) for k in kinds]
    return torch.utils.data.TensorDataset(*made)


def loader(batch, data, **more):
    return torch.utils.data.DataLoader(data, batch_size=batch, **more)


def legged(envs=16384):
    """rsl_rl: PPO of a walking robot on rough ground; the simulator is on the card, as Isaac's."""
    from rsl_rl.env import VecEnv
    from rsl_rl.runners import OnPolicyRunner
    from tensordict import TensorDict

    class Ground(VecEnv):
        def __init__(self):
            self.num_envs, self.num_actions, self.max_episode_length = envs, 12, 1000
            self.device, self.cfg = CARD, {}
            self.episode_length_buf = torch.zeros(envs, dtype=torch.long, device=CARD)
            self.state = torch.randn(envs, 235, device=CARD)

        def get_observations(self):
            seen = self.state + 0.05 * torch.rand_like(self.state)
            return TensorDict(policy=seen, batch_size=[envs])

        def step(self, actions):
            self.state = self.state.roll(12, 1)
            self.state[:, :12] = actions
            self.episode_length_buf += 1
            done = self.episode_length_buf >= self.max_episode_length
            return self.get_observations(), -actions.square().mean(1), done, dict(time_outs=done)

    def net(**more):
        return dict(class_name="MLPModel", hidden_dims=[512, 256, 128], activation="elu", **more)
    chance = dict(class_name="BetaDistribution")
    plan = dict(num_steps_per_env=24, save_interval=50,
                obs_groups=dict(actor=["policy"], critic=["policy"]),
                actor=net(distribution_cfg=chance), critic=net(),
                algorithm=dict(class_name="PPO", entropy_coef=0.005))
    OnPolicyRunner(Ground(), plan, None, CARD).learn(2, init_at_random_ep_len=True)


def beltrami(points=50000):
    """deepxde: a flow in space and time as a network that obeys Navier and Stokes."""
    import deepxde as dde

    def law(x, u):
        def d(i, j):
            return dde.grad.jacobian(u, x, i=i, j=j)

        def dd(i, j):
            return dde.grad.hessian(u, x, component=i, i=j, j=j)
        flow = [d(i, 3) + sum(u[:, j:j + 1] * d(i, j) for j in range(3)) + d(3, i)
                - sum(dd(i, j) for j in range(3)) for i in range(3)]
        return [*flow, sum(d(i, i) for i in range(3))]
    space = dde.geometry.GeometryXTime(dde.geometry.Cuboid([-1, -1, -1], [1, 1, 1]),
                                       dde.geometry.TimeDomain(0, 1))
    known = [kind(space, lambda x: 0, lambda _, on: on, component=i)
             for kind in (dde.icbc.DirichletBC, dde.icbc.IC) for i in range(3)]
    data = dde.data.TimePDE(space, law, known, num_domain=points, num_boundary=5000,
                            num_initial=5000, num_test=10000, train_distribution="pseudo")
    model = dde.Model(data, dde.nn.FNN([4] + 4 * [50] + [4], "tanh", "Glorot normal"))
    model.compile("adam", lr=1e-3, loss_weights=[1, 1, 1, 1] + [100] * 6)
    model.train(iterations=7, display_every=4, verbose=0)


def gestures(frames=16, batch=16):
    """spikingjelly: a net of spikes that watches gestures of the camera of events."""
    from spikingjelly.activation_based import functional, neuron, surrogate
    from spikingjelly.activation_based.model import parametric_lif_net
    model = parametric_lif_net.DVSGestureNet(channels=128, spiking_neuron=neuron.LIFNode,
                                             surrogate_function=surrogate.ATan(), detach_reset=True)
    functional.set_step_mode(model, "m")
    model.to(CARD)
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    plan = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 64)
    scaler = torch.amp.GradScaler("cuda")

    def look(x, y):
        x, y = x.to(CARD).transpose(0, 1), nn.functional.one_hot(y.to(CARD), 11).float()
        return nn.functional.mse_loss(model(x).mean(0), y)
    films = pairs(3 * batch, (frames, 2, 128, 128), ((), 11))
    for epoch in range(2):
        model.train()
        for x, y in loader(batch, films, shuffle=True, drop_last=True):
            opt.zero_grad()
            with torch.amp.autocast("cuda"):
                loss = look(x, y)
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
            functional.reset_net(model)
        plan.step()
        model.eval()
        with torch.no_grad():
            for x, y in loader(batch, torch.utils.data.Subset(films, range(2 * batch))):
                print(look(x, y).item())
                functional.reset_net(model)


def lungs(batch=2):
    """keras: the example that finds pneumonia in scans of lungs."""
    import keras
    from keras import layers as k
    x = first = keras.Input((128, 128, 64, 1))
    for width in (64, 64, 128, 256):
        x = k.BatchNormalization()(k.MaxPool3D(2)(k.Conv3D(width, 3, activation="relu")(x)))
    x = k.Dropout(0.3)(k.Dense(512, activation="relu")(k.GlobalAveragePooling3D()(x)))
    model = keras.Model(first, k.Dense(1, activation="sigmoid")(x))
    rate = keras.optimizers.schedules.ExponentialDecay(1e-4, 100000, 0.96, staircase=True)
    model.compile(keras.optimizers.Adam(rate), loss="binary_crossentropy", metrics=["acc"])

    def scans(n):
        return np.zeros((n, 128, 128, 64, 1), np.float32), np.zeros((n, 1), np.float32)
    model.fit(*scans(3 * batch), validation_data=scans(2 * batch), batch_size=batch, epochs=2,
              verbose=0)


def grasp(batch=8):
    """lerobot: ACT, which plans a hundred moves of two arms from a camera, with lerobot's step."""
    from lerobot.configs.types import FeatureType, PolicyFeature
    from lerobot.policies.act.configuration_act import ACTConfig
    from lerobot.policies.act.modeling_act import ACTPolicy
    plan = ACTConfig(
        input_features={"observation.images.top": PolicyFeature(FeatureType.VISUAL, (3, 480, 640)),
                        "observation.state": PolicyFeature(FeatureType.STATE, (14,))},
        output_features={"action": PolicyFeature(FeatureType.ACTION, (14,))},
        pretrained_backbone_weights=None)
    robot(ACTPolicy, plan, batch, {
        "observation.images.top": (3, 480, 640), "observation.state": (14,), "action": (100, 14),
        "action_is_pad": (100,)})


def pushes(batch=64):
    """lerobot: the diffusion policy that pushes a T over a table."""
    from lerobot.configs.types import FeatureType, PolicyFeature
    from lerobot.policies.diffusion.configuration_diffusion import DiffusionConfig
    from lerobot.policies.diffusion.modeling_diffusion import DiffusionPolicy
    plan = DiffusionConfig(
        input_features={"observation.image": PolicyFeature(FeatureType.VISUAL, (3, 96, 96)),
                        "observation.state": PolicyFeature(FeatureType.STATE, (2,))},
        output_features={"action": PolicyFeature(FeatureType.ACTION, (2,))})
    robot(DiffusionPolicy, plan, batch, {
        "observation.image": (2, 3, 96, 96), "observation.state": (2, 2), "action": (16, 2),
        "action_is_pad": (16,)})


def robot(policy, plan, batch, data):
    """lerobot's training script from where it has a policy and data."""
    from lerobot.scripts.train import update_policy
    from lerobot.utils.logging_utils import AverageMeter, MetricsTracker
    plain = dict(mean=0.0, std=1.0, min=-1.0, max=1.0)
    stats = {key: {what: torch.full((shape[-3], 1, 1) if len(shape) > 2 else shape[-1:], value)
                   for what, value in plain.items()} for key, shape in data.items()}
    policy = policy(plan, dataset_stats=stats).to(CARD)
    opt = plan.get_optimizer_preset().build(policy.get_optim_params())
    rate = plan.get_scheduler_preset() and plan.get_scheduler_preset().build(opt, 100000)
    told = MetricsTracker(batch, 1000, 10, {k: AverageMeter(k) for k in (
        "loss", "grad_norm", "lr", "update_s")})
    row = {k: torch.zeros(shape, dtype=torch.bool if k.endswith("pad") else None)
           for k, shape in data.items()}
    for part in loader(batch, [row] * (6 * batch), shuffle=True):
        part = {k: v.to(CARD, non_blocking=True) for k, v in part.items()}
        update_policy(told, policy, part, opt, 10.0, torch.amp.GradScaler("cuda", enabled=False),
                      lr_scheduler=rate)


def darcy(side=128, batch=16):
    """neuraloperator: its Trainer and TFNO, flows through rock; tests at twice the side."""
    from neuralop import H1Loss, LpLoss, Trainer
    from neuralop.models import TFNO
    from neuralop.training import AdamW
    model = TFNO(n_modes=(32, 32), in_channels=1, out_channels=1, hidden_channels=64, n_layers=4,
                 factorization="tucker", rank=0.42).to(CARD)

    def flows(n, side):
        return loader(batch, [dict(x=torch.zeros(1, side, side), y=torch.zeros(1, side, side))] * n)
    opt = AdamW(model.parameters(), lr=5e-3, weight_decay=1e-4)
    plan = torch.optim.lr_scheduler.StepLR(opt, 60, 0.5)
    losses = dict(h1=H1Loss(d=2), l2=LpLoss(d=2, p=2))
    Trainer(model=model, n_epochs=2, device=torch.device(CARD)).train(
        flows(3 * batch, side), {1: flows(batch, side), 2: flows(batch // 2, 2 * side)}, opt, plan,
        training_loss=losses["h1"], eval_losses=losses)


def cells(batch=1024):
    """scvi-tools: the kinds of cells, from how often they read each of twenty thousand genes."""
    import anndata
    import scipy.sparse
    import scvi
    counts = scipy.sparse.random(5 * batch, 20000, 0.01, "csr", np.float32, random_state=1)
    counts.data[:] = 1
    table = anndata.AnnData(counts, obs=dict(lab=np.arange(5 * batch) % 8))
    scvi.model.SCVI.setup_anndata(table, batch_key="lab")
    model = scvi.model.SCVI(table, n_layers=2, n_latent=30, gene_likelihood="nb")
    model.train(2, batch_size=batch, train_size=0.6, check_val_every_n_epoch=1,
                accelerator="gpu", logger=False, enable_progress_bar=False)


def clicks(batch=2048):
    """torch-rechub: DIN asks which of the last fifty clicks matter for this one."""
    from torch_rechub.basic.features import SequenceFeature, SparseFeature
    from torch_rechub.models.ranking import DIN
    from torch_rechub.trainers import CTRTrainer
    from torch_rechub.utils.data import DataGenerator
    sizes = dict(item=2000000, shop=200000, kind=10000)
    own = [SparseFeature("user", 1000000, embed_dim=64)]
    aims = [SparseFeature(k, v, embed_dim=64) for k, v in sizes.items()]
    past = [SequenceFeature(f"past_{k}", v, embed_dim=64, pooling="concat", shared_with=k)
            for k, v in sizes.items()]
    model = DIN(own, past, aims, dict(dims=[256, 128]), dict(dims=[256, 128]))

    def log(n):
        x = {k: np.arange(n) % v for k, v in dict(sizes, user=1000000).items()}
        x.update({f"past_{k}": np.random.randint(0, v, (n, 50)) for k, v in sizes.items()})
        return x, np.arange(n) % 2
    train, test, _ = DataGenerator(*log(3 * batch)).generate_dataloader(
        *log(2 * batch), *log(batch), batch_size=batch)
    CTRTrainer(model, optimizer_params=dict(lr=1e-3, weight_decay=1e-3), n_epoch=2, device=CARD,
               model_path="/tmp").fit(train, test)


def brains(batch=64):
    """braindecode: a conformer that tells four thoughts by their waves, through skorch."""
    from braindecode import EEGClassifier
    from braindecode.models import EEGConformer
    from skorch.callbacks import LRScheduler
    from skorch.dataset import ValidSplit
    net = EEGClassifier(
        EEGConformer(n_chans=22, n_outputs=4, n_times=1000), criterion=nn.CrossEntropyLoss,
        device=CARD, optimizer=torch.optim.AdamW, optimizer__lr=6.25e-4, batch_size=batch,
        max_epochs=2, classes=[0, 1, 2, 3], verbose=0,
        train_split=ValidSplit(0.4, stratified=False),
        callbacks=["accuracy", ("plan", LRScheduler("CosineAnnealingLR", T_max=1))])
    net.fit(np.zeros((5 * batch, 22, 1000), np.float32), np.arange(5 * batch) % 4)


def gauss(points=12000):
    """gpytorch: an exact Gaussian process of a table, by Cholesky."""
    import gpytorch
    from gpytorch import kernels

    class Exact(gpytorch.models.ExactGP):
        def __init__(self, x, y, chance):
            super().__init__(x, y, chance)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = kernels.ScaleKernel(kernels.MaternKernel(nu=2.5, ard_num_dims=18))

        def forward(self, x):
            there = self.mean_module(x), self.covar_module(x)
            return gpytorch.distributions.MultivariateNormal(*there)
    x, y = torch.randn(points, 18).to(CARD), torch.randn(points).to(CARD)
    chance = gpytorch.likelihoods.GaussianLikelihood().to(CARD)
    model = Exact(x, y, chance).to(CARD)
    opt = torch.optim.Adam(model.parameters(), lr=0.1)
    loss_of = gpytorch.mlls.ExactMarginalLogLikelihood(chance, model)
    model.train()
    with gpytorch.settings.fast_computations(False, False, False):
        for _ in range(6):
            opt.zero_grad()
            loss = -loss_of(model(x), y)
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            print(chance.eval()(model(torch.randn(1000, 18).to(CARD))).mean.cpu().sum())


def family(rows=16, length=256):
    """fair-esm: the MSA transformer, masked letters of proteins that are relatives."""
    from argparse import Namespace
    import esm
    letters = esm.Alphabet.from_architecture("msa_transformer")
    plan = Namespace(layers=12, embed_dim=768, ffn_embed_dim=3072, attention_heads=12, dropout=0.1,
                     attention_dropout=0.1, activation_dropout=0.1, max_tokens=2 ** 14,
                     max_positions=1024,
                     embed_positions_msa=True, logit_bias=True)
    model = esm.MSATransformer(plan, letters).to(CARD).train()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler("cuda")
    for (words,) in loader(1, pairs(6, ((rows, length), 20))):
        covered = words + 4
        covered[torch.rand(covered.shape) < 0.15] = letters.mask_idx
        covered, words = covered.to(CARD), words.to(CARD)
        with torch.autocast(CARD, torch.float16):
            said = model(covered)["logits"]
            loss = nn.functional.cross_entropy(said.flatten(0, 2), words.flatten())
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()


if __name__ == "__main__":
    main(globals())
