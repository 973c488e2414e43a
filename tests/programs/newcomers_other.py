# SPDX-License-Identifier: Apache-2.0
"""Series, tables, molecules, flows and games by packages that came later: --model NAME."""
import os
import warnings

os.environ.update(HF_HUB_OFFLINE="1", WANDB_DISABLED="true", TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD="1")
warnings.filterwarnings("ignore")

import numpy  # noqa: E402
import torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from fullsize import CARD, classes, images, lengths, main, tokens  # noqa: E402
from newcomers_vision import learn  # noqa: E402


def causal(batch=32):
    """pytorch-tcn: causal convolutions that grow wide."""
    from pytorch_tcn import TCN
    model = TCN(16, [64, 64, 128, 128], kernel_size=5, dropout=0.1, use_skip_connections=True, output_projection=1).cuda()
    learn(model, lambda: F.mse_loss(model(images(batch, 16, 512)), images(batch, 1, 512)))


def mixes(batch=64):
    """pytorch-tsmixer: series are mixed over time and features."""
    from torchtsmixer import TSMixer
    model = TSMixer(sequence_length=256, prediction_length=64, input_channels=32, output_channels=32, num_blocks=4,
                    ff_dim=256).cuda()
    learn(model, lambda: F.mse_loss(model(images(batch, 256, 32)), images(batch, 64, 32)))


def chosen(batch=1024):
    """pytorch-tabnet: a table, features are chosen by steps, fit and its loop."""
    from pytorch_tabnet.tab_model import TabNetClassifier
    rows = numpy.random.rand(4 * batch, 100).astype("float32")
    TabNetClassifier(n_d=32, n_a=32, n_steps=4, device_name="cuda", verbose=0).fit(
        rows, numpy.arange(4 * batch) % 5, max_epochs=2, batch_size=batch, virtual_batch_size=128)


def clicks(batch=2048):
    """deepctr-torch: who clicks, xDeepFM and its loop."""
    from deepctr_torch.inputs import DenseFeat, SparseFeat, get_feature_names
    from deepctr_torch.models import xDeepFM
    kinds = [SparseFeat(f"c{i}", 5000, embedding_dim=16) for i in range(20)] + [DenseFeat(f"d{i}", 1) for i in range(8)]
    model = xDeepFM(kinds, kinds, cin_layer_size=(64, 64), device="cuda")
    model.compile("adam", "binary_crossentropy")
    rows = {n: numpy.random.randint(0, 5000, 3 * batch) if n[0] == "c" else numpy.random.rand(3 * batch)
            for n in get_feature_names(kinds)}
    model.fit(rows, numpy.arange(3 * batch) % 2, batch_size=batch, epochs=2, verbose=0)


def distributions(batch=64):
    """gluonts: DeepAR's net and its likelihood."""
    from gluonts.torch.model.deepar.module import DeepARModel
    model = DeepARModel(freq="h", context_length=96, prediction_length=24, num_feat_dynamic_real=4, num_feat_static_real=1,
                        num_feat_static_cat=1, cardinality=[50], hidden_size=80, num_layers=3, lags_seq=[1, 2, 3, 24, 168]).cuda()
    past = 96 + 168

    def loss():
        return model.loss(classes(50, batch, 1), images(batch, 1), images(batch, past, 4), images(batch, past),
                          torch.ones(batch, past).to(CARD), images(batch, 24, 4), images(batch, 24),
                          torch.ones(batch, 24).to(CARD)).mean()

    learn(model, loss)


def liquid(batch=32):
    """ncps: a liquid net, one step after another."""
    from ncps.torch import CfC
    from ncps.wirings import AutoNCP
    model = CfC(32, AutoNCP(96, 8), batch_first=True).cuda()
    learn(model, lambda: F.mse_loss(model(images(batch, 48, 32))[0], images(batch, 48, 8)), kind=torch.optim.Adam)


def patches(batch=64):
    """chronos-forecasting: T5 reads series by patches and says quantiles."""
    from chronos.chronos_bolt import ChronosBoltModelForForecasting
    from transformers import T5Config
    model = ChronosBoltModelForForecasting(T5Config(
        d_model=256, d_kv=64, d_ff=1024, num_layers=4, num_heads=4, vocab_size=2, feed_forward_proj="relu", pad_token_id=0,
        decoder_start_token_id=0, chronos_config=dict(
            context_length=512, prediction_length=64, input_patch_size=16, input_patch_stride=16, use_reg_token=True,
            quantiles=[i / 10 for i in range(1, 10)]))).cuda()
    learn(model, lambda: model(context=images(batch, 512), target=images(batch, 64)).loss, rate=1e-4)


def turned(batch=8):
    """egnn-pytorch: atoms that may be turned, padded to the largest molecule."""
    from egnn_pytorch import EGNN_Network
    model = EGNN_Network(num_tokens=21, dim=64, depth=3, num_nearest_neighbors=8, norm_coors=True).cuda()

    def loss():
        sizes = lengths(batch, 24, 96, 6, 0.4)
        n = max(sizes)
        mask = (torch.arange(n)[None] < torch.tensor(sizes)[:, None]).to(CARD)
        feats, places = model(tokens(batch, n, 21), torch.randn(batch, n, 3).to(CARD), mask=mask)
        return places.square().mean() + feats.square().mean()

    learn(model, loss, steps=5)


def energies(batch=64):
    """torchani: energies and forces of molecules, padded to the largest."""
    from torchani.arch import simple_ani
    model = simple_ani(("H", "C", "N", "O"), lot="wb97x-631gd", repulsion=False, strategy="pyaev").cuda()

    def loss():
        sizes = lengths(batch, 14, 40, 4, 0.3)
        kinds = torch.full((batch, max(sizes)), -1)
        for row, n in zip(kinds, sizes):
            row[:n] = torch.tensor([1, 6, 7, 8])[torch.randint(0, 4, (n,))]
        places = (torch.rand(batch, max(sizes), 3) * 2.2 * max(sizes) ** (1 / 3)).to(CARD).requires_grad_()
        energy = model((kinds.to(CARD), places)).energies
        forces, = torch.autograd.grad(energy.sum(), places, create_graph=True)
        return energy.square().mean() + forces.square().mean()

    learn(model, loss, steps=5)


def molecule():
    """A chain with branches and rings, as SMILES."""
    n = lengths(1, 14, 60, 4, 0.5)[0]
    kinds = ("C", "N", "O", "C(C)", "C(=O)", "c1ccccc1", "C1CCCC1", "S")
    return "".join(kinds[int(torch.randint(0, len(kinds), ()))] for _ in range(n)) + "C"


def bonds(batch=64):
    """chemprop: properties of molecules by messages along bonds."""
    from chemprop import data, featurizers, models, nn
    points = [data.MoleculeDatapoint.from_smi(molecule(), [float(i % 7)]) for i in range(5 * batch)]
    loader = data.build_dataloader(data.MoleculeDataset(points, featurizers.SimpleMoleculeMolGraphFeaturizer()), batch_size=batch)
    model = models.MPNN(nn.BondMessagePassing(d_h=300, depth=3), nn.MeanAggregation(), nn.RegressionFFN()).cuda()
    opt = torch.optim.Adam(model.parameters(), lr=1e-4)
    for graph, v_d, x_d, targets, weights, lt, gt in loader:
        graph.to("cuda")
        mask = targets.isfinite().to(CARD)
        seen = model.fingerprint(graph, None, None)
        loss = model.criterion(model.predictor.train_step(seen), targets.to(CARD), mask, weights.to(CARD), lt, gt)
        opt.zero_grad()
        loss.backward()
        opt.step()


def fields(batch=4):
    """mace-torch: atoms and their neighbours, equivariant messages; energies and forces."""
    from e3nn import o3
    from mace import data, modules, tools
    from mace.tools import torch_geometric
    table = tools.AtomicNumberTable([1, 6, 8])
    model = modules.MACE(
        r_max=4., num_bessel=8, num_polynomial_cutoff=5, max_ell=2, num_interactions=2, num_elements=3,
        interaction_cls=modules.interaction_classes["RealAgnosticResidualInteractionBlock"],
        interaction_cls_first=modules.interaction_classes["RealAgnosticInteractionBlock"],
        hidden_irreps=o3.Irreps("32x0e + 32x1o"), MLP_irreps=o3.Irreps("16x0e"), gate=F.silu,
        atomic_energies=numpy.zeros(3), avg_num_neighbors=10, atomic_numbers=table.zs, correlation=2).cuda()

    def one():
        n = lengths(1, 24, 80, 6, 0.4)[0]
        config = data.Configuration(atomic_numbers=numpy.array([1, 6, 8])[numpy.arange(n) % 3],
                                    positions=(torch.rand(n, 3) * 1.6 * n ** (1 / 3)).double().numpy(),
                                    properties=dict(energy=1., forces=numpy.zeros((n, 3))), property_weights={})
        return data.AtomicData.from_config(config, z_table=table, cutoff=4.)

    loader = torch_geometric.dataloader.DataLoader([one() for _ in range(5 * batch)], batch_size=batch, shuffle=True,
                                                   drop_last=True)
    loss_of = modules.WeightedEnergyForcesLoss(energy_weight=1., forces_weight=10.)
    opt = torch.optim.Adam(model.parameters(), lr=0.01, amsgrad=True)
    for graph in loader:
        graph = graph.to(CARD)
        out = model(graph.to_dict(), training=True, compute_force=True)
        loss = loss_of(pred=out, ref=graph)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.)
        opt.step()


def spikes(batch=64):
    """snntorch: spikes over 25 steps, convolutions."""
    import snntorch as snn
    from snntorch import functional as SF, surrogate, utils
    own = dict(beta=0.9, spike_grad=surrogate.fast_sigmoid(), init_hidden=True)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(2, 24, 5), torch.nn.MaxPool2d(2), snn.Leaky(**own), torch.nn.Conv2d(24, 48, 5), torch.nn.MaxPool2d(2),
        snn.Leaky(**own), torch.nn.Flatten(), torch.nn.Linear(48 * 25, 10), snn.Leaky(**own, output=True)).cuda()
    loss_of = SF.mse_count_loss(correct_rate=0.8, incorrect_rate=0.2)

    def loss():
        utils.reset(model)
        frames, out = images(25, batch, 2, 32, 32), []
        for frame in frames:
            out.append(model(frame)[0])
        return loss_of(torch.stack(out), classes(10, batch))

    learn(model, loss, kind=torch.optim.Adam)


def splines(batch=1024):
    """zuko: neural spline flows, a posterior; then samples are drawn."""
    import zuko
    model = zuko.flows.NSF(16, 32, transforms=4, hidden_features=[256] * 3).cuda()
    learn(model, lambda: -model(images(batch, 32)).log_prob(torch.randn(batch, 16).to(CARD)).mean())
    with torch.no_grad():
        model(images(8, 32)).sample((batch,))


def masked_flow(batch=2048):
    """nflows: a masked autoregressive flow."""
    from nflows.distributions.normal import StandardNormal
    from nflows.flows.base import Flow
    from nflows.transforms.autoregressive import MaskedAffineAutoregressiveTransform
    from nflows.transforms.base import CompositeTransform
    from nflows.transforms.permutations import ReversePermutation
    parts = [p for _ in range(5) for p in (ReversePermutation(features=32), MaskedAffineAutoregressiveTransform(32, 256))]
    model = Flow(CompositeTransform(parts), StandardNormal([32])).cuda()
    learn(model, lambda: -model.log_prob(inputs=torch.randn(batch, 32).to(CARD)).mean(), kind=torch.optim.Adam)


class Game:
    """Frames that nobody draws, a reward now and then, and an end after so many steps."""

    def __new__(cls, most=40, shape=(4, 84, 84), kind=numpy.uint8, drawn=False):
        import gymnasium

        class Frames(gymnasium.Env):
            observation_space = gymnasium.spaces.Box(0, 255, shape, kind)
            action_space = gymnasium.spaces.Discrete(6)

            def reset(self, seed=None, options=None):
                self.left = lengths(1, most, 4 * most, 4)[0] if drawn else most
                return self.observation_space.sample(), {}

            def step(self, action):
                self.left -= 1
                return self.observation_space.sample(), float(self.left % 7 == 0), self.left <= 0, False, {}
        return Frames()


def remembered(batch=32):
    """pfrl: a distributional DQN out of its memory."""
    import pfrl
    net = pfrl.q_functions.DistributionalDuelingDQN(6, 51, -10, 10).cuda()
    memory = pfrl.replay_buffers.ReplayBuffer(2000)
    agent = pfrl.agents.CategoricalDoubleDQN(
        net, torch.optim.Adam(net.parameters(), 6e-5), memory, gpu=0, gamma=0.99, replay_start_size=batch, minibatch_size=batch,
        update_interval=4, target_update_interval=16, explorer=pfrl.explorers.ConstantEpsilonGreedy(0.1, lambda: 0),
        phi=lambda x: numpy.asarray(x, dtype=numpy.float32) / 255)
    game = Game()
    seen, _ = game.reset()
    for _ in range(batch + 20):
        action = agent.act(seen)
        seen, reward, over, _, _ = game.step(action)
        agent.observe(seen, reward, over, over)
        if over:
            seen, _ = game.reset()


def offline(batch=64):
    """d3rlpy: conservative Q-learning from what others played, and its loop."""
    import d3rlpy
    n = 1000
    ends = numpy.zeros(n)
    ends[99::100] = 1
    data = d3rlpy.dataset.MDPDataset(numpy.random.randint(0, 255, (n, 4, 84, 84)).astype("uint8"), numpy.random.randint(0, 6, n),
                                     numpy.random.rand(n), ends)
    learner = d3rlpy.algos.DiscreteCQLConfig(batch_size=batch, n_critics=2, target_update_interval=2).create(device="cuda:0")
    learner.fit(data, n_steps=4, n_steps_per_epoch=2, show_progress=False,
                logger_adapter=d3rlpy.logging.NoopAdapterFactory())


if __name__ == "__main__":
    main(globals())
