# SPDX-License-Identifier: Apache-2.0
"""grpo.py MODEL 0|1 - three steps of TRL's GRPO with vLLM in the same process, which sleeps or does not."""
import os
import sys

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

path, sleep = sys.argv[1], sys.argv[2] == "1"
data = Dataset.from_list([{"prompt": "what is one plus two " * (1 + i % 5)} for i in range(64)])
args = GRPOConfig(
    output_dir=os.path.join(path, "out"), per_device_train_batch_size=8, num_generations=4,
    max_completion_length=128, max_steps=3, use_vllm=True, vllm_mode="colocate", vllm_gpu_memory_utilization=0.3,
    vllm_enable_sleep_mode=sleep, vllm_max_model_length=1024, report_to=[], save_strategy="no", bf16=True,
    logging_steps=1, gradient_checkpointing=False, beta=0.04, temperature=1.0, dataloader_pin_memory=False)
GRPOTrainer(model=path, reward_funcs=lambda completions, **rest: [float(len(c)) for c in completions], args=args,
            train_dataset=data).train()
