# SPDX-License-Identifier: Apache-2.0
"""record.py OUT - make a snapshot of every kind this torch can write: OUT.py.pickle (Python's pickle), OUT.ts.pickle
(TorchScript's, torch.cuda's own C++ function), OUT.list.pickle (torch.cuda.memory_snapshot()). Needs a GPU, or the null GPU:

    vramcast dryrun -g rtx4090 -- python tests/snapshots/record.py OUT

The history begins after the first allocations (a warm start), knows two streams, record_stream, empty_cache and an
allocation that does not fit. No call stacks: they would hold the folders of the machine."""
import ctypes
import pickle
import sys

import torch

out = sys.argv[1]
keep = []


def work(n):
    for i in range(n):
        small = torch.empty(1000 + i * 37, device="cuda")
        large = torch.empty(3_000_000 + i * 5000, device="cuda")
        if i % 3 == 0:
            keep.append(small)
        if i % 7 == 0:
            keep.append(large)


work(30)
try:
    torch.cuda.memory._record_memory_history(context=None, max_entries=100000)
except TypeError:
    torch.cuda.memory._record_memory_history(True, record_context=False, trace_alloc_max_entries=100000)
work(40)
side = torch.cuda.Stream()
shared = torch.empty(5000, device="cuda")
shared.record_stream(side)
del shared
with torch.cuda.stream(side):
    other = torch.empty(800, device="cuda")
keep[:20] = []
torch.cuda.empty_cache()
work(10)
try:
    torch.empty(1 << 40, device="cuda")
except RuntimeError:
    pass
work(3)
pickle.dump(torch.cuda.memory._snapshot(), open(out + ".py.pickle", "wb"), protocol=4)
pickle.dump(torch.cuda.memory_snapshot(), open(out + ".list.pickle", "wb"), protocol=2)
try:
    cuda = ctypes.CDLL(torch.__path__[0] + "/lib/libtorch_cuda.so")
    text = (ctypes.c_uint64 * 4)()  # a std::string: address, length, room for short ones
    cuda._ZN5torch4cuda24_memory_snapshot_pickledB5cxx11Ev(ctypes.byref(text))
    open(out + ".ts.pickle", "wb").write(ctypes.string_at(text[0], text[1]))
except AttributeError:
    print("this torch does not export its C++ snapshot")
