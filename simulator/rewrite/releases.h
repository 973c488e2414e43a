/* SPDX-License-Identifier: Apache-2.0 */
/* releases.h - when the blocks of a forward pass go where its layers are computed twice, and when
 * they come back. One recording does not say: there the backward pass holds them. A second one of
 * the same run, in which all layers are computed twice, does. */
#pragma once

#include "simulator/anatomy/anatomy.h"

#define VC_RELEASE_LATER   UINT32_MAX       /* not before the backward pass */
#define VC_RELEASE_UNKNOWN (UINT32_MAX - 1) /* it has no counterpart there */

struct vc_memo;

/* A block that is asked for once more, by the recomputation of a layer. */
struct vc_again {
	uint64_t size;
	uint32_t span;   /* of the forward pass */
	uint32_t before; /* the block of the backward pass before which that happens */
	uint32_t gone;   /* which of these it goes before, as an index; UINT32_MAX: it stays */
	uint32_t until;  /* then the block before which it goes; UINT32_MAX: not known */
	bool early;      /* ahead of what is computed again there, too */
	uint32_t next;   /* the next one + 1 of those that go before the same; 0: none */
};

struct vc_releases {
	uint32_t *until;  /* by block: goes before that block is asked for, or one of the above */
	uint32_t *first;  /* by block: the first + 1 of those that go before it, ... */
	uint32_t *next;   /* ... the next one + 1; 0: none */
	uint32_t *dies;   /* of those that go later: the block of the backward pass that comes then,
			   * and those of `first` of that block; 0: not known */
	bool *early;      /* those are ahead of what is computed again there, too */
	uint32_t *last;   /* by block: the same as `first`, of those asked for again */
	size_t n;
	struct vc_again *again; size_t agains; /* in the order in which that happens */
	struct vc_memo *lent; /* whose arrays they are; NULL: its own */
};

/* Of the blocks of anatomy a, as the recording at `path` shows it, which `of`, the transform that
 * asks, can open. `same`: the trace of which a is
 * the anatomy; there it is found out once. NULL: not known. Errors: VC_ENOSUP: it is of another
 * run; those of reading a trace. */
int vc_releases_read(struct vc_releases *r, const struct vc_source *of, const char *path,
		     const struct vc_trace *same, const struct vc_anatomy *a, uint16_t device,
		     struct vc_error *err);
void vc_releases_fini(struct vc_releases *r);
