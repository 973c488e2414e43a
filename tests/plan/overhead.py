# SPDX-License-Identifier: Apache-2.0
"""overhead.py LIBRARY: nanoseconds for a request and its free, through the allocator of this process."""
import ctypes
import sys

import torch

lib = ctypes.CDLL(sys.argv[1])
lib.overhead.restype = ctypes.c_double
torch.cuda.init()
print("ns %.1f" % lib.overhead(int(torch.__version__.split(".")[1])))
