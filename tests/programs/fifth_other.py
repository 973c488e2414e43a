# SPDX-License-Identifier: Apache-2.0
"""Graphs, tables, series, games and mathematics by packages that stood in no list before: --model NAME."""
import os
import tempfile
import warnings

os.environ.update(HF_HUB_OFFLINE="1", WANDB_DISABLED="true", TQDM_DISABLE="1")
warnings.filterwarnings("ignore")

import numpy  # noqa: E402
import torch  # noqa: E402
import torchvision  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from fourth_vision import until  # noqa: E402
from fullsize import CARD, classes, images, lengths, main  # noqa: E402
from newcomers_vision import learn  # noqa: E402


def tensor_products(batch=4):
    """e3nn: clouds of atoms whose features turn with them, edges within a radius."""
    from e3nn.nn.models.v2106.gate_points_networks import SimpleNetwork
    model = SimpleNetwork(irreps_in="4x0e", irreps_out="1x0e", max_radius=1.5, num_neighbors=8.0, num_nodes=30.0, mul=24,
                          layers=2, lmax=2).cuda()

    def loss():
        sizes = lengths(batch, 30, 90, 8)
        where = torch.rand(sum(sizes), 3) * 4
        of = torch.arange(batch).repeat_interleave(torch.tensor(sizes))
        near = (torch.cdist(where, where) < 1.5) & (of[:, None] == of) & ~torch.eye(len(of), dtype=torch.bool)
        edges = near.nonzero().T.contiguous()
        out = model(dict(pos=where.to(CARD), x=images(len(of), 4), batch=of.to(CARD), edge_index=edges.to(CARD)))
        return F.mse_loss(out, images(*out.shape))

    learn(model, loss, steps=3)


def translations(batch=1024):
    """torchkge: facts as steps between points, false ones are drawn, all facts are on the card."""
    import pandas
    from torchkge.data_structures import KnowledgeGraph
    from torchkge.models import TransHModel
    from torchkge.sampling import BernoulliNegativeSampler
    from torchkge.utils import DataLoader as Facts
    from torchkge.utils import MarginLoss
    rows = numpy.stack((numpy.random.randint(0, 12000, 60000), numpy.random.randint(0, 12000, 60000),
                        numpy.random.randint(0, 60, 60000)), 1)
    known = KnowledgeGraph(df=pandas.DataFrame(rows, columns=["from", "to", "rel"]))
    model = TransHModel(128, known.n_ent, known.n_rel).cuda()
    measure, draw = MarginLoss(0.5).cuda(), BernoulliNegativeSampler(known)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-5)
    for step, (h, t, r) in enumerate(Facts(known, batch_size=batch, use_cuda="all")):
        opt.zero_grad()
        measure(*model(h, t, r, *draw.corrupt_batch(h, t, r))).backward()
        opt.step()
        if step == 5:
            break
    model.normalize_parameters()


def directed(hidden=32):
    """torch-geometric-signed-directed: a graph with directions, complex Laplacians, all of it at once."""
    from torch_geometric_signed_directed.nn.directed import MagNet_node_classification
    edges = torch.randint(0, 8000, (2, 60000))
    model = MagNet_node_classification(num_features=64, hidden=hidden, K=2, label_dim=8, layer=3, dropout=0.5).cuda()
    seen, what = images(8000, 64), classes(8, 8000)
    edges = edges.to(CARD)
    learn(model, lambda: F.nll_loss(model(seen, seen, edges), what), steps=4)


def strange_rows(batch=512):
    """pyod: what an autoencoder cannot copy is strange, its loop, then all rows are judged."""
    from pyod.models.auto_encoder import AutoEncoder
    AutoEncoder(batch_size=batch, epoch_num=1, hidden_neuron_list=[512, 256, 64], device=torch.device("cuda:0"), verbose=0).fit(
        numpy.random.rand(6000, 200))


def strange_times(batch=64):
    """deepod: strange hours of series, TimesNet, its loop and its scores."""
    from deepod.models.time_series import AnomalyTransformer
    AnomalyTransformer(seq_len=100, stride=10, epochs=1, epoch_steps=4, batch_size=batch, device="cuda", verbose=0).fit(
        numpy.random.rand(6000, 25).astype("float32"))


def tiny_mixers(batch=64):
    """granite-tsfm: TinyTimeMixer, series are mixed in patches (transformers Trainer)."""
    import transformers as t
    from tsfm_public.models.tinytimemixer import TinyTimeMixerConfig, TinyTimeMixerForPrediction
    model = TinyTimeMixerForPrediction(TinyTimeMixerConfig(
        context_length=512, prediction_length=96, num_input_channels=7, patch_length=64, patch_stride=64, d_model=192,
        num_layers=3, adaptive_patching_levels=3, decoder_num_layers=2))
    data = [dict(past_values=torch.rand(512, 7), future_values=torch.rand(96, 7)) for _ in range(1100)]
    t.Trainer(model, t.TrainingArguments(
        tempfile.mkdtemp(prefix="fifth."), per_device_train_batch_size=batch, max_steps=4, report_to=[], save_strategy="no",
        disable_tqdm=True, eval_strategy="steps", eval_steps=3, per_device_eval_batch_size=batch), train_dataset=data,
        eval_dataset=data[:150]).train()


def drawn_weights(batch=32):
    """bayesian-torch: a net becomes one whose weights are drawn, several draws when it is tested."""
    from bayesian_torch.models.dnn_to_bnn import dnn_to_bnn, get_kl_loss
    model = torchvision.models.resnet18(num_classes=10)
    dnn_to_bnn(model, dict(prior_mu=0.0, prior_sigma=1.0, posterior_mu_init=0.0, posterior_rho_init=-3.0,
                           type="Flipout", moped_enable=False, moped_delta=0.5))
    model.cuda()
    learn(model, lambda: F.cross_entropy(model(images(batch, 3, 64, 64)), classes(10, batch)) + get_kl_loss(model) / batch, steps=3)
    with torch.no_grad():
        seen = images(batch, 3, 64, 64)
        torch.stack([model(seen).softmax(-1) for _ in range(5)]).mean(0).argmax(-1).cpu()


def streams(batch=256):
    """torchdyn: a field whose streams part two moons, gradients by its adjoint (lightning)."""
    from torchdyn.core import NeuralODE
    field = torch.nn.Sequential(torch.nn.Linear(2, 256), torch.nn.Tanh(), torch.nn.Linear(256, 256), torch.nn.Tanh(),
                                torch.nn.Linear(256, 2))
    model = NeuralODE(field, sensitivity="adjoint", solver="rk4", return_t_eval=False).cuda()
    span = torch.linspace(0, 1, 20).to(CARD)
    learn(model, lambda: F.cross_entropy(model(images(batch, 2), span)[-1], classes(2, batch)), steps=3)


def made_rows(batch=500):
    """ctgan: rows of tables are made, ten at once are judged, a penalty of gradients, its loop, then it makes some."""
    import pandas
    from ctgan import CTGAN
    n = 4000
    rows = pandas.DataFrame(dict(a=numpy.random.rand(n), b=numpy.random.randn(n), c=numpy.random.choice(list("xyz"), n),
                                 d=numpy.random.choice([str(i) for i in range(20)], n)))
    made = CTGAN(epochs=1, batch_size=batch, enable_gpu=True, verbose=False)
    made.fit(rows, ["c", "d"])
    made.sample(1000)


def many_small(batch=256):
    """tabm: many small nets in one read tables."""
    import tabm
    model = tabm.TabM.make(n_num_features=40, cat_cardinalities=[4] * 10, d_out=5).cuda()
    rows = torch.rand(12000, 40).to(CARD)  # all of the table is on the card
    kinds, what = classes(4, 12000, 10), classes(5, 12000)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for some in torch.randperm(12000).to(CARD).split(batch)[:5]:
        opt.zero_grad()
        out = model(rows[some], kinds[some])
        F.cross_entropy(out.flatten(0, 1), what[some].repeat_interleave(model.backbone.k)).backward()
        opt.step()
    with torch.inference_mode():
        model.eval()
        torch.cat([model(rows[i], kinds[i]).softmax(-1).mean(1) for i in torch.arange(12000).split(2048)]).cpu()


def survival(batch=256):
    """pycox: who lives how long, others at risk are drawn for each, its loop (torchtuples)."""
    import torchtuples
    from pycox.models import CoxTime
    from pycox.models.cox_time import MLPVanillaCoxTime
    n = 6000
    model = CoxTime(MLPVanillaCoxTime(80, [512, 512, 256], batch_norm=True, dropout=0.1), torchtuples.optim.Adam(1e-3), device=0)
    rows = numpy.random.rand(n, 80).astype("float32")
    said = numpy.random.rand(n).astype("float32"), numpy.random.randint(0, 2, n).astype("float32")
    model.fit(rows, said, batch, 1, verbose=False, val_data=(rows[:1000], tuple(s[:1000] for s in said)))


def prompts_of_tables(batch=64):
    """pytorch-frame: Trompt, prompts read tables, a loss in each of its layers."""
    import pandas
    import torch_frame as f
    from torch_frame.data import DataLoader as Rows
    from torch_frame.data import Dataset
    from torch_frame.nn import Trompt
    n = 3000
    table = pandas.DataFrame({**{f"n{i}": numpy.random.rand(n) for i in range(16)},
                              **{f"c{i}": numpy.random.randint(0, 12, n) for i in range(8)}, "y": numpy.random.randint(0, 3, n)})
    data = Dataset(table, {**{f"n{i}": f.numerical for i in range(16)}, **{f"c{i}": f.categorical for i in range(8)},
                           "y": f.categorical}, target_col="y")
    data.materialize()
    model = Trompt(channels=128, out_channels=3, num_prompts=64, num_layers=4, col_stats=data.col_stats,
                   col_names_dict=data.tensor_frame.col_names_dict).cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step, rows in enumerate(Rows(data.tensor_frame, batch_size=batch, shuffle=True)):
        rows = rows.to(CARD)
        out = model(rows)
        F.cross_entropy(out.reshape(-1, 3), rows.y.repeat_interleave(out.shape[1])).backward()
        opt.step()
        opt.zero_grad()
        if step == 4:
            break


def profiles(batch=32):
    """bpnet-lite: profiles of genomes in base pairs, dilated convolutions, its loop and its test."""
    from bpnetlite.bpnet import BPNet
    model = BPNet(n_filters=64, n_layers=8, n_outputs=2, n_control_tracks=0, trimming=557, verbose=False,
                  name=tempfile.mkdtemp(prefix="fifth.") + "/b").cuda()
    seen, out = torch.rand(6 * batch, 4, 2114), torch.rand(6 * batch, 2, 1000).round()
    model.fit(DataLoader(TensorDataset(seen, out, torch.ones(6 * batch)), batch), torch.optim.AdamW(model.parameters(), lr=1e-3),
              X_valid=seen[:100], y_valid=out[:100], max_epochs=1, batch_size=batch, device="cuda")


def units(batch=16):
    """torchtnt: its unit and its loop, bf16, accumulated, an average of weights, tested."""
    from torchtnt.framework.auto_unit import AutoUnit, SWAParams
    from torchtnt.framework.fit import fit
    from torchtnt.framework.state import State

    class Unit(AutoUnit):
        def compute_loss(self, state: State, data):
            out = self.module(data[0])
            return F.cross_entropy(out, data[1]), out

        def configure_optimizers_and_lr_scheduler(self, module):
            opt = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
            return opt, torch.optim.lr_scheduler.StepLR(opt, 1)
    unit = Unit(module=torchvision.models.regnet_x_800mf(num_classes=50), device=CARD, precision="bf16",
                gradient_accumulation_steps=2, clip_grad_norm=1.0,
                swa_params=SWAParams(warmup_steps_or_epochs=2, step_or_epoch_update_freq=1, averaging_method="ema"))
    data = TensorDataset(torch.rand(6 * batch, 3, 128, 128), torch.randint(0, 50, (6 * batch,)))
    fit(unit, DataLoader(data, batch), DataLoader(data, 32), max_epochs=1, max_eval_steps_per_epoch=2)


def hyperdimensional(batch=32):
    """torch-hd: pictures as long vectors that are bound and bundled, without gradients."""
    import torchhd
    from torchhd.models import Centroid

    class Encoder(torch.nn.Module):
        def __init__(self, size, levels, out):
            super().__init__()
            self.flatten = torch.nn.Flatten(-2)
            self.position, self.value = torchhd.embeddings.Random(size * size, out), torchhd.embeddings.Level(levels, out)

        def forward(self, x):
            return torchhd.hard_quantize(torchhd.multiset(torchhd.bind(self.position.weight, self.value(self.flatten(x)))))

    encode, model = Encoder(28, 1000, 4000).cuda(), Centroid(4000, 10).cuda()
    with torch.no_grad():
        for _ in range(4):
            model.add(encode(images(batch, 28, 28)), classes(10, batch))
        model.normalize()
        for _ in range(2):
            model(encode(images(2 * batch, 28, 28)), dot=True).argmax(-1).cpu()


def maps(points=2000):
    """torchdr: t-SNE, who is near whom among all points, its loop."""
    from torchdr import TSNE
    TSNE(perplexity=30, max_iter=6, early_exaggeration_iter=3, init="normal", device="cuda", backend=None).fit_transform(
        torch.rand(points, 64))


def walks(envs=8):
    """torch-ac: PPO with a memory, frames of many games at once, parts of them with their own beginnings."""
    import gymnasium
    from torch_ac.algos import PPOAlgo
    from torch_ac.model import RecurrentACModel
    from torch_ac.utils import DictList
    from torch.distributions import Categorical

    class Game(gymnasium.Env):
        observation_space, action_space = gymnasium.spaces.Box(0, 1, (3, 40, 40)), gymnasium.spaces.Discrete(6)

        def reset(self, **_):
            self.left = 40
            return numpy.random.rand(3, 40, 40).astype("float32"), {}

        def step(self, _):
            self.left -= 1
            return numpy.random.rand(3, 40, 40).astype("float32"), 0.1, not self.left, False, {}

    class Net(torch.nn.Module, RecurrentACModel):
        memory_size = 512

        def __init__(self):
            torch.nn.Module.__init__(self)
            self.see = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 5, 2), torch.nn.ReLU(), torch.nn.Conv2d(32, 64, 3, 2),
                                           torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64 * 64, 256))
            self.net, self.act, self.judge = torch.nn.LSTMCell(256, 256), torch.nn.Linear(256, 6), torch.nn.Linear(256, 1)

        def forward(self, seen, memory):
            h, c = self.net(self.see(seen.image), (memory[:, :256], memory[:, 256:]))
            return Categorical(logits=self.act(h).log_softmax(1)), self.judge(h).squeeze(1), torch.cat((h, c), 1)

    import torch_ac.algos.base as base

    class Here:  # its games run in processes of their own
        def __init__(self, games):
            self.games = games

        def reset(self):
            return [g.reset()[0] for g in self.games]

        def step(self, actions):
            return zip(*[(o if not d else g.reset()[0], r, d, t, i) for g, (o, r, d, t, i) in
                         ((g, g.step(a)) for g, a in zip(self.games, actions))])
    base.ParallelEnv = Here
    algo = PPOAlgo([Game() for _ in range(envs)], Net().cuda(), CARD, num_frames_per_proc=16, recurrence=4, epochs=2,
                   batch_size=4 * envs,
                   preprocess_obss=lambda seen, device=None: DictList(dict(image=torch.tensor(numpy.stack(seen), device=device))))
    for _ in range(2):
        seen, _ = algo.collect_experiences()
        algo.update_parameters(seen)


def poses(count=256):
    """pypose: where cameras stood, by Levenberg and Marquardt, all derivatives at once."""
    import pypose as pp

    class Inverse(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.pose = pp.Parameter(pp.randn_SE3(count))

        def forward(self, seen):
            return (self.pose @ seen).Log().tensor()

    model = Inverse().cuda()
    opt = pp.optim.LM(model, strategy=pp.optim.strategy.Constant(damping=1e-4))
    seen = pp.randn_SE3(count).to(CARD)
    for _ in range(3):
        opt.step(seen)


if __name__ == "__main__":
    main({f.__name__: f for f in (tensor_products, translations, directed, strange_rows, strange_times, tiny_mixers,
                                  drawn_weights, streams, made_rows, many_small, survival, prompts_of_tables, profiles, units,
                                  hyperdimensional, maps, walks, poses)})
