# SPDX-License-Identifier: Apache-2.0
"""share.py F - five GiB of a card of which the program allows itself the share F."""
import sys

import torch

torch.cuda.set_per_process_memory_fraction(float(sys.argv[1]))
kept = [torch.empty(1 << 28, device="cuda", dtype=torch.uint8) for _ in range(20)]
