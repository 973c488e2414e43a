/* SPDX-License-Identifier: Apache-2.0 */
/* budget_file.h - what to do with each module, as python/budget_hook.py reads it and as a
 * file to keep (docs/howto/fit.md). */
#pragma once

#include "simulator/search/budget.h"

/* Segments of the allocator that grow: less of them lies between blocks (PyTorch's notes on CUDA,
 * "Optimizing memory usage with PYTORCH_CUDA_ALLOC_CONF"). */
#define VC_BUDGET_CONF "expandable_segments:True"

struct vc_budget_made {
	uint64_t limit; /* bytes that the allocator may reserve, 0: nothing limits it */
	uint64_t share; /* percent that torch.compile may keep, where that decides ... */
	uint64_t twice; /* ... of layers that are computed twice inside of it */
	bool expandable; /* VC_BUDGET_CONF */
	uint64_t used;
	const char *command;
};

/* What the hook is told; timed: kernels tell of the marks, too. The caller's to free. */
char *vc_budget_spec(const struct vc_budget *b, const uint8_t *how, bool timed, uint64_t limit,
		     struct vc_error *err);
int vc_budget_save(const struct vc_budget *b, const uint8_t *how, const struct vc_budget_made *m,
		   const char *path, struct vc_error *err);
/* Run the program with the choice of that file: its exit code, or < 0. */
int vc_budget_run(const char *path, size_t argc, char **argv, struct vc_error *err);
