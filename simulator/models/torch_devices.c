/* SPDX-License-Identifier: Apache-2.0 */
/* torch_devices.c - what is different where the device is not CUDA's: rows on top of torch_rules.c.
 *
 * HIP: PyTorch for ROCm is the same source, translated by torch/utils/hipify. XPU: c10/xpu/
 * XPUCachingAllocator.cpp, an allocator of its own that grew towards CUDA's. NPU: torch_npu,
 * torch_npu/csrc/core/npu/NPUCachingAllocator.cpp, made from CUDA's. What each row was seen in
 * and what drove it is in docs/reference/models.md. */

#include "simulator/models/torch_rules.h"

#define AT(field) (uint16_t)offsetof(struct torch_rules, field)

const char *const torch_device_name[TORCH_DEVICES] = { "CUDA", "HIP", "XPU", "NPU" };

const struct torch_device_change torch_device_changes[] = {
	{ TORCH_HIP, { 2, 0, AT(oom_hip), 1, "the report says PYTORCH_HIP_ALLOC_CONF" } },
	{ TORCH_HIP, { 2, 0, AT(oom_processes), 0, "the report lists no processes" } },
	{ TORCH_HIP, { 2, 0, AT(expandable_off), 1, "expandable_segments has no effect" } },
	{ TORCH_HIP, { 2, 11, AT(oom_hip), 0, "the report says PYTORCH_CUDA_ALLOC_CONF" } },
	{ TORCH_HIP, { 2, 12, AT(expandable_off), 0, "expandable segments" } },

	{ TORCH_XPU, { 2, 3, AT(oom_text), TORCH_OOM_SHORT, "the report has no figures" } },
	{ TORCH_XPU, { 2, 3, AT(small_below), 1, "a request of 1 MiB is a large one" } },
	{ TORCH_XPU, { 2, 3, AT(conf_use), TORCH_CONF_NONE, "no settings are read" } },
	{ TORCH_XPU, { 2, 3, AT(fraction_off), 1, "no memory fraction" } },
	{ TORCH_XPU, { 2, 3, AT(pools_off), 1, "no private pools" } },
	{ TORCH_XPU, { 2, 3, AT(order), TORCH_BY_ADDR, "equal free blocks stand by address" } },
	{ TORCH_XPU, { 2, 3, AT(oom_processes), 0, "the report lists no processes" } },
	{ TORCH_XPU, { 2, 5, AT(oom_text), TORCH_OOM_XPU, "the report has figures" } },
	{ TORCH_XPU, { 2, 10, AT(oom_free), 1, "the report says what is free" } },
	{ TORCH_XPU, { 2, 10, AT(conf_use), TORCH_CONF_EXPANDABLE,
		       "PYTORCH_ALLOC_CONF is read: expandable segments and nothing else" } },
	{ TORCH_XPU, { 2, 10, AT(fraction_off), 0, "memory fraction" } },
	{ TORCH_XPU, { 2, 10, AT(pools_off), 0, "private pools" } },
	{ TORCH_XPU, { 2, 10, AT(opt_fraction), 0, "no option per_process_memory_fraction" } },
	{ TORCH_XPU, { 2, 10, AT(newest_scope), 0, "the oldest scope wins" } },
	{ TORCH_XPU, { 2, 10, AT(no_split), 0, "no no_split pools" } },
	{ TORCH_XPU, { 2, 10, AT(overflow), TORCH_NO_OVERFLOW, "no use_on_oom pools" } },
	{ TORCH_XPU, { 2, 11, AT(small_below), 0, "a request of 1 MiB is a small one" } },
	{ TORCH_XPU, { 2, 11, AT(overflow), TORCH_NO_OVERFLOW, "no use_on_oom pools" } },
	{ TORCH_XPU, { 2, 11, AT(opt_large_segment), 0, "no option large_segment_size_mb" } },
	{ TORCH_XPU, { 2, 12, AT(order), TORCH_BY_ADDR, "equal free blocks still by address" } },
	{ TORCH_XPU, { 2, 12, AT(opt_throw), 0, "no option throw_on_cudamalloc_oom" } },
	{ TORCH_XPU, { 2, 13, AT(limit_rounds), 0, "the limit is cut off" } },
	{ TORCH_XPU, { 2, 13, AT(capture), TORCH_ANY_SCOPE, "any scope suspends completions" } },
	{ TORCH_XPU, { 2, 13, AT(exact), 0, "no allocation at an exact address" } },
	{ TORCH_XPU, { 2, 15, AT(no_split), 1, "no_split pools" } },
	{ TORCH_XPU, { 2, 15, AT(opt_reserve), 0, "no options about the reserve" } },
	{ TORCH_XPU, { 2, 15, AT(small_range_fails), 0, "virtual segments are as large as ever" } },

	{ TORCH_NPU, { 2, 1, AT(oom_text), TORCH_OOM_NPU, "the report of torch_npu" } },
	{ TORCH_NPU, { 2, 1, AT(padding), 32, "32 bytes are added to each request" } },
	{ TORCH_NPU, { 2, 1, AT(oom_limit), 1, "the report names the limit" } },
	{ TORCH_NPU, { 2, 12, AT(order), TORCH_BY_ADDR, "equal free blocks still by address" } },
	{ TORCH_NPU, { 2, 13, AT(order), TORCH_BY_ADDR, "equal free blocks still by address" } },
	{ TORCH_NPU, { 2, 13, AT(limit_rounds), 0, "the limit is cut off" } },
	{ 0, { 0, 0, 0, 0, NULL } } };
