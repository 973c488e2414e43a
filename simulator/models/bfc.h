/* SPDX-License-Identifier: Apache-2.0 */
/* bfc.h - what the files of the bfc model share. */
#pragma once

#include "simulator/models/chunks.h"

#define BFC_GRAIN 256u      /* kMinAllocationSize: sizes are multiples of it */

enum { BFC_TF, BFC_JAX };                 /* framework */
enum { BFC_DEFAULT, BFC_TRUE, BFC_FALSE }; /* growth, garbage_collection */
enum { BFC_ALWAYS, BFC_ONCE };            /* backpedal */

struct bfc_config {
	uint64_t framework, growth, collect, backpedal, limit, major;
	double fraction, fragmentation;
	bool retry;
};

struct bfc {
	struct vc_chunks k;
	const struct bfc_config *conf;
	uint64_t limit;      /* memory_limit_ */
	uint64_t curr;       /* curr_region_allocation_bytes_: the next region's size */
	uint64_t split;      /* a remainder of so much is always split off */
	uint64_t peak;       /* of m->now.allocated */
	uint64_t allocs, largest; /* num_allocs, largest_alloc_size */
	bool growth, collect, backpedalled;
};

void bfc_text_oom(struct vc_model *m, uint64_t asked, uint64_t rounded);
