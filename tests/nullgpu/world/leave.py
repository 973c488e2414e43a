# SPDX-License-Identifier: Apache-2.0
"""leave.py PHASE HOW - a rank that leaves badly. PHASE: before, init, step, after (the process group is there in all
but the first). $LEFT is told when. HOW: exception, exit, _exit, signal, interrupt, abort, memory, thread."""
import os
import signal
import sys
import threading
import time

# as torchtitan and others set them: NCCL's heartbeat then asks the store for what other ranks say
for name in "TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_NCCL_ENABLE_MONITORING":
    os.environ[name] = "1"
os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "3"
os.environ["TORCH_NCCL_TRACE_BUFFER_SIZE"] = "20000"

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

PHASE, HOW = sys.argv[1:3]


def fail():
    raise RuntimeError("left")


def fail_elsewhere():
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    sys.exit(1)


WAYS = {"exception": fail, "exit": lambda: sys.exit(3), "_exit": lambda: os._exit(4),
        "signal": lambda: os.kill(os.getpid(), signal.SIGTERM), "interrupt": lambda: os.kill(os.getpid(), signal.SIGINT),
        "abort": os.abort, "memory": lambda: torch.empty(1 << 40, device="cuda"), "thread": fail_elsewhere}


def leave(now):
    if now == PHASE:
        with open(os.environ["LEFT"], "w") as file:
            file.write("%f" % time.time())
        WAYS[HOW]()


leave("before")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
leave("init")
model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    model(torch.randn(8, 512, device="cuda")).mean().backward()
    if step == 1:
        leave("step")
    for p in model.parameters():
        dist.all_reduce(p.grad)
    optimizer.step()
    optimizer.zero_grad()
leave("after")
dist.destroy_process_group()
leave("destroyed")
