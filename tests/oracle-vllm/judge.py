#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""judge.py TREE SCRIPT... - play request scripts with vLLM's own scheduler and block pool, and print what they did.

TREE holds the Python files of one vLLM release (build.sh). Of them vllm.v1.core and what it computes with is executed as it is;
everything else (the engine, torch, message classes) is replaced by names that do nothing. The format is described in play.c.
"""
import os
import sys
import types

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from nothing import Finder, quiet, thing  # noqa: E402

tree = sys.argv[1]
os.environ["PYTHONHASHSEED"] = "0"
REAL = ("vllm.v1.core", "vllm.v1.request", "vllm.v1.kv_cache_interface", "vllm.v1.kv_cache_spec_registry", "vllm.v1.metrics.stats",
        "vllm.utils.math_utils", "vllm.v1.kv_cache_layout", "vllm.v1.hisparse")
PACKAGES = ("vllm", "vllm.v1", "vllm.utils", "vllm.v1.metrics")


class Stub(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if self.__name__ == "vllm.envs":
            return None
        made = SPECIAL.get(name)
        if made is None:
            made = thing(name)
        setattr(self, name, made)
        return made


class ConstantList(list):
    def __new__(cls, of):
        return of


def cdiv(a, b):
    return -(a // -b)


class Tokens(list):
    tolist = list.copy  # some releases expect arrays


def digest(value):
    import hashlib
    return hashlib.sha256(repr(value).encode()).digest()


SPECIAL = {"bc_linter_include": lambda c: c, "bc_linter_skip": lambda c: c, "MultiModalBudget": quiet,
           "init_logger": lambda name: types.SimpleNamespace(**{n: quiet for n in ("debug", "info", "warning", "error", "warning_once", "info_once",
                                                                                   "debug_once")}),
           "ConstantList": ConstantList, "cdiv": cdiv, "round_up": lambda a, b: cdiv(a, b) * b, "round_down": lambda a, b: a // b * b,
           "get_dtype_size": lambda d: d.itemsize, "StructuredOutputRequest": types.SimpleNamespace(from_sampling_params=quiet), "GiB_bytes": 1 << 30, "length_from_prompt_token_ids_or_embeds": lambda ids, embeds: len(ids), "MEDIUM_GPU": "GPU",
           "sha256_cbor": digest, "sha256": digest, "xxhash": digest, "xxhash_cbor": digest, "sha256_cbor_64bit": digest}


sys.meta_path.insert(0, Finder(tree, REAL, ("vllm", "torch", "msgspec", "numpy", "cbor2", "uvloop", "zmq", "pydantic", "prometheus_client", "regex", "transformers", "xxhash",
                                             "typing_extensions", "psutil", "cachetools", "cloudpickle", "einops", "PIL"), Stub))
from vllm.v1.core import kv_cache_utils  # noqa: E402
from vllm.v1.core.sched import scheduler as sched_module  # noqa: E402
from vllm.v1 import kv_cache_interface as interface  # noqa: E402
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec  # noqa: E402
from vllm.v1.core.kv_cache_manager import KVCacheManager  # noqa: E402
from vllm.v1.request import Request, RequestStatus  # noqa: E402


def token(name, i):
    """Token i of a text; the model computes the same (simulator/serving/requests.c)."""
    return name << 20 | i


class Loose:
    """A configuration: what was set, and None for anything else."""
    def __init__(self, **k):
        self.__dict__.update(k)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None


DTYPE = Loose(itemsize=2)


def fill(cls, **k):
    """The class with those of the fields that this release has."""
    import inspect
    known = inspect.signature(cls.__init__).parameters
    return cls(**{n: v for n, v in k.items() if n in known})


def spec_of(words, caching):
    """KIND/block/window/states/checkpoint/spec/eagle, as play.c writes it; equal numbers of `spec` are equal layers."""
    kind, (block, window, states, checkpoint, spec, _) = words[0], map(int, words[1:])
    layer = {"block_size": block, "num_kv_heads": 1, "head_size": 1 + spec, "dtype": DTYPE, "use_mla": False}
    if kind == "full":
        return fill(FullAttentionSpec, **layer)
    if kind == "sliding":
        return fill(interface.SlidingWindowSpec, sliding_window=window, **layer)
    if kind == "chunked":
        return fill(interface.ChunkedLocalAttentionSpec, attention_chunk_size=window, **layer)
    if kind == "cross":
        return fill(interface.CrossAttentionSpec, **layer)
    return fill(interface.MambaSpec, block_size=block, shapes=((1 + spec,),), dtypes=(DTYPE,), mamba_cache_mode="align" if caching else "none",
                num_speculative_blocks=states, num_prefill_checkpoint_blocks=int(checkpoint > 0), prefill_checkpoint_alignment=checkpoint or None)


def ahead(o):
    """VllmConfig.num_hash_lookahead_tokens, where the release has it."""
    return int(bool(o.get("eagle") and o["caching"]) and "num_hash_lookahead_tokens" in KVCacheManager.__init__.__code__.co_varnames)


def drafter(o):
    eagle = bool(o.get("eagle"))
    return Loose(max_num_new_slots_for_drafting=o["slots"], use_eagle=lambda: eagle, use_eagle_block_drop=lambda: eagle, needs_eagle_block_drop=lambda: eagle,
                 disable_eagle_block_drop=False) if o.get("drafts") else None


def mix(h):
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9 & 0xFFFFFFFFFFFFFFFF
    h = (h ^ h >> 27) * 0x94d049bb133111eb & 0xFFFFFFFFFFFFFFFF
    return h ^ h >> 31


def right(o, who, at):
    """Whether the draft of this token of an output is right; is_right() of serving.c."""
    return float(mix((1 << 30) + who + mix(at + 1) & 0xFFFFFFFFFFFFFFFF) >> 11) < o["accept"] / 1000 * 2.0 ** 53


def make(o):
    import inspect
    words = [w.split("/") for w in o.get("groups", f"full/{o['block']}/0/0/0/0/0").split(",")]
    groups = [fill(KVCacheGroupSpec, layer_names=[f"layer{i}"], kv_cache_spec=spec_of(w, o["caching"]), is_eagle_group=bool(int(w[6]))) for i, w in enumerate(words)]
    kv = fill(KVCacheConfig, num_blocks=o["blocks"], kv_cache_tensors=[], kv_cache_groups=groups, prefix_cache_retention_interval=None if o.get("retention", 0) < 0 else o.get("retention", 0))
    scheduler = Loose(max_num_seqs=o["seqs"], max_num_batched_tokens=o["batch"], max_model_len=o["len"], policy=o["policy"],
                      long_prefill_token_threshold=o["long"], chunked_prefill_enabled=True, enable_chunked_prefill=True,
                      scheduler_reserve_full_isl=bool(o["whole"]), watermark=o["watermark"] / 1000, async_scheduling=False,
                      disable_chunked_mm_input=False, prefill_schedule_interval=1, long_prefill_token_threshold_adaptive=False,
                      disable_hybrid_kv_cache_manager=False)
    model = Loose(max_model_len=o["len"], is_encoder_decoder=False, uses_mrope=False, runner_type="generate", is_diffusion=False,
                  is_multimodal_model=False, supports_multimodal_inputs=False, return_sampling_mask=False)
    parallel = Loose(pipeline_parallel_size=1, decode_context_parallel_size=1, prefill_context_parallel_size=1, data_parallel_rank=0,
                     data_parallel_index=0, cp_kv_cache_interleave_size=1, data_parallel_size=1)
    manager = Loose(get_encoder_cache_manager_obj=lambda: None)
    config = Loose(scheduler_config=scheduler, model_config=model, parallel_config=parallel, ec_manager_config=manager,
                   cache_config=Loose(num_gpu_blocks=o["blocks"], block_size=o["block"], enable_prefix_caching=bool(o["caching"]),
                                      mamba_cache_mode="align" if o["caching"] else "none", prefix_match_unit=o.get("match") or None),
                   observability_config=Loose(kv_cache_metrics=False), speculative_config=drafter(o), num_speculative_tokens=o.get("drafts", 0), num_lookahead_tokens=o.get("lookahead", 0),
                   num_prefill_lookahead_tokens=o.get("eagle", 0), num_hash_lookahead_tokens=ahead(o), max_in_flight_tokens=o.get("inflight") or o["batch"], max_concurrent_batches=1,
                   aux_output_config=Loose(enabled=False), is_mm_encoder_only=False, use_v2_model_runner=False)
    sched_module.Scheduler._try_schedule_encoder_inputs = lambda self, r, computed, new, budget, **k: ([0] if computed == 0 else [], new, budget, [], [])[:ENCODER_ANSWERS]
    sched_module.Scheduler._free_encoder_inputs = sched_module.Scheduler._allocate_encoder_inputs = quiet
    sched_module.MultiModalBudget = lambda *a, **k: Loose(mm_max_toks_per_item={}, encoder_compute_budget=1 << 30, encoder_cache_size=1 << 30)
    sched_module.compute_encoder_budget = lambda *a, **k: (0, 0)
    for name in ("EncoderCacheManager", "EncoderDecoderCacheManager"):
        setattr(sched_module, name, Encoders)
    known = inspect.signature(sched_module.Scheduler.__init__).parameters
    more = {"block_size": o["block"]} if "block_size" in known else {}
    if "groups" in o:
        more["block_size"], more["hash_block_size"] = kv_cache_utils.resolve_kv_cache_block_sizes(kv, config)
    o["hash"] = more.get("hash_block_size", o["block"])
    model.is_encoder_decoder = model.supports_multimodal_inputs = any(w[0] == "cross" for w in words)
    return sched_module.Scheduler(vllm_config=config, kv_cache_config=kv, log_stats=True,
                                  structured_output_manager=Loose(should_advance=lambda *a, **k: False, should_fill_bitmask=lambda *a: False, validate_tokens=lambda r, ids: ids, accept_tokens=lambda *a: True), **more)


ENCODER_ANSWERS = str(sched_module.Scheduler._try_schedule_encoder_inputs.__annotations__["return"]).count("int") if hasattr(sched_module.Scheduler, "_try_schedule_encoder_inputs") else 0


def plan(words, out):
    """The groups that vLLM makes of layers, and the tokens it says: get_kv_cache_groups, get_kv_cache_capacity."""
    import importlib
    o = dict(w.split("=") for w in words)
    planning = kv_cache_utils
    if os.path.exists(os.path.join(tree, "vllm/v1/core/kv_cache_planning.py")):  # 0.33 on
        planning = importlib.import_module("vllm.v1.core.kv_cache_planning")
    layout = importlib.import_module("vllm.v1.kv_cache_layout").KVCacheLayout.LBNHC
    caching = bool(int(o["caching"]))
    layers = {}
    for kind, n, size, window, block in ((k, *map(int, r)) for k, *r in (w.split("/") for w in o["layers"].split(","))):
        layer = {"block_size": block, "num_kv_heads": 1, "head_size": size // 4, "dtype": DTYPE, "use_mla": False}
        spec = {"full": lambda: fill(FullAttentionSpec, **layer), "sliding": lambda: fill(interface.SlidingWindowSpec, sliding_window=window, **layer),
                "chunked": lambda: fill(interface.ChunkedLocalAttentionSpec, attention_chunk_size=window, **layer),
                "state": lambda: fill(interface.MambaSpec, block_size=block, shapes=((size // 2,),), dtypes=(DTYPE,), page_size_padded=int(o["padded"]) or None,
                                      mamba_cache_mode="align" if caching else "none", num_speculative_blocks=int(o["states"]))}[kind]()
        for _ in range(n):
            layers[f"layer{len(layers)}"] = spec
    length, batch = int(o["len"]), int(o["inflight"])
    cache = Loose(mamba_cache_mode="align" if caching else "none", get_resolved_kv_cache_layout=lambda: layout, num_gpu_blocks_override=None, enable_prefix_caching=caching)
    config = Loose(model_config=Loose(max_model_len=length), scheduler_config=Loose(disable_hybrid_kv_cache_manager=bool(int(o["onekind"])), max_num_batched_tokens=batch),
                   parallel_config=Loose(decode_context_parallel_size=1, prefill_context_parallel_size=1), cache_config=cache, attention_config=Loose(), max_in_flight_tokens=batch)
    try:
        groups = planning.get_kv_cache_groups(config, layers)
    except (ValueError, NotImplementedError):
        print("plan refused", file=out)
        return
    sized = planning._pool_bytes_per_block
    each = sized(config, groups) if sized.__code__.co_argcount == 2 else sized(groups)
    blocks = int(o["memory"]) // each
    kv = fill(KVCacheConfig, num_blocks=blocks, kv_cache_tensors=[], kv_cache_groups=groups)
    tokens, requests = kv_cache_utils.get_kv_cache_capacity(config, kv)
    print("plan", *(f"{len(g.layer_names)}:{g.kv_cache_spec.block_size}" for g in groups), "bytes", each, "blocks", blocks, "tokens", tokens, f"requests {requests:.6f}", file=out)


class Encoders:
    cache_size = num_free_slots = 0

    def __init__(self, *a, **k):
        self.freed = []

    create_manager = classmethod(lambda cls, **k: cls())
    free = free_encoder_input = lambda self, *a: None
    get_freed_mm_hashes = lambda self: []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return quiet


def fnv(numbers):
    h = 14695981039346656037
    for n in numbers:
        h = ((h ^ n) * 1099511628211) & 0xFFFFFFFFFFFFFFFF
    return h


def pool_of(s):
    return s.kv_cache_manager.block_pool


def state(s):
    pool = pool_of(s)
    queue, block = [], pool.free_block_queue.fake_free_list_head.next_free_block
    while block is not None and block.block_id >= 0:
        queue.append(block.block_id)
        block = block.next_free_block
    cached = pool.cached_block_hash_to_block
    cached = len(cached._cache) if hasattr(cached, "_cache") else len(cached)
    return f"free {pool.get_num_free_blocks()} {fnv(queue):016x} cached {cached} running {len(s.running)} waiting {s.get_request_counts()[1]}"


class Player:
    def __init__(self, out):
        self.s, self.out, self.length = None, out, {}
        self.queries = self.hits = self.operations = self.preemptions = 0

    def configure(self, words):
        self.o = {k: (v if k in ("policy", "groups") else int(v)) for k, v in (w.split("=") for w in words)}
        kv_cache_utils.init_none_hash(digest)
        maker = kv_cache_utils.get_request_block_hasher
        self.s = make(self.o)
        self.hasher = maker(self.o["hash"], digest, *[1] * ahead(self.o)) if self.o["caching"] else None

    def add(self, words):
        who, output, priority = int(words[0]), int(words[1]), int(words[2])
        prompt = [token(int(n), i) for n, k in (w.split(":") for w in words[3:]) for i in range(int(k))]
        sampling = Loose(max_tokens=output, ignore_eos=True, stop_token_ids=(), min_tokens=0, eos_token_id=-1)
        r = Request(request_id=str(who), prompt_token_ids=prompt, sampling_params=sampling, pooling_params=None, arrival_time=float(who),
                    priority=priority, block_hasher=self.hasher, **({"eos_token_id": -1} if "eos_token_id" in Request.__init__.__code__.co_varnames else {}))
        r.skip_reading_prefix_cache = False
        if self.s.is_encoder_decoder:  # the encoder gives its tokens when the request is let in
            r.mm_features = [Loose(mm_position=Loose(offset=0, length=0))]
            r.get_num_encoder_embeds = lambda i: self.o["encoder"]
        self.s.add_request(r)
        self.operations += 1

    def step(self):
        s = self.s
        before = {r.request_id for r in s.running}
        given = s.schedule()
        preempted = [r.request_id for r in list(s.waiting) if r.request_id in before]
        self.preemptions += len(preempted)
        self.operations += len(given.num_scheduled_tokens)
        print("step", *(f"{i}:{n}:{self.table(i)}" for i, n in given.num_scheduled_tokens.items()), "out", *preempted, file=self.out)
        ids = list(given.num_scheduled_tokens)
        sampled = []
        for i in ids:
            r = s.requests[i]
            done = r.num_computed_tokens >= r.num_tokens
            sampled.append(Tokens(token((1 << 30) + int(i), r.num_output_tokens + k) for k in range(1 + self.accepted(given, r) if done else 0)))
        output = Loose(req_ids=ids, req_id_to_index={i: k for k, i in enumerate(ids)}, sampled_token_ids=sampled, prompt_logprobs_dict={}, prompt_token_id_logprobs_dict={},
                       num_nans_in_logits=None, pooler_output=[], logprobs=None)
        stats = s.kv_cache_manager.make_prefix_cache_stats()
        for name in ("", "preempted_"):
            self.queries += getattr(stats, name + "queries", 0)
            self.hits += getattr(stats, name + "hits", 0)
        s.update_from_output(given, output)
        if self.o.get("drafts"):
            s.update_draft_token_ids(Loose(req_ids=ids, draft_token_ids=[[1] * self.o["drafts"] for _ in ids]))
        print(state(s), "queries", self.queries, "hits", self.hits, file=self.out)

    def accepted(self, given, r):
        n, drafts = 0, given.scheduled_spec_decode_tokens.get(r.request_id, [])
        while n < len(drafts) and drafts[n] >= 0 and right(self.o, int(r.request_id), r.num_output_tokens + n):
            n += 1
        return n

    def table(self, who):
        return "/".join(f"{len(ids)}:{fnv(ids):016x}" for ids in self.s.kv_cache_manager.get_block_ids(who))

    def play(self, path):
        for line in open(path):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if words[0] == "p":
                plan(words[1:], self.out)
            elif words[0] == "c":
                self.configure(words[1:])
            elif words[0] == "a":
                self.add(words[1:])
            elif words[0] == "s":
                for _ in range(int(words[1])):
                    self.step()
            elif words[0] == "x":
                self.s.finish_requests(words[1], RequestStatus.FINISHED_ABORTED)
                print("abort", state(self.s), file=self.out)
            elif words[0] == "r":
                print("reset", int(bool(self.s.kv_cache_manager.reset_prefix_cache())), state(self.s), file=self.out)
        if self.s:
            print(f"end preemptions {self.preemptions}", file=self.out)


for script in sys.argv[2:]:
    with open(script + ".real", "w") as out:
        Player(out).play(script)
