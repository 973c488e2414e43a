# SPDX-License-Identifier: Apache-2.0
"""Pictures, volumes and films by the packages of others, whose models, losses, loops and loaders these are: --model NAME."""
import copy
import os

os.environ.update(HF_HUB_OFFLINE="1", NO_ALBUMENTATIONS_UPDATE="1", YOLO_OFFLINE="true")

import torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from fullsize import CARD, classes, images, main  # noqa: E402


def boxes(n, side):
    """So many boxes with two corners, in pixels."""
    low = torch.rand(n, 2) * side * 0.7
    return torch.cat((low, low + 8 + torch.rand(n, 2) * side * 0.25), 1)


def some(most):
    return 1 + int(torch.randint(0, most, ()))


def scenes(batch, side=320):
    """What torchvision's references collate: pictures of differing sizes and what is on them."""
    shapes = [(int(side * (0.7 + 0.3 * torch.rand(()))), side) for _ in range(batch)]
    seen = [some(9) for _ in shapes]
    return ([torch.rand(3, *s).to(CARD) for s in shapes],
            [dict(boxes=boxes(n, s[0]).to(CARD), labels=classes(20, n) + 1) for s, n in zip(shapes, seen)])


def fcos(batch=4):
    """torchvision: FCOS, boxes without anchors; trained on pictures of differing sizes, then looks."""
    import torchvision
    model = torchvision.models.detection.fcos_resnet50_fpn(
        weights=None, weights_backbone=None, num_classes=21, min_size=320, max_size=480).cuda()
    opt = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.01, momentum=0.9, weight_decay=1e-4)
    scaler = torch.amp.GradScaler()
    for _ in range(4):
        with torch.autocast("cuda"):
            loss = sum(model(*scenes(batch)).values())
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()


def joints(batch=2):
    """torchvision: Keypoint R-CNN, whose proposals are matched and drawn."""
    import torchvision
    model = torchvision.models.detection.keypointrcnn_resnet50_fpn(
        weights=None, weights_backbone=None, min_size=256, max_size=320, trainable_backbone_layers=3).cuda()
    opt = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.02, momentum=0.9)
    for _ in range(4):
        pictures, targets = scenes(batch, 256)
        for target in targets:
            n = len(target["boxes"])
            target["labels"] = torch.ones(n, dtype=torch.long, device=CARD)
            target["keypoints"] = torch.cat((torch.rand(n, 17, 2) * 200, torch.ones(n, 17, 1)), 2).to(CARD)
        loss = sum(model(pictures, targets).values())
        opt.zero_grad()
        loss.backward()
        opt.step()


def single_shot(batch=8):
    """torchvision: SSDlite of MobileNet, its boxes matched to anchors, hard negatives chosen."""
    import torchvision
    model = torchvision.models.detection.ssdlite320_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=21).cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in range(5):
        loss = sum(model(*scenes(batch)).values())
        opt.zero_grad()
        loss.backward()
        opt.step()


def yolo(batch=8):
    """ultralytics: YOLO11 with its loss, which gives each box to the cells that fit it best; averaged weights."""
    from types import SimpleNamespace
    from ultralytics.nn.tasks import DetectionModel
    from ultralytics.utils.torch_utils import ModelEMA
    model = DetectionModel("yolo11n.yaml", nc=20, verbose=False).cuda()
    model.args = SimpleNamespace(box=7.5, cls=0.5, dfl=1.5)
    ema = ModelEMA(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.937, nesterov=True)
    scaler = torch.amp.GradScaler()
    for _ in range(4):
        seen = [some(20) for _ in range(batch)]
        where = torch.cat((0.2 + 0.6 * torch.rand(sum(seen), 2), 0.05 + 0.3 * torch.rand(sum(seen), 2)), 1)
        of = torch.cat([torch.full((n,), float(i)) for i, n in enumerate(seen)])
        part = dict(img=images(batch, 3, 320, 320), cls=classes(20, sum(seen), 1).float(), bboxes=where.to(CARD),
                    batch_idx=of.to(CARD))
        with torch.autocast("cuda"):
            loss = model(part)[0].sum()
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
        ema.update(model)


def segments(batch=2):
    """transformers: Mask2Former, whose masks are matched to those of the picture one by one."""
    import transformers as t
    back = t.SwinConfig(image_size=256, embed_dim=48, depths=[2, 2, 2, 2], num_heads=[3, 6, 12, 24],
                        out_features=["stage1", "stage2", "stage3", "stage4"])
    model = t.Mask2FormerForUniversalSegmentation(t.Mask2FormerConfig(
        backbone_config=back, num_queries=50, encoder_layers=3, decoder_layers=4, num_labels=20, train_num_points=2048)).cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(4):
        seen = [some(12) for _ in range(batch)]
        out = model(pixel_values=images(batch, 3, 256, 256), class_labels=[classes(20, n) for n in seen],
                    mask_labels=[(torch.rand(n, 256, 256) > 0.7).float().to(CARD) for n in seen])
        out.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        opt.step()
        opt.zero_grad()


def denoised(batch=4):
    """transformers: RT-DETR, which is shown as many disturbed boxes as the fullest picture has."""
    import transformers as t
    back = t.RTDetrResNetConfig(layer_type="basic", depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512],
                                out_features=["stage2", "stage3", "stage4"])
    model = t.RTDetrForObjectDetection(t.RTDetrConfig(
        backbone_config=back, encoder_in_channels=[128, 256, 512], num_labels=20, decoder_layers=3, num_queries=100,
        use_pretrained_backbone=False, backbone=None)).cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(4):
        labels = [dict(class_labels=classes(20, n), boxes=(0.2 + 0.3 * torch.rand(n, 4)).to(CARD))
                  for n in (some(15) for _ in range(batch))]
        loss = model(pixel_values=images(batch, 3, 320, 320), labels=labels).loss
        opt.zero_grad()
        loss.backward()
        opt.step()


def nuclei(batch=8):
    """segmentation-models-pytorch: UNet++ with attention and a second head that names the picture."""
    import segmentation_models_pytorch as smp
    model = smp.UnetPlusPlus("efficientnet-b0", encoder_weights=None, classes=3, decoder_attention_type="scse",
                             aux_params=dict(classes=3, dropout=0.2)).cuda()
    dice, focal = smp.losses.DiceLoss("multiclass"), smp.losses.FocalLoss("multiclass")
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(4):
        mask, name = model(images(batch, 3, 192, 192))
        truth = classes(3, batch, 192, 192)
        loss = dice(mask, truth) + focal(mask, truth) + F.cross_entropy(name, classes(3, batch))
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        mask, _ = model(images(batch, 3, 192, 192))
        smp.metrics.get_stats(mask.argmax(1), classes(3, batch, 192, 192), mode="multiclass", num_classes=3)


def organs(batch=1):
    """MONAI: SwinUNETR by cubes, then windows slide over a whole scan."""
    from monai.inferers import sliding_window_inference
    from monai.losses import DiceCELoss
    from monai.networks.nets import SwinUNETR
    model = SwinUNETR(in_channels=1, out_channels=6, feature_size=12, use_checkpoint=True).cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=1e-5)
    loss_of, scaler = DiceCELoss(to_onehot_y=True, softmax=True), torch.amp.GradScaler()
    for _ in range(3):
        with torch.autocast("cuda"):
            loss = loss_of(model(images(batch, 1, 64, 64, 64)), classes(6, batch, 1, 64, 64, 64))
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
    model.eval()
    with torch.no_grad(), torch.autocast("cuda"):
        sliding_window_inference(images(1, 1, 96, 96, 96), (64, 64, 64), batch, model, overlap=0.25)


def tumours(batch=2):
    """MONAI: DynUNet, whose middle layers answer too (deep supervision), instance norm, SGD with Nesterov."""
    from monai.losses import DeepSupervisionLoss, DiceFocalLoss
    from monai.networks.nets import DynUNet
    model = DynUNet(3, 3, 4, [3, 3, 3, 3, 3], [1, 2, 2, 2, 2], [2, 2, 2, 2], filters=[16, 32, 64, 128, 160],
                    deep_supervision=True, deep_supr_num=2, res_block=True).cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.99, nesterov=True)
    loss_of = DeepSupervisionLoss(DiceFocalLoss(sigmoid=True))
    for _ in range(4):
        out = model(images(batch, 3, 64, 64, 64))
        loss = loss_of(list(torch.unbind(out, 1)), classes(2, batch, 4, 64, 64, 64).float())
        opt.zero_grad()
        loss.backward()
        opt.step()


def any_shape(batch=16):
    """timm: NaFlexViT, pictures of any shape as so many patches, padded to the largest of the batch."""
    import timm
    import timm.optim
    model = timm.create_model("naflexvit_base_patch16_gap", num_classes=100, embed_dim=384, depth=8, num_heads=6).cuda()
    opt = timm.optim.create_optimizer_v2(model, "adamw", lr=1e-3)
    for _ in range(5):
        sides = [(some(14) + 2, some(14) + 2) for _ in range(batch)]
        most = max(h * w for h, w in sides)
        grid, known = torch.zeros(batch, most, 2, dtype=torch.long), torch.zeros(batch, most, dtype=torch.bool)
        for i, (h, w) in enumerate(sides):
            grid[i, :h * w] = torch.cartesian_prod(torch.arange(h), torch.arange(w))
            known[i, :h * w] = True
        loss = F.cross_entropy(model(dict(patches=images(batch, most, 768), patch_coord=grid.to(CARD),
                                          patch_valid=known.to(CARD))), classes(100, batch))
        opt.zero_grad()
        loss.backward()
        opt.step()


def dropped(batch=32):
    """timm and pytorch_optimizer: a ViT that drops half of its patches, by SAM, which goes up before it goes down."""
    import timm
    from pytorch_optimizer import SAM
    model = timm.create_model("vit_small_patch16_224", img_size=160, num_classes=100, patch_drop_rate=0.5,
                              drop_path_rate=0.1).cuda()
    opt = SAM(model.parameters(), base_optimizer=torch.optim.AdamW, lr=1e-3, rho=0.05)
    for _ in range(4):
        x, y = images(batch, 3, 160, 160), classes(100, batch)
        for step in (opt.first_step, opt.second_step):
            F.cross_entropy(model(x), y, label_smoothing=0.1).backward()
            step(zero_grad=True)


def msn(batch=16):
    """lightly: masked Siamese networks, one view whole, one masked and ten small ones; a slow copy as teacher."""
    from lightly.loss import MSNLoss
    from lightly.models.modules import MaskedVisionTransformerTorchvision
    from lightly.models.modules.heads import MSNProjectionHead
    from lightly.models.utils import deactivate_requires_grad, random_token_mask, update_momentum
    from torchvision.models import VisionTransformer
    anchor = torch.nn.Module()
    anchor.mask_ratio = 0.15
    anchor.backbone = MaskedVisionTransformerTorchvision(vit=VisionTransformer(
        image_size=128, patch_size=16, num_layers=6, num_heads=6, hidden_dim=384, mlp_dim=1536))
    anchor.head = MSNProjectionHead(384)
    target = copy.deepcopy(anchor)
    deactivate_requires_grad(target)
    anchor.cuda()
    target.cuda()
    prototypes = torch.nn.Linear(256, 512, bias=False).weight.detach().cuda().requires_grad_()
    loss_of = MSNLoss()
    opt = torch.optim.AdamW([*anchor.parameters(), prototypes], lr=1.5e-4)
    for _ in range(4):
        update_momentum(anchor, target, 0.996)
        views = [images(batch, 3, 128, 128) for _ in range(2)]
        focal = [images(batch, 3, 64, 64) for _ in range(4)]
        with torch.no_grad():
            goal = target.head(target.backbone(images=views[0]))
        kept, _ = random_token_mask(size=(batch, anchor.backbone.sequence_length), mask_ratio=0.15, device=CARD)
        out = anchor.head(anchor.backbone(images=views[1], idx_keep=kept))
        small = anchor.head(anchor.backbone(images=torch.cat(focal)))
        loss = loss_of(anchors=torch.cat((out, small)), targets=goal, prototypes=prototypes)
        loss.backward()
        opt.step()
        opt.zero_grad()


def residual_codes(batch=16):
    """vector-quantize-pytorch: pictures as eight words each place, dictionaries that follow averages."""
    from vector_quantize_pytorch import ResidualVQ
    down = torch.nn.Sequential(
        torch.nn.Conv2d(3, 64, 4, 2, 1), torch.nn.GELU(), torch.nn.Conv2d(64, 128, 4, 2, 1), torch.nn.GELU(),
        torch.nn.Conv2d(128, 128, 3, 1, 1)).cuda()
    up = torch.nn.Sequential(
        torch.nn.ConvTranspose2d(128, 64, 4, 2, 1), torch.nn.GELU(), torch.nn.ConvTranspose2d(64, 3, 4, 2, 1)).cuda()
    vq = ResidualVQ(dim=128, num_quantizers=8, codebook_size=1024,
                    threshold_ema_dead_code=2, stochastic_sample_codes=True).cuda()
    opt = torch.optim.AdamW([*down.parameters(), *up.parameters(), *vq.parameters()], lr=3e-4)
    for _ in range(5):
        x = images(batch, 3, 96, 96)
        opt.zero_grad()
        maps = down(x)
        code, _, commit = vq(maps.flatten(2).transpose(1, 2))
        loss = (up(code.transpose(1, 2).reshape(maps.shape)) - x).abs().mean() + 10 * commit.sum()
        loss.backward()
        opt.step()


def compress(batch=8):
    """compressai: pictures in few bits, a hyperprior; a second optimizer for its quantiles."""
    from compressai.losses import RateDistortionLoss
    from compressai.models import JointAutoregressiveHierarchicalPriors
    from compressai.optimizers import net_aux_optimizer
    model = JointAutoregressiveHierarchicalPriors(96, 128).cuda()
    opt = net_aux_optimizer(model, dict(net=dict(type="Adam", lr=1e-4), aux=dict(type="Adam", lr=1e-3)))
    loss_of = RateDistortionLoss(lmbda=0.01)
    for _ in range(4):
        x = images(batch, 3, 128, 128)
        opt["net"].zero_grad()
        opt["aux"].zero_grad()
        loss_of(model(x), x)["loss"].backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt["net"].step()
        model.aux_loss().backward()
        opt["aux"].step()


def attacked(batch=16):
    """torchattacks: ResNet-18 learns from pictures that PGD has disturbed to deceive it."""
    import torchattacks
    import torchvision
    model = torchvision.models.resnet18(num_classes=10).cuda()
    attack = torchattacks.PGD(model, eps=8 / 255, alpha=2 / 255, steps=4, random_start=True)
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    for _ in range(3):
        x, y = images(batch, 3, 128, 128), classes(10, batch)
        bad = attack(x, y)
        loss = F.cross_entropy(model(bad), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


def reasons(batch=4):
    """captum: which pixels count, by integrated gradients of 24 steps and by covering parts; nothing is trained."""
    import torchvision
    from captum.attr import IntegratedGradients, LayerGradCam, NoiseTunnel
    model = torchvision.models.densenet121(num_classes=50, weights=None).eval().cuda()
    paths = IntegratedGradients(model)
    for _ in range(2):
        x = images(batch, 3, 96, 96)
        paths.attribute(x, target=classes(50, batch), n_steps=24, return_convergence_delta=True)
        NoiseTunnel(paths).attribute(x, target=classes(50, batch), nt_samples=2, n_steps=8)
        LayerGradCam(model, model.features.denseblock4).attribute(x, target=3)


def penalty(batch=32):
    """torchgan: DCGAN by Wasserstein's loss and the penalty of gradients, whose steps the losses make."""
    from torchgan.losses import WassersteinDiscriminatorLoss, WassersteinGeneratorLoss, WassersteinGradientPenalty
    from torchgan.models import DCGANDiscriminator, DCGANGenerator
    made = DCGANGenerator(encoding_dims=100, out_size=64, out_channels=3, step_channels=48).cuda()
    judge = DCGANDiscriminator(in_size=64, in_channels=3, step_channels=48).cuda()
    to_make, to_judge = (torch.optim.Adam(m.parameters(), lr=1e-4, betas=(0.0, 0.9)) for m in (made, judge))
    for i in range(6):
        x = images(batch, 3, 64, 64)
        WassersteinDiscriminatorLoss().train_ops(made, judge, to_judge, x, CARD)
        WassersteinGradientPenalty().train_ops(made, judge, to_judge, x, CARD)
        if i % 2:
            WassersteinGeneratorLoss().train_ops(made, judge, to_make, CARD, batch)


def describes(batch=16):
    """kornia: HardNet describes patches that it turns and blurs on the card; hardest negatives."""
    import kornia
    net = kornia.feature.HardNet(pretrained=False).cuda()
    change = kornia.augmentation.AugmentationSequential(
        kornia.augmentation.RandomAffine(15.0, (0.1, 0.1), (0.9, 1.1), p=1.0),
        kornia.augmentation.RandomGaussianBlur((3, 3), (0.1, 1.0), p=0.5), data_keys=["input"])
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(5):
        x = images(batch, 1, 32, 32)
        one, two = net(x), net(change(x))
        far = torch.cdist(one, two) + 10 * torch.eye(batch, device=CARD)
        loss = F.relu(1 + (one - two).norm(dim=1) - torch.minimum(far.min(0).values, far.min(1).values)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


def kept(batch=16):
    """poutyne: its Model trains EfficientNet-B0 and tests it on batches, with metrics by epoch."""
    import torchvision
    from poutyne import Model
    net = torchvision.models.efficientnet_b0(num_classes=10)

    def data(n):
        return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(
            torch.zeros(n, 3, 128, 128), torch.zeros(n, dtype=torch.long)), batch_size=batch, shuffle=True)
    model = Model(net, "sgd", "cross_entropy", batch_metrics=["accuracy"], epoch_metrics=["f1"], device=CARD)
    model.fit_generator(data(3 * batch + 5), data(2 * batch + 3), epochs=2, progress_options=dict(coloring=False),
                        verbose=False)


if __name__ == "__main__":
    main(globals())
