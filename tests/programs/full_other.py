# SPDX-License-Identifier: Apache-2.0
"""Recommendation, graphs, games, tables, physics and the like at the size at which people train them: --model NAME."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

from fullsize import CARD, cast, classes, images, lengths, main, optimizer, script


def dlrm_tables(batch=8192):
    """Clicks: 26 tables of up to four million rows."""
    class Net(nn.Module):
        def __init__(self, w=64):
            super().__init__()
            rows = [4000000] * 3 + [1000000] * 4 + [200000] * 6 + [10000] * 7 + [200] * 6
            self.tables = nn.ModuleList(nn.EmbeddingBag(r, w, mode="sum") for r in rows)
            self.low = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, w),
                                     nn.ReLU())
            self.top = nn.Sequential(nn.Linear(w + 27 * 26 // 2, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                                     nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 1))
            self.register_buffer("pairs", torch.tril_indices(27, 27, -1))

        def forward(self, dense, sparse):
            x = self.low(dense)
            all_of = torch.stack([x] + [t(sparse[:, i:i + 1]) for i, t in enumerate(self.tables)], 1)
            like = torch.bmm(all_of, all_of.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
            return self.top(torch.cat([x, like], 1))[:, 0]
    with CARD:
        model = Net()
    opt = torch.optim.Adagrad(model.parameters(), lr=0.01)
    script(model, lambda b: F.binary_cross_entropy_with_logits(model(b[0], b[1]), b[2]),
           lambda n: (images(n, 13), classes(200, n, 26), images(n)), batch, opt=opt, tests=2 * batch)


class Encoder(nn.Module):
    def __init__(self, w, heads, layers, causal, most=512):
        super().__init__()
        self.places = nn.Embedding(most, w)
        self.body = nn.TransformerEncoder(nn.TransformerEncoderLayer(w, heads, 4 * w, 0.1, "gelu", batch_first=True),
                                          layers, enable_nested_tensor=False)
        self.causal = causal

    def forward(self, x, missing=None):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=CARD) if self.causal else None
        return self.body(x + self.places.weight[:x.shape[1]], mask, missing, is_causal=self.causal)


def sessions(batch=64):
    """What is bought next, out of sixty thousand things: the last two hundred, padded to two hundred."""
    with CARD:
        things, body = nn.Embedding(60000, 256), Encoder(256, 4, 4, True)
    model = nn.ModuleList([things, body])

    def loss_of(x):
        y = body(things(x[:, :-1])) @ things.weight.T
        return F.cross_entropy(y.flatten(0, 1), x[:, 1:].flatten(), ignore_index=0)
    script(model, loss_of, lambda n: classes(60000, n, 201), batch, opt="adam", rate=1e-3, tests=batch)


def towers(batch=4096):
    """Users and things, each with a network of its own; the others of the batch are the wrong answers."""
    class Tower(nn.Module):
        def __init__(self, rows, fields):
            super().__init__()
            self.table = nn.Embedding(rows, 64)
            self.net = nn.Sequential(nn.Linear(64 * fields, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(),
                                     nn.Linear(512, 128))

        def forward(self, x):
            return F.normalize(self.net(self.table(x).flatten(1)))
    with CARD:
        user, thing = Tower(3000000, 20), Tower(1000000, 12)
    model = nn.ModuleList([user, thing])

    def loss_of(b):
        like = user(b[0]) @ thing(b[1]).T / 0.05
        return F.cross_entropy(like - b[2], torch.arange(len(like), device=CARD))
    script(model, loss_of, lambda n: (classes(1000000, n, 20), classes(1000000, n, 12), images(n)), batch, opt="adam")


def neighbours(seeds, fan, nodes):
    """Blocks of a graph with popular nodes: for each layer the nodes before it and the edges to it."""
    blocks, now = [], seeds
    for k in fan:
        given = (torch.rand(len(now), k) ** 3 * nodes).long()
        have = torch.rand(len(now)) ** -0.8 * 2
        kept = torch.arange(k)[None] < have[:, None]
        source, target = given[kept], torch.arange(len(now))[:, None].expand(-1, k)[kept]
        new, place = torch.unique(torch.cat([now, source]), return_inverse=True)
        blocks.append((place[:len(now)].to(CARD), torch.stack([place[len(now):], target]).to(CARD), len(now)))
        now = new
    return blocks[::-1], now.to(CARD)


def sage(batch=1024):
    """A network of nodes and their sampled neighbours; the features of 2.4 million nodes are on the card."""
    class Layer(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.own, self.near = nn.Linear(i, o), nn.Linear(i, o, bias=False)

        def forward(self, x, own, edges, n):
            total = torch.zeros(n, x.shape[1], device=CARD, dtype=x.dtype).index_add_(0, edges[1], x[edges[0]])
            count = torch.zeros(n, device=CARD).index_add_(0, edges[1], torch.ones(edges.shape[1], device=CARD))
            return self.own(x[own]) + self.near(total / count.clamp(min=1)[:, None])
    with CARD:
        layers = nn.ModuleList(Layer(i, o) for i, o in ((100, 256), (256, 256), (256, 47)))
        features = torch.randn(2400000, 100)

    def loss_of(b):
        (blocks, nodes), y = b
        x = features[nodes]
        for i, (layer, block) in enumerate(zip(layers, blocks)):
            x = layer(x, *block)
            x = F.dropout(F.relu(x), 0.5) if i < 2 else x
        return F.cross_entropy(x, y)

    def load(n):
        return neighbours(torch.randint(0, 2400000, (n,)), (5, 10, 15), 2400000), classes(47, n)
    script(layers, loss_of, load, batch, steps=15, opt="adam", rate=3e-3, tests=2 * batch, test_steps=4, more=4)


def attention_graph(batch=16):
    """Clusters of a graph, so many at a time, with attention along the edges."""
    from torch_geometric.nn import GATConv
    with CARD:
        layers = nn.ModuleList(GATConv(i, o, heads=h, concat=c) for i, o, h, c in (
            (602, 128, 8, True), (1024, 128, 8, True), (1024, 41, 6, False)))
        skips = nn.ModuleList(nn.Linear(i, o) for i, o in ((602, 1024), (1024, 1024), (1024, 41)))
    model = nn.ModuleList([layers, skips])

    def load(n):
        nodes = sum(lengths(n, 155, 600, 20, 0.4))
        edges = sum(min(k * 20, 60000) for k in lengths(n, 700, 3000, 50, 0.7))
        return images(nodes, 602), torch.randint(0, nodes, (2, edges)).to(CARD), classes(41, nodes)

    def loss_of(b):
        x, edges, y = b
        for i, (layer, skip) in enumerate(zip(layers, skips)):
            x = layer(x, edges) + skip(x)
            x = F.elu(x) if i < 2 else x
        return F.cross_entropy(x, y)
    script(model, loss_of, load, batch, steps=15, opt="adam", rate=5e-3)


def molecules(batch=256):
    """Many small graphs in one: properties of molecules."""
    from torch_geometric.nn import GINEConv

    def net(i, o):
        return nn.Sequential(nn.Linear(i, 2 * o), nn.BatchNorm1d(2 * o), nn.ReLU(), nn.Linear(2 * o, o))
    with CARD:
        atoms, bonds = nn.Embedding(120, 600), nn.ModuleList(nn.Embedding(20, 600) for _ in range(5))
        layers = nn.ModuleList(GINEConv(net(600, 600)) for _ in range(5))
        norms = nn.ModuleList(nn.BatchNorm1d(600) for _ in range(5))
        virtual, head = nn.ModuleList(net(600, 600) for _ in range(4)), nn.Linear(600, 128)
    model = nn.ModuleList([atoms, bonds, layers, norms, virtual, head])

    def load(n):
        sizes = lengths(n, 25, 130, 3, 0.35)
        first = torch.tensor([0] + sizes).cumsum(0)[:-1]
        edges = torch.cat([torch.randint(0, s, (2, round(2.15 * s))) + f for s, f in zip(sizes, first.tolist())], 1)
        return (classes(120, sum(sizes)), edges.to(CARD), classes(20, edges.shape[1]),
                torch.repeat_interleave(torch.arange(n), torch.tensor(sizes)).to(CARD), images(n, 128), n)

    def loss_of(b):
        x, edges, kinds, owner, y, n = b
        h, all_of = atoms(x), torch.zeros(n, 600, device=CARD)
        for i, layer in enumerate(layers):
            h = h + all_of[owner]
            new = F.dropout(F.relu(norms[i](layer(h, edges, bonds[i](kinds)))), 0.5)
            if i < 4:
                pooled = torch.zeros(n, 600, device=CARD).index_add_(0, owner, h)
                all_of = all_of + virtual[i](pooled + all_of)
            h = new + h
        pooled = torch.zeros(n, 600, device=CARD).index_add_(0, owner, h)
        return F.binary_cross_entropy_with_logits(head(pooled), y)
    script(model, loss_of, load, batch, steps=15, opt="adam", rate=1e-3, tests=batch, test_steps=4, more=4)


class Ball(nn.Module):
    """Chooses points, gathers those near each, and asks one network of all of them."""

    def __init__(self, points, near, widths):
        super().__init__()
        self.points, self.near = points, near
        self.net = nn.Sequential(*(m for i, o in zip(widths, widths[1:]) for m in (
            nn.Conv2d(i, o, 1), nn.BatchNorm2d(o), nn.ReLU())))

    def forward(self, places, x):
        n = places.shape[0]
        chosen = torch.rand(n, places.shape[1], device=CARD).topk(self.points, 1)[1]
        centre = places.gather(1, chosen[..., None].expand(-1, -1, 3))
        near = torch.cdist(centre, places).topk(self.near, largest=False)[1].flatten(1)[..., None]
        own = places.gather(1, near.expand(-1, -1, 3)).view(n, self.points, self.near, 3) - centre[:, :, None]
        told = x.gather(1, near.expand(-1, -1, x.shape[2])).view(n, self.points, self.near, -1)
        return centre, self.net(torch.cat([own, told], -1).permute(0, 3, 2, 1)).amax(2).transpose(1, 2)


def cloud_parts(batch=16):
    """PointNet++ names the part that each of 4096 points belongs to."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.downs = nn.ModuleList(Ball(p, 32, w) for p, w in (
                (1024, (9, 32, 32, 64)), (256, (67, 64, 64, 128)), (64, (131, 128, 128, 256)),
                (16, (259, 256, 256, 512))))
            self.ups = nn.ModuleList(nn.Sequential(nn.Conv1d(i, o, 1), nn.BatchNorm1d(o), nn.ReLU(), nn.Conv1d(o, o, 1),
                                                   nn.BatchNorm1d(o), nn.ReLU()) for i, o in (
                                         (768, 256), (384, 256), (320, 128), (134, 128)))
            self.head = nn.Sequential(nn.Conv1d(128, 128, 1), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.5),
                                      nn.Conv1d(128, 13, 1))

        def forward(self, x):
            kept = [(x[..., :3], x)]
            for down in self.downs:
                kept.append(down(*kept[-1]))
            places, y = kept.pop()
            for up in self.ups:
                to, own = kept.pop()
                far, near = torch.cdist(to, places).topk(3, largest=False)
                share = 1 / (far + 1e-8)
                share = share / share.sum(2, keepdim=True)
                told = y.gather(1, near.flatten(1)[..., None].expand(-1, -1, y.shape[2])).view(*near.shape, -1)
                y = up(torch.cat([own, (told * share[..., None]).sum(2)], 2).transpose(1, 2)).transpose(1, 2)
                places = to
            return self.head(y.transpose(1, 2))
    with CARD:
        model = Net()
    script(model, lambda b: F.cross_entropy(model(b[0]), b[1]), lambda n: (images(n, 4096, 6), classes(13, n, 4096)),
           batch, opt="adam", rate=1e-3, tests=batch)


def shapes(batch=16):
    """DGCNN: the twenty nearest of each point, found anew in each layer."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.convs = nn.ModuleList(nn.Sequential(nn.Conv2d(2 * i, o, 1, bias=False), nn.BatchNorm2d(o),
                                                     nn.LeakyReLU(0.2)) for i, o in ((3, 64), (64, 64), (64, 128),
                                                                                     (128, 256)))
            self.last = nn.Sequential(nn.Conv1d(512, 1024, 1, bias=False), nn.BatchNorm1d(1024), nn.LeakyReLU(0.2))
            self.head = nn.Sequential(nn.Linear(2048, 512), nn.BatchNorm1d(512), nn.LeakyReLU(0.2), nn.Dropout(0.5),
                                      nn.Linear(512, 40))

        def forward(self, x):
            kept = []
            for conv in self.convs:
                n, c, p = x.shape
                like = 2 * x.transpose(1, 2) @ x
                square = (x ** 2).sum(1, keepdim=True)
                near = (like - square - square.transpose(1, 2)).topk(20)[1]
                told = x.transpose(1, 2).gather(1, near.flatten(1)[..., None].expand(-1, -1, c)).view(n, p, 20, c)
                own = x.transpose(1, 2)[:, :, None].expand(-1, -1, 20, -1)
                x = conv(torch.cat([told - own, own], 3).permute(0, 3, 1, 2)).amax(3)
                kept.append(x)
            x = self.last(torch.cat(kept, 1))
            return self.head(torch.cat([x.amax(2), x.mean(2)], 1))
    with CARD:
        model = Net()
    script(model, lambda b: F.cross_entropy(model(b[0]), b[1], label_smoothing=0.2),
           lambda n: (images(n, 3, 1024), classes(40, n)), batch, opt="sgd", rate=0.1, tests=2 * batch)


def nerf_scene(rays=1024):
    """A scene as a network: a coarse and a fine look along each ray."""
    class Scene(nn.Module):
        def __init__(self, w=256):
            super().__init__()
            self.first = nn.ModuleList(nn.Linear(i, w) for i in (63, w, w, w, w))
            self.second = nn.ModuleList(nn.Linear(i, w) for i in (w + 63, w, w))
            self.density, self.thin, self.side, self.colour = nn.Linear(w, 1), nn.Linear(w, w), nn.Linear(
                w + 27, w // 2), nn.Linear(w // 2, 3)

        def forward(self, x, d):
            h = x
            for layer in self.first:
                h = F.relu(layer(h))
            h = torch.cat([x, h], -1)
            for layer in self.second:
                h = F.relu(layer(h))
            return self.colour(F.relu(self.side(torch.cat([self.thin(h), d], -1)))).sigmoid(), self.density(h)

    def waves(x, k):
        parts = [x] + [f(x * 2 ** i) for i in range(k) for f in (torch.sin, torch.cos)]
        return torch.cat(parts, -1)
    with CARD:
        nets = nn.ModuleList([Scene(), Scene()])

    def seen(net, start, to, far):
        where = start[:, None] + to[:, None] * far[..., None]
        colour, density = net(waves(where, 10), waves(to, 4)[:, None].expand(-1, far.shape[1], -1))
        gap = torch.cat([far[:, 1:] - far[:, :-1], torch.full_like(far[:, :1], 1e10)], 1)
        solid = 1 - (-F.relu(density[..., 0]) * gap).exp()
        left = torch.cat([torch.ones_like(solid[:, :1]), 1 - solid + 1e-10], 1).cumprod(1)[:, :-1]
        weight = solid * left
        return (weight[..., None] * colour).sum(1), weight

    def loss_of(b):
        start, to, real = b
        far = torch.linspace(2, 6, 64, device=CARD) + torch.rand(len(start), 64, device=CARD) * 0.06
        coarse, weight = seen(nets[0], start, to, far)
        with torch.no_grad():
            more = torch.multinomial(weight + 1e-5, 128, replacement=True)
            both = torch.cat([far, far.gather(1, more)], 1).sort(1)[0]
        fine, _ = seen(nets[1], start, to, both)
        return F.mse_loss(coarse, real) + F.mse_loss(fine, real)
    script(nets, loss_of, lambda n: [images(n, 3) for _ in "abc"], rays, opt="adam", rate=5e-4, tests=2 * rays)


class Impala(nn.Module):
    """The residual network with which games are learned."""

    def __init__(self, out, widths=(32, 64, 64)):
        super().__init__()
        self.stages = nn.ModuleList()
        for i, o in zip((4, *widths), widths):
            self.stages.append(nn.ModuleList([nn.Conv2d(i, o, 3, 1, 1)] + [nn.Conv2d(o, o, 3, 1, 1) for _ in range(4)]))
        self.flat, self.heads = nn.Linear(widths[-1] * 121, 512), nn.ModuleList(nn.Linear(512, k) for k in out)

    def forward(self, x):
        x = x.float() / 255
        for first, a, b, c, d in self.stages:
            x = F.max_pool2d(first(x), 3, 2, 1)
            x = x + b(F.relu(a(F.relu(x))))
            x = x + d(F.relu(c(F.relu(x))))
        x = F.relu(self.flat(F.relu(x).flatten(1)))
        return [head(x) for head in self.heads]


def ppo_impala(envs=64):
    """Many games at once: 128 steps are played, then learned from in four parts, twice."""
    with CARD:
        model = Impala((18, 1))
        seen = torch.zeros(128, envs, 4, 84, 84, dtype=torch.uint8)
        said, gains, worth = torch.zeros(128, envs), torch.zeros(128, envs), torch.zeros(128, envs)
        done = torch.zeros(128, envs, dtype=torch.long)
    opt = torch.optim.Adam(model.parameters(), lr=2.5e-4, eps=1e-5)
    for _ in range(2):
        for step in range(128):
            now = torch.zeros(envs, 4, 84, 84, dtype=torch.uint8).to(CARD)
            seen[step] = now
            with torch.no_grad():
                scores, value = model(now)
                chosen = torch.distributions.Categorical(logits=scores)
                done[step] = chosen.sample()
                said[step], worth[step] = chosen.log_prob(done[step]), value[:, 0]
            gains[step] = torch.rand(envs).to(CARD)
        with torch.no_grad():
            ahead, last = torch.zeros_like(gains), 0
            for step in reversed(range(128)):
                ahead[step] = last = gains[step] + 0.94 * last
            target = ahead + worth
        flat = [x.flatten(0, 1) for x in (seen, done, said, ahead, target)]
        for _ in range(2):
            for part in torch.randperm(128 * envs).chunk(4):
                obs, act, old, adv, ret = (x[part.to(CARD)] for x in flat)
                scores, value = model(obs)
                now = torch.distributions.Categorical(logits=scores)
                ratio = (now.log_prob(act) - old).exp()
                adv = (adv - adv.mean()) / (adv.std() + 1e-8)
                gain = torch.min(ratio * adv, ratio.clamp(0.9, 1.1) * adv).mean()
                loss = -gain + 0.5 * (value[:, 0] - ret).pow(2).mean() - 0.01 * now.entropy().mean()
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                opt.step()


def dqn(batch=512):
    """Quantiles of what is gained; the memory of 100 000 pictures is on the card."""
    with CARD:
        model = Impala((18 * 51,), (64, 128, 128))
        memory = torch.zeros(100000, 84, 84, dtype=torch.uint8)
    slow = copy.deepcopy(model).requires_grad_(False)
    opt = torch.optim.Adam(model.parameters(), lr=1e-4)

    def look(net, at):
        return net(torch.stack([memory[at + i] for i in range(4)], 1))[0].view(-1, 18, 51)
    for step in range(6):
        at = torch.randint(0, 99000, (batch,)).to(CARD)
        with torch.no_grad():
            best = look(model, at + 3).mean(2).argmax(1)
            aim = torch.rand(batch, 1, device=CARD) + 0.97 * look(slow, at + 3)[torch.arange(batch, device=CARD), best]
        y = look(model, at)[torch.arange(batch, device=CARD), classes(18, batch)]
        off = aim[:, None] - y[..., None]
        where = (torch.arange(51, device=CARD) + 0.5)[None, :, None] / 51
        loss = ((where - (off.detach() < 0).float()).abs() * F.huber_loss(off, torch.zeros_like(off), reduction="none"))
        loss = loss.mean(2).sum(1).mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 3 == 2:
            slow.load_state_dict(model.state_dict())


def board(batch=256):
    """Twenty residual blocks that play Go: a move and who wins."""
    class Block(nn.Module):
        def __init__(self, w=256):
            super().__init__()
            self.a, self.b = (nn.Sequential(nn.Conv2d(w, w, 3, 1, 1, bias=False), nn.BatchNorm2d(w)) for _ in "ab")

        def forward(self, x):
            return F.relu(x + self.b(F.relu(self.a(x))))
    with CARD:
        body = nn.Sequential(nn.Conv2d(17, 256, 3, 1, 1), nn.BatchNorm2d(256), nn.ReLU(), *(Block() for _ in range(20)))
        move = nn.Sequential(nn.Conv2d(256, 2, 1), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(722, 362))
        wins = nn.Sequential(nn.Conv2d(256, 1, 1), nn.BatchNorm2d(1), nn.ReLU(), nn.Flatten(), nn.Linear(361, 256),
                             nn.ReLU(), nn.Linear(256, 1), nn.Tanh())
    model = nn.ModuleList([body, move, wins])

    def loss_of(b):
        h = body(b[0])
        return F.cross_entropy(move(h), b[1]) + F.mse_loss(wins(h)[:, 0], b[2])
    script(model, loss_of, lambda n: (images(n, 17, 19, 19), images(n, 362), images(n)), batch, opt="sgd", amp="fp16",
           tests=batch)


def patches(batch=16):
    """PatchTST: 321 meters, each cut into patches, two days ahead."""
    import transformers as t
    with CARD:
        model = t.PatchTSTForPrediction(t.PatchTSTConfig(
            num_input_channels=321, context_length=512, prediction_length=96, patch_length=16, patch_stride=8,
            d_model=128, num_attention_heads=16, num_hidden_layers=3, ffn_dim=256, dropout=0.2))
    script(model, lambda b: model(past_values=b[0], future_values=b[1]).loss,
           lambda n: (images(n, 512, 321), images(n, 96, 321)), batch, opt="adam", tests=batch)


def fusion(batch=128):
    """A temporal fusion transformer: which variable counts, an LSTM, attention, quantiles."""
    class Gated(nn.Module):
        def __init__(self, i, w, o=None):
            super().__init__()
            o = o or w
            self.a, self.b, self.gate = nn.Linear(i, w), nn.Linear(w, w), nn.Linear(w, 2 * o)
            self.skip, self.norm = nn.Linear(i, o) if i != o else nn.Identity(), nn.LayerNorm(o)

        def forward(self, x):
            y = F.dropout(self.b(F.elu(self.a(x))), 0.1, self.training)
            return self.norm(self.skip(x) + F.glu(self.gate(y), -1))

    class Chosen(nn.Module):
        def __init__(self, k, w):
            super().__init__()
            self.each, self.which = nn.ModuleList(Gated(w, w) for _ in range(k)), Gated(k * w, w, k)

        def forward(self, x):
            weight = self.which(x.flatten(2)).softmax(-1)[..., None]
            return (torch.stack([net(x[:, :, i]) for i, net in enumerate(self.each)], 2) * weight).sum(2)

    class Net(nn.Module):
        def __init__(self, k=20, w=160):
            super().__init__()
            self.scale, self.shift = nn.Parameter(torch.randn(k, w)), nn.Parameter(torch.zeros(k, w))
            self.past, self.ahead = Chosen(k, w), Chosen(k // 2, w)
            self.lstm, self.attend = nn.LSTM(w, w, 2, batch_first=True), nn.MultiheadAttention(w, 4, batch_first=True)
            self.after, self.last, self.out, self.k = Gated(w, w), Gated(w, w), nn.Linear(w, 3), k

        def forward(self, x, known):
            e = x[..., None] * self.scale + self.shift
            f = known[..., None] * self.scale[:self.k // 2] + self.shift[:self.k // 2]
            h, _ = self.lstm(torch.cat([self.past(e), self.ahead(f)], 1))
            h = self.after(h)
            mask = nn.Transformer.generate_square_subsequent_mask(h.shape[1], device=CARD)
            h = h + self.attend(h, h, h, attn_mask=mask, need_weights=False)[0]
            return self.out(self.last(h)[:, x.shape[1]:])
    with CARD:
        model = Net()
        wanted = torch.tensor([0.1, 0.5, 0.9])

    def loss_of(b):
        off = b[2][..., None] - model(b[0], b[1])
        return torch.maximum(wanted * off, (wanted - 1) * off).mean()
    script(model, loss_of, lambda n: (images(n, 168, 20), images(n, 24, 10), images(n, 24)), batch, opt="adam",
           clip=0.1, tests=2 * batch)


def table(batch=256):
    """FT-Transformer: each of a hundred columns is a word."""
    with CARD:
        model = Encoder(192, 8, 6, False)
        scale, shift, head = nn.Parameter(torch.randn(101, 192)), nn.Parameter(torch.zeros(101, 192)), nn.Linear(192, 1)
    all_of = nn.ModuleList([model, head])
    all_of.register_parameter("scale", scale)
    all_of.register_parameter("shift", shift)

    def loss_of(b):
        x = torch.cat([torch.ones_like(b[0][:, :1]), b[0]], 1)[..., None] * scale + shift
        return F.mse_loss(head(model(x)[:, 0])[:, 0], b[1])
    script(all_of, loss_of, lambda n: (images(n, 100), images(n)), batch, opt="adamw+", tests=4 * batch)


def operator(side=128, batch=8):
    """A Fourier neural operator: flows, ten steps at once."""
    class Waves(nn.Module):
        def __init__(self, w, modes):
            super().__init__()
            self.modes, self.w = modes, nn.ParameterList(
                nn.Parameter(torch.randn(w, w, modes, modes, dtype=torch.cfloat) / w) for _ in "ab")

        def forward(self, x):
            f, m = torch.fft.rfft2(x), self.modes
            out = torch.zeros_like(f)
            out[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", f[:, :, :m, :m], self.w[0])
            out[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", f[:, :, -m:, :m], self.w[1])
            return torch.fft.irfft2(out, s=x.shape[2:])

    class Net(nn.Module):
        def __init__(self, w=64, modes=24):
            super().__init__()
            self.up = nn.Conv2d(12, w, 1)
            self.down = nn.Sequential(nn.Conv2d(w, 256, 1), nn.GELU(), nn.Conv2d(256, 1, 1))
            self.waves = nn.ModuleList(Waves(w, modes) for _ in range(4))
            self.skips = nn.ModuleList(nn.Conv2d(w, w, 1) for _ in range(4))

        def forward(self, x):
            x = self.up(x)
            for wave, skip in zip(self.waves, self.skips):
                x = F.gelu(wave(x) + skip(x))
            return self.down(x)
    with CARD:
        model = Net()

    def loss_of(b):
        x, y = b
        loss = 0.0
        for step in range(5):
            now = model(x)
            loss = loss + (now - y[:, step:step + 1]).flatten(1).norm(dim=1).mean()
            x = torch.cat([x[:, 1:10], now, x[:, 10:]], 1)
        return loss
    script(model, loss_of, lambda n: (images(n, 12, side, side), images(n, 5, side, side)), batch, opt="adam",
           rate=1e-3, tests=batch)


def equation(points=65536):
    """A network that is held to a differential equation: derivatives of second order."""
    with CARD:
        model = nn.Sequential(nn.Linear(3, 256), nn.Tanh(), *(m for _ in range(6) for m in (nn.Linear(256, 256),
                                                                                            nn.Tanh())),
                              nn.Linear(256, 3))
    opt = optimizer(model, "adam", 1e-3)

    def slope(y, x):
        return torch.autograd.grad(y.sum(), x, create_graph=True)[0]
    for _ in range(5):
        x = images(points, 3).requires_grad_(True)
        u, v, p = model(x).unbind(1)
        du, dv, dp = slope(u, x), slope(v, x), slope(p, x)
        uxx, uyy = slope(du[:, 0], x)[:, 0], slope(du[:, 1], x)[:, 1]
        vxx, vyy = slope(dv[:, 0], x)[:, 0], slope(dv[:, 1], x)[:, 1]
        a = du[:, 2] + u * du[:, 0] + v * du[:, 1] + dp[:, 0] - 0.01 * (uxx + uyy)
        b = dv[:, 2] + u * dv[:, 0] + v * dv[:, 1] + dp[:, 1] - 0.01 * (vxx + vyy)
        edge = images(points // 8, 3)
        loss = (a ** 2).mean() + (b ** 2).mean() + (du[:, 0] + dv[:, 1]).pow(2).mean() + model(edge).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(loss.item())


def decisions(batch=64):
    """A decision transformer: what was gained, seen and done, as words."""
    import transformers as t
    with CARD:
        model = t.DecisionTransformerModel(t.DecisionTransformerConfig(
            state_dim=376, act_dim=17, hidden_size=768, n_layer=12, n_head=12, max_ep_len=1000, n_positions=1024))

    def load(n):
        return dict(states=images(n, 100, 376), actions=images(n, 100, 17), rewards=images(n, 100, 1),
                    returns_to_go=images(n, 100, 1), timesteps=classes(1000, n, 100),
                    attention_mask=torch.ones(n, 100).to(CARD))

    def loss_of(b):
        return F.mse_loss(model(**b).action_preds, b["actions"])
    script(model, loss_of, load, batch, amp="bf16", clip=0.25)


def weather(batch=2):
    """The weather of the globe: a transformer of patches that sees its own forecast again."""
    import timm
    with CARD:
        body = timm.create_model("vit_base_patch16_224", img_size=(360, 720), in_chans=69, num_classes=0, patch_size=8,
                                 depth=12, dynamic_img_size=False, global_pool="")
        head = nn.Linear(768, 69 * 64)
    body.set_grad_checkpointing(True)
    model = nn.ModuleList([body, head])

    def step(x):
        y = head(body.forward_features(x)[:, 1:]).view(-1, 45, 90, 69, 8, 8)
        return x + y.permute(0, 3, 1, 4, 2, 5).reshape(x.shape)

    def loss_of(b):
        once = step(b[0])
        return F.l1_loss(once, b[1]) + F.l1_loss(step(once), b[2])
    script(model, loss_of, lambda n: [images(n, 69, 360, 720) for _ in "abc"], batch, amp="bf16", clip=1.0, steps=4)


def cells(batch=1024):
    """Twenty thousand genes of each cell: a variational autoencoder."""
    class Net(nn.Module):
        def __init__(self, k=20000, w=1024, z=64):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(k, w), nn.BatchNorm1d(w), nn.ReLU(), nn.Dropout(0.1), nn.Linear(w, w),
                                       nn.BatchNorm1d(w), nn.ReLU(), nn.Linear(w, 2 * z))
            self.outer = nn.Sequential(nn.Linear(z, w), nn.BatchNorm1d(w), nn.ReLU(), nn.Linear(w, w),
                                       nn.BatchNorm1d(w), nn.ReLU())
            self.rate, self.drop, self.spread = nn.Linear(w, k), nn.Linear(w, k), nn.Parameter(torch.zeros(k))

        def forward(self, x):
            mean, log = self.inner(torch.log1p(x)).chunk(2, 1)
            h = self.outer(mean + torch.randn_like(mean) * (0.5 * log).exp())
            rate, r = self.rate(h).softmax(-1) * x.sum(1, keepdim=True), self.spread.exp()
            told = torch.lgamma(x + r) - torch.lgamma(r) - torch.lgamma(x + 1)
            told = told + r * (r / (r + rate + 1e-8)).log() + x * (rate / (r + rate + 1e-8) + 1e-8).log()
            zero = F.softplus(self.drop(h))
            kl = -0.5 * (1 + log - mean ** 2 - log.exp()).sum(1)
            return (kl - (told - zero).sum(1)).mean()
    with CARD:
        model = Net()
    script(model, model, lambda n: images(n, 20000), batch, opt="adam", rate=1e-3, tests=batch)


if __name__ == "__main__":
    main(globals())
