# SPDX-License-Identifier: Apache-2.0
"""sglang_line.py MODEL ARGUMENTS - starts SGLang's engine with random weights, generates a few tokens and shuts it down. MODEL is a key
of models.json (facts of public config.json files), ARGUMENTS are SGLang's own in JSON. Beside SGLang's log it prints the free
memory that its cache was sized by, and the bytes of one token on a card."""
import json
import os
import sys
import tempfile


def tell():
    """In the process that sizes the cache: what it goes by, which its log has with two digits."""
    from sglang.srt.model_executor import model_runner_kv_cache_mixin as cache
    size = cache.ModelRunnerKVCacheMixin._profile_available_bytes

    def told(self, before):
        room = size(self, before)
        print("room", room, "of", before, "less", cache.get_available_gpu_memory(self.device, self.gpu_id),
              "fraction", self.mem_fraction_static, flush=True)
        return room
    cache.ModelRunnerKVCacheMixin._profile_available_bytes = told


if __name__ == "__mp_main__":  # SGLang starts a process for its scheduler, which imports this file again
    tell()
if __name__ == "__main__":
    import sglang

    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "models.json")) as f:
        config = json.load(f)[sys.argv[1]]
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(config, f)
        engine = sglang.Engine(model_path=folder, load_format="dummy", skip_tokenizer_init=True, log_level="info",
                               **json.loads(sys.argv[2]))
        head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
        heads = max(1, config["num_key_value_heads"] // engine.server_args.tp_size)  # of one rank
        print("token", 2 * config["num_hidden_layers"] * heads * head * 2,  # keys and values of 16 bits
              "page", engine.server_args.page_size, flush=True)
        answers = engine.generate(input_ids=[[1, 2, 3, 4], [5, 6, 7]],
                                  sampling_params={"max_new_tokens": 8, "temperature": 0, "ignore_eos": True})
        print("generated", sum(len(a["output_ids"]) for a in answers), flush=True)
        engine.shutdown()
