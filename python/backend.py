# SPDX-License-Identifier: Apache-2.0
"""backend.py - makes the wheel and the source distribution (PEP 517), with Python's own library alone.

The program is built in a folder of its own (build-wheel), with zstd and zlib linked in, so that the
wheel needs nothing but libc: glibc 2.28 (older_libc.py). The tag of the wheel says the newest version
that one of the built files asks for (PEP 600), 2.28 at least.

    VRAMCAST_CC="python -m ziglang cc -target x86_64-linux-gnu.2.17"   # for still older machines
"""
from __future__ import annotations

import base64
import gzip
import hashlib
import io
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Dict, List, Optional, Set, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
from older_libc import NEWEST, folder_for  # noqa: E402 - pip, too, finds it only beside this file

TREE = Path(__file__).resolve().parent.parent
STAMP = (1980, 1, 1, 0, 0, 0)  # the oldest that a zip file can say: the same tree, the same bytes
NATIVE = "vramcast/native/"


def version() -> str:
    """The Makefile's, which is the one place where it stands."""
    found = re.search(r"^VERSION := (\S+)$", (TREE / "Makefile").read_text(), re.M)
    if found is None:
        raise SystemExit("vramcast: the Makefile names no VERSION")
    return found.group(1)


def metadata() -> str:
    """PKG-INFO and METADATA: what pyproject.toml says, which is read as text, because Python has
    no reader of TOML before 3.11."""
    project = (TREE / "pyproject.toml").read_text()

    def field(name: str) -> str:
        found = re.search(r'^%s = "(.*)"$' % name, project, re.M)
        if found is None:
            raise SystemExit(f"vramcast: pyproject.toml has no {name}")
        return found.group(1)

    def fields(name: str) -> List[str]:
        found = re.search(r"^%s = \[(.*?)\]$" % name, project, re.M | re.S)
        return re.findall(r'"([^"]*)"', found.group(1)) if found else []
    urls = re.findall(r'^(\w+) = "(https://[^"]*)"$', project, re.M)
    return "\n".join([
        "Metadata-Version: 2.4", f"Name: {field('name')}", f"Version: {version()}",
        f"Summary: {field('description')}", f"License-Expression: {field('license')}",
        *(f"License-File: {name}" for name in fields("license-files")),
        *(f"Author: {name}" for name in fields("authors")), f"Keywords: {','.join(fields('keywords'))}",
        *(f"Project-URL: {name}, {url}" for name, url in urls),
        f"Requires-Python: {field('requires-python')}",
        "Provides-Extra: dryrun", "Requires-Dist: torch; extra == 'dryrun'",
        *(f"Classifier: {name}" for name in fields("classifiers")),
        "Description-Content-Type: text/markdown", "",
        (TREE / field("readme")).read_text()])


# ---- the program ----

def static_library(name: str) -> str:
    cc = os.environ.get("CC", "cc").split()
    path = subprocess.run([*cc, f"-print-file-name={name}"], capture_output=True, text=True,
                          check=True).stdout.strip()
    if not os.path.isabs(path):
        raise SystemExit(f"vramcast: no {name} here; install libzstd-dev and zlib1g-dev")
    return path


def headers(folder: Path) -> Path:
    """The headers of zstd and zlib alone: another compiler has headers of libc of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("zlib.h", "zconf.h", "zstd.h", "zstd_errors.h"):
        places = [Path(p) / name for p in ("/usr/include", "/usr/include/x86_64-linux-gnu",
                                           "/usr/local/include")]
        found = [p for p in places if p.exists()]
        if found:
            shutil.copy2(found[0], folder / name)
        elif name != "zstd_errors.h":
            raise SystemExit(f"vramcast: no {name} here; install libzstd-dev and zlib1g-dev")
    return folder


def compiled() -> List[Path]:
    """Builds, and returns the program and its libraries."""
    build = Path(os.environ.get("VRAMCAST_BUILD", str(TREE / "build-wheel")))
    cc = os.environ.get("VRAMCAST_CC") or os.environ.get("CC", "cc")
    include = headers(build / "include")
    # What scripts/probe.sh would find out by asking the compiler: -o keeps make from asking.
    config = build / "config.mk"
    text = (f"CONFIG_CFLAGS := -I{include}\n"
            f"CONFIG_LIBS := {static_library('libzstd.a')} {static_library('libz.a')}\n")
    if not config.exists() or config.read_text() != text:  # pip asks twice: the second time it is built
        config.write_text(text)
    older = None if os.environ.get("VRAMCAST_CC") else folder_for(cc.split(), build / "older-libc")
    flags = f"-O2 -L{older}" if older else "-O2"
    line = ["make", "-C", str(TREE), f"BUILD={build}", f"CC={cc}", "DEPS=skip", f"CFLAGS={flags}",
            "-o", str(config), "native"]
    jobs = os.environ.get("MAKEFLAGS")
    if not jobs:
        line.insert(1, f"-j{len(os.sched_getaffinity(0))}")
    subprocess.run(line, check=True, stdout=sys.stderr)
    listed = (build / "native.txt").read_text().split()
    return [TREE / name if not os.path.isabs(name) else Path(name) for name in listed]


# ---- which libc ----

def sections(data: bytes) -> List[Tuple[int, int, int, int, int]]:
    """(type, offset, size, link, info) of each section of an ELF file of 64 bits."""
    at, = struct.unpack_from("<Q", data, 40)
    size, n = struct.unpack_from("<HH", data, 58)
    out = []
    for i in range(n):
        kind, = struct.unpack_from("<I", data, at + i * size + 4)
        offset, length, link, info = struct.unpack_from("<QQII", data, at + i * size + 24)
        out.append((kind, offset, length, link, info))
    return out


def libc_versions(path: Path) -> Set[Tuple[int, int]]:
    """The versions of glibc whose symbols the file asks for (SHT_GNU_verneed)."""
    data = path.read_bytes()
    out: Set[Tuple[int, int]] = set()
    if data[:5] != b"\x7fELF\x02":
        return out
    table = sections(data)
    for kind, offset, _, link, count in table:
        if kind != 0x6FFFFFFE:
            continue
        strings = table[link][1]
        for _ in range(count):
            _, names, _, aux, following = struct.unpack_from("<HHIII", data, offset)
            name = offset + aux
            for _ in range(names):
                _, _, _, text, further = struct.unpack_from("<IHHII", data, name)
                word = data[strings + text:data.index(b"\0", strings + text)].decode()
                found = re.match(r"GLIBC_(\d+)\.(\d+)", word)
                if found:
                    out.add((int(found.group(1)), int(found.group(2))))
                name += further
            offset += following
    return out


def tag(files: List[Path]) -> str:
    newest = max(NEWEST, *(v for f in files for v in libc_versions(f)))
    return "py3-none-manylinux_%d_%d_x86_64" % newest


# ---- the two files ----

class Archive:
    """A wheel that is being written, with the list of what is in it."""

    def __init__(self, path: Path) -> None:
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.rows: List[str] = []

    def add(self, name: str, data: bytes, mode: int = 0o644) -> None:
        info = zipfile.ZipInfo(name, STAMP)
        info.external_attr = (0o100000 | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.rows.append(f"{name},sha256={digest},{len(data)}\n")

    def close(self, record: str) -> None:
        self.rows.append(f"{record},,\n")
        rows = "".join(self.rows).encode()
        self.add(record, rows)
        self.zip.close()


def stripped(path: Path, work: Path) -> bytes:
    out = work / path.name
    strip = shutil.which("strip")
    if strip is None or path.read_bytes()[:4] != b"\x7fELF":
        return path.read_bytes()
    subprocess.run([strip, "-o", str(out), str(path)], check=True)
    return out.read_bytes()


def info_files(archive: Archive, info: str, wheel_tag: str) -> None:
    archive.add(f"{info}/METADATA", metadata().encode())
    archive.add(f"{info}/WHEEL", (f"Wheel-Version: 1.0\nGenerator: vramcast {version()}\n"
                                  f"Root-Is-Purelib: false\nTag: {wheel_tag}\n").encode())
    archive.add(f"{info}/entry_points.txt",
                b"[console_scripts]\nvramcast = vramcast.__main__:main\n\n"
                b"[pytest11]\nvramcast = vramcast.pytest_plugin\n")
    for name in re.findall(r"^License-File: (.*)$", metadata(), re.M):
        archive.add(f"{info}/licenses/{name}", (TREE / name).read_bytes())


def shared_files(program: Path) -> Dict[str, bytes]:
    """Man pages and completions, which the program prints: below share/ of whoever installs."""
    def said(*words: str) -> bytes:
        return subprocess.run([str(program), *words], capture_output=True, check=True).stdout
    commands = re.findall(r"^  ([a-z]+) ", said("help").decode(), re.M)
    out = {f"man/man1/vramcast-{name}.1": said("manpage", name) for name in commands}
    out["man/man1/vramcast.1"] = said("manpage")
    out["bash-completion/completions/vramcast"] = said("completions", "bash")
    out["zsh/site-functions/_vramcast"] = said("completions", "zsh")
    out["fish/vendor_completions.d/vramcast.fish"] = said("completions", "fish")
    return out


def build_wheel(wheel_directory: str, config_settings: Optional[Dict[str, str]] = None,
                metadata_directory: Optional[str] = None) -> str:
    files = compiled()
    work = files[0].parent / "stripped"
    work.mkdir(exist_ok=True)
    wheel_tag = tag(files)
    name = f"vramcast-{version()}-{wheel_tag}.whl"
    archive = Archive(Path(wheel_directory) / name)
    for path in sorted((TREE / "python" / "vramcast").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            archive.add("vramcast/" + path.relative_to(TREE / "python" / "vramcast").as_posix(),
                        path.read_bytes())
    for path in files:
        archive.add(NATIVE + path.name, stripped(path, work),
                    0o644 if path.suffix in (".py", ".txt") else 0o755)
        if path.name == "vcnull-libcuda.so.1":
            # Its neighbours ask for it by its soname. A dry run gives it that name in a folder of
            # its own; here it stands for whoever follows the names in the wheel, as auditwheel does.
            archive.add(NATIVE + "libcuda.so.1", stripped(path, work), 0o755)
    for page, data in sorted(shared_files(files[0]).items()):
        archive.add(f"vramcast-{version()}.data/data/share/{page}", data)
    info = f"vramcast-{version()}.dist-info"
    info_files(archive, info, wheel_tag)
    archive.close(f"{info}/RECORD")
    return name


def tracked() -> List[str]:
    """The files of the tree: what git knows, or, of an unpacked distribution, what is there."""
    try:
        out = subprocess.run(["git", "-C", str(TREE), "ls-files", "-z"], capture_output=True,
                             check=True).stdout.decode().split("\0")
        names = [n for n in out if n and (TREE / n).is_file()]
    except (OSError, subprocess.CalledProcessError):
        names = [p.relative_to(TREE).as_posix() for p in TREE.rglob("*")
                 if p.is_file() and not re.match(r"build(-|/)|\.git/|PKG-INFO",
                                                 p.relative_to(TREE).as_posix())]
    # The building blocks. Recordings and tests stay in the repository: they are forty megabytes.
    return sorted(n for n in names if not n.startswith(("tests/", "traces/", "docs/", ".ci/")))


def build_sdist(sdist_directory: str, config_settings: Optional[Dict[str, str]] = None) -> str:
    root = f"vramcast-{version()}"
    path = Path(sdist_directory) / f"{root}.tar.gz"
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
            members = [(n, (TREE / n).read_bytes(), 0o755 if (TREE / n).stat().st_mode & 0o100 else 0o644)
                       for n in tracked()]
            members.append(("PKG-INFO", metadata().encode(), 0o644))
            for name, data, mode in members:
                member = tarfile.TarInfo(f"{root}/{name}")
                member.size, member.mode = len(data), mode
                tar.addfile(member, io.BytesIO(data))
    return path.name


if __name__ == "__main__":
    where = sys.argv[1] if len(sys.argv) > 1 else "dist"
    os.makedirs(where, exist_ok=True)
    for made in (build_wheel(where), build_sdist(where)):
        print(os.path.join(where, made))
