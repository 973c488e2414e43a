# SPDX-License-Identifier: Apache-2.0
"""wheels.py - makes wheels for tests: FOLDER and the file of a library are the arguments of the script."""
import sys
import zipfile


def wheel(name, version, files, requires=()):
    info = f"{name}-{version}.dist-info/"
    with zipfile.ZipFile(f"{sys.argv[1]}/{name}-{version}-py3-none-any.whl", "w") as z:
        for path, text in files.items():
            z.writestr(path, text)
        if name == "torch":
            z.write(sys.argv[2], "torch/lib/libtorch_cuda.so")
        z.writestr(info + "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + "".join(f"Requires-Dist: {r}\n" for r in requires))
        z.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr(info + "RECORD", "")
