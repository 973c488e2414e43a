# SPDX-License-Identifier: Apache-2.0
"""older_libc.py - links programs so that they run with glibc 2.28, where a newer one is installed.

glibc keeps every old version of a symbol, but a linker takes the newest. So we lay libraries into a
folder that the linker searches first: they have the symbols that 2.28 had, under the newest version
that it knew, and nothing in them. In 2.28 threads and the loader's interface were libraries of their
own, and stat() was no symbol.
"""
from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Dict, List, Optional, Tuple

NEWEST = (2, 28)
# What the program, zstd and zlib use of these two. Whether one is missing here, the built files say
# where 2.28 runs: `make check-wheel` looks for a symbol that neither library had.
HOMES = {
    "libdl.so.2": r"dl(addr1?|close|error|open|v?sym)",
    "libpthread.so.0": r"pthread_(condattr_setclock|create|detach|join|key_create|once|setspecific"
                       r"|getspecific|sigmask|timedjoin_np|mutex_trylock|mutexattr_\w+)",
}
STAT = """#include <sys/stat.h>
int __xstat(int, const char *, struct stat *);
int __fxstat(int, int, struct stat *);
#ifdef __x86_64__
#define LAYOUT 1
#else
#define LAYOUT 0
#endif
int stat(const char *path, struct stat *st) { return __xstat(LAYOUT, path, st); }
int fstat(int fd, struct stat *st) { return __fxstat(LAYOUT, fd, st); }
"""
Symbol = Tuple[Tuple[int, ...], str, int]  # version, kind and size


def said(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def symbols(library: str) -> Dict[str, Symbol]:
    """Each symbol of the library that 2.28 had, under the newest version that it had there."""
    out: Dict[str, Symbol] = {}
    row = re.compile(r"^[0-9a-f]+ (?:([0-9a-f]+) )?(\w) (\w+)@@?GLIBC_([0-9.]+)$", re.M)
    for size, kind, name, word in row.findall(said("nm", "-DS", "--with-symbol-versions", library)):
        version = tuple(map(int, word.split(".")))
        if version <= NEWEST and (name not in out or out[name][0] < version):
            out[name] = version, kind, int(size or "0", 16)
    return out


def stand_in(cc: List[str], folder: Path, soname: str, names: Dict[str, Symbol]) -> Path:
    """A library of that name with these symbols."""
    kinds = {"D": "object", "B": "object", "R": "object", "V": "object"}
    source, script, out = folder / "names.s", folder / "names.map", folder / soname
    source.write_text('.section .note.GNU-stack,"",%progbits\n.data\n' + "".join(
        f".globl {name}\n.type {name},%{kinds.get(kind.upper(), 'function')}\n.size {name},{size}\n"
        f"{name}: .zero {size or 1}\n" for name, (_, kind, size) in sorted(names.items())))
    with open(script, "w") as f:
        for version in sorted({v for v, _, _ in names.values()}):
            listed = "; ".join(sorted(n for n, s in names.items() if s[0] == version))
            f.write("GLIBC_%s { global: %s; };\n" % (".".join(map(str, version)), listed))
    subprocess.run([*cc, "-shared", "-nostdlib", f"-Wl,-soname,{soname}",
                    f"-Wl,--version-script={script}", "-o", str(out), str(source)], check=True)
    return out


def folder_for(cc: List[str], folder: Path) -> Optional[Path]:
    """The folder for the linker: -L with it in front is all that a link needs. None: no glibc."""
    def real(name: str) -> str:
        return said(*cc, f"-print-file-name={name}").strip()
    known = Path(real("libc.so"))
    script = known.read_text(errors="replace") if known.is_absolute() else ""
    loader = re.search(r"AS_NEEDED \( (\S+) \)", script)
    if loader is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    libc = symbols(real("libc.so.6"))
    parts = {soname: {n: s for n, s in libc.items() if re.fullmatch(names, n)}
             for soname, names in HOMES.items()}
    moved = {n for names in parts.values() for n in names}
    parts["libc.so.6"] = {n: s for n, s in libc.items() if n not in moved}
    parts["libm.so.6"] = symbols(real("libm.so.6"))
    made = {soname: stand_in(cc, folder, soname, names) for soname, names in parts.items()}

    source, archive = folder / "stat.c", folder / "libstat.a"
    source.write_text(STAT)
    subprocess.run([*cc, "-O2", "-fPIC", "-fvisibility=hidden", "-c", "-o", str(folder / "stat.o"),
                    str(source)], check=True)
    archive.unlink(missing_ok=True)
    subprocess.run(["ar", "rcsD", str(archive), str(folder / "stat.o")], check=True)
    (folder / "libc.so").write_text("GROUP ( %s %s AS_NEEDED ( %s %s %s %s ) )\n" % (
        archive, made["libc.so.6"], real("libc_nonshared.a"), made["libpthread.so.0"],
        made["libdl.so.2"], loader.group(1)))
    (folder / "libm.so").write_text(f"GROUP ( AS_NEEDED ( {made['libm.so.6']} ) )\n")
    return folder
