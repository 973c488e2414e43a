/* SPDX-License-Identifier: Apache-2.0 */
/* bfc.h - what the files of the bfc model share. */
#ifndef VC_BFC_H
#define VC_BFC_H

#include "simulator/replay/model.h"

#define BFC_GRAIN 256u      /* kMinAllocationSize: sizes are multiples of it */
#define BFC_CLASSES 640     /* 16 per power of two, up to 2^48 bytes */
#define BFC_WORDS (BFC_CLASSES / 64)

enum { BFC_TF, BFC_JAX };                 /* framework */
enum { BFC_DEFAULT, BFC_TRUE, BFC_FALSE }; /* growth, garbage_collection */
enum { BFC_ALWAYS, BFC_ONCE };            /* backpedal */

struct bfc_config {
	uint64_t framework, growth, collect, backpedal, limit, major;
	double fraction, fragmentation;
	bool retry;
};

/* A piece of a region, in use or free; slot 0 means none. */
struct bfc_chunk {
	uint64_t addr, size, requested, id;
	uint32_t prev, next; /* neighbours inside the region */
	uint32_t kid[2];     /* while free; kid[0] also chains unused slots */
	uint32_t stream;
	bool live;
};

/* What one call of the device gave; `first` never moves, for chunks merge downwards. */
struct bfc_region { uint64_t addr, size; uint32_t first; };

struct bfc {
	const struct bfc_config *k;
	uint64_t limit;      /* memory_limit_ */
	uint64_t curr;       /* curr_region_allocation_bytes_: the next region's size */
	uint64_t split;      /* a remainder of so much is always split off */
	uint64_t peak;       /* of m->now.allocated */
	uint64_t allocs, largest; /* num_allocs, largest_alloc_size */
	bool growth, collect, backpedalled;
	struct bfc_chunk *c;
	uint32_t used, spare;
	size_t cap;
	struct bfc_region *region; /* by address */
	uint32_t regions;
	size_t room;
	uint64_t bits[BFC_WORDS];
	uint32_t root[BFC_CLASSES];
};

void bfc_text_oom(struct vc_model *m, uint64_t asked, uint64_t rounded);

#endif
