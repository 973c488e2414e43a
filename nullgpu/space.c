/* SPDX-License-Identifier: Apache-2.0 */
/* space.c - where the driver puts allocations.
 *
 * Recorded address sequences show two styles. Linux: windows of a multiple of 32 MiB are handed
 * out downwards, and later, smaller requests fill the unused end of a window. Windows: upwards,
 * one after another. Both reuse freed ranges first, the smallest that fits. */
#include "nullgpu/space.h"

#include "common/vec.h"

/* First range that starts behind `at`. */
static size_t above(const struct vc_ranges *r, uint64_t at)
{
	return vc_first_above(r->v, r->n, at, at);
}

int vc_ranges_add(struct vc_ranges *r, uint64_t at, uint64_t size, uint64_t tag)
{
	if (!vc_vec_room(r->v, r->capacity, r->n + 1))
		return -1;
	size_t i = above(r, at);
	memmove(r->v + i + 1, r->v + i, (r->n - i) * sizeof *r->v);
	r->v[i] = (struct vc_range){ at, size, tag };
	r->n++;
	return 0;
}

void vc_ranges_remove(struct vc_ranges *r, size_t i)
{
	memmove(r->v + i, r->v + i + 1, (r->n - i - 1) * sizeof *r->v);
	r->n--;
}

long vc_ranges_find(const struct vc_ranges *r, uint64_t at)
{
	size_t i = above(r, at);
	if (!i || at - r->v[i - 1].at >= r->v[i - 1].size)
		return -1;
	return (long)i - 1;
}

static uint64_t take_hole(struct vc_space *s, uint64_t size)
{
	size_t best = s->holes.n;
	for (size_t i = 0; i < s->holes.n; i++)
		if (s->holes.v[i].size >= size &&
		    (best == s->holes.n || s->holes.v[i].size < s->holes.v[best].size))
			best = i;
	if (best == s->holes.n)
		return 0;
	uint64_t at = s->holes.v[best].at;
	s->holes.v[best].at += size;
	s->holes.v[best].size -= size;
	if (!s->holes.v[best].size)
		vc_ranges_remove(&s->holes, best);
	return at;
}

uint64_t vc_space_take(struct vc_space *s, uint64_t size)
{
	uint64_t at = take_hole(s, size);
	if (at)
		return at;
	if (s->ascending) {
		if (s->end - s->edge < size)
			return 0;
		s->edge += size;
		return s->edge - size;
	}
	uint64_t window = (size + s->window - 1) / s->window * s->window;
	if (s->edge - s->base < window)
		return 0;
	if (window > size && vc_ranges_add(&s->holes, s->edge - window + size, window - size, 0))
		return 0;
	s->edge -= window;
	return s->edge;
}

void vc_space_give(struct vc_space *s, uint64_t at, uint64_t size)
{
	size_t i = above(&s->holes, at);
	if (i < s->holes.n && s->holes.v[i].at == at + size) {
		size += s->holes.v[i].size;
		vc_ranges_remove(&s->holes, i);
	}
	if (i && s->holes.v[i - 1].at + s->holes.v[i - 1].size == at) {
		s->holes.v[i - 1].size += size;
		return;
	}
	/* out of host memory here only loses addresses, never memory of the device */
	(void)vc_ranges_add(&s->holes, at, size, 0);
}
