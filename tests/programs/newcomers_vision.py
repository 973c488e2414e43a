# SPDX-License-Identifier: Apache-2.0
"""Pictures by packages that came later, whose models, losses and loops these are: --model NAME."""
import tempfile

import torch
from torch.nn import functional as F

from fullsize import CARD, classes, images, main


def learn(model, loss_of, steps=4, rate=1e-3, kind=torch.optim.AdamW, **own):
    """The loop that these packages' front pages show."""
    opt = kind([w for w in model.parameters() if w.requires_grad], lr=rate, **own)
    for _ in range(steps):
        opt.zero_grad()
        loss = loss_of()
        loss.backward()
        opt.step()
        loss.item()


def named(model, batch, side, n, **own):
    """A classifier of n things learns."""
    model.cuda().train()
    learn(model, lambda: F.cross_entropy(model(images(batch, 3, side, side)), classes(n, batch)), **own)


def effdet(batch=8):
    """effdet: EfficientDet with its bench, which matches boxes to anchors."""
    from effdet import create_model_from_config, get_efficientdet_config
    config = get_efficientdet_config("tf_efficientdet_lite0")
    config.image_size = (256, 256)
    model = create_model_from_config(config, bench_task="train", num_classes=20, pretrained=False,
                                     pretrained_backbone=False, bench_labeler=True).cuda()

    def loss():
        low = torch.rand(batch, 10, 2) * 150
        target = dict(bbox=torch.cat((low, low + 20 + 60 * torch.rand(batch, 10, 2)), 2).to(CARD),
                      cls=classes(20, batch, 10).float() + 1, img_scale=torch.ones(batch, device=CARD),
                      img_size=torch.full((batch, 2), 256., device=CARD))
        return model(images(batch, 3, 256, 256), target)["loss"]

    learn(model, loss)


def faces(batch=32):
    """facenet-pytorch: Inception-ResNet, triplets of faces."""
    from facenet_pytorch import InceptionResnetV1
    model = InceptionResnetV1(pretrained=None, classify=False).cuda().train()
    apart = torch.nn.TripletMarginLoss(0.2)
    learn(model, lambda: apart(*model(images(3 * batch, 3, 160, 160)).chunk(3)), kind=torch.optim.Adam)


def resnest(batch=16):
    """resnest: ResNeSt-50 with its loss for labels that are smoothed, fp16."""
    from resnest.torch import resnest50
    model = resnest50(pretrained=False, num_classes=100).cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    scaler = torch.amp.GradScaler()
    for _ in range(4):
        with torch.autocast("cuda"):
            loss = F.cross_entropy(model(images(batch, 3, 192, 192)), classes(100, batch), label_smoothing=0.1)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()


def efficientnet(batch=16):
    """efficientnet-pytorch: EfficientNet-B1, a Swish that keeps less."""
    from efficientnet_pytorch import EfficientNet
    named(EfficientNet.from_name("efficientnet-b1", num_classes=50), batch, 192, 50, kind=torch.optim.RMSprop)


def condensed(batch=32):
    """pytorchcv: CondenseNet."""
    from pytorchcv.model_provider import get_model
    named(get_model("condensenet74_c4_g4", num_classes=50, pretrained=False), batch, 224, 50, kind=torch.optim.SGD, momentum=0.9)


def perceptual(batch=8):
    """lpips: pictures are made larger, the loss is what a fixed net sees."""
    import lpips
    loss_of = lpips.LPIPS(net="vgg", pnet_rand=True, verbose=False).cuda()
    body = [torch.nn.Conv2d(3, 64, 3, padding=1), torch.nn.PReLU()]
    for _ in range(4):
        body += [torch.nn.Conv2d(64, 64, 3, padding=1), torch.nn.BatchNorm2d(64), torch.nn.PReLU()]
    model = torch.nn.Sequential(*body, torch.nn.Conv2d(64, 12, 3, padding=1), torch.nn.PixelShuffle(2)).cuda()

    def loss():
        made, want = model(images(batch, 3, 64, 64)), images(batch, 3, 128, 128)
        return F.l1_loss(made, want) + loss_of(made, want, normalize=True).mean()

    learn(model, loss)


def waves(points=64):
    """siren-pytorch: a picture as a net of sines, and its gradient; points in thousands."""
    from siren_pytorch import SirenNet
    model = SirenNet(dim_in=2, dim_hidden=256, dim_out=1, num_layers=5, w0_initial=30.).cuda()

    def loss():
        at = (torch.rand(points * 1000, 2) * 2 - 1).to(CARD).requires_grad_()
        slope, = torch.autograd.grad(model(at).sum(), at, create_graph=True)
        return F.mse_loss(slope, torch.zeros_like(slope))

    learn(model, loss, kind=torch.optim.Adam)


def volumes(batch=2):
    """dynamic-network-architectures: nnU-Net's residual encoder with outputs at each scale, clipped, bf16."""
    from dynamic_network_architectures.architectures.unet import ResidualEncoderUNet
    model = ResidualEncoderUNet(
        1, 4, [16, 32, 64, 128], torch.nn.Conv3d, 3, [1, 2, 2, 2], [1, 2, 2, 2], 3, [1, 1, 1], conv_bias=True,
        norm_op=torch.nn.InstanceNorm3d, norm_op_kwargs=dict(affine=True), nonlin=torch.nn.LeakyReLU,
        nonlin_kwargs=dict(inplace=True), deep_supervision=True).cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.99, nesterov=True, weight_decay=3e-5)
    for _ in range(4):
        opt.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            outs = model(images(batch, 1, 64, 64, 48))
            loss = sum(F.cross_entropy(o, classes(3, batch, *o.shape[2:])) / 2 ** i for i, o in enumerate(outs))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 12)
        opt.step()


def pointed(batch=4):
    """segment-anything: the decoder learns from points, the encoder is fixed."""
    from functools import partial
    from segment_anything.modeling import ImageEncoderViT, MaskDecoder, PromptEncoder, Sam, TwoWayTransformer
    encoder = ImageEncoderViT(depth=6, embed_dim=384, img_size=512, mlp_ratio=4, num_heads=6, patch_size=16, qkv_bias=True,
                              norm_layer=partial(torch.nn.LayerNorm, eps=1e-6), use_rel_pos=True,
                              global_attn_indexes=[2, 5], window_size=14, out_chans=256)
    decoder = MaskDecoder(num_multimask_outputs=3, transformer_dim=256, iou_head_depth=3, iou_head_hidden_dim=256,
                          transformer=TwoWayTransformer(depth=2, embedding_dim=256, mlp_dim=2048, num_heads=8))
    sam = Sam(encoder, PromptEncoder(256, (32, 32), (512, 512), 16), decoder).cuda()
    sam.image_encoder.requires_grad_(False)
    sam.prompt_encoder.requires_grad_(False)

    def loss():
        with torch.no_grad():
            seen = sam.image_encoder(images(batch, 3, 512, 512))
        total = 0.
        for one in seen:
            sparse, dense = sam.prompt_encoder((torch.rand(8, 1, 2).to(CARD) * 512, classes(2, 8, 1)), None, None)
            masks, good = sam.mask_decoder(one[None], sam.prompt_encoder.get_dense_pe(), sparse, dense, False)
            masks = F.interpolate(masks, (512, 512), mode="bilinear")
            total = total + F.binary_cross_entropy_with_logits(masks, images(8, 1, 512, 512)) + good.square().mean()
        return total / batch

    learn(sam, loss, rate=1e-4)


def larger(batch=4):
    """spandrel: SwinIR makes pictures four times larger."""
    from spandrel.architectures.SwinIR import SwinIR
    model = SwinIR(upscale=4, img_size=48, window_size=8, depths=[4, 4], embed_dim=60, num_heads=[6, 6], mlp_ratio=2,
                   upsampler="pixelshuffledirect").cuda()
    learn(model, lambda: F.l1_loss(model(images(batch, 3, 48, 48)), images(batch, 3, 192, 192)), kind=torch.optim.Adam)


def scattered(batch=32):
    """kymatio: a scattering transform is fixed, what stands on it learns."""
    import scipy.special
    if not hasattr(scipy.special, "sph_harm"):  # its newer name; only volumes need it
        scipy.special.sph_harm = scipy.special.sph_harm_y
    from kymatio.torch import Scattering2D
    fixed = Scattering2D(J=2, shape=(64, 64)).cuda()
    head = torch.nn.Sequential(torch.nn.BatchNorm2d(243), torch.nn.Conv2d(243, 256, 3, padding=1), torch.nn.ReLU(),
                               torch.nn.Conv2d(256, 256, 3, padding=1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
                               torch.nn.Flatten(), torch.nn.Linear(256, 10)).cuda()
    learn(head, lambda: F.cross_entropy(head(fixed(images(batch, 3, 64, 64)).flatten(1, 2)), classes(10, batch)),
          kind=torch.optim.SGD, momentum=0.9)


def pipeline(batch=64):
    """pythae: a VAE, trained by its pipeline over two epochs and tested."""
    from pythae.models import BetaTCVAE, BetaTCVAEConfig
    from pythae.models.nn.benchmarks.celeba import Decoder_ResNet_AE_CELEBA, Encoder_ResNet_VAE_CELEBA
    from pythae.pipelines import TrainingPipeline
    from pythae.trainers import BaseTrainerConfig
    config = BetaTCVAEConfig(input_dim=(3, 64, 64), latent_dim=64)
    model = BetaTCVAE(config, Encoder_ResNet_VAE_CELEBA(config), Decoder_ResNet_AE_CELEBA(config))
    plan = BaseTrainerConfig(output_dir=tempfile.mkdtemp(prefix="newcomers."), num_epochs=2, per_device_train_batch_size=batch,
                             per_device_eval_batch_size=batch, learning_rate=1e-3)
    TrainingPipeline(training_config=plan, model=model)(
        train_data=torch.rand(3 * batch, 3, 64, 64), eval_data=torch.rand(batch, 3, 64, 64))


def matched(batch=32):
    """torchcfm: flows are matched, a U-Net; then pictures are made by Euler's steps."""
    from torchcfm.conditional_flow_matching import TargetConditionalFlowMatcher
    from torchcfm.models.unet import UNetModel
    model = UNetModel(dim=(3, 32, 32), num_channels=64, num_res_blocks=2, channel_mult=[1, 2, 2], num_heads=4,
                      num_head_channels=32, attention_resolutions="16", dropout=0.1).cuda()
    flows = TargetConditionalFlowMatcher(sigma=0.)

    def loss():
        want = images(batch, 3, 32, 32)
        t, at, speed = flows.sample_location_and_conditional_flow(torch.randn_like(want), want)
        return F.mse_loss(model(t, at), speed)

    learn(model, loss, rate=2e-4, kind=torch.optim.Adam)
    with torch.no_grad():
        x = torch.randn(batch, 3, 32, 32, device=CARD)
        for step in range(4):
            x = x + model(torch.full((batch,), step / 4, device=CARD), x) / 4


if __name__ == "__main__":
    main(globals())
