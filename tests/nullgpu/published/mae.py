# SPDX-License-Identifier: Apache-2.0
"""mae.py MODEL BATCH: main_finetune.py --eval of facebookresearch/mae on empty pictures; prints what its log calls max mem."""
import math
import sys
import types

sys.modules["torch._six"] = types.SimpleNamespace(inf=math.inf)  # it is older than PyTorch 2
import models_vit  # noqa: E402
import torch  # noqa: E402
from engine_finetune import evaluate  # noqa: E402

torch.backends.cudnn.benchmark = True
model = models_vit.__dict__[sys.argv[1]](num_classes=1000, drop_path_rate=0.1, global_pool=True).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=6.25e-5)
pictures = torch.zeros(int(sys.argv[2]), 3, 224, 224), torch.zeros(int(sys.argv[2]), dtype=torch.long)
evaluate([pictures] * 5, model, torch.device("cuda"))
print("published memory", torch.cuda.max_memory_allocated() // 2 ** 20 * 2 ** 20)
