/* SPDX-License-Identifier: Apache-2.0 */
/* areas.h - the memory of the arena: a cudaMalloc of its own for the area of each stream, two where
 * the plan divides it.
 *
 * So torch.cuda.empty_cache() can give back an area in which nothing lives, as PyTorch does with
 * its own segments; it comes back with the next request that has its place there. Not safe for
 * threads by itself, but for vc_areas_holding. */
#pragma once

#include <stdatomic.h>

#include "common/memory_plan.h"

struct vc_area {
	uint64_t at, size; /* offset in the arena; bytes */
	_Atomic(char *) base; /* NULL: not there now; other threads look whose a pointer is */
	uint64_t live;     /* blocks that are given out */
	bool refused;      /* the device had no room; asked for again after the next trim */
};

struct vc_areas {
	struct vc_area *area; size_t n; /* ascending, without gaps; owned */
	uint64_t bytes, count;               /* that are there */
	uint64_t given_back, count_given_back;
	int (*alloc)(void **, size_t), (*release)(void *), (*last_error)(void);
};

/* For the areas of that plan, and with the functions of that runtime. Errors: VC_ENOMEM. */
int vc_areas_init(struct vc_areas *a, const struct vc_memory_plan *p,
		  void *(*function)(const char *name), struct vc_error *err);
/* All at once; false: the device has not so much, and none is there. */
bool vc_areas_get_all(struct vc_areas *a);
/* The area of an offset, got anew where it was given back; NULL: there is no room. */
struct vc_area *vc_areas_at(struct vc_areas *a, uint64_t offset);
/* The area in which the pointer lies; NULL: none. */
struct vc_area *vc_areas_holding(const struct vc_areas *a, const void *p);
/* Give back those in which nothing lives. The runtime waits for the device. */
void vc_areas_trim(struct vc_areas *a);
