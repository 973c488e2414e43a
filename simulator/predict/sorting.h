/* SPDX-License-Identifier: Apache-2.0 */
/* sorting.h - the gradient of an embedding: above 3,072 indices it is computed by sorting them,
 * with fourteen blocks more than the gradient itself. */
#pragma once

#include "simulator/predict/allocations.h"

enum { VC_SORT_BEFORE = 4, VC_SORT_AFTER = 10, VC_SORT_BLOCKS = VC_SORT_BEFORE + VC_SORT_AFTER };

struct vc_sort {
	uint32_t owner; /* allocation of the gradient; with sorting, 4 blocks come before it, 10
			   after */
	uint32_t source;   /* allocation whose size tells how many indices */
	uint64_t per;      /* its bytes per index */
	uint64_t values;   /* rows of the table */
	uint64_t row;      /* bytes of a row */
	bool present;      /* the recording sorts here */
	bool always;       /* however few: a padding index was given */
};

struct vc_sorts { struct vc_sort *at; size_t n; };

/* All of them in order. grows: as for vc_workspace_find. The caller frees out->at. Errors:
 * VC_ENOMEM. */
int vc_sort_find(const struct vc_allocations *m, const double *grows, struct vc_sorts *out,
		 struct vc_error *err);

/* Is allocation i a gradient that this recording computes by sorting? Fills s. */
bool vc_sort_at(const struct vc_allocations *m, uint32_t i, struct vc_sort *s);
/* Is the gradient computed by sorting for so many indices? */
bool vc_sort_needed(const struct vc_sort *s, uint64_t indices);
/* Bytes of the 14 blocks in the order they are asked for. */
void vc_sort_sizes(const struct vc_sort *s, uint64_t indices, uint64_t size[VC_SORT_BLOCKS]);
