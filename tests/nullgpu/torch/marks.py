# SPDX-License-Identifier: Apache-2.0
"""marks.py OUT - NVTX ranges and marks by torch.cuda.nvtx, and by the nvtx package where it is installed;
writes to OUT what a recording must hold, a line each: begin, end or mark, and the name."""
import sys

import torch

try:
    import nvtx
except ImportError:
    nvtx = None
expected = []


def expect(*lines):
    expected.extend(lines)


def by_torch():
    n = torch.cuda.nvtx
    n.range_push("outer")
    n.range_push("inner")
    n.mark("an instant")
    n.range_pop()
    n.range_pop()
    expect("begin outer", "begin inner", "mark an instant", "end", "end")
    first, second = n.range_start("one"), n.range_start("two")
    n.range_end(first)
    n.range_end(second)
    expect("begin one", "begin two", "end one", "end two")
    with n.range("step {}", 7):
        expect("begin step 7", "end")


def by_package():
    nvtx.push_range("pushed", color="blue")
    nvtx.mark("marked", category="some")
    nvtx.pop_range()
    expect("begin pushed", "mark marked", "end")
    with nvtx.annotate("annotated", domain="a domain"):
        expect("begin annotated", "end")
    ranges = [nvtx.start_range(s, domain="another") for s in ("first", "second")]
    for r in ranges:
        nvtx.end_range(r)
    expect("begin first", "begin second", "end first", "end second")

    @nvtx.annotate()
    def decorated():
        expect("begin decorated", "end")
    decorated()


torch.zeros(1, device="cuda")  # a recording begins with the first allocation at the latest
by_torch()
if nvtx:
    by_package()
with open(sys.argv[1], "w") as f:
    f.write("\n".join(expected) + "\n")
print("torch.cuda.nvtx" + (" and nvtx %s" % getattr(nvtx, "__version__", "") if nvtx else ""))
