#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""collect.py - development tool: what PyTorch wheels ask of the CUDA libraries and no stand-in in build/ has.

    make && python3 nullgpu/names/collect.py WHEEL...      (needs nm; run from the repository root)

Prints the names; those that need no behaviour of their own belong into stubs.txt."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

FUNCTION = re.compile(r"(__)?(cuda[A-Z]|cublas|cudnn[A-Z]|cufft|curand|cusparse|cusolver|nccl[A-Z]|nvrtc|"
                      r"nvJitLink|cupti|cuFile|nvshmem|nvtx|nvml|cu[A-Z])")
# driver, NVML and NCCL functions are also looked up by name while the program runs
LOOKED_UP = re.compile(rb"\x00((?:cu(?:Mem|Stream|Device|Ctx|Get|Multicast|Green|Init|Driver|Func|"
                       rb"Module|Library|Kernel|Launch|Event|Pointer|Tensor|Coredump|Graph|"
                       rb"Occupancy|Link)|nvml|cuFile)[A-Za-z0-9_]{2,60})(?=\x00)")


def symbols(path):
    """Names that an object wants, and those that it defines."""
    out = subprocess.run(["nm", "-D", path], capture_output=True, text=True).stdout
    rows = [line.split() for line in out.splitlines()]
    return ({r[1].partition("@")[0] for r in rows if len(r) == 2 and r[0] in "Uw"},
            {r[2].partition("@")[0] for r in rows if len(r) == 3})


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
                more, own = symbols(copy.name)
                wanted |= more
                defined |= own
                if "cuda" in base or "torch_cpu" in base:
                    with open(copy.name, "rb") as f:
                        wanted |= {m.decode() for m in LOOKED_UP.findall(f.read())}
    return {n for n in wanted - defined if FUNCTION.match(n)}


def main():
    have = set().union(*(symbols(path)[1] for path in glob.glob("build/nullgpu/vcnull-lib*")))
    for name in sorted(set().union(*map(scan, sys.argv[1:])) - have):
        print(name)


main()
