#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""collect.py - development tool: merges what PyTorch wheels ask of the CUDA libraries into *.def.

    make && python3 nullgpu/names/collect.py WHEEL...      (needs nm; run from the repository root)

Only names are stored. A row that is there already is kept, so arguments written by hand stay.
Functions that the libraries built in build/ define themselves get no row."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
# table -> pattern of the names it holds; the first match decides
TABLES = [("runtime", r"(__)?cuda[A-Z]"), ("cublaslt", r"cublasLt"), ("cublas", r"cublas"),
          ("cudnn", r"cudnn[A-Z]"), ("cufft", r"cufft"), ("curand", r"curand"),
          ("cusparselt", r"cusparseLt"), ("cusparse", r"cusparse"), ("cusolver", r"cusolver"),
          ("nccl", r"nccl[A-Z]"), ("nvrtc", r"nvrtc"), ("nvjitlink", r"(__)?nvJitLink"),
          ("cupti", r"cupti"), ("cufile", r"cuFile"), ("nvshmem", r"nvshmem"), ("nvtx", r"nvtx"),
          ("nvml", r"nvml"), ("driver", r"cu[A-Z]")]
# driver, NVML and NCCL functions are also looked up by name while the program runs
LOOKED_UP = re.compile(rb"\x00((?:cu(?:Mem|Stream|Device|Ctx|Get|Multicast|Green|Init|Driver|Func|"
                       rb"Module|Library|Kernel|Launch|Event|Pointer|Tensor|Coredump|Graph|"
                       rb"Occupancy|Link)|nvml|cuFile)[A-Za-z0-9_]{2,60})(?=\x00)")


def table_of(name):
    return next((t for t, pattern in TABLES if re.match(pattern, name)), None)


def scan(wheel):
    """Names that the libraries of a wheel want and do not define themselves."""
    wanted, defined = set(), set()
    with zipfile.ZipFile(wheel) as z:
        for member in z.namelist():
            base = os.path.basename(member)
            if ".so" not in base or base.startswith("libgomp"):
                continue
            with tempfile.NamedTemporaryFile() as copy:
                shutil.copyfileobj(z.open(member), copy)
                copy.flush()
                out = subprocess.run(["nm", "-D", copy.name], capture_output=True, text=True).stdout
                for line in out.splitlines():
                    p = line.split()
                    if len(p) == 2 and p[0] in "Uw":
                        wanted.add(p[1].partition("@")[0])
                    elif len(p) == 3:
                        defined.add(p[2].partition("@")[0])
                if "cuda" in base or "torch_cpu" in base:
                    with open(copy.name, "rb") as f:
                        wanted |= {m.decode() for m in LOOKED_UP.findall(f.read())}
    return wanted - defined


def written():
    objects = [o for o in glob.glob("build/nullgpu/obj/*/*.o") if not o.endswith("/stubs.o")]
    out = subprocess.run(["nm"] + objects, capture_output=True, text=True).stdout if objects else ""
    return set(re.findall(r" T (\w+)", out))


def main():
    own = written()
    names = {t: {} for t, _ in TABLES}
    for table in names:
        path = os.path.join(HERE, table + ".def")
        for line in open(path) if os.path.exists(path) else []:
            m = re.match(r"STUB\w*\((\w+)", line)
            if m:
                names[table][m[1]] = line.rstrip("\n")
    for wheel in sys.argv[1:]:
        for name in scan(wheel):
            table = table_of(name)
            if table and name not in own:
                names[table].setdefault(name, "STUB(%s)" % name)
    for table, rows in names.items():
        with open(os.path.join(HERE, table + ".def"), "w") as f:
            f.write("/* SPDX-License-Identifier: Apache-2.0 */\n"
                    "/* %s.def - functions that PyTorch wheels ask for, see collect.py */\n" % table)
            f.writelines(rows[n] + "\n" for n in sorted(rows))


main()
