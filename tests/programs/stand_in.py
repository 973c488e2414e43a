#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a training script of a public repository as it stands, with its own command line, on data that stand in for its own.

python stand_in.py DATA OWNER+NAME/SCRIPT.py ARGUMENT... [--seed N]   (scripts.txt and fourth.txt say of what)

SCRIPTS: the folder of the checkouts. The script runs in a folder that is thrown away, where the files of its own folder are. DATA
are words with commas between them, WORD or WORD=A:B:C, each a function below: what is written for the script to read, what stands
for a download, how many steps are enough. --seed N, at the end, is ours: data and generators are drawn with it, with 0 anew in
each run; without it they are the same each time."""
import contextlib
import importlib.machinery
import os
import random
import runpy
import shutil
import sys
import tempfile
import types

import numpy as np

SCRIPTS = os.environ.get("SCRIPTS", os.path.expanduser("~/.cache/vramcast-scripts"))


def steps(n):
    """So many steps of optimizers, then the end."""
    from torch.optim.optimizer import register_optimizer_step_post_hook
    left = [int(n)]

    def count(*_):
        left[0] -= 1
        if not left[0]:
            sys.exit(0)
    register_optimizer_step_post_hook(count)


def path(*folders):
    """Folders of the repository that its instructions put into PYTHONPATH."""
    sys.path[:0] = [os.path.join(sys.path[3], f) for f in folders]


class Nothing(types.ModuleType):
    """A package that is not there: all of its names can be called, entered, decorated with and assigned to."""
    __path__ = []

    def __init__(self, name, *_):
        super().__init__(name)
        self.__spec__ = importlib.machinery.ModuleSpec(name, None)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing(name)

    def __call__(self, *args, **_):
        return args[0] if len(args) == 1 and callable(args[0]) else self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __iter__(self):
        return iter(())


def stub(*names):
    for name in names:
        sys.modules[name] = Nothing(name)


def pictures(folder, n, side, mode="RGB", kind="png"):
    """N pictures of SIDE, or of W-H, in FOLDER."""
    from PIL import Image
    wide, high = (int(s) for s in (side.split("-") * 2)[:2])
    os.makedirs(folder, exist_ok=True)
    for i in range(int(n)):
        small = np.random.randint(0, 256, (high // 8 + 1, wide // 8 + 1, 3), dtype=np.uint8)
        Image.fromarray(small).resize((wide, high)).convert(mode).save(f"{folder}/{i:04d}.{kind}")


def words(n, vocabulary, least=3, most=40):
    """N lines."""
    lengths = np.random.randint(least, most, int(n))
    return [" ".join(f"w{w}" for w in np.random.randint(0, int(vocabulary), k)) for k in lengths]


def text(path, n, vocabulary, least="3", most="40"):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as f:
        f.write("\n".join(words(n, vocabulary, int(least), int(most))) + "\n")


def letters(path, n):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as f:
        f.write("".join(np.random.choice(list("abcdefghijklmnopqrstuvwxyz,!OG      \n"), int(n))))


def torchvision_sets(n):
    """MNIST and CIFAR of N pictures each."""
    import torch
    import torchvision.datasets as d

    def mnist(self, *_, train=True, transform=None, target_transform=None, **__):
        self.train, self.transform, self.target_transform, self.root = train, transform, target_transform, "."
        self.data = torch.randint(0, 256, (int(n), 28, 28), dtype=torch.uint8)
        self.targets = torch.randint(0, 10, (int(n),))

    def cifar(self, *_, train=True, transform=None, target_transform=None, **__):
        self.train, self.transform, self.target_transform, self.root = train, transform, target_transform, "."
        self.data = np.random.randint(0, 256, (int(n), 32, 32, 3), dtype=np.uint8)
        self.targets, self.classes = np.random.randint(0, 10, int(n)).tolist(), list("abcdefghij")
    d.MNIST.__init__, d.CIFAR10.__init__ = mnist, cifar


def coco(folder, n):
    """Pictures of two shapes with a few to many boxes and outlines, in the folders of COCO 2017, and captions."""
    import json
    for part in ("train", "val"):
        pictures(f"{folder}/{part}2017", int(n), "640-480", "RGB", "jpg")
        notes = {"images": [], "annotations": [], "categories": [{"id": c, "name": f"c{c}"} for c in range(1, 91)]}
        for i in range(int(n)):
            notes["images"].append({"id": i, "file_name": f"{i:04d}.jpg", "width": 640, "height": 480})
            for _ in range(np.random.randint(1, 30)):
                x, y, w, h = (int(v) for v in np.random.randint((0, 0, 20, 20), (500, 350, 140, 130)))
                notes["annotations"].append({
                    "id": len(notes["annotations"]), "image_id": i, "category_id": int(np.random.randint(1, 91)), "iscrowd": 0,
                    "bbox": [x, y, w, h], "area": w * h, "segmentation": [[x, y, x + w, y, x + w, y + h, x, y + h]],
                    "caption": words(1, 900, 5, 25)[0]})
        os.makedirs(f"{folder}/annotations", exist_ok=True)
        for what in ("instances", "captions"):
            with open(f"{folder}/annotations/{what}_{part}2017.json", "w") as f:
                json.dump(notes, f)


def small_and_large(path, n):
    """Pictures in two sizes, as HDF5."""
    import h5py
    with h5py.File(path, "w") as f:
        for i in range(int(n)):
            f[f"lr/{i}"], f[f"hr/{i}"] = (np.random.randint(0, 256, (side, side, 3), dtype=np.uint8) for side in (48, 96))


def ratings(path, n):
    with open(path, "w") as f:
        for u, i, r in np.random.randint(1, (6041, 3953, 6), (int(n), 3)):
            f.write(f"{u}::{i}::{r}::0\n")


def liked(n):
    """Who liked what (NCF's files), and where its config finds them."""
    with open("ml-1m.train.rating", "w") as f:
        f.writelines(f"{u}\t{i}\t5\t0\n" for u, i in np.random.randint(0, (6040, 3706), (int(n), 2)))
    with open("ml-1m.test.negative", "w") as f:
        f.writelines(f"({u},{u})" + "".join(f"\t{i}" for i in np.random.randint(0, 3706, 99)) + "\n" for u in range(20))
    import config
    config.train_rating, config.test_negative = "ml-1m.train.rating", "ml-1m.test.negative"


def graphs(path, n, least, most):
    """N graphs of LEAST to MOST nodes, as lines of nodes and their neighbours."""
    os.makedirs(os.path.dirname(path))
    with open(path, "w") as f:
        f.write(f"{n}\n")
        for _ in range(int(n)):
            k = np.random.randint(int(least), int(most))
            f.write(f"{k} {np.random.randint(2)}\n")
            for _ in range(k):
                near = np.random.randint(0, k, np.random.randint(1, 6))
                f.write(" ".join(str(v) for v in (np.random.randint(7), len(near), *near)) + "\n")


def captions(n):
    """Pictures that have captions, and a vocabulary."""
    import pickle
    sys.modules["nltk"] = types.SimpleNamespace(tokenize=types.SimpleNamespace(word_tokenize=str.split))
    coco("data", n)
    import build_vocab
    v = build_vocab.Vocabulary()
    for word in ("<pad>", "<start>", "<end>", "<unk>", *(f"w{i}" for i in range(9000))):
        v.add_word(word)
    with open("data/vocab.pkl", "wb") as f:
        pickle.dump(v, f)


def speech(n):
    """Utterances of one to eight seconds as frames, with characters (ESPnet's JSON)."""
    import json
    utterances = {}
    for i in range(int(n)):
        frames = int(np.random.randint(100, 800))
        said = np.random.randint(4, 4000, frames // 25)
        utterances[f"u{i}"] = {"input": [{"feat": str(frames), "shape": [frames, 80]}],
                               "output": [{"shape": [len(said), 4000], "tokenid": " ".join(map(str, said))}]}
    for part in ("train", "valid"):
        with open(part + ".json", "w") as f:
            json.dump({"utts": utterances}, f)
    with open("dict", "w") as f:
        f.writelines(f"{c} {i}\n" for i, c in enumerate(["<blank>", "<unk>", "<sos>", "<eos>", *range(4, 4000)]))
    sys.modules["kaldi_io"] = types.SimpleNamespace(read_mat=lambda path: np.random.rand(int(path), 80).astype(np.float32))


def speakers(n):
    """Spectra of speakers, and what each sounds like (AutoVC's train.pkl)."""
    import pickle
    os.makedirs("spmel")
    who = []
    for i in range(int(n)):
        np.save(f"spmel/{i}.npy", np.random.rand(np.random.randint(90, 300), 80).astype(np.float32))
        who.append([f"p{i}", np.random.rand(256).astype(np.float32), f"{i}.npy"])
    with open("spmel/train.pkl", "wb") as f:
        pickle.dump(who, f)


def voc(folder, n):
    """Pictures of several sizes with kinds of pixels, in the folders of PASCAL VOC 2012."""
    top = f"{folder}/VOCdevkit/VOC2012"
    pictures(top + "/JPEGImages", n, "500-375", "RGB", "jpg"), pictures(top + "/SegmentationClass", n, "500-375", "L")
    os.makedirs(top + "/ImageSets/Segmentation")
    for part in ("train", "val"):
        with open(f"{top}/ImageSets/Segmentation/{part}.txt", "w") as f:
            f.writelines(f"{i:04d}\n" for i in range(int(n)))


def clouds(n):
    """Shapes as points: ModelNet40 as text and as HDF5, and ShapeNet's parts."""
    import json

    import h5py
    top, parts = "data/modelnet40_normal_resampled", "shapenet/0"
    for folder in (top + "/a", parts + "/points", parts + "/points_label", "shapenet/train_test_split"):
        os.makedirs(folder)
    os.makedirs("data/modelnet40_ply_hdf5_2048")
    names = [f"a_{i:04d}" for i in range(int(n))]
    for name in names:
        np.savetxt(f"{top}/a/{name}.txt", np.random.rand(1100, 6), delimiter=",", fmt="%.4f")
        np.savetxt(f"{parts}/points/{name}.pts", np.random.rand(2600, 3), fmt="%.4f")
        np.savetxt(f"{parts}/points_label/{name}.seg", np.random.randint(1, 4, 2600), fmt="%d")
    for part in ("train", "test", "val"):
        with open(f"{top}/modelnet40_{part}.txt", "w") as f:
            f.writelines(n + "\n" for n in names)
        with open(f"shapenet/train_test_split/shuffled_{part}_file_list.json", "w") as f:
            json.dump([f"shape_data/0/{name}" for name in names], f)
        with h5py.File(f"data/modelnet40_ply_hdf5_2048/ply_data_{part}0.h5", "w") as f:
            f["data"], f["label"] = np.random.rand(int(n), 2048, 3).astype(np.float32), np.random.randint(0, 40, (int(n), 1))
    with open(top + "/modelnet40_shape_names.txt", "w") as f:
        f.write("a\n")
    with open("shapenet/synsetoffset2category.txt", "w") as f:
        f.write("Chair 0\n")


def cora(folder, n, words_of):
    """Papers, their words and what they cite."""
    os.makedirs(folder, exist_ok=True)
    with open(folder + "/cora.content", "w") as f:
        for i in range(int(n)):
            f.write(f"{i} " + " ".join(map(str, np.random.randint(0, 2, int(words_of)))) + f" k{i % 7}\n")
    np.savetxt(folder + "/cora.cites", np.random.randint(0, int(n), (2 * int(n), 2)), fmt="%d")


def molecules(folder, n):
    """N graphs of 10 to 120 nodes, as TUDataset's files."""
    os.makedirs(folder)
    sizes = np.random.randint(10, 120, int(n))
    first = np.cumsum(sizes) - sizes
    edges = np.concatenate([np.random.randint(0, k, (3 * k, 2)) + a + 1 for k, a in zip(sizes, first)])
    name = folder.split("/")[-2]
    np.savetxt(f"{folder}/{name}_A.txt", edges, fmt="%d", delimiter=", ")
    np.savetxt(f"{folder}/{name}_graph_indicator.txt", np.repeat(np.arange(int(n)) + 1, sizes), fmt="%d")
    np.savetxt(f"{folder}/{name}_graph_labels.txt", np.arange(int(n)) % 2, fmt="%d")
    np.savetxt(f"{folder}/{name}_node_labels.txt", np.random.randint(0, 7, sizes.sum()), fmt="%d")


def hours(path, n, columns):
    """Numbers of every hour, with a date."""
    import datetime
    os.makedirs(os.path.dirname(path))
    with open(path, "w") as f:
        f.write("date," + ",".join(f"c{i}" for i in range(int(columns) - 1)) + ",OT\n")
        for i, row in enumerate(np.random.rand(int(n), int(columns))):
            f.write(f"{datetime.datetime(2016, 7, 1) + datetime.timedelta(hours=i)}," + ",".join(f"{v:.3f}" for v in row) + "\n")


def alone():
    """One process where several would speak over MPI, and no hub."""
    import torch
    world = types.SimpleNamespace(rank=0, size=1, Get_rank=lambda: 0, Get_size=lambda: 1, bcast=lambda x=None, root=0: x)
    sys.modules["mpi4py"] = types.SimpleNamespace(MPI=types.SimpleNamespace(COMM_WORLD=world))
    torch.hub.list = lambda *_, **__: []
    import socket
    socket.getfqdn = lambda *_: "localhost"


def read_aloud(n):
    """Spectra of a second at most, and what was said (Tacotron 2's lists); its options without TensorFlow."""
    class Options(types.SimpleNamespace):
        def parse(self, said):
            for word in said.split(","):
                name, value = word.split("=")
                setattr(self, name, {"True": True}.get(value) or (int(value) if value.isdigit() else value))
    tf = Nothing("tensorflow")
    tf.contrib = types.SimpleNamespace(training=types.SimpleNamespace(HParams=Options))
    sys.modules["tensorflow"] = tf
    stub("inflect", "librosa")  # spectra are read, so nobody needs the filters
    sys.modules["librosa.util"] = types.SimpleNamespace(pad_center=lambda x, _: x, tiny=None, normalize=None)
    sys.modules["librosa.filters"] = types.SimpleNamespace(mel=lambda *_: np.zeros((80, 513), np.float32))
    lines = []
    for i in range(int(n)):
        frames = np.random.randint(20, 90)
        np.save(f"m{i}.npy", np.random.randn(80, frames).astype(np.float32))
        lines.append(f"m{i}.npy|a" + "".join(np.random.choice(list("abcdefg  "), frames // 6)) + "\n")
    with open("list", "w") as f:
        f.writelines(lines)


def no_workers():
    """Loaders without processes of their own."""
    from torch.utils.data import DataLoader
    made = DataLoader.__init__

    def init(self, *args, **own):
        own.update(num_workers=0, prefetch_factor=None, persistent_workers=False)
        made(self, *args[:5], **own)
    DataLoader.__init__ = init


def put(path, key, value):
    """KEY of a JSON or YAML file that the script reads has this value."""
    import re
    said = open(path).read()
    with open(path, "w") as f:
        f.write(re.sub(rf'("?{key}"?: *)[^,\n]+', rf"\g<1>{value}", said))


def token_bins(folder, n, vocabulary):
    os.makedirs(folder)
    for part in ("train", "val"):
        np.random.randint(0, int(vocabulary), int(n), dtype=np.uint16).tofile(f"{folder}/{part}.bin")


def facts(folder, n, entities, relations):
    """A graph of facts, as lines of who, what and whom."""
    os.makedirs(folder)
    for what, most in (("entities", entities), ("relations", relations)):
        with open(f"{folder}/{what}.dict", "w") as f:
            f.writelines(f"{i}\t{what[0]}{i}\n" for i in range(int(most)))
    for part in ("train", "valid", "test"):
        with open(f"{folder}/{part}.txt", "w") as f:
            f.writelines(f"e{a}\tr{r}\te{b}\n" for a, r, b in
                         np.random.randint(0, (int(entities), int(relations), int(entities)), (int(n), 3)))


def sequences(path, users, items, most):
    """Who liked what, one after another."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        for user in range(1, int(users) + 1):
            f.writelines(f"{user} {i}\n" for i in np.random.randint(1, int(items), np.random.randint(5, int(most))))
        f.write(f"1 {items}\n")


def neighbours_liked(folder, users, items):
    """Who liked what, a line for each (LightGCN)."""
    os.makedirs(folder)
    for part in ("train", "test"):
        with open(f"{folder}/{part}.txt", "w") as f:
            for user in range(int(users)):
                f.write(" ".join(map(str, (user, *np.random.choice(int(items), 20, replace=False)))) + "\n")
            f.write(f"{users} {int(items) - 1}\n")


def flows(folder, n, side):
    """Pairs of pictures and where each pixel went (FlyingChairs)."""
    wide, high = (int(s) for s in side.split("-"))
    pictures(folder, 2 * int(n), side, kind="ppm")
    for i in range(int(n)):
        with open(f"{folder}/{i:05d}.flo", "wb") as f:
            np.array([202021.25], np.float32).tofile(f), np.array([wide, high], np.int32).tofile(f)
            np.random.randn(high, wide, 2).astype(np.float32).tofile(f)
    read = np.fromfile  # what it reads of one number it takes for that number, as numpy once did
    np.fromfile = lambda *a, count=-1, **own: read(*a, count=count, **own)[0 if count == 1 else slice(None)]


def letters_drawn(n):
    """Twenty drawings of each of N letters (Omniglot)."""
    os.makedirs("omniglot")
    np.save("omniglot/omniglot.npy", np.random.rand(int(n), 20, 1, 28, 28).astype(np.float32))


def views(folder, n, side):
    """Views of a thing and where each was taken (NeRF's Blender)."""
    import json
    for part, k in (("train", n), ("val", 4), ("test", 4)):
        pictures(f"{folder}/{part}", k, side, "RGBA")
        frames = [dict(file_path=f"./{part}/{i:04d}", transform_matrix=np.eye(4).tolist()) for i in range(int(k))]
        with open(f"{folder}/transforms_{part}.json", "w") as f:
            json.dump(dict(camera_angle_x=0.7, frames=frames), f)


def events(n, nodes):
    """Who met whom when, and what of it is known (TGN)."""
    os.makedirs("data", exist_ok=True)
    half = int(nodes) // 2
    with open("data/ml_x.csv", "w") as f:
        f.write(",u,i,ts,label,idx\n")
        for k in range(int(n)):
            f.write(f"{k},{np.random.randint(1, half)},{np.random.randint(half, int(nodes))},{k}.0,0,{k + 1}\n")
    np.save("data/ml_x.npy", np.random.rand(int(n) + 1, 172))
    np.save("data/ml_x_node.npy", np.zeros((int(nodes) + 1, 172)))


def frames(name):
    """A game of frames that nobody plays (Atari)."""
    import gymnasium

    class Game(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(0, 255, (210, 160, 3), np.uint8)
        action_space = gymnasium.spaces.Discrete(6)
        ale = types.SimpleNamespace(lives=lambda: 3)
        get_action_meanings = staticmethod(lambda: ["NOOP"] * 6)

        def __init__(self, **_):
            pass

        def reset(self, **_):
            self.left = 900
            return np.zeros((210, 160, 3), np.uint8), {}

        def step(self, _):
            self.left -= 1
            return np.zeros((210, 160, 3), np.uint8), float(self.left % 7 == 0), self.left <= 0, False, {}
    gymnasium.register(name, Game)


def sounds(folder, n, samples):
    """Sounds of one length, and their lists (LJSpeech); filters are asked for as librosa once was."""
    import librosa.filters
    from scipy.io import wavfile
    os.makedirs(folder + "/wavs", exist_ok=True)
    for i in range(int(n)):
        wavfile.write(f"{folder}/wavs/{i}.wav", 22050, np.random.randint(-9999, 9999, int(samples), dtype=np.int16))
    for part, few in (("training", int(n)), ("validation", 4)):
        with open(f"{folder}/{part}.txt", "w") as f:
            f.writelines(f"{i}|a|a\n" for i in range(few))
    mel = librosa.filters.mel
    librosa.filters.mel = lambda *a, **own: mel(**dict(zip(("sr", "n_fft", "n_mels", "fmin", "fmax"), a)), **own)


def numbers(path, n, columns):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    np.save(path, np.random.rand(int(n), int(columns)))


def no_weights():
    """Nets that would be downloaded have weights that are drawn."""
    import torch
    import torchvision

    torchvision.models._api.WeightsEnum.get_state_dict = lambda self, *_, **__: None
    torch.hub.load_state_dict_from_url = lambda *_, **__: {}
    load = torch.nn.Module.load_state_dict
    torch.nn.Module.load_state_dict = lambda self, state, *a, **k: load(self, state, *a, **k) if state else None


def old_names():
    """Names that numpy and PyTorch had when the script was written."""
    import builtins

    import PIL.Image
    from torch.utils.data import dataloader
    for name in ("int", "float", "object", "str"):
        setattr(np, name, getattr(builtins, name))
    np.float_, np.in1d = np.float64, np.isin
    sample = random.sample
    random.sample = lambda of, k: sample(sorted(of) if isinstance(of, set) else of, k)
    PIL.Image.ANTIALIAS = PIL.Image.LANCZOS
    import torch
    import torchvision
    save, stft = torchvision.utils.save_image, torch.stft
    torchvision.utils.save_image = lambda *a, range=None, **own: save(*a, value_range=range, **own)
    torch.stft = lambda *a, **own: stft(*a, **{"return_complex": False, **own})
    dataloader._BaseDataLoaderIter.next = dataloader._BaseDataLoaderIter.__next__


def main():
    args = sys.argv[1:]
    seed = 1
    if args[-2:-1] == ["--seed"]:
        seed, args = int(args[-1]), args[:-2]
    import torch
    random.seed(seed or None)
    np.random.seed(seed or None)
    torch.manual_seed(seed or int.from_bytes(os.urandom(4), "big"))
    what, script, *own = args
    script = os.path.join(os.path.abspath(SCRIPTS), script)
    where = os.path.dirname(script)
    if not os.path.exists(script):
        sys.exit(f"stand_in.py: {script} is not there: check the repository out, at the commit that the list names")
    with tempfile.TemporaryDirectory() as top, contextlib.ExitStack() as end:
        end.callback(os.chdir, "/")
        os.makedirs(top + "/a/b")
        os.chdir(top + "/a/b")
        for name in os.listdir(where):
            if os.path.isdir(os.path.join(where, name)):
                shutil.copytree(os.path.join(where, name), name)
            else:
                shutil.copy(os.path.join(where, name), name)
        sys.argv = [script, *own]
        sys.path[:0] = [os.getcwd(), where, os.path.dirname(where), os.path.join(SCRIPTS, args[1].split("/")[0])]
        for word in what.split(","):
            name, _, rest = word.partition("=")
            globals()[name](*(rest.split(":") if rest else ()))
        runpy.run_path(os.path.basename(script), run_name="__main__")


main()
