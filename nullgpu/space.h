/* SPDX-License-Identifier: Apache-2.0 */
/* space.h - a range of addresses handed out piece by piece, by the policy of the driver. */
#pragma once

#include "common/std.h"

struct vc_range {
	uint64_t at, size, tag; /* tag: the owner's business */
};

/* Sorted by address, no overlaps. */
struct vc_ranges {
	struct vc_range *v;
	size_t n, capacity;
};

/* 0, or -1 when this process is out of memory. */
int vc_ranges_add(struct vc_ranges *r, uint64_t at, uint64_t size, uint64_t tag);
void vc_ranges_remove(struct vc_ranges *r, size_t i);
/* Index of the range that holds `at`, or -1. */
long vc_ranges_find(const struct vc_ranges *r, uint64_t at);

struct vc_space {
	uint64_t base, end;  /* base 0 = not opened */
	uint64_t edge;       /* next address (ascending) or lowest one handed out (descending) */
	uint64_t window;     /* descending: fresh addresses come in multiples of this */
	bool ascending;
	struct vc_ranges holes;
};

/* Takes `size` bytes: the smallest hole that fits, else fresh addresses. 0 = space exhausted. */
uint64_t vc_space_take(struct vc_space *s, uint64_t size);
/* Gives a piece back; it joins the holes beside it. */
void vc_space_give(struct vc_space *s, uint64_t at, uint64_t size);
