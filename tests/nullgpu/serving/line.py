# SPDX-License-Identifier: Apache-2.0
"""line.py MODEL ARGUMENTS - starts vLLM's engine as `vllm serve` does, with random weights, and prints how many tokens its cache
holds. MODEL is a key of models.json (facts of public config.json files), ARGUMENTS are vLLM's own in JSON. Its files lie in
$VLLM_CACHE_ROOT."""
import json
import os
import sys

# vLLM starts a process for its engine, which imports this file again
if __name__ == "__main__":
    from vllm.engine.arg_utils import EngineArgs
    from vllm.usage.usage_lib import UsageContext
    from vllm.v1.engine.llm_engine import LLMEngine

    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "models.json")) as f:
        config = json.load(f)[sys.argv[1]]
    # its name is part of the key of what vLLM compiles and keeps
    folder = os.path.join(os.environ["VLLM_CACHE_ROOT"], "model")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)
    args = EngineArgs(model=folder, load_format="dummy", skip_tokenizer_init=True, **json.loads(sys.argv[2]))
    engine = LLMEngine.from_engine_args(args, usage_context=UsageContext.OPENAI_API_SERVER)
    cache = engine.vllm_config.cache_config
    head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    token = 2 * config["num_hidden_layers"] * config["num_key_value_heads"] * head * 2  # keys and values of 16 bits
    print("cache", cache.num_gpu_blocks * cache.block_size, "of", token, flush=True)
