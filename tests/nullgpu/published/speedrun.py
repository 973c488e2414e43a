# SPDX-License-Identifier: Apache-2.0
"""speedrun.py LOG - a record of KellerJordan/modded-nanogpt whose LOG begins with its own program: that program with
made-up tokens, and two steps; prints the peaks, in whole MiB as it does. SPEEDRUN: a git directory of it."""
import array
import os
import re
import subprocess
import sys

log = subprocess.run(["git", "-C", os.environ["SPEEDRUN"], "show", "HEAD:" + sys.argv[1]], check=True,
    capture_output=True, text=True).stdout
program = log[:log.index("\n" + "=" * 100)]
program = re.sub(r"(?m)^(\s+num_iterations\s*(?:: int\s*)?=\s*)[^#\n]*", r"\g<1>2 ", program)
os.makedirs("data/fineweb10B", exist_ok=True)
count = 6 * 2 ** 21
for name in "train_000001", "val_000000":
    with open(f"data/fineweb10B/fineweb_{name}.bin", "wb") as file:
        array.array("i", [20240520, 1, count] + 253 * [0]).tofile(file)
        file.write(bytes(range(128)) * (count // 64))
with open("program.py", "w", encoding="utf-8") as file:
    file.write(program)
sys.argv[:] = ["program.py"]
try:
    exec(compile(program, "program.py", "exec"), {"__name__": "__main__"})  # noqa: S102 - that is what it is for
finally:
    import torch  # not before: the program sets how memory is allocated
    mib = torch.cuda.max_memory_allocated() // 1048576 * 1048576, torch.cuda.max_memory_reserved() // 1048576 * 1048576
    print("published peak", mib[0], "reserved", mib[1])
