#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""judge.py TREE SCRIPT - ask SGLang's own code how it divides memory, for each line of SCRIPT (format: play.c).

TREE holds the Python files of one release (build.sh). The two modules that plan the pools are executed as they are; everything else
(torch, the pools themselves, the settings) is replaced by names that do nothing, or by the settings of the line.
"""
import importlib
import os
import sys
import types

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from nothing import Finder, thing  # noqa: E402

tree = sys.argv[1]
REAL = ("sglang.srt.model_executor.pool_configurator", "sglang.srt.mem_cache.kv_cache_configurator")


class Stub(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = (lambda *a, **k: False) if name.startswith(("is_", "uses_")) else thing(name)
        setattr(self, name, made)
        return made


sys.meta_path.insert(0, Finder(tree, REAL, ("sglang", "torch", "msgspec", "numpy"), Stub))
pools = importlib.import_module(REAL[0])
planner = importlib.import_module(REAL[1])
schedule = types.SimpleNamespace()
memory = types.SimpleNamespace(enable_unified_memory=False)
mamba = types.SimpleNamespace(enable_mamba_extra_buffer=False, enable_linear_replayssm_spec=False)
for module in (pools, planner):
    module.get_schedule = lambda: schedule
    module.get_memory = lambda: memory
    module.get_exec = lambda: types.SimpleNamespace(mamba=mamba)
    module.get_spec = lambda: types.SimpleNamespace(speculative_num_draft_tokens=None)
planner.get_context = lambda: types.SimpleNamespace(override=lambda name, **k: schedule.__dict__.update(k))
planner.envs = types.SimpleNamespace(SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK=types.SimpleNamespace(get=lambda: False))


def fill(one, **k):
    for name, value in k.items():
        setattr(one, name, value)


def settle(o):
    """The settings of a line, and the object that plans."""
    schedule.__dict__.clear()
    schedule.max_mamba_cache_size = int(o["states"]) or None
    schedule.max_running_requests = int(o["running"]) or None
    schedule.mamba_full_memory_ratio = float(o["sratio"])
    schedule.max_total_tokens = None
    memory.disable_radix_cache = not int(o["radix"])
    one = object.__new__(type("Planner", (planner.KVCacheConfigurator,), {"fused_entry_bytes": lambda self, name: None}))
    state = int(o["state"])
    params = types.SimpleNamespace(layers=[0], mamba_cache_per_req=state)
    fill(one, mambaish_config=types.SimpleNamespace(mamba2_cache_params=params) if state else None, pp_size=1, attn_dp_size=1, hybrid_gdn_config=None,
         hybrid_kda_config=None, extra_mamba_cache_bytes_per_req=0, spec_algorithm=types.SimpleNamespace(is_none=lambda: True),
         model_config=types.SimpleNamespace(context_len=int(o["len"])))
    return one


def divide(o, one, left):
    """The tokens of each pool, out of so many bytes."""
    page, full, window = int(o["page"]), int(o["full"]), int(o["window"])
    if not window:
        kind = object.__new__(pools.DefaultPoolConfigurator)
        fill(kind, _cell_size=full, _fixed_overhead_bytes=0)
    else:
        kind = object.__new__(pools.HybridSWAPoolConfigurator)
        fill(kind, _full_per_token=full, _full_layers_num=int(full > 0), _swa_per_token=window, _swa_layers_num=1, _swa_full_tokens_ratio=float(o["wratio"]),
             _draft_full_layers_num=0, _draft_swa_layers_num=0, _draft_swa_full_layers_num=0, _draft_cell_size=0, _fused_full_entry=None,
             _fused_swa_entry=None, _enable_unified_memory=False, _sliding_window_size=int(o["size"]), _page_size=page)
        kind._recompute_cell_size()
    return kind.calculate_pool_sizes(left, page)


def plan(o):
    one = settle(o)
    try:
        rest = int(o["memory"]) / (1 << 30)
        if int(o["state"]):
            rest = one._handle_max_mamba_cache(rest)
        config = divide(o, one, int(rest * (1 << 30)))
        running = one.resolve_max_num_reqs(config.max_total_num_tokens)
    except (RuntimeError, ValueError):
        return "refused"
    return f"tokens {config.max_total_num_tokens} window {config.swa_max_total_num_tokens or 0} states {schedule.max_mamba_cache_size or 0} running {running}"


import logging  # noqa: E402

logging.disable(logging.CRITICAL)
for line in open(sys.argv[2]):
    print(plan(dict(w.split("=") for w in line.split())))
