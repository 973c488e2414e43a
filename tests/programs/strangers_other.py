# SPDX-License-Identifier: Apache-2.0
"""Sounds, graphs, games, tables, series, physics by the packages of others, whose models, losses, loops and loaders these
are: --model NAME."""
import logging
import os
import tempfile
import warnings

os.environ.update(HF_HUB_OFFLINE="1", PYKEEN_LOGGING="0")
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from fullsize import CARD, classes, lengths, main, tokens  # noqa: E402


def folder():
    return tempfile.mkdtemp(prefix="strangers.", dir=os.environ.get("TMPDIR"))


def data(batch, *columns, **own):
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*columns), batch_size=batch, **own)


def transducer(batch=4):
    """torchaudio: a Conformer and a transducer's loss, utterances padded to the longest."""
    import torchaudio
    from torchaudio.models.rnnt import _Joiner, _Predictor
    listens = torchaudio.models.Conformer(80, 4, 256, 4, 15).cuda()
    guesses = _Predictor(129, 256, symbol_embedding_dim=128, num_lstm_layers=2, lstm_hidden_dim=256).cuda()
    joins = _Joiner(256, 129).cuda()
    widens = nn.Linear(80, 256).cuda()
    loss_of = torchaudio.transforms.RNNTLoss(blank=128)
    opt = torch.optim.Adam([p for m in (listens, guesses, joins, widens) for p in m.parameters()], lr=5e-4)
    for _ in range(4):
        heard, said = lengths(batch, 200, 500), lengths(batch, 16, 48)
        frames = torch.tensor([n // 4 + 1 for n in heard]).int().to(CARD)
        x = torch.zeros(batch, max(heard) // 4 + 1, 80).to(CARD)
        y = torch.randint(0, 128, (batch, max(said))).int().to(CARD)
        seen, _ = listens(x, frames)
        much = torch.tensor(said).int().to(CARD)
        start = torch.cat((torch.full((batch, 1), 128).int().to(CARD), y), 1)
        told, _, _ = guesses(start, much + 1, None)
        scores, _, _ = joins(widens(seen), frames, told, much + 1)
        loss = loss_of(scores, y, frames, much)
        opt.zero_grad()
        loss.backward()
        opt.step()


def speaks(batch=8):
    """torchaudio: Tacotron 2, letters and frames padded to the longest, one frame after another."""
    import torchaudio
    model = torchaudio.models.Tacotron2(n_symbol=40).cuda()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-6)
    for _ in range(3):
        said = torch.tensor(sorted(lengths(batch, 30, 80), reverse=True))
        frames = torch.tensor(lengths(batch, 40, 90))
        mel, much, stops, _ = model(classes(40, batch, int(said[0])), said.to(CARD),
                                    torch.zeros(batch, 80, int(frames.max())).to(CARD), frames.to(CARD))
        loss = F.mse_loss(mel, torch.zeros_like(mel)) + F.mse_loss(much, torch.zeros_like(much)) + \
            F.binary_cross_entropy_with_logits(stops, torch.zeros_like(stops))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()


def crdnn(seconds=40):
    """speechbrain: its Brain trains a CRDNN with CTC; as many utterances in a batch as so many seconds hold."""
    import speechbrain as sb
    from speechbrain.dataio.dataset import DynamicItemDataset
    from speechbrain.dataio.sampler import DynamicBatchSampler
    from speechbrain.lobes.features import Fbank
    from speechbrain.lobes.models.CRDNN import CRDNN
    from speechbrain.nnet.linear import Linear

    class Hears(sb.Brain):
        def compute_forward(self, batch, stage):
            batch = batch.to(self.device)
            waves, lens = batch.sig
            return self.modules.output(self.modules.crdnn(self.modules.features(waves))).log_softmax(-1), lens

        def compute_objectives(self, out, batch, stage):
            words, lens = batch.to(self.device).words
            return sb.nnet.losses.ctc_loss(out[0], words, out[1], lens, blank_index=0)
    rows = {str(i): dict(length=n / 10) for i, n in enumerate(lengths(150, 40, 150, 15))}
    utterances = DynamicItemDataset(rows)

    @sb.utils.data_pipeline.takes("length")
    @sb.utils.data_pipeline.provides("sig", "words")
    def draw(length):
        yield torch.zeros(int(16000 * length))
        yield torch.randint(1, 40, (int(2 * length) + 1,))
    utterances.add_dynamic_item(draw)
    utterances.set_output_keys(["id", "sig", "words"])
    sampler = DynamicBatchSampler(utterances, max_batch_length=seconds, num_buckets=10, shuffle=True,
                                  length_func=lambda x: x["length"], seed=torch.initial_seed())
    nets = dict(crdnn=CRDNN(input_size=40, rnn_layers=2, rnn_neurons=256, dnn_blocks=1),
                output=Linear(input_size=512, n_neurons=40), features=Fbank())
    Hears(nets, torch.optim.Adadelta, run_opts=dict(device="cuda", debug=True, debug_batches=6, debug_epochs=1)).fit(
        range(1), utterances, train_loader_kwargs=dict(batch_sampler=sampler), progressbar=False)


def private(batch=64):
    """opacus: its example's network learns in private; batches are drawn sample by sample, and cut where they are too large."""
    from opacus import PrivacyEngine
    from opacus.utils.batch_memory_manager import BatchMemoryManager
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, 1, 1), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(32, 64, 3, 1, 1), nn.ReLU(), nn.AvgPool2d(2),
        nn.Conv2d(64, 64, 3, 1, 1), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(64, 128, 3, 1, 1), nn.ReLU(),
        nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(128, 10)).cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    model, opt, loader = PrivacyEngine().make_private(
        module=model, optimizer=opt, noise_multiplier=1.1, max_grad_norm=1.0,
        data_loader=data(batch, torch.zeros(4 * batch, 3, 32, 32), torch.zeros(4 * batch, dtype=torch.long)))
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=48, optimizer=opt) as parts:
        for x, y in parts:
            opt.zero_grad()
            F.cross_entropy(model(x.to(CARD)), y.to(CARD)).backward()
            opt.step()


def curved(batch=32):
    """backpack: gradients of each sample, and the curvature, beside those of the batch."""
    from backpack import backpack, extend
    from backpack.extensions import BatchGrad, DiagGGNMC, Variance
    model = extend(nn.Sequential(
        nn.Conv2d(3, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, 96, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Conv2d(96, 128, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(2048, 256), nn.ReLU(), nn.Linear(256, 10)).cuda())
    loss_of = extend(nn.CrossEntropyLoss().cuda())
    for _ in range(4):
        loss = loss_of(model(torch.zeros(batch, 3, 32, 32).to(CARD)), classes(10, batch))
        with backpack(BatchGrad(), Variance(), DiagGGNMC()):
            loss.backward()
        for p in model.parameters():
            p.data.addcdiv_(p.grad, p.diag_ggn_mc + 0.1, value=-0.1)
            p.grad = None


def chords(batch=16):
    """pyro: its hidden Markov model of songs, states are enumerated, one note after another."""
    import pyro
    import pyro.distributions as dist
    from pyro import poutine
    from pyro.infer import SVI, TraceEnum_ELBO
    from pyro.infer.autoguide import AutoDelta
    hidden, notes, most = 16, 51, 32
    pyro.set_rng_seed(1)

    def model(songs, lens):
        moves = pyro.sample("moves", dist.Dirichlet(0.9 * torch.eye(hidden, device=CARD) + 0.1).to_event(1))
        keys = pyro.sample("keys", dist.Beta(torch.tensor(0.1, device=CARD), 0.9).expand([hidden, notes]).to_event(2))
        with pyro.plate("songs", len(songs), dim=-2):
            state = torch.zeros((), dtype=torch.long, device=CARD)
            with pyro.plate("notes", notes, dim=-1) as each:
                each = each.to(CARD)
            for at in pyro.markov(range(songs.shape[1])):
                with poutine.mask(mask=(at < lens).unsqueeze(-1)):
                    state = pyro.sample(f"x{at}", dist.Categorical(moves[state]), infer=dict(enumerate="parallel"))
                    with pyro.plate(f"notes{at}", notes, dim=-1):
                        pyro.sample(f"y{at}", dist.Bernoulli(keys[state.squeeze(-1)] if state.dim() < 2 else
                                                             keys[state, torch.arange(notes, device=CARD)]), obs=songs[:, at])
    guide = AutoDelta(poutine.block(model, expose=["moves", "keys"]))
    svi = SVI(model, guide, pyro.optim.Adam(dict(lr=0.05)), TraceEnum_ELBO(max_plate_nesting=2))
    pyro.enable_validation(False)
    for _ in range(3):
        lens = torch.tensor(lengths(batch, 20, most))
        svi.step(torch.zeros(batch, int(lens.max()), notes).to(CARD), lens.to(CARD))


def inducing(batch=512):
    """gpytorch: a deep kernel over five hundred inducing points, batch by batch, natural gradients."""
    import gpytorch

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self, points):
            told = gpytorch.variational.NaturalVariationalDistribution(len(points))
            super().__init__(gpytorch.variational.VariationalStrategy(self, points, told, learn_inducing_locations=True))
            self.mean = gpytorch.means.ConstantMean()
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(ard_num_dims=8))
            self.net = nn.Sequential(nn.Linear(8, 256), nn.ReLU(), nn.Linear(256, 8))

        def forward(self, x):
            x = self.net(x)
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))
    model, likely = Model(torch.rand(500, 8)).cuda(), gpytorch.likelihoods.GaussianLikelihood().cuda()
    goal = gpytorch.mlls.VariationalELBO(likely, model, num_data=10 * batch)
    opts = [gpytorch.optim.NGD(model.variational_parameters(), num_data=10 * batch, lr=0.1),
            torch.optim.Adam([*model.hyperparameters(), *likely.parameters()], lr=0.01)]
    for _ in range(4):
        loss = -goal(model(torch.rand(batch, 8).to(CARD)), torch.rand(batch).to(CARD))
        for opt in opts:
            opt.zero_grad()
        loss.backward()
        for opt in opts:
            opt.step()


def unrest(batch=128):
    """torchsde: a latent stochastic equation of Lorenz, whose gradients are solved backwards."""
    import torchsde

    class Latent(nn.Module):
        noise_type, sde_type = "diagonal", "ito"

        def __init__(self):
            super().__init__()
            self.reads = nn.GRU(3, 128)
            self.post = nn.Sequential(
                nn.Linear(4 + 64, 128), nn.Softplus(), nn.Linear(128, 128), nn.Softplus(), nn.Linear(128, 4))
            self.prior = nn.Sequential(nn.Linear(4, 128), nn.Softplus(), nn.Linear(128, 4))
            self.noise = nn.ModuleList(nn.Sequential(nn.Linear(1, 128), nn.Softplus(), nn.Linear(128, 1), nn.Sigmoid())
                                       for _ in range(4))
            self.tells, self.start, self.shows = nn.Linear(128, 64), nn.Linear(64, 8), nn.Linear(4, 3)

        def f(self, t, y):
            i = min(int(torch.searchsorted(self.at, t.cpu())), len(self.seen) - 1)
            return self.post(torch.cat((y, self.seen[i]), 1))

        def h(self, t, y):
            return self.prior(y)

        def g(self, t, y):
            return torch.cat([net(one) for net, one in zip(self.noise, y.split(1, 1))], 1)
    model = Latent().cuda()
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    model.at = torch.linspace(0, 1, 24)
    for _ in range(3):
        x = torch.zeros(24, batch, 3).to(CARD)
        model.seen = model.tells(model.reads(x.flip(0))[0].flip(0))
        mean, spread = model.start(model.seen[0]).chunk(2, 1)
        y, far = torchsde.sdeint(model, mean + spread.exp() * torch.randn_like(mean), model.at.to(CARD), dt=0.05,
                                 logqp=True, method="euler")
        loss = F.mse_loss(model.shows(y), x) + far.sum(0).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


def learns_fast(batch=8):
    """higher: tasks of five pictures, three inner steps each that are differentiated through."""
    import higher
    net = nn.Sequential(*[m for i in range(4) for m in (
        nn.Conv2d(64 if i else 3, 64, 3, padding=1), nn.BatchNorm2d(64, momentum=1), nn.ReLU(True), nn.MaxPool2d(2))],
        nn.Flatten(), nn.Linear(64 * 9, 5)).cuda()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(3):
        opt.zero_grad()
        inner = torch.optim.SGD(net.parameters(), lr=1e-1)
        for _ in range(batch):
            with higher.innerloop_ctx(net, inner, copy_initial_weights=False) as (fast, steps):
                for _ in range(3):
                    steps.step(F.cross_entropy(fast(torch.zeros(5, 3, 56, 56).to(CARD)), classes(5, 5)))
                F.cross_entropy(fast(torch.zeros(15, 3, 56, 56).to(CARD)), classes(5, 15)).backward()
        opt.step()


def plays(batch=64):
    """stable-baselines3: PPO of pictures, four games; what was played is learned in parts of a batch."""
    import gymnasium
    import stable_baselines3 as sb3
    sb3.PPO("CnnPolicy", games(gymnasium, 4), n_steps=64, batch_size=batch, n_epochs=2, device=CARD, seed=1).learn(512)


def games(gymnasium, n):
    from stable_baselines3.common.vec_env import DummyVecEnv

    class Game(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(0, 255, (4, 84, 84), np.uint8)
        action_space = gymnasium.spaces.Discrete(6)

        def reset(self, **_):
            self.left = 40
            return np.zeros((4, 84, 84), np.uint8), {}

        def step(self, action):
            self.left -= 1
            return np.zeros((4, 84, 84), np.uint8), 0.0, self.left == 0, False, {}
    return DummyVecEnv([Game] * n)


def remembers(batch=64):
    """sb3-contrib: PPO with an LSTM; games that ended are padded to the longest of a batch."""
    import gymnasium
    from sb3_contrib import RecurrentPPO
    RecurrentPPO("CnnLstmPolicy", games(gymnasium, 4), n_steps=64, batch_size=batch, n_epochs=2, device=CARD, seed=1).learn(512)


def facts(batch=256):
    """pykeen: ComplEx learns a graph of facts, all answers scored at once, in its own loop, then is tested."""
    import pykeen.triples
    from pykeen.evaluation import RankBasedEvaluator
    from pykeen.models import ComplEx
    from pykeen.training import LCWATrainingLoop
    made = np.random.default_rng(1).integers(0, [4000, 30, 4000], (6 * batch, 3))
    graph = pykeen.triples.CoreTriplesFactory(torch.tensor(made), num_entities=4000, num_relations=30)
    model = ComplEx(triples_factory=graph, embedding_dim=128, random_seed=1).to("cuda")
    LCWATrainingLoop(model=model, triples_factory=graph, optimizer=torch.optim.Adagrad(model.parameters())).train(
        triples_factory=graph, num_epochs=1, batch_size=batch, use_tqdm=False, use_tqdm_batch=False)
    RankBasedEvaluator().evaluate(model, graph.mapped_triples[:2 * batch], additional_filter_triples=graph.mapped_triples,
                                  batch_size=batch, use_tqdm=False)


def sales(batch=64):
    """pytorch-forecasting: DeepAR of series by lightning, scaled by their groups."""
    import lightning
    import pandas
    from pytorch_forecasting import DeepAR, TimeSeriesDataSet
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    many = 2 * batch // 8
    frame = pandas.DataFrame(dict(series=np.repeat(np.arange(many), 60).astype(str), at=np.tile(np.arange(60), many),
                                  sold=np.ones(60 * many)))
    seen = TimeSeriesDataSet(frame, time_idx="at", target="sold", group_ids=["series"], max_encoder_length=30,
                             max_prediction_length=10, static_categoricals=["series"], time_varying_unknown_reals=["sold"])
    model = DeepAR.from_dataset(seen, hidden_size=128, rnn_layers=2, log_interval=-1)
    lightning.Trainer(max_steps=5, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False, gradient_clip_val=0.1,
                      enable_progress_bar=False, enable_model_summary=False, default_root_dir=folder()).fit(
        model, seen.to_dataloader(train=True, batch_size=batch, num_workers=0))


def graphs(n, nodes, width):
    from torch_geometric.data import Data
    made = []
    for k in lengths(n, nodes, 3 * nodes):
        edge = torch.randint(0, k, (2, 3 * k))
        made.append(Data(x=torch.zeros(k, width), edge_index=edge, edge_attr=torch.zeros(3 * k, 16), y=torch.zeros(1)))
    return made


def whole_graphs(batch=16):
    """PyTorch Geometric: GPS, messages along edges and attention between all nodes, graphs of any size."""
    from torch_geometric.loader import DataLoader
    from torch_geometric.nn import GINEConv, GPSConv, global_add_pool

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.of, self.edge = nn.Linear(20, 64), nn.Linear(16, 64)
            self.layers = nn.ModuleList(
                GPSConv(64, GINEConv(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))), heads=4,
                        attn_kwargs=dict(dropout=0.5)) for _ in range(5))
            self.out = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

        def forward(self, d):
            x, e = self.of(d.x), self.edge(d.edge_attr)
            for layer in self.layers:
                x = layer(x, d.edge_index, d.batch, edge_attr=e)
            return self.out(global_add_pool(x, d.batch))
    net = Net().cuda()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-5)
    for d in DataLoader(graphs(6 * batch, 60, 20), batch_size=batch, shuffle=True):
        d = d.to("cuda")
        opt.zero_grad()
        (net(d).squeeze() - d.y).abs().mean().backward()
        opt.step()


def some_nodes(parts=8):
    """PyTorch Geometric: a graph of twenty thousand nodes, so many random parts of it, one a step (RandomNodeLoader)."""
    from torch_geometric.data import Data
    from torch_geometric.loader import RandomNodeLoader
    from torch_geometric.nn import GATv2Conv, MessageNorm
    n = 20000
    all_ = Data(x=torch.zeros(n, 100), edge_index=torch.randint(0, n, (2, 12 * n)), y=torch.zeros(n, dtype=torch.long))
    net = nn.ModuleList([GATv2Conv(100, 64, heads=4), MessageNorm(), GATv2Conv(256, 64, heads=4),
                         GATv2Conv(256, 40, heads=2, concat=False)]).cuda()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
    for i, d in enumerate(RandomNodeLoader(all_, num_parts=parts, shuffle=True)):
        if i == 6:
            break
        d = d.to("cuda")
        h = net[0](d.x, d.edge_index).relu()
        h = h + net[1](h, net[2](h, d.edge_index).relu())
        opt.zero_grad()
        F.cross_entropy(net[3](F.dropout(h), d.edge_index), d.y).backward()
        opt.step()


if __name__ == "__main__":
    main(globals())
