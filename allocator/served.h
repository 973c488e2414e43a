/* SPDX-License-Identifier: Apache-2.0 */
/* served.h - the arena on a device: memory, streams, what is learned, what is reported. */
#pragma once

#include "common/std.h"

struct vc_served_totals {
	uint64_t bytes, requested, count, freed_bytes, freed_count;
	uint64_t arena, areas, given_back, areas_given_back; /* bytes and number of areas */
};

/* Read the plan that the environment names, once. `library`: of PyTorch, whose CUDA is used; NULL:
 * whatever is loaded. */
void vc_served_open(const char *library);
/* Memory from the plan, or NULL: not this one. Every request comes here, also those that go
 * elsewhere, so that the place in the plan is known. */
void *vc_served_take(size_t size, int device, uint64_t stream);
/* Gives it back; false: it is not from the arena. *size: bytes of the block. */
bool vc_served_give(void *p, uint64_t *size, uint64_t *requested, int *device);
bool vc_served_owns(const void *p);
/* record_stream: the block is used on another stream, too. */
void vc_served_use(void *p, uint64_t stream);
/* Scopes of private pools: what is asked for in them is not of the plan. */
void vc_served_scope(int by);
/* torch.cuda.empty_cache(): areas in which nothing lives go back to the device. */
void vc_served_trim(void);
/* What other allocators handed out and took back, for --learn. */
void vc_served_saw(const void *p, size_t size, uint64_t stream);
void vc_served_lost(const void *p);
struct vc_served_totals vc_served_totals(int device);
void vc_served_end(void);
void *vc_served_function(const char *name); /* of the CUDA runtime */
