# SPDX-License-Identifier: Apache-2.0
"""Matter, clouds, graphs and what nets are sure of, by packages that stood in no list before: --model NAME."""
import os
import sys
import tempfile
import types
import warnings

os.environ.update(HF_HUB_OFFLINE="1", WANDB_DISABLED="true", TQDM_DISABLE="1")
warnings.filterwarnings("ignore")

import numpy  # noqa: E402
import torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from fullsize import CARD, classes, images, lengths, main  # noqa: E402
from thirds_vision import epoch  # noqa: E402


def several(batch=32):
    """torchensemble: nets vote, each from its own point of one run, its loop and its test."""
    from torch.utils.data import DataLoader, TensorDataset
    from torchensemble import SnapshotEnsembleClassifier
    from torchvision.models.resnet import BasicBlock, ResNet
    data = [TensorDataset(torch.rand(n * batch, 3, 64, 64), torch.arange(n * batch) % 10) for n in (4, 1)]
    train, test = (DataLoader(part, batch_size=batch) for part in data)
    votes = SnapshotEnsembleClassifier(estimator=ResNet, n_estimators=2, cuda=True,
                                       estimator_args=dict(block=BasicBlock, layers=[2, 2, 2, 2], num_classes=10))
    votes.set_optimizer("SGD", lr=0.1, momentum=0.9)
    votes.fit(train, epochs=2, test_loader=test, save_model=False, log_interval=1)


def explained(batch=2):
    """grad-cam: which channels count, a picture is shown once for each; nothing is trained."""
    from pytorch_grad_cam import GradCAMPlusPlus, ScoreCAM
    from torchvision.models import resnet34
    model = resnet34(num_classes=10).cuda().eval()
    for kind in (GradCAMPlusPlus, ScoreCAM):
        with kind(model=model, target_layers=[model.layer2[-1] if kind is ScoreCAM else model.layer4[-1]]) as cam:
            cam.batch_size = 32
            cam(input_tensor=images(batch, 3, 224, 224), targets=None)


def coupled(batch=64):
    """FrEIA: pictures become noise and back, with what is known of them."""
    import FrEIA.framework as frame
    import FrEIA.modules as parts

    def small(i, o):
        return torch.nn.Sequential(torch.nn.Conv2d(i, 128, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(128, o, 3, padding=1))

    net = frame.SequenceINN(3, 32, 32)
    for scale in range(3):
        for _ in range(3):
            net.append(parts.AllInOneBlock, subnet_constructor=small, permute_soft=scale < 2)
        net.append(parts.HaarDownsampling)
    net.append(parts.Flatten)
    net.cuda()

    def loss():
        z, log_det = net(images(batch, 3, 32, 32))
        return (0.5 * z.square().sum(1) - log_det).mean() / z.shape[1]

    epoch(net, loss, torch.optim.Adam(net.parameters(), lr=1e-3, betas=(0.9, 0.95)))
    with torch.no_grad():
        net(torch.randn(batch, 3 * 32 * 32, device=CARD), rev=True)


def heat(side=128):
    """neurodiffeq: an equation of heat, second derivatives of a net, its own solver."""
    from neurodiffeq import diff
    from neurodiffeq.conditions import IBVP1D
    from neurodiffeq.generators import Generator2D
    from neurodiffeq.networks import FCNN
    from neurodiffeq.solvers import Solver2D
    torch.set_default_device("cuda")
    solver = Solver2D(
        pde_system=lambda u, x, t: [diff(u, t) - 0.3 * diff(u, x, order=2)],
        conditions=[IBVP1D(t_min=0., t_min_val=lambda x: torch.sin(3.1416 * x), x_min=0., x_min_val=lambda t: 0. * t,
                           x_max=1., x_max_val=lambda t: 0. * t)],
        nets=[FCNN(n_input_units=2, hidden_units=(128, 128, 128))], n_batches_valid=1,
        train_generator=Generator2D((side, side), (0., 0.), (1., 1.), method="equally-spaced-noisy"),
        valid_generator=Generator2D((side, side), (0., 0.), (1., 1.), method="equally-spaced"))
    solver.fit(max_epochs=3)


def curvature(batch=64):
    """laplace-torch: a net learns, then its curvature says how sure it is."""
    from laplace import Laplace
    from torch.utils.data import DataLoader, TensorDataset
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 64, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                              torch.nn.Conv2d(64, 128, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
                              torch.nn.Linear(128 * 64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).cuda()
    epoch(net, lambda: F.cross_entropy(net(images(batch, 3, 32, 32)), classes(10, batch)), torch.optim.Adam(net.parameters()))
    net.eval()
    sure = Laplace(net, "classification", subset_of_weights="last_layer", hessian_structure="kron")
    sure.fit(DataLoader(TensorDataset(torch.rand(2 * batch, 3, 32, 32), torch.arange(2 * batch) % 10), batch_size=batch))
    sure(images(batch, 3, 32, 32), link_approx="probit")


def boxes(batch=2):
    """rfdetr: boxes out of a windowed encoder, groups of queries are matched."""
    from rfdetr.config import RFDETRNanoConfig
    from rfdetr.main import populate_args
    from rfdetr.models import build_criterion_and_postprocessors, build_model
    plan = populate_args(**(RFDETRNanoConfig(pretrain_weights=None, device="cuda", num_classes=20).model_dump() | dict(
        group_detr=3, num_queries=100, num_select=100, aux_loss=True)))
    model, (judge, _) = build_model(plan).cuda().train(), build_criterion_and_postprocessors(plan)

    def loss():
        targets = [dict(labels=classes(20, n), boxes=(torch.rand(n, 4) * 0.3 + 0.2).to(CARD))
                   for n in lengths(batch, 8, 60, 1, 0.9)]
        said = judge(model(images(batch, 3, 384, 384), targets), targets)
        return sum(said[k] * w for k, w in judge.weight_dict.items() if k in said)

    epoch(model, loss, torch.optim.AdamW(model.parameters(), lr=1e-4), steps=4)


def proteins(batch=4):
    """fair-esm: proteins of any length, some of their acids are masked."""
    import esm
    letters = esm.data.Alphabet.from_architecture("ESM-1b")
    model = esm.ESM2(num_layers=6, embed_dim=320, attention_heads=20, alphabet=letters).cuda().train()
    convert = letters.get_batch_converter()

    def loss():
        rows = [("", "".join("LAGVSERTIDPKQNFYMHWC"[i] for i in torch.randint(0, 20, (n,))))
                for n in lengths(batch, 180, 900, 30)]
        words = convert(rows)[2]
        hidden = (torch.rand(words.shape) < 0.15) & (words != letters.padding_idx)
        seen = words.masked_fill(hidden, letters.mask_idx).to(CARD)
        said = model(seen, repr_layers=[6])["logits"]
        return F.cross_entropy(said.transpose(1, 2), words.masked_fill(~hidden, -100).to(CARD))

    epoch(model, loss, torch.optim.AdamW(model.parameters(), lr=4e-4, betas=(0.9, 0.98)), steps=5)


def forces(batch=4):
    """orb-models: crystals as graphs of neighbours, energies and forces at once."""
    sys.modules["cached_path"] = types.SimpleNamespace(cached_path=None)  # only for weights that are fetched
    import ase
    from orb_models.forcefield import atomic_system, base, pretrained
    config = atomic_system.SystemConfig(radius=5., max_num_neighbors=40)
    model = pretrained.orb_v3_direct_architecture(
        base_mlp_hidden_dim=256, num_message_passing_steps=3, has_stress=False, device="cuda", system_config=config).train()

    def one():
        n = lengths(1, 28, 120, 4, 0.7)[0]
        side = (12. * n) ** (1 / 3)
        atoms = ase.Atoms(numbers=(torch.arange(n) % 3 * 5 + 3).numpy(), positions=(torch.rand(n, 3) * side).double().numpy(),
                          cell=numpy.eye(3) * side, pbc=True)
        atoms.info = dict(system_targets=dict(energy=torch.rand(1, 1)), node_targets=dict(forces=torch.rand(n, 3)))
        atoms.info["graph_targets"] = atoms.info["system_targets"]
        return atomic_system.ase_atoms_to_atom_graphs(atoms, config, device=torch.device("cpu"), edge_method="knn_scipy")

    epoch(model, lambda: model.loss(base.batch_graphs([one() for _ in range(batch)]).to(CARD)).loss,
          torch.optim.Adam(model.parameters(), lr=3e-4), steps=4)


def clouds(batch=4):
    """geomloss: clouds of points are moved onto others, by optimal transport, one pair after another."""
    from geomloss import SamplesLoss
    far = SamplesLoss("sinkhorn", p=2, blur=0.1, scaling=0.5, diameter=2., backend="tensorized")
    net = torch.nn.Sequential(torch.nn.Linear(3, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128), torch.nn.ReLU(),
                              torch.nn.Linear(128, 3)).cuda()

    def loss():
        pairs = zip(lengths(batch, 700, 2500, 100), lengths(batch, 700, 2500, 100))
        return sum(far(net(images(n, 3)), images(m, 3)) for n, m in pairs) / batch

    epoch(net, loss, torch.optim.Adam(net.parameters(), lr=1e-3))


def kinds(batch=8):
    """PyTorch Geometric HGT: graphs whose nodes and edges are of several kinds."""
    from torch_geometric.data import HeteroData
    from torch_geometric.loader import DataLoader
    from torch_geometric.nn import HGTConv
    pairs = (("author", "writes", "paper"), ("paper", "cites", "paper"), ("paper", "belongs", "field"),
             ("paper", "by", "author"), ("field", "has", "paper"))

    def one():
        graph, many = HeteroData(), dict(zip(("author", "paper", "field"), lengths(3, 400, 3000, 20)))
        for name, n in many.items():
            graph[name].x = torch.rand(n, 64)
        for a, how, b in pairs:
            n = 3 * many[a]
            graph[a, how, b].edge_index = torch.stack((torch.randint(0, many[a], (n,)), torch.randint(0, many[b], (n,))))
        graph["paper"].y = torch.arange(many["paper"]) % 7
        return graph

    first = one()
    layers = torch.nn.ModuleList(HGTConv(64 if not i else 128, 128, first.metadata(), heads=4) for i in range(3)).cuda()
    head = torch.nn.Linear(128, 7).cuda()
    graphs = iter(DataLoader([one() for _ in range(4 * batch)], batch_size=batch, shuffle=True))

    def loss():
        graph = next(graphs).to(CARD)
        x = graph.x_dict
        for layer in layers:
            x = x | {k: F.relu(v) for k, v in layer(x, graph.edge_index_dict).items() if v is not None}
        return F.cross_entropy(head(x["paper"]), graph["paper"].y)

    epoch(layers, loss, torch.optim.AdamW([*layers.parameters(), *head.parameters()], lr=1e-3), steps=4)


def crystals(batch=4):
    """chgnet: crystals, their bonds and angles; energies and forces by its own loop."""
    from chgnet.data.dataset import StructureData, get_loader
    from chgnet.model.model import CHGNet
    from chgnet.trainer import Trainer
    from pymatgen.core import Lattice, Structure

    def one():
        n = lengths(1, 10, 40, 2, 0.6)[0]
        kinds = [("Li", "O", "Fe")[i % 3] for i in range(n)]
        return Structure(Lattice.cubic((14. * n) ** (1 / 3)), kinds, torch.rand(n, 3).double().numpy())

    cells = [one() for _ in range(3 * batch)]

    def loader(some):
        return get_loader(StructureData(some, [-1. * len(c) for c in some], [numpy.zeros((len(c), 3)).tolist() for c in some]),
                          batch_size=batch, pin_memory=False)

    Trainer(CHGNet(), targets="ef", epochs=1, use_device="cuda", torch_seed=torch.initial_seed() % 1000).train(
        loader(cells), loader(cells[:batch]), save_dir=tempfile.mkdtemp(prefix="thirds."))


if __name__ == "__main__":
    main(globals())
