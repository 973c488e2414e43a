# SPDX-License-Identifier: Apache-2.0
"""Pictures, clouds and bags by packages that stood in no list before: --model NAME."""
import os
import sys
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


def pictures(n, side, kinds=10):
    return TensorDataset(torch.rand(n, 3, side, side), torch.randint(0, kinds, (n,)))


def karras(batch=8):
    """k-diffusion: its net of pictures, its weighting of noise, averaged weights, then a few are sampled."""
    from copy import deepcopy
    sys.path.append(sys.path.pop(0))  # it wants a module that has the name of a program here
    import k_diffusion as k
    config = k.config.load_config(dict(model=dict(
        type="image_v1", input_channels=3, input_size=[64, 64], patch_size=2, mapping_out=128, depths=[2, 2, 4],
        channels=[64, 128, 256], self_attn_depths=[False, False, True], dropout_rate=0.05, augment_prob=0.12,
        sigma_data=0.5, sigma_min=1e-2, sigma_max=80, sigma_sample_density=dict(type="lognormal", mean=-1.2, std=1.2)),
        dataset=dict(type="imagefolder", location="x"), optimizer=dict(type="adamw", lr=1e-4)))
    inner = k.config.make_model(config).cuda()
    model, density = k.config.make_denoiser_wrapper(config)(inner), k.config.make_sample_density(config["model"])
    average, opt = deepcopy(model), torch.optim.AdamW(inner.parameters(), lr=1e-4, betas=(0.95, 0.999))
    for _ in range(3):
        real = images(batch, 3, 64, 64)
        loss = model.loss(real, torch.randn_like(real), density([batch], device=CARD), aug_cond=real.new_zeros(batch, 9)).mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        k.utils.ema_update(model, average, 0.99)
    with torch.no_grad():
        x, sigmas = torch.randn(16, 3, 64, 64, device=CARD) * 80, k.sampling.get_sigmas_karras(4, 1e-2, 80, device=CARD)
        k.sampling.sample_euler(average, x, sigmas, disable=True)


def motion(batch=2):
    """ptlflow: where pixels go, GMA and its own loss at each of its steps."""
    import ptlflow
    model = ptlflow.get_model("gma").cuda().train()
    learn(model, lambda: model.loss_fn(model(dict(images=images(batch, 2, 3, 128, 192))),
                                       dict(flows=images(batch, 1, 2, 128, 192),
                                            valids=torch.ones(batch, 1, 1, 128, 192).to(CARD))),
          steps=2, rate=1e-4)


def pruned(batch=32):
    """torch-pruning: a net loses half of its channels twice and learns in between."""
    import torch_pruning as tp
    model = torchvision.models.resnet34(num_classes=100).cuda()
    cut = tp.pruner.MagnitudePruner(model, images(1, 3, 112, 112), importance=tp.importance.MagnitudeImportance(p=2),
                                    pruning_ratio=0.5, iterative_steps=2, ignored_layers=[model.fc])
    for _ in range(2):
        learn(model, lambda: F.cross_entropy(model(images(batch, 3, 112, 112)), classes(100, batch)), steps=2)
        cut.step()
    learn(model, lambda: F.cross_entropy(model(images(batch, 3, 112, 112)), classes(100, batch)), steps=2)


def defended(batch=32):
    """adversarial-robustness-toolbox: half of each batch is attacked, its trainer."""
    from art.attacks.evasion import FastGradientMethod
    from art.defences.trainer import AdversarialTrainer
    from art.estimators.classification import PyTorchClassifier
    model = torchvision.models.resnet18(num_classes=10)
    known = PyTorchClassifier(model, loss=torch.nn.CrossEntropyLoss(), input_shape=(3, 32, 32), nb_classes=10,
                              optimizer=torch.optim.Adam(model.parameters(), lr=1e-3), clip_values=(0, 1), device_type="gpu")
    until(6)
    AdversarialTrainer(known, FastGradientMethod(known, eps=0.03, batch_size=64)).fit(
        numpy.random.rand(1024, 3, 32, 32).astype("float32"), numpy.random.randint(0, 10, 1024), batch_size=batch, nb_epochs=1)


def fooled(batch=16):
    """foolbox: how far pictures must be changed, two attacks, nothing is trained."""
    import foolbox
    model = torchvision.models.mobilenet_v3_large(num_classes=100).cuda().eval()
    seen = foolbox.PyTorchModel(model, bounds=(0, 1))
    for attack in (foolbox.attacks.LinfPGD(steps=3), foolbox.attacks.L2DeepFoolAttack(steps=2, candidates=4)):
        attack(seen, images(batch, 3, 160, 160), classes(100, batch), epsilons=[0.01, 0.03])


def bags(batch=4):
    """torchmil: a bag of tiles has one label, the tiles look at each other, its trainer."""
    from torchmil.data import collate_fn
    from torchmil.models import TransformerABMIL
    from torchmil.utils import Trainer
    from torchmetrics import Accuracy

    class Bags(torch.utils.data.Dataset):
        def __len__(self):
            return 6 * batch

        def __getitem__(self, i):
            n = lengths(1, 400, 1600, 40)[0]
            return dict(X=torch.rand(n, 512), Y=torch.randint(0, 2, ()).float())

    from tensordict import TensorDict

    class AsDict(Bags):
        def __getitem__(self, i):
            return TensorDict(super().__getitem__(i))
    model = TransformerABMIL(in_shape=(512,), transf_att_dim=512, transf_n_layers=2, transf_n_heads=8)
    until(5)
    Trainer(model, torch.optim.Adam(model.parameters(), lr=1e-4), device="cuda", verbose=False,
            metrics_dict=dict(accuracy=Accuracy(task="binary").cuda())).train(
        max_epochs=1, train_dataloader=DataLoader(AsDict(), batch, collate_fn=collate_fn))


def lungs(batch=16):
    """torchxrayvision: DenseNet of chests, findings that nobody looked for do not count."""
    import torchxrayvision as x
    model = x.models.DenseNet(num_classes=18, in_channels=1, weights=None).cuda()

    def loss():
        out, said = model(images(batch, 1, 224, 224)), torch.randint(-1, 2, (batch, 18))
        total = torch.zeros(1).to(CARD).float()
        for i in range(18):
            known = (said[:, i] >= 0).to(CARD)
            total = total + F.binary_cross_entropy_with_logits(out[:, i], said[:, i].to(CARD).clamp(0).float(),
                                                               weight=known.float())
        return total

    learn(model, loss, steps=3)


def whole_numbers(batch=32):
    """optimum-quanto: weights and activations of eight bits, calibrated, learnt on, frozen, tested."""
    from optimum.quanto import Calibration, freeze, qint8, quantize
    model = torchvision.models.resnet50(num_classes=100).cuda()
    quantize(model, weights=qint8, activations=qint8)
    with Calibration(), torch.no_grad():
        model(images(batch, 3, 112, 112))
    learn(model, lambda: F.cross_entropy(model(images(batch, 3, 112, 112)), classes(100, batch)), steps=3)
    freeze(model)
    with torch.no_grad():
        model.eval()(images(batch, 3, 112, 112))


def other_domain(batch=16):
    """pytorch-adapt: one domain has labels, the other has none, a judge must not tell them apart (DANN)."""
    from pytorch_adapt.containers import Models, Optimizers
    from pytorch_adapt.hooks import DANNHook
    from pytorch_adapt.models import Classifier, Discriminator
    body = torchvision.models.resnet18()
    body.fc = torch.nn.Identity()
    models = Models(dict(G=body, C=Classifier(num_classes=31, in_size=512), D=Discriminator(in_size=512)))
    models.to(CARD)
    optimizers = Optimizers((torch.optim.Adam, dict(lr=1e-4)))
    optimizers.create_with(models)
    hook = DANNHook(list(optimizers.values()))
    models.train()
    for _ in range(4):
        data = dict(src_imgs=images(batch, 3, 128, 128), src_labels=classes(31, batch), src_domain=torch.zeros(batch).to(CARD),
                    target_imgs=images(batch, 3, 128, 128), target_domain=torch.ones(batch).to(CARD))
        hook({**models, **data})


def anchors(batch=4):
    """yolov5: boxes go to the anchors that fit them, its loss, fp16."""
    from yolov5.models.yolo import Model
    from yolov5.utils.loss import ComputeLoss
    import yolov5
    model = Model(os.path.join(os.path.dirname(yolov5.__file__), "models", "yolov5s.yaml"), ch=3, nc=20).cuda().train()
    model.hyp = dict(box=0.05, cls=0.5, obj=1.0, cls_pw=1.0, obj_pw=1.0, fl_gamma=0.0, anchor_t=4.0, label_smoothing=0.0)
    measure, scaler = ComputeLoss(model), torch.amp.GradScaler("cuda")
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.937, nesterov=True)
    for _ in range(4):
        seen = torch.cat([torch.cat((torch.full((n, 1), float(i)), torch.randint(0, 20, (n, 1)), torch.rand(n, 2),
                                     torch.rand(n, 2) * 0.4 + 0.02), 1) for i, n in enumerate(lengths(batch, 7, 60, 1))])
        with torch.autocast("cuda", torch.float16):
            loss, _ = measure(model(images(batch, 3, 256, 256)), seen.to(CARD))
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()


def few_known(kinds=5):
    """easyfsl: a few pictures of each kind are shown, others are to be told, prototypes."""
    from easyfsl.methods import PrototypicalNetworks
    from easyfsl.modules import resnet12
    model = PrototypicalNetworks(resnet12(use_fc=False)).cuda()

    def loss():
        model.process_support_set(images(5 * kinds, 3, 84, 84), torch.arange(kinds).repeat_interleave(5).to(CARD))
        return F.cross_entropy(model(images(10 * kinds, 3, 84, 84)), torch.arange(kinds).repeat_interleave(10).to(CARD))

    learn(model, loss, steps=3)


def found_cells(batch=16):
    """pretrainedmodels: NASNet, its cells were found by a search."""
    from pretrainedmodels import nasnetamobile
    model = nasnetamobile(num_classes=1000, pretrained=None).cuda()
    model.last_linear = torch.nn.Linear(1056, 50).cuda()
    learn(model, lambda: F.cross_entropy(model(images(batch, 3, 224, 224)), classes(50, batch)), steps=2)


def reads_lines(batch=32):
    """easyocr: its net of convolutions and LSTMs reads lines, CTC."""
    from easyocr.model.vgg_model import Model
    model = Model(input_channel=1, output_channel=256, hidden_size=256, num_class=97).cuda()

    def loss():
        out = model(images(batch, 1, 64, 320), None).log_softmax(2).permute(1, 0, 2)
        lens = lengths(batch, 12, 25, 2)
        return F.ctc_loss(out, classes(96, sum(lens)) + 1, torch.full((batch,), out.shape[0], dtype=torch.int32),
                          torch.tensor(lens, dtype=torch.int32), zero_infinity=True)

    learn(model, loss)


def by_metrics(batch=16):
    """pytorch-argus: its model with half precision, averaged over micro batches, tested."""
    import argus

    class Known(argus.Model):
        nn_module = torchvision.models.efficientnet_b0
        optimizer = torch.optim.AdamW
        loss = torch.nn.CrossEntropyLoss
    model = Known(dict(nn_module=dict(num_classes=10), optimizer=dict(lr=1e-3), device="cuda"))
    until(5)
    model.fit(DataLoader(pictures(512, 128), batch, drop_last=True), val_loader=DataLoader(pictures(64, 128), 64), num_epochs=1,
              metrics=["accuracy"])


def relevance(batch=8):
    """zennit: which pixels count by rules for each layer, nothing is trained."""
    from zennit.attribution import Gradient, SmoothGrad
    from zennit.composites import EpsilonPlusFlat
    from zennit.torchvision import VGGCanonizer
    model = torchvision.models.vgg16_bn(num_classes=100).cuda().eval()
    seen, hot = images(batch, 3, 128, 128), torch.eye(100)[torch.randint(0, 100, (batch,))].to(CARD)
    with Gradient(model=model, composite=EpsilonPlusFlat(canonizers=[VGGCanonizer()])) as how:
        how(seen, hot)
    with SmoothGrad(noise_level=0.1, n_iter=3, model=model) as how:
        how(seen, hot)


if __name__ == "__main__":
    main({f.__name__: f for f in (karras, motion, pruned, defended, fooled, bags, lungs, whole_numbers, other_domain,
                                  anchors, few_known, found_cells, reads_lines, by_metrics,
                                  relevance)})
