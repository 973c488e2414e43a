# SPDX-License-Identifier: Apache-2.0
"""Models of speech and sound, and those that make pictures, at the size at which people train them: --model NAME."""
import copy
import math

import torch
import torch.nn.functional as F
import torchvision
import transformers as t
from torch import nn

from fullsize import CARD, cast, classes, images, lengths, main, mask_of, optimizer, script, tokens, trainer


def made(family, head, recompute=False, **own):
    with CARD:
        model = getattr(t, family + head)(getattr(t, family + "Config")(**own))
    model.to(CARD)  # torch.Tensor(n), as some write it, is the host's
    if recompute:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model


def whisper(batch=8):
    """Thirty seconds each, and texts padded to one length."""
    model = made("Whisper", "ForConditionalGeneration", recompute=True, d_model=768, encoder_layers=12,
                 decoder_layers=12, encoder_attention_heads=12, decoder_attention_heads=12, encoder_ffn_dim=3072,
                 decoder_ffn_dim=3072, vocab_size=51865, use_cache=False)

    def load(n):
        return dict(input_features=images(n, 80, 3000), labels=tokens(n, 128, 50000))
    trainer(model, lambda b: model(**b), load, batch, amp="fp16", rate=1e-5, tests=batch, gather=False)


def wav2vec(batch=4):
    """Utterances padded to the longest of the batch."""
    model = made("Wav2Vec2", "ForCTC", vocab_size=32, ctc_loss_reduction="mean", mask_time_prob=0.05)
    model.freeze_feature_encoder()

    def load(n):
        seconds = [s / 10 for s in lengths(n, 110, 240, 15, 0.5)]
        said = [max(2, int(s * 14)) for s in seconds]
        labels = torch.full((n, max(said)), -100)
        for row, k in zip(labels, said):
            row[:k] = torch.randint(4, 32, (k,))
        return images(n, int(max(seconds) * 16000)), labels, [int(s * 16000) for s in seconds], said

    def loss_of(b):
        sound, labels, heard, said = b
        scores = model(input_values=sound).logits.log_softmax(-1, dtype=torch.float).transpose(0, 1)
        steps = model._get_feat_extract_output_lengths(torch.tensor(heard))
        flat = labels[labels >= 0].to(CARD)
        with torch.backends.cudnn.flags(enabled=False):
            return F.ctc_loss(scores, flat, steps, torch.tensor(said), zero_infinity=True)
    trainer(model, loss_of, load, batch, steps=10, amp="fp16", rate=1e-4, accumulate=2)


def hubert(batch=8):
    model = made("Hubert", "ForSequenceClassification", num_labels=12)
    trainer(model, lambda b: model(**b), lambda n: dict(input_values=images(n, 80000), labels=classes(12, n)), batch,
            tests=batch)


def spectrograms(batch=8):
    model = made("AST", "ForAudioClassification", num_labels=527)
    trainer(model, lambda b: model(**b), lambda n: dict(input_values=images(n, 1024, 128), labels=torch.zeros(
        n, dtype=torch.long).to(CARD)), batch, opt="adam", amp="fp16", rate=1e-5)


class Conformer(nn.Module):
    class Layer(nn.Module):
        def __init__(self, w, heads=8):
            super().__init__()
            self.feeds = nn.ModuleList(nn.Sequential(nn.LayerNorm(w), nn.Linear(w, 4 * w), nn.SiLU(), nn.Dropout(0.1),
                                                     nn.Linear(4 * w, w), nn.Dropout(0.1)) for _ in "ab")
            self.attend, self.norm = nn.MultiheadAttention(w, heads, 0.1, batch_first=True), nn.LayerNorm(w)
            self.before, self.wide, self.deep = nn.LayerNorm(w), nn.Conv1d(w, 2 * w, 1), nn.Conv1d(w, w, 31, 1, 15,
                                                                                                   groups=w)
            self.batch, self.thin, self.last = nn.BatchNorm1d(w), nn.Conv1d(w, w, 1), nn.LayerNorm(w)

        def forward(self, x, missing):
            x = x + 0.5 * self.feeds[0](x)
            y = self.norm(x)
            x = x + self.attend(y, y, y, key_padding_mask=missing, need_weights=False)[0]
            y = F.glu(self.wide(self.before(x).transpose(1, 2)), 1)
            x = x + self.thin(F.silu(self.batch(self.deep(y)))).transpose(1, 2)
            return self.last(x + 0.5 * self.feeds[1](x))

    def __init__(self, w=512, layers=17, k=1024):
        super().__init__()
        self.front = nn.Sequential(nn.Conv2d(1, w, 3, 2, 1), nn.ReLU(), nn.Conv2d(w, w, 3, 2, 1), nn.ReLU())
        self.flat = nn.Linear(w * 20, w)
        self.layers, self.head = nn.ModuleList(Conformer.Layer(w) for _ in range(layers)), nn.Linear(w, k)

    def forward(self, x, missing):
        x = self.flat(self.front(x[:, None]).transpose(1, 2).flatten(2))
        for layer in self.layers:
            x = layer(x, missing)
        return self.head(x)


def conformer_large(batch=8):
    """Recognises speech; utterances are padded to the longest of the batch."""
    with CARD:
        model = Conformer()

    def load(n):
        frames = lengths(n, 1150, 2400, 100, 0.5)
        return images(n, max(frames), 80), frames, [max(1, f // 26) for f in frames]

    def loss_of(b):
        x, frames, said = b
        after = [(f + 3) // 4 for f in frames]
        scores = model(x, mask_of(after, (x.shape[1] + 3) // 4) == 0).log_softmax(-1, dtype=torch.float)
        with torch.backends.cudnn.flags(enabled=False):
            return F.ctc_loss(scores.transpose(0, 1), classes(1000, sum(said)) + 1, torch.tensor(after),
                              torch.tensor(said), zero_infinity=True)
    trainer(model, loss_of, load, batch, steps=10, amp="bf16", opt="adamw+")


class FastSpeech(nn.Module):
    """Phonemes are as long as they are spoken: each is repeated for its number of frames."""

    def __init__(self, w=384, k=80):
        super().__init__()
        self.words = nn.Embedding(80, w)
        self.encoder, self.decoder = (nn.TransformerEncoder(nn.TransformerEncoderLayer(
            w, 2, 1536, batch_first=True), 6, enable_nested_tensor=False) for _ in "ed")
        self.says = nn.ModuleList(nn.Sequential(nn.Conv1d(w, w, 3, 1, 1), nn.ReLU(), nn.Conv1d(w, w, 3, 1, 1),
                                                nn.ReLU(), nn.Conv1d(w, 1, 1)) for _ in "dpe")
        self.mel = nn.Linear(w, k)
        self.post = nn.Sequential(*(m for i, o in ((k, 512), (512, 512), (512, 512), (512, 512), (512, k))
                                    for m in (nn.Conv1d(i, o, 5, 1, 2), nn.BatchNorm1d(o), nn.Tanh(), nn.Dropout(0.5))))

    def forward(self, x, held, frames):
        h = self.encoder(self.words(x))
        told = [net(h.transpose(1, 2)) for net in self.says]
        rows = [h[i].repeat_interleave(d.to(CARD), 0, output_size=int(d.sum())) for i, d in enumerate(held)]
        y = self.mel(self.decoder(nn.utils.rnn.pad_sequence(rows, batch_first=True)))
        return y, y + self.post(y.transpose(1, 2)).transpose(1, 2), told


def fastspeech(batch=16):
    with CARD:
        model = FastSpeech()

    def load(n):
        spoken = lengths(n, 75, 180, 10, 0.5)
        held = [torch.cat([torch.randint(2, 13, (k,)), torch.zeros(max(spoken) - k, dtype=torch.long)]) for k in spoken]
        longest = max(int(d.sum()) for d in held)
        return classes(80, n, max(spoken)), held, images(n, longest, 80)

    def loss_of(b):
        x, held, mel = b
        y, z, told = model(x, held, mel.shape[1])
        return F.l1_loss(y, mel) + F.l1_loss(z, mel) + sum((p ** 2).mean() for p in told)
    script(model, loss_of, load, batch, steps=12, opt="adam", clip=1.0)


class Vocoder(nn.Module):
    """The generator of HiFi-GAN V1."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv1d(80, 512, 7, 1, 3), nn.Conv1d(32, 1, 7, 1, 3)
        self.ups, self.res = nn.ModuleList(), nn.ModuleList()
        for i, (rate, kernel) in enumerate(((8, 16), (8, 16), (2, 4), (2, 4))):
            w = 256 >> i
            self.ups.append(nn.ConvTranspose1d(2 * w, w, kernel, rate, (kernel - rate) // 2))
            self.res.append(nn.ModuleList(nn.ModuleList(nn.Conv1d(w, w, k, 1, d * (k - 1) // 2, d) for d in
                                                        (1, 1, 3, 1, 5, 1)) for k in (3, 7, 11)))

    def forward(self, x):
        x = self.first(x)
        for up, stacks in zip(self.ups, self.res):
            x = up(F.leaky_relu(x, 0.1))
            total = None
            for convs in stacks:
                y = x
                for a, b in zip(convs[::2], convs[1::2]):
                    y = y + b(F.leaky_relu(a(F.leaky_relu(y, 0.1)), 0.1))
                total = y if total is None else total + y
            x = total / 3
        return self.last(F.leaky_relu(x)).tanh()


class Judges(nn.Module):
    """Discriminators that look at each p-th sample, and at coarser sound."""

    def __init__(self):
        super().__init__()
        self.periods = (2, 3, 5, 7, 11)
        self.flat = nn.ModuleList(nn.ModuleList(nn.Conv2d(i, o, (5, 1), (s, 1), (2, 0)) for i, o, s in (
            (1, 32, 3), (32, 128, 3), (128, 512, 3), (512, 1024, 3), (1024, 1024, 1), (1024, 1, 1))) for _ in range(5))
        self.coarse = nn.ModuleList(nn.ModuleList(nn.Conv1d(i, o, k, s, k // 2, groups=g) for i, o, k, s, g in (
            (1, 128, 15, 1, 1), (128, 128, 41, 2, 4), (128, 256, 41, 2, 16), (256, 512, 41, 4, 16),
            (512, 1024, 41, 4, 16), (1024, 1024, 41, 1, 16), (1024, 1024, 5, 1, 1), (1024, 1, 3, 1, 1)))
            for _ in range(3))

    def forward(self, x):
        out = []
        for p, convs in zip(self.periods, self.flat):
            y = F.pad(x, (0, -x.shape[-1] % p), "reflect").unflatten(-1, (-1, p))
            for conv in convs:
                y = F.leaky_relu(conv(y), 0.1)
                out.append(y)
        for convs in self.coarse:
            y = x
            for conv in convs:
                y = F.leaky_relu(conv(y), 0.1)
                out.append(y)
            x = F.avg_pool1d(x, 4, 2, 2)
        return out


def hifigan(batch=16):
    with CARD:
        voice, judges = Vocoder(), Judges()
        window, bank = torch.hann_window(1024), torch.rand(80, 513)
    opts = [optimizer(m, "adamw", 2e-4) for m in (voice, judges)]

    def mel(x):
        return (bank @ torch.stft(x[:, 0], 1024, 256, window=window, return_complex=True).abs()).clamp(min=1e-5).log()
    for _ in range(5):
        heard, real = images(batch, 80, 32), images(batch, 1, 8192)
        made_up = voice(heard)
        opts[1].zero_grad()
        loss = sum(((1 - a) ** 2).mean() + (b ** 2).mean() for a, b in zip(judges(real), judges(made_up.detach())))
        loss.backward()
        opts[1].step()
        opts[0].zero_grad()
        told, known = judges(made_up), judges(real)
        loss = 45 * F.l1_loss(mel(made_up), mel(real)) + sum(((1 - a) ** 2).mean() for a in told) + 2 * sum(
            F.l1_loss(a, b) for a, b in zip(told, known))
        loss.backward()
        opts[0].step()
        print(loss.item())


class TasNet(nn.Module):
    """Two voices are parted by masks on a learned basis."""

    def __init__(self, n=512, b=128, h=512):
        super().__init__()
        self.encoder, self.decoder = nn.Conv1d(1, n, 16, 8, bias=False), nn.ConvTranspose1d(n, 1, 16, 8, bias=False)
        self.norm, self.thin = nn.GroupNorm(1, n), nn.Conv1d(n, b, 1)
        self.blocks = nn.ModuleList(nn.Sequential(
            nn.Conv1d(b, h, 1), nn.PReLU(), nn.GroupNorm(1, h), nn.Conv1d(h, h, 3, 1, 1 << d, 1 << d, groups=h),
            nn.PReLU(), nn.GroupNorm(1, h), nn.Conv1d(h, b, 1)) for _ in range(3) for d in range(8))
        self.masks = nn.Conv1d(b, 2 * n, 1)

    def forward(self, x):
        w = F.relu(self.encoder(x))
        y = self.thin(self.norm(w))
        for block in self.blocks:
            y = y + block(y)
        m = F.relu(self.masks(y)).unflatten(1, (2, -1))
        return self.decoder((w[:, None] * m).flatten(0, 1)).unflatten(0, (-1, 2))[:, :, 0]


def tasnet(batch=2):
    with CARD:
        model = TasNet()

    def ratio(a, b):
        b = b - b.mean(-1, keepdim=True)
        p = (a * b).sum(-1, keepdim=True) * b / ((b ** 2).sum(-1, keepdim=True) + 1e-8)
        return 10 * ((p ** 2).sum(-1) / (((a - p) ** 2).sum(-1) + 1e-8) + 1e-8).log10()

    def loss_of(b):
        y = model(b[0])
        return -torch.maximum(ratio(y, b[1]).mean(1), ratio(y, b[1].flip(1)).mean(1)).mean()
    script(model, loss_of, lambda n: (images(n, 1, 32000), images(n, 2, 32000)), batch, opt="adam", clip=5.0,
           tests=batch)


def tagging(batch=32):
    """CNN14 on ten seconds of sound: the spectrogram is made on the card, and batches are mixed."""
    with CARD:
        convs = [m for i, o in ((1, 64), (64, 128), (128, 256), (256, 512), (512, 1024), (1024, 2048)) for m in (
            nn.Conv2d(i, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(), nn.Conv2d(o, o, 3, 1, 1, bias=False),
            nn.BatchNorm2d(o), nn.ReLU(), nn.AvgPool2d((2, 2) if o < 2048 else 1), nn.Dropout(0.2))]
        model = nn.Sequential(*convs, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 2048), nn.ReLU(),
                              nn.Linear(2048, 527))
        window, bank = torch.hann_window(1024), torch.rand(64, 513)

    def loss_of(b):
        x, y = b
        with torch.no_grad():
            x = torch.stft(x, 1024, 320, window=window, return_complex=True).abs() ** 2
            x = (bank @ x).clamp(min=1e-10).log10()
        if model.training:
            m = torch.rand(len(x), device=CARD)[:, None]
            x, y = x * m[..., None] + x.flip(0) * (1 - m[..., None]), y * m + y.flip(0) * (1 - m)
        return F.binary_cross_entropy_with_logits(model(x[:, None].transpose(2, 3)), y)
    script(model, loss_of, lambda n: (images(n, 320000), images(n, 527)), batch, opt="adam", rate=1e-3, tests=batch)


class Noised:
    """What all diffusion models share: so much noise, and the model says which."""

    def __init__(self):
        self.alphas = torch.linspace(0.9999, 0.98, 1000, device=CARD).cumprod(0)

    def __call__(self, x):
        noise, when = torch.randn_like(x), torch.randint(0, 1000, (x.shape[0],), device=CARD)
        a = self.alphas[when].view(-1, *[1] * (x.ndim - 1))
        return a.sqrt() * x + (1 - a).sqrt() * noise, noise, when


def dit_xl(batch=16):
    """DiT-XL/2 on latents of pictures of 256 points, with an average of the weights."""
    import diffusers
    with CARD:
        model = diffusers.DiTTransformer2DModel(num_attention_heads=16, attention_head_dim=72, in_channels=4,
                                                out_channels=8, num_layers=28, sample_size=32, patch_size=2,
                                                attention_bias=True, activation_fn="gelu-approximate",
                                                norm_type="ada_norm_zero", num_embeds_ada_norm=1000)
    noised = Noised()

    def loss_of(b):
        x, noise, when = noised(b[0])
        said, spread = model(x, timestep=when, class_labels=b[1]).sample.chunk(2, 1)
        return F.mse_loss(said, noise) + 1e-3 * spread.float().pow(2).mean()
    script(model, loss_of, lambda n: (images(n, 4, 32, 32), classes(1000, n)), batch, amp="bf16", average=True)


def ddpm(batch=64):
    import diffusers
    with CARD:
        model = diffusers.UNet2DModel(sample_size=64, block_out_channels=(128, 128, 256, 256, 512),
                                      down_block_types=("DownBlock2D",) * 3 + ("AttnDownBlock2D", "DownBlock2D"),
                                      up_block_types=("UpBlock2D", "AttnUpBlock2D") + ("UpBlock2D",) * 3)
    noised = Noised()

    def loss_of(x):
        y, noise, when = noised(x)
        return F.mse_loss(model(y, when).sample, noise)
    script(model, loss_of, lambda n: images(n, 3, 64, 64), batch, amp="fp16", clip=1.0, average=True)
    with torch.no_grad():
        x = torch.randn(16, 3, 64, 64, device=CARD)
        for when in range(5):
            x = x - 0.01 * model(x, when).sample


def stable_unet():
    import diffusers
    return diffusers.UNet2DConditionModel(sample_size=64, cross_attention_dim=768, attention_head_dim=8)


def stable_vae():
    import diffusers
    return diffusers.AutoencoderKL(block_out_channels=(128, 256, 512, 512), latent_channels=4, layers_per_block=2,
                                   down_block_types=("DownEncoderBlock2D",) * 4, norm_num_groups=32,
                                   up_block_types=("UpDecoderBlock2D",) * 4)


def stable(batch=2):
    """All of Stable Diffusion's network, its encoders frozen in half precision."""
    with CARD:
        model, vae = stable_unet(), stable_vae().half().eval().requires_grad_(False)
    reads = made("CLIPText", "Model", vocab_size=49408, hidden_size=768, intermediate_size=3072, num_hidden_layers=12,
                 num_attention_heads=12).half().eval().requires_grad_(False)
    noised = Noised()

    def loss_of(b):
        with torch.no_grad():
            x = vae.encode(b[0].half()).latent_dist.sample() * 0.18215
            text = reads(b[1])[0]
        y, noise, when = noised(x.float())
        return F.mse_loss(model(y, when, text).sample.float(), noise.float())
    script(model, loss_of, lambda n: (images(n, 3, 512, 512), classes(49000, n, 77)), batch, amp="fp16", clip=1.0)


def stable_lora(side=512, batch=2):
    """Adapters of rank 16 on the large network of SDXL, checkpointed; latents were made before."""
    import diffusers
    import peft
    torch.set_default_dtype(torch.bfloat16)
    with CARD:
        model = diffusers.UNet2DConditionModel(
            sample_size=128, cross_attention_dim=2048, attention_head_dim=[5, 10, 20], use_linear_projection=True,
            block_out_channels=(320, 640, 1280), transformer_layers_per_block=[1, 2, 10],
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"), addition_time_embed_dim=256,
            addition_embed_type="text_time", projection_class_embeddings_input_dim=2816)
    torch.set_default_dtype(torch.float32)
    model.requires_grad_(False)
    model.add_adapter(peft.LoraConfig(r=16, lora_alpha=16, target_modules=["to_k", "to_q", "to_v", "to_out.0"]))
    model.enable_gradient_checkpointing()
    noised = Noised()

    def loss_of(b):
        x, text, pooled = b
        y, noise, when = noised(x)
        more = dict(text_embeds=pooled, time_ids=torch.zeros(len(x), 6, device=CARD))
        return F.mse_loss(model(y, when, text, added_cond_kwargs=more).sample.float(), noise.float())
    trainer(model, loss_of, lambda n: (images(n, 4, side // 8, side // 8), images(n, 77, 2048), images(n, 1280)), batch,
            amp="bf16", steps=4)


def patches(i=3, w=64):
    """A discriminator of patches."""
    return nn.Sequential(nn.Conv2d(i, w, 4, 2, 1), nn.LeakyReLU(0.2, True), *(m for a, b, s in (
        (w, 2 * w, 2), (2 * w, 4 * w, 2), (4 * w, 8 * w, 1)) for m in (nn.Conv2d(a, b, 4, s, 1, bias=False),
                                                                      nn.BatchNorm2d(b), nn.LeakyReLU(0.2, True))),
        nn.Conv2d(8 * w, 1, 4, 1, 1))


def autoencoder(batch=2):
    """The autoencoder of Stable Diffusion with a perceptual loss and a discriminator."""
    with CARD:
        model, judge = stable_vae(), patches()
        sees = torchvision.models.vgg16().features[:23].eval().requires_grad_(False)
    opts = [optimizer(model, "adam", 4.5e-6), optimizer(judge, "adam", 4.5e-6)]
    for _ in range(5):
        x = images(batch, 3, 256, 256)
        code = model.encode(x).latent_dist
        y = model.decode(code.sample()).sample
        loss = (x - y).abs().mean() + (sees(x) - sees(y)).pow(2).mean() + 1e-6 * code.kl().mean()
        loss = loss - 0.5 * judge(y).mean()
        opts[0].zero_grad()
        loss.backward()
        opts[0].step()
        opts[1].zero_grad()
        wrong = F.relu(1 - judge(x.detach())).mean() + F.relu(1 + judge(y.detach())).mean()
        wrong.backward()
        opts[1].step()
        print(loss.item(), wrong.item())


class Styled(nn.Module):
    """A convolution whose weights a style scales, for each picture of the batch."""

    def __init__(self, i, o, up, k=3):
        super().__init__()
        self.weight, self.style = nn.Parameter(torch.randn(o, i, k, k) / (i * k * k) ** 0.5), nn.Linear(512, i)
        self.bias, self.up, self.k = nn.Parameter(torch.zeros(o)), up, k

    def forward(self, x, w):
        n = x.shape[0]
        if self.up:
            x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        own = self.weight[None] * self.style(w)[:, None, :, None, None]
        own = own * (own.pow(2).sum((2, 3, 4), keepdim=True) + 1e-8).rsqrt()
        y = F.conv2d(x.reshape(1, -1, *x.shape[2:]), own.flatten(0, 1), padding=self.k // 2, groups=n)
        y = y.view(n, -1, *y.shape[2:]) + torch.randn(n, 1, *y.shape[2:], device=x.device) * 0.1
        return F.leaky_relu(y + self.bias[:, None, None], 0.2)


class Faces(nn.Module):
    def __init__(self, widths=(512, 512, 512, 512, 256, 128, 64)):
        super().__init__()
        self.map = nn.Sequential(*(m for _ in range(8) for m in (nn.Linear(512, 512), nn.LeakyReLU(0.2))))
        self.start = nn.Parameter(torch.randn(1, widths[0], 4, 4))
        self.convs = nn.ModuleList(nn.ModuleList((Styled(a, b, True), Styled(b, b, False)))
                                   for a, b in zip(widths, widths[1:]))
        self.colours = nn.ModuleList(nn.Conv2d(b, 3, 1) for b in widths[1:])

    def forward(self, z):
        w, out = self.map(z), None
        x = self.start.expand(len(z), -1, -1, -1)
        for (a, b), colour in zip(self.convs, self.colours):
            x = b(a(x, w), w)
            y = colour(x)
            out = y if out is None else y + F.interpolate(out, scale_factor=2)
        return out


class Critic(nn.Module):
    def __init__(self, widths=(64, 128, 256, 512, 512, 512, 512)):
        super().__init__()
        self.first = nn.Conv2d(3, widths[0], 1)
        self.convs = nn.ModuleList(nn.ModuleList((nn.Conv2d(a, a, 3, 1, 1), nn.Conv2d(a, b, 3, 2, 1), nn.Conv2d(
            a, b, 1, 2))) for a, b in zip(widths, widths[1:]))
        self.last = nn.Sequential(nn.Flatten(), nn.Linear(512 * 16, 512), nn.LeakyReLU(0.2), nn.Linear(512, 1))

    def forward(self, x):
        x = self.first(x)
        for a, b, skip in self.convs:
            x = (F.leaky_relu(b(F.leaky_relu(a(x), 0.2)), 0.2) + skip(x)) / math.sqrt(2)
        return self.last(x)


def stylegan(batch=8):
    """Faces of 256 points; each fourth step asks for the gradient of the critic, twice differentiated."""
    with CARD:
        maker, critic = Faces(), Critic()
    slow = copy.deepcopy(maker).requires_grad_(False)
    opts = [torch.optim.Adam(m.parameters(), lr=2e-3, betas=(0.0, 0.99)) for m in (maker, critic)]
    for step in range(8):
        real = images(batch, 3, 256, 256)
        with torch.no_grad():
            false = maker(torch.randn(batch, 512, device=CARD))
        loss = F.softplus(critic(false)).mean() + F.softplus(-critic(real)).mean()
        critic.zero_grad(set_to_none=True)
        loss.backward()
        opts[1].step()
        if step % 4 == 0:
            real.requires_grad_(True)
            slope, = torch.autograd.grad(critic(real).sum(), real, create_graph=True)
            critic.zero_grad(set_to_none=True)
            (slope.pow(2).flatten(1).sum(1).mean() * 40).backward()
            opts[1].step()
        loss = F.softplus(-critic(maker(torch.randn(batch, 512, device=CARD)))).mean()
        maker.zero_grad(set_to_none=True)
        loss.backward()
        opts[0].step()
        with torch.no_grad():
            for s, w in zip(slow.parameters(), maker.parameters()):
                s.lerp_(w, 0.001)


def translator(w=64, blocks=9):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(256, 256, 3), nn.InstanceNorm2d(256),
                                      nn.ReLU(True), nn.ReflectionPad2d(1), nn.Conv2d(256, 256, 3),
                                      nn.InstanceNorm2d(256))

        def forward(self, x):
            return x + self.body(x)

    def part(conv, o):
        return [conv, nn.InstanceNorm2d(o), nn.ReLU(True)]
    return nn.Sequential(nn.ReflectionPad2d(3), *part(nn.Conv2d(3, w, 7), w),
                         *part(nn.Conv2d(w, 2 * w, 3, 2, 1), 2 * w),
                         *part(nn.Conv2d(2 * w, 4 * w, 3, 2, 1), 4 * w), *(Block() for _ in range(blocks)),
                         *part(nn.ConvTranspose2d(4 * w, 2 * w, 3, 2, 1, 1), 2 * w),
                         *part(nn.ConvTranspose2d(2 * w, w, 3, 2, 1, 1), w), nn.ReflectionPad2d(3), nn.Conv2d(w, 3, 7),
                         nn.Tanh())


def cyclegan(side=256, batch=1):
    """Horses into zebras and back."""
    with CARD:
        ab, ba, ja, jb = translator(), translator(), patches(), patches()
    makers = torch.optim.Adam([*ab.parameters(), *ba.parameters()], lr=2e-4, betas=(0.5, 0.999))
    judges = torch.optim.Adam([*ja.parameters(), *jb.parameters()], lr=2e-4, betas=(0.5, 0.999))
    pool = []
    for _ in range(6):
        a, b = images(batch, 3, side, side), images(batch, 3, side, side)
        for j in (ja, jb):
            j.requires_grad_(False)
        makers.zero_grad()
        false_b, false_a = ab(a), ba(b)
        loss = F.l1_loss(ba(false_b), a) * 10 + F.l1_loss(ab(false_a), b) * 10 + F.l1_loss(ab(b), b) * 5
        loss = loss + F.l1_loss(ba(a), a) * 5 + (jb(false_b) - 1).pow(2).mean() + (ja(false_a) - 1).pow(2).mean()
        loss.backward()
        makers.step()
        for j in (ja, jb):
            j.requires_grad_(True)
        judges.zero_grad()
        pool.append((false_a.detach(), false_b.detach()))
        for j, real, old in ((ja, a, pool[-1][0]), (jb, b, pool[-1][1])):
            (0.5 * ((j(real) - 1).pow(2).mean() + j(old).pow(2).mean())).backward()
        judges.step()


def codes(batch=4):
    """A picture as 1024 words: a vector-quantised autoencoder whose dictionary follows."""
    with CARD:
        model = stable_vae()
        book = torch.randn(16384, 4)
    model.quant_conv = nn.Conv2d(8, 8, 1, device=CARD)

    def loss_of(x):
        z = model.quant_conv(model.encoder(x))[:, :4]
        flat = z.movedim(1, -1).flatten(0, -2).float()
        near = (flat.pow(2).sum(1, keepdim=True) - 2 * flat @ book.T + book.pow(2).sum(1)).argmin(1)
        q = book[near].view(z.shape[0], *z.shape[2:], 4).movedim(-1, 1)
        y = model.decode(z + (q - z).detach()).sample
        return F.l1_loss(y, x) + 0.25 * F.mse_loss(z.float(), q)
    script(model, loss_of, lambda n: images(n, 3, 256, 256), batch, amp="bf16", average=True)


if __name__ == "__main__":
    main(globals())
