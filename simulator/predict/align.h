/* SPDX-License-Identifier: Apache-2.0 */
/* align.h - which allocation of one recording is which of another: an ordered matching. */
#pragma once

#include "common/error.h"

/* One allocation as the alignment sees it. */
struct vc_take {
	uint64_t size;   /* requested bytes */
	uint64_t site;   /* hash of the call stack, the same in every recording; 0 = unknown */
	uint32_t stream;
	uint32_t life;   /* allocations made while it lived; UINT32_MAX: to the end */
};

enum { VC_RATIOS = 5 }; /* bounds a table */

/* Size ratios b/a that a known law explains ({1, R, R*R} for one parameter). */
struct vc_ratios { double at[VC_RATIOS]; size_t n; };

#define VC_UNMATCHED UINT32_MAX

/* Match a[0..na) with b[0..nb), in order, sizes related by one of the ratios wherever possible.
 * match[i] = index into b or VC_UNMATCHED. Errors: VC_ENOMEM. */
int vc_align(const struct vc_take *a, size_t na, const struct vc_take *b, size_t nb,
	     const struct vc_ratios *r, uint32_t *match, struct vc_error *err);

/* The better of two matchings for a parameter whose values are `ratio` (b / a) apart: with squares
 * of it as a law, and without; but for the allocations that `skip` says of a or b (NULL: none). */
int vc_align_some(const struct vc_take *a, size_t na, const bool *skip_a, const struct vc_take *b,
		  size_t nb, const bool *skip_b, double ratio, uint32_t *match,
		  struct vc_error *err);
