# SPDX-License-Identifier: Apache-2.0
"""loop.py MODEL LEVEL - a trainer and vLLM take turns; LEVEL of its sleep, 0: none. TWO=1: vLLM in a process of its own."""
import os
import sys

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = os.environ.get("TWO", "0")

if __name__ == "__main__":
    import torch
    from transformers import AutoModelForCausalLM
    from vllm import LLM, SamplingParams

    path, level = sys.argv[1], int(sys.argv[2])
    llm = LLM(model=path, gpu_memory_utilization=0.3, max_model_len=1024, enable_sleep_mode=level > 0,
              enforce_eager=True, max_num_batched_tokens=2048, max_num_seqs=32)
    if level:
        llm.sleep(level)
    policy = AutoModelForCausalLM.from_pretrained(path, dtype=torch.bfloat16).to("cuda")
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-5)
    for step in range(4):
        torch.cuda.nvtx.range_push("generate")
        if level:
            llm.wake_up()
        answers = llm.generate([{"prompt_token_ids": [5 + i] * (20 + 9 * i)} for i in range(8)],
                               SamplingParams(max_tokens=48 + 16 * step, ignore_eos=True), use_tqdm=False)
        if level:
            llm.sleep(level)
        torch.cuda.nvtx.range_pop()
        torch.cuda.nvtx.range_push("train")
        rows = [a.prompt_token_ids + a.outputs[0].token_ids for a in answers]
        longest = max(map(len, rows))
        ids = torch.tensor([r + [0] * (longest - len(r)) for r in rows], device="cuda")
        policy(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.nvtx.range_pop()
        torch.cuda.empty_cache()
