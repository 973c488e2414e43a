#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""judge_serve.py TREE SCRIPT... - play request scripts with SGLang's own radix cache and admission, and print what they did.

TREE holds the Python files of one release (build.sh). UnifiedRadixCache, its tree, PrefillAdder, PrefillBudget, SchedulePolicy, the retraction order
and the ratio of new tokens are executed as they are; the loop around them is that of Scheduler.get_next_batch_to_run, written here, and the pool
counts pages. The format is described in serve.c.
"""
import copy
import importlib
import os
import sys
import types
from array import array

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from nothing import Finder, quiet, thing  # noqa: E402

tree = sys.argv[1]
MEM = "sglang.srt.mem_cache."
REAL = tuple(MEM + n for n in ("unified_cache.unified_tree_core", "unified_cache.cache_action", "unified_cache.component_type", "unified_cache.components", "radix_cache",
                               "unified_radix_cache", "base_prefix_cache", "cache_init_params", "evict_policy", "utils", "prefill_budget", "common")) + (
    "sglang.srt.managers.schedule_policy", "sglang.srt.managers.scheduler_components.new_token_ratio_tracker")


class Tensor(list):
    """What the tree does with indices."""
    def __getitem__(self, i):
        return Tensor(list.__getitem__(self, i)) if isinstance(i, slice) else list.__getitem__(self, i)

    def clone(self):
        return Tensor(self)

    def to(self, *a, **k):
        return Tensor(self)

    def numel(self):
        return len(self)


def struct(cls):
    """msgspec.Struct: fields are the annotations, defaults are copied."""
    def init(self, *a, **k):
        fields = [n for c in reversed(type(self).__mro__) for n in c.__dict__.get("__annotations__", {})]
        given = dict(zip(fields, a), **k)
        for n in fields:
            setattr(self, n, given[n] if n in given else copy.copy(getattr(type(self), n)))
        if hasattr(self, "__post_init__"):
            self.__post_init__()
    cls.__init__ = init
    cls.__init_subclass__ = classmethod(lambda cls, **k: None)
    return cls


@struct
class Struct:
    pass


ENVS = {"SGLANG_INIT_NEW_TOKEN_RATIO": 0.7, "SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR": 0.14, "SGLANG_NEW_TOKEN_RATIO_DECAY_STEPS": 600, "SGLANG_RETRACT_DECODE_STEPS": 20,
        "SGLANG_ENABLE_WAITING_PREFIX_REFRESH": True, "SGLANG_PREFILL_TILE_BUDGET_MODE": "compact"}


class Envs:
    def __getattr__(self, name):
        return types.SimpleNamespace(get=lambda: ENVS.get(name, False))


class Stub(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = SPECIAL.get(name)
        if made is None:
            made = (lambda *a, **k: False) if name.startswith(("is_", "get_bool")) else thing(name)
        setattr(self, name, made)
        return made


SPECIAL = {"envs": Envs(), "Struct": Struct, "float64": float, "cat": lambda parts: Tensor(x for p in parts for x in p), "empty": lambda *a, **k: Tensor(), "tensor": lambda v, **k: Tensor(v),
           "iinfo": lambda t: types.SimpleNamespace(max=(1 << 63) - 1), "page_interleave_shard_size": lambda a: 1, "ceil_align": lambda n, by: -(-n // by) * by,
           "rank_consensus": lambda *a, **k: (lambda f: f), "get_native_hash": quiet, "field": lambda **k: k.get("default_factory", lambda: k.get("default"))(),
           "KVCacheEventRecorder": lambda **k: types.SimpleNamespace(record_store=quiet, record_remove=quiet, record_all_cleared=quiet, enabled=False),
           "get_context": lambda: types.SimpleNamespace(is_config_namespace_published=lambda n: False)}
SETTINGS = {"schedule": types.SimpleNamespace(schedule_conservativeness=1.0, schedule_policy="fcfs", retraction_policy="length", schedule_low_priority_values_first=False),
            "memory": types.SimpleNamespace(radix_eviction_policy="lru", enable_hisparse=False), "disagg": types.SimpleNamespace(disaggregation_mode="null"),
            "exec": types.SimpleNamespace(features=types.SimpleNamespace(enable_encoder_swa_bounded_replay=False)), "serving": types.SimpleNamespace(strip_thinking_cache=False),
            "spec": types.SimpleNamespace(speculative_algorithm=None)}
for n, v in SETTINGS.items():
    SPECIAL["get_" + n] = lambda v=v: v
sys.meta_path.insert(0, Finder(tree, REAL, ("sglang", "torch", "msgspec", "numpy", "triton", "sgl_kernel"), Stub))
core = importlib.import_module(MEM + "unified_cache.unified_tree_core")
parts = importlib.import_module(MEM + "unified_cache.components")
radix = importlib.import_module(MEM + "unified_radix_cache")
common = importlib.import_module(MEM + "common")
base = importlib.import_module(MEM + "base_prefix_cache")
policy = importlib.import_module("sglang.srt.managers.schedule_policy")
ratio = importlib.import_module("sglang.srt.managers.scheduler_components.new_token_ratio_tracker")
budgets = importlib.import_module(MEM + "prefill_budget")


class Loose:
    """What was set, and None for anything else."""
    def __init__(self, **k):
        self.__dict__.update(k)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None


class Pool(Loose):
    """Pages by number: the allocator and the table of places (req_to_token) in one."""
    def __init__(self, pages, page):
        super().__init__(page_size=page, device="cpu", pages=list(range(pages)), row={})
        self.req_to_token = self

    def __getitem__(self, at):
        return Tensor(self.row[at[0]][at[1]])

    def write(self, at, values):
        self.row[at[0]][at[1]] = list(values)

    def available_size(self):
        return len(self.pages) * self.page_size

    def grow(self, who, end):
        row = self.row.setdefault(who, [])
        for i in range(len(row), end):
            start = self.pages.pop() * self.page_size if i % self.page_size == 0 else row[-1] // self.page_size * self.page_size
            row.append(start + i % self.page_size)

    def free_segment(self, indices, start_pos=0):
        gone = {i // self.page_size for i in indices}
        assert not gone & set(self.pages), "freed twice"
        self.pages.extend(gone)

    def evict_to_free_tokens(self, cache, tokens):
        short = tokens - self.available_size()
        if short > 0 and not cache.disable:
            cache.evict_for_alloc(base.EvictParams(num_tokens=short))

    def check_decode_capacity(self, num_tokens, cache):
        self.evict_to_free_tokens(cache, num_tokens)
        return self.available_size() >= num_tokens

    create_prefill_budget = lambda self, cache, **k: budgets.PrefillBudget(self, cache, **k)
    request_slot_reserve = lambda self, **k: 0
    mamba_full_cache_donor = lambda self: None


def make_cache(pool, disable):
    c = object.__new__(type("Cache", (radix.UnifiedRadixCache,), {"__getattr__": lambda self, n: (_ for _ in ()).throw(AttributeError(n)) if n.startswith("__") else None}))
    full = parts.ComponentType.FULL
    params = Loose(page_size=pool.page_size, is_eagle=False, eviction_policy="lru", token_to_kv_pool_allocator=pool)
    c.__dict__.update(disable=disable, page_size=pool.page_size, token_to_kv_pool_allocator=pool, req_to_token_pool=pool, tree_components=(full,), is_swa_enabled=False,
                      session=Loose(try_checkpoint=lambda *a, **k: False, try_match_prefix=quiet), update_eviction_metrics=quiet, discard_storage_prefetch_accounting=quiet, finish_storage_prefetch_admission=quiet)
    c.components = {full: parts.FullComponent(c, params)}
    c._components_tuple = tuple(c.components.values())
    c.tree_core = core.UnifiedTreeCore(params, c.components)
    return c


class Kv(Loose):
    def __init__(self):
        super().__init__(holds_kv=False, cache_protected_len=0, cache_inserted_len=0, swa_evict_floor=0)


class Req(Loose):
    def __init__(self, who, prompt, most_new):
        super().__init__(rid=who, origin_input_ids=prompt, output_ids=array("q"), sampling_params=Loose(max_new_tokens=most_new, ignore_eos=False), kv=Kv(), prefix_len=0, extend_end=0,
                         host_hit_length=0, swa_host_hit_length=0, mamba_host_hit_length=0, retracted_stain=True, inflight_middle_chunks=0, done=False, priority=None)

    full_untruncated_fill_ids = property(lambda self: self.origin_input_ids + self.output_ids)
    extend_len = property(lambda self: self.extend_end - self.prefix_len)
    finished = lambda self: self.done
    needs_host_load_back = lambda self: False
    _compute_max_prefix_len = lambda self, n: max(n - 1, 0)


class Batch(Loose):
    batch_size = lambda self: len(self.reqs)
    is_empty = lambda self: not self.reqs


class Server:
    def __init__(self, o):
        self.o, page = o, o["page"]
        self.pool = Pool(o["tokens"] // page, page)
        self.cache = make_cache(self.pool, not o["caching"])
        self.policy = object.__new__(policy.SchedulePolicy)
        self.policy.__dict__.update(policy=policy.CacheAgnosticPolicy.FCFS, tree_cache=self.cache, enable_priority_scheduling=False, priority_sign=-1, _waiting_prefix_refresh_calls=0)
        self.ratio = ratio.NewTokenRatioTracker.from_config()
        self.waiting, self.running, self.full, self.last, self.chunked = [], [], False, None, None
        self.most_len = min(o["len"], o["tokens"]) - 1
        self.queries = self.hits = self.retracted = self.operations = 0

    def add(self, who, output, prompt):
        self.waiting.append(Req(who, prompt, max(0, min(output, self.most_len - len(prompt) - 1))))
        self.operations += 1

    def publish(self, r, up_to):
        self.cache.checkpoint_into_tree(r, up_to=up_to)

    def free(self, r, lo, hi):
        if lo < hi:
            self.pool.free_segment(self.pool[r.rid, slice(lo, hi)], start_pos=lo)

    def release(self, r, known):  # release_kv_cache
        if known:
            self.publish(r, r.kv.kv_committed_len)
        self.free(r, r.kv.cache_protected_len, r.kv.kv_committed_len)
        self.cache.unlock(r.lock)
        r.lock = None
        self.pool.row.pop(r.rid, None)
        r.kv = Kv()

    def prefill(self):  # _get_new_batch_prefill_raw
        if not self.running:
            self.full = False
        if (self.full or not self.waiting) and self.chunked is None:
            return []
        if len(self.running) >= self.o["running"] and self.chunked is None:
            self.full = True
            return []
        self.policy.calc_priority(self.waiting, None)
        a = policy.PrefillAdder(self.o["page"], self.cache, self.pool, Batch(reqs=self.running), self.ratio.current, self.o["prefill"], self.o["chunk"] or None)
        if self.chunked is not None:
            self.chunked = a.add_chunked_req(self.chunked)
        for r in self.waiting:
            if a.budget_state() == policy.AddReqResult.OTHER:
                break
            held = sum(x.kv.holds_kv for x in a.can_run_list)
            rows = self.o["running"] - len(self.running) - sum(x.kv.holds_kv for x in [*a.can_run_list, *([self.chunked] if self.chunked and self.chunked not in a.can_run_list else [])])
            if len(a.can_run_list) >= min(self.o["running"] - len(self.running), max(rows + held, 0)):
                self.full = True
            if self.full:
                break
            common.match_kv_cache(r, self.cache, r.full_untruncated_fill_ids, max_prefix_len=r._compute_max_prefix_len(len(r.full_untruncated_fill_ids)))
            r.kv.cache_protected_len = r.prefix_len
            res = a.add_one_req(r, has_chunked_req=self.chunked is not None, truncation_align_size=None)
            if a.can_run_list and a.can_run_list[-1] is r:
                self.queries += len(r.full_untruncated_fill_ids)
                self.hits += r.prefix_len
            if res != policy.AddReqResult.CONTINUE:
                if res == policy.AddReqResult.NO_TOKEN:
                    self.full = len(a.can_run_list) > 0 or len(self.running) > 0
                break
        batch = a.can_run_list
        self.waiting = [r for r in self.waiting if r not in batch]
        if a.new_chunked_req is not None:
            assert self.chunked is None
            self.chunked = a.new_chunked_req
        if batch:
            tokens, page = sum(r.extend_len for r in batch), self.o["page"]
            common.evict_from_tree_cache(self.cache, tokens if page == 1 else tokens + len(batch) * page)
        for r in batch:
            if not r.kv.holds_kv:
                self.pool.row[r.rid] = list(self.cache.path_device_indices(r.last_node)) if r.prefix_len else []
                r.kv.req_pool_idx, r.kv.holds_kv = r.rid, True
            self.pool.grow(r.rid, r.extend_end)
            r.kv.kv_committed_len = r.extend_end
        return batch

    def fits(self, reqs):
        need = sum(r.kv.kv_committed_len % self.o["page"] == 0 for r in reqs) * self.o["page"]
        return self.pool.check_decode_capacity(need, self.cache)

    def retract(self):  # retract_decode
        order = sorted(range(len(self.running)), key=lambda i: (len(self.running[i].output_ids), -len(self.running[i].origin_input_ids)), reverse=True)
        back, first = [], True
        while first or not self.fits([self.running[i] for i in order]):
            if len(order) == 1:
                break
            first = False
            r = self.running[order.pop()]
            self.release(r, False)
            common.evict_from_tree_cache(self.cache, len(order) * 20)
            r.prefix_len = r.extend_end = 0
            back.append(r)
        if len(order) <= 1 and not self.fits([self.running[i] for i in order]):
            r = self.running[order.pop()]
            r.done = True
            self.release(r, False)
        self.running = [self.running[i] for i in order]
        self.retracted += len(back)
        self.ratio.current = self.ratio.estimate_new_token_ratio_after_retract(self.running)
        self.waiting += back

    def decode(self):  # update_running_batch
        before = len(self.running)
        if not before:
            return []
        if not self.fits(self.running):
            self.retract()
        else:
            self.ratio.decay_step()
        if len(self.running) < before:
            self.full = False
        common.evict_from_tree_cache(self.cache, len(self.running) * self.o["page"])
        for r in self.running:
            self.pool.grow(r.rid, r.kv.kv_committed_len + 1)
            r.kv.kv_committed_len += 1
        return list(self.running)

    def schedule(self):  # get_next_batch_to_run
        if self.chunked is not None and self.chunked.extend_end > self.chunked.prefix_len:
            self.publish(self.chunked, self.chunked.extend_end)
            self.chunked.prefix_len = self.chunked.extend_end
        if self.last:
            kept = [r for r in self.last if not r.finished() and r is not self.chunked]
            self.full = False if len(kept) < len(self.last) else self.full
            self.running += kept
            self.last = None
        kept = [r for r in self.running if not r.finished()]
        self.full = False if len(kept) < len(self.running) else self.full
        self.running = kept
        batch = self.prefill()
        if batch:
            self.last = batch
            return "prefill", batch
        return "decode", self.decode()

    def step(self, out):
        what, batch = self.schedule()
        self.operations += len(batch)
        print(what if batch else "idle", *(f"{r.rid}:{r.extend_len if what == 'prefill' else 1}" for r in batch), file=out)
        if not batch:
            self.ratio.reset()
        for r in batch:
            if what == "prefill" and r is self.chunked:
                continue
            r.output_ids.append((1 << 30) + r.rid << 20 | len(r.output_ids))
            if len(r.output_ids) >= r.sampling_params.max_new_tokens:
                r.done = True
                self.release(r, True)
            elif what == "prefill":
                self.publish(r, r.extend_end)
                r.prefix_len = r.extend_end
        t = self.cache.tree_core
        held = t.evictable_size() + t.protected_size() if not self.cache.disable else 0
        print(f"free {self.pool.available_size()} held {held} locked {0 if self.cache.disable else t.protected_size()} running {len(self.running)} waiting {len(self.waiting)}"
              f" queries {self.queries} hits {self.hits} back {self.retracted} ratio {self.ratio.current:.9f}", file=out)


def play(path, out):
    s = None
    for line in open(path):
        words = line.split()
        if words[0] == "c":
            s = Server({k: int(v) for k, v in (w.split("=") for w in words[1:])})
        elif words[0] == "a":
            s.add(int(words[1]), int(words[2]), array("q", [int(n) << 20 | i for n, k in (w.split(":") for w in words[3:]) for i in range(int(k))]))
        elif words[0] == "s":
            for _ in range(int(words[1])):
                s.step(out)


for script in sys.argv[2:]:
    with open(script + ".real", "w") as real:
        play(script, real)
