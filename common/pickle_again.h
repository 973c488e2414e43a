/* SPDX-License-Identifier: Apache-2.0 */
/* pickle_again.h - lists that are written as the very bytes of an earlier one.
 *
 * Nearly all of a snapshot is call stacks: lists of frames that were met before, each a run of memo
 * gets. A training step makes the same stacks in the same order again, so a run is compared with
 * the one that followed the same two last time; bytes that are the same are the same list, as long
 * as no memo is set anew. A part of pickle.c. */
#pragma once

#include "common/std.h"

struct pickle_run {
	uint32_t hash, at, n; /* its bytes, APPENDS included */
	uint32_t list;        /* one that was made of them */
};

#define PICKLE_NEXT_BITS 13

struct pickle_again {
	uint8_t *bytes; size_t used, bytes_cap;
	struct pickle_run *run; size_t runs, run_cap;
	uint32_t *slot;       /* runs, which count from 1, by their hash */
	uint32_t *next;       /* the run that came after two others, by their hash */
	uint32_t last, before; /* the runs that came before */
	bool off;
};

static inline uint32_t *pickle_again_next(const struct pickle_again *a)
{
	uint32_t mixed = a->last * 2654435761u ^ a->before * 2246822519u;

	return &a->next[mixed >> (32 - PICKLE_NEXT_BITS)];
}

static inline void pickle_again_met(struct pickle_again *a, uint32_t run)
{
	a->before = a->last;
	a->last = run;
}

/* The run at p, of which `have` bytes are at hand, when it was met before; else NULL. */
struct pickle_run *pickle_again_look(struct pickle_again *a, const uint8_t *p, size_t have);

/* The one that is expected, without a look at the others. */
static inline struct pickle_run *pickle_again_find(struct pickle_again *a, const uint8_t *p,
						   size_t have)
{
	uint32_t next = a->runs ? *pickle_again_next(a) : 0;
	struct pickle_run *r = next ? &a->run[next - 1] : NULL;

	if (!r || r->n > have || memcmp(p, a->bytes + r->at, r->n))
		return pickle_again_look(a, p, have);
	pickle_again_met(a, next);
	return r;
}

/* The run at p, which was not found, becomes `list`. Runs that are not whole in the window, hold
 * anything but memo gets or find no room are not kept. */
void pickle_again_keep(struct pickle_again *a, const uint8_t *p, size_t have, uint32_t list);
/* Memos do not keep their meaning in this pickle, so that the same bytes prove nothing. */
void pickle_again_stop(struct pickle_again *a);
void pickle_again_fini(struct pickle_again *a);
