# SPDX-License-Identifier: Apache-2.0
"""env.py - `vramcast env`: environments with a PyTorch for dry runs. It travels inside the program, which starts it as
FOLDER make|list|remove [VERSION].

PyTorch itself comes without the libraries of CUDA, whose place the null GPU takes, but with the cuDNN that it requires, which is
asked for plans. Packages come from where pip and uv are told to look."""
import json
import os
import shutil
import subprocess
import sys
import urllib.request

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


def plan(python, *requirements):
    """What pip would install for them, without what they ask for: [(name, version, url, requirements)]."""
    report = run(python, "-m", "pip", "install", "--quiet", "--dry-run", "--no-deps", "--ignore-installed", "--report", "-",
                 *requirements, stdout=subprocess.PIPE).stdout
    return [(i["metadata"]["name"], i["metadata"]["version"], i["download_info"]["url"], i["metadata"].get("requires_dist", []))
            for i in json.loads(report)["install"]]


def size(folder):
    return sum(os.lstat(os.path.join(at, f)).st_size for at, _, files in os.walk(folder) for f in files)


def ready(folder, version):
    return os.path.exists(os.path.join(folder, version, "ready"))


def make(folder, version):
    here = os.path.join(folder, version)
    python, uv = os.path.join(here, "bin", "python"), shutil.which("uv")
    if ready(folder, version):
        print(python)
        return
    shutil.rmtree(here, ignore_errors=True)
    run(*([uv, "venv", "--quiet", "--seed", "--python", sys.executable, here] if uv else [sys.executable, "-m", "venv", here]))
    (name, exact, url, asks), = plan(python, f"torch=={version}" + (".*" if version.count(".") < 2 else ""))
    alone = [a.split(";")[0].strip() for a in asks if a.startswith("nvidia-cudnn")]
    rest = [a for a in asks if not a.startswith(("nvidia-", "triton", "cuda-")) and "extra ==" not in a]
    files = [url] + [row[2] for row in (plan(python, *alone) if alone else [])]
    total = sum(map(bytes_of, files)) / 1e6
    say(f"PyTorch {exact}{' with ' + alone[0] if alone else ''}: " + (f"{total:,.0f} MB to fetch" if total else "nobody says how much it is")
        + f", into {here}")
    install = [uv, "pip", "install", "--quiet", "--python", python] if uv else [python, "-m", "pip", "install", "--quiet"]
    run(*install, "--no-deps", f"{name}=={exact}", *alone)
    run(*install, *rest, "numpy")
    site = run(python, "-c", "import site; print(site.getsitepackages()[0])", stdout=subprocess.PIPE).stdout.strip()
    with open(os.path.join(site, "vramcast_behind.pth"), "w") as file:
        file.write(BEHIND)
    with open(os.path.join(here, "ready"), "w") as file:
        file.write(exact + "\n")
    print(python)


def main():
    folder, what, version = sys.argv[1], sys.argv[2], (sys.argv[3:] or [""])[0]
    there = sorted(v for v in os.listdir(folder) if os.path.isdir(os.path.join(folder, v)))
    if what == "list":
        for v in there:
            whole = "" if ready(folder, v) else "  (not whole: 'vramcast env " + v + "' makes it anew)"
            print(f"{v:<8} {size(os.path.join(folder, v)) / 1e6:8,.0f} MB  {os.path.join(folder, v, 'bin', 'python')}{whole}")
    elif what == "remove" and version not in there:
        sys.exit(f"vramcast env: there is no environment {version} ('vramcast env --list')")
    elif what == "remove":
        shutil.rmtree(os.path.join(folder, version))
    else:
        try:
            make(folder, version)
        except (subprocess.CalledProcessError, OSError, ValueError) as error:
            shutil.rmtree(os.path.join(folder, version), ignore_errors=True)
            sys.exit(f"vramcast env: PyTorch {version} could not be installed: {str(error)[:160]}")


main()
