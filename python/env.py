# SPDX-License-Identifier: Apache-2.0
"""env.py - `vramcast env`: environments with a PyTorch for dry runs, and packages of other versions that go in front of the
user's. It travels inside the program, which starts it as FOLDER make VERSION|list|remove NAME|need PYTHON NAME=VERSION...|
versions NAME GOOD BAD.

PyTorch itself comes without the libraries of CUDA, whose place the null GPU takes, but with the cuDNN that it requires, which is
asked for plans, and with its torchvision. Packages come from where pip and uv are told to look."""
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

OURS = ("nvidia-", "triton", "cuda-")  # what the null GPU stands for, and what is large
BEHIND = "import os, sys; sys.path += [p for p in os.environ.get('VRAMCAST_BEHIND', '').split(':') if p]\n"


def say(text):
    print(f"vramcast env: {text}", file=sys.stderr)


def run(*words, **more):
    return subprocess.run([str(w) for w in words], check=True, text=True, **more)


def bytes_of(url):
    """What a file would cost to fetch; 0 where nobody says."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=20) as answer:
            return int(answer.headers.get("Content-Length") or 0)
    except (OSError, ValueError):
        return 0


class Pip:
    """The pip of this Python (22.3 and later), run by another: a copy for each environment takes seconds, and `pip --python` starts
    itself twice. Else theirs."""

    def __init__(self, python):
        self.python, self.ours = python, False
        try:
            self.ours = tuple(int(n) for n in importlib.metadata.version("pip").split(".")[:2]) >= (22, 3)
            self.at = os.path.dirname(importlib.util.find_spec("pip").origin)
        except (importlib.metadata.PackageNotFoundError, ValueError, AttributeError):
            pass

    def __call__(self, *words, **more):
        with tempfile.TemporaryDirectory() as folder:
            path = os.environ.get("PYTHONPATH")
            if self.ours:
                os.symlink(self.at, os.path.join(folder, "pip"))
                path = folder + (os.pathsep + path if path else "")
            return run(self.python, "-m", "pip", "install", "--quiet", *words, env={**os.environ, "PYTHONPATH": path or ""}, **more)


def plan(pip, *requirements, **more):
    """What pip would install for them: [(name, version, url, requirements)]."""
    report = pip("--dry-run", "--report", "-", *requirements, stdout=subprocess.PIPE, **more).stdout
    return [(re.sub("[-_.]+", "-", i["metadata"]["name"]).lower(), i["metadata"]["version"], i["download_info"]["url"],
             i["metadata"].get("requires_dist", []))
            for i in json.loads(report)["install"]]


def size(folder):
    return sum(os.lstat(os.path.join(at, f)).st_size for at, _, files in os.walk(folder) for f in files)


def name_of(version):
    return os.path.basename(version)[:-4] if version.endswith(".whl") else version


class Torch:
    """PyTorch of a version, or of a wheel."""

    def __init__(self, folder, version):
        self.version, self.here = version, os.path.join(folder, name_of(version))
        self.python, self.uv = os.path.join(self.here, "bin", "python"), shutil.which("uv")
        self.path = self.python

    def plan(self):
        pip = self.pip = Pip(self.python)
        run(*([self.uv, "venv", "--quiet", "--seed", "--python", sys.executable, self.here] if self.uv else
              [sys.executable, "-m", "venv", *(["--without-pip"] if pip.ours else []), self.here]))
        wanted = self.version if self.version.endswith(".whl") else f"torch=={self.version}" + (".*" if self.version.count(".") < 2 else "")
        try:  # with the torchvision that was built for it: another one ends the process
            rows = plan(pip, "--ignore-installed", wanted, "torchvision", stderr=subprocess.DEVNULL)
            (name, self.exact, url, asks), = [row for row in rows if row[0] == "torch"]
            more = [row for row in rows if row[0] == "torchvision" or row[0].startswith("nvidia-cudnn")]
        except (subprocess.CalledProcessError, ValueError):
            (name, self.exact, url, asks), = plan(pip, "--no-deps", "--ignore-installed", wanted)
            alone = [a.split(";")[0].strip() for a in asks if a.startswith("nvidia-cudnn")]
            more = plan(pip, "--no-deps", "--ignore-installed", *alone) if alone else []
        self.alone = [f"{row[0]}=={row[1]}" for row in more]
        self.rest = [a for a in asks if not a.startswith(OURS) and "extra ==" not in a]
        self.wanted = wanted if wanted.endswith(".whl") else f"{name}=={self.exact}"
        self.what = f"PyTorch {self.exact}{' with ' if self.alone else ''}{' '.join(self.alone)}"
        self.bytes = sum(map(bytes_of, [url] + [row[2] for row in more]))

    def make(self):
        def install(*words):
            if self.uv:
                run(self.uv, "pip", "install", "--quiet", "--python", self.python, *words)
            else:
                self.pip(*words)
        install(*self.rest, "numpy", *(["pillow"] if any("torchvision" in a for a in self.alone) else []))
        install("--no-deps", self.wanted, *self.alone)
        site = run(self.python, "-c", "import site; print(site.getsitepackages()[0])", stdout=subprocess.PIPE).stdout.strip()
        with open(os.path.join(site, "vramcast_behind.pth"), "w") as file:
            file.write(BEHIND)


class Package:
    """A package in front of those that a Python has, with what else it then needs; never a PyTorch."""

    def __init__(self, folder, python, name, version):
        self.wanted, self.python = f"{name}=={version}", python
        self.here = self.path = os.path.join(folder, f"{self.wanted}-{hashlib.sha256(python.encode()).hexdigest()[:8]}")

    def plan(self):
        rows = [row for row in plan(Pip(self.python), self.wanted)
                if row[0] == re.sub("[-_.]+", "-", self.wanted.split("==")[0]).lower() or not re.match("(?i)torch(vision|audio)?$|triton|(nvidia|cuda)[-_]", row[0])]
        self.all = [f"{name}=={version}" for name, version, _, _ in rows] or [self.wanted]
        self.exact, self.what, self.bytes = self.wanted, " ".join(self.all), sum(bytes_of(row[2]) for row in rows)

    def make(self):
        Pip(self.python)("--no-deps", "--target", self.here, *self.all)


def need(wanted):
    """Makes what is not there, after it said what all of it costs."""
    missing = [w for w in wanted if not os.path.exists(os.path.join(w.here, "ready"))]
    at = missing[0] if missing else None
    try:
        for at in missing:
            shutil.rmtree(at.here, ignore_errors=True)
            at.plan()
        for at in missing:
            say(f"{at.what}: " + (f"{at.bytes / 1e6:,.0f} MB to fetch" if at.bytes else "nobody says how much it is") + f", into {at.here}")
        if len(missing) > 1:
            say(f"{sum(w.bytes for w in missing) / 1e6:,.0f} MB in all")
        for at in missing:
            at.make()
            with open(os.path.join(at.here, "ready"), "w") as file:
                file.write(at.exact + "\n")
    except (subprocess.CalledProcessError, OSError, ValueError) as error:
        shutil.rmtree(at.here, ignore_errors=True)
        what = f"PyTorch {at.version}" if isinstance(at, Torch) else at.wanted
        sys.exit(f"vramcast env: {what} could not be installed: {str(error)[:160]}")
    for w in wanted:
        print(w.path)


def between(name, good, bad):
    """The releases from one to the other, in the order from good to bad: pip names them all where it is asked for one that there is
    not."""
    words = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", os.devnull, f"{name}==99999"]
    said = subprocess.run(words, text=True, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL).stderr
    found = re.search(r"from versions: ([^)]*)\)", said)
    if not found:
        why = [line for line in said.splitlines() if line.startswith("ERROR: ")] or said.splitlines() or ["pip says nothing"]
        sys.exit(f"vramcast bisect: the releases of {name} are not known: {why[0][:160]}")
    known = re.findall(r"[^ ,]+", found.group(1))

    def key(version):
        return [int(n) for n in re.findall(r"\d+", version)]
    low, high = sorted((good, bad), key=key)
    inside = [v for v in known if key(low) <= key(v) <= key(high) and re.fullmatch(r"[0-9.]+(\.post\d+)?", v)]
    for end in (low, high):
        if not any(key(v) == key(end) for v in inside):
            inside.append(end)
    print("\n".join(sorted(inside, key=key, reverse=key(good) > key(bad))))


def main():
    folder, what, *words = sys.argv[1:]
    there = sorted(v for v in os.listdir(folder) if os.path.isdir(os.path.join(folder, v)))
    if what == "list":
        for v in there:
            here = os.path.join(folder, v)
            python = os.path.join(here, "bin", "python")
            whole = "" if os.path.exists(os.path.join(here, "ready")) else f"  (not whole: 'vramcast env {v}' makes it anew)"
            print(f"{v:<8} {size(here) / 1e6:8,.0f} MB  {python if os.path.exists(python) else here}{whole}")
    elif what == "remove" and words[0] not in there:
        sys.exit(f"vramcast env: there is no environment {words[0]} ('vramcast env --list')")
    elif what == "remove":
        shutil.rmtree(os.path.join(folder, words[0]))
    elif what == "versions":
        between(*words)
    elif what == "make":
        need([Torch(folder, words[0])])
    else:
        named = [w.split("=", 1) for w in words[1:]]
        need([Torch(folder, v) if n == "torch" else Package(folder, words[0], n, v) for n, v in named])


main()
