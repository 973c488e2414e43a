/* SPDX-License-Identifier: Apache-2.0 */
/* pages.h - records by dense id, in pages that are given back when every record on them is gone.
 *
 * Ids grow with the trace while live blocks do not: memory follows the live ones, and a lookup is
 * two loads. Header only, because it stands in the replay loop. */
#pragma once

#include "common/vec.h"
#include "common/std.h"

#define VC_PAGE_SHIFT 9
#define VC_PAGE_RECORDS (1u << VC_PAGE_SHIFT)

struct vc_pages {
	unsigned char **page; /* NULL: no live record there */
	uint32_t *live;       /* records in use per page */
	size_t pages, record; /* record: bytes */
	size_t newest;        /* ids are still given out on this page: it stays */
	bool as_it_was;       /* records say themselves whether they are in use: a page that is
			       * taken again need not be cleared (vc_pages_forget) */
	unsigned char *spare; /* one empty page kept at hand */
};

static inline void vc_pages_init(struct vc_pages *p, size_t record)
{
	*p = (struct vc_pages){ .record = record };
}

/* vc_pages_get for callers who know the size of a record where they are compiled. */
static inline void *vc_pages_at(const struct vc_pages *p, uint64_t id, size_t record)
{
	size_t k = (size_t)(id >> VC_PAGE_SHIFT);

	if (k >= p->pages || !p->page[k])
		return NULL;
	return p->page[k] + (id & (VC_PAGE_RECORDS - 1)) * record;
}

/* The record of an id that was put, or NULL when its whole page is empty: the caller's own fields
 * tell whether this record is in use (fresh records are zeroed). */
static inline void *vc_pages_get(const struct vc_pages *p, uint64_t id)
{
	return vc_pages_at(p, id, p->record);
}

static inline int vc_pages_grow(struct vc_pages *p, size_t k)
{
	size_t lives = p->pages;

	return vc_vec_zeroed(p->live, lives, k + 1) && vc_vec_zeroed(p->page, p->pages, k + 1) ? 0 :
		-1;
}

static inline void vc_pages_give_back(struct vc_pages *p, size_t k)
{
	if (p->spare)
		free(p->page[k]);
	else
		p->spare = p->page[k];
	p->page[k] = NULL;
}

static inline int vc_pages_fill(struct vc_pages *p, size_t k)
{
	if (k >= p->pages && vc_pages_grow(p, k) < 0)
		return -1;
	if (k > p->newest) {
		if (p->page[p->newest] && !p->live[p->newest])
			vc_pages_give_back(p, p->newest);
		p->newest = k;
	}
	if (p->spare) {
		p->page[k] = p->spare;
		p->spare = NULL;
		if (!p->as_it_was)
			memset(p->page[k], 0, VC_PAGE_RECORDS * p->record);
	} else {
		p->page[k] = calloc(VC_PAGE_RECORDS, p->record);
	}
	return p->page[k] ? 0 : -1;
}

/* The record of an id, in use or not, with a page made for it; NULL: no memory. Follow with
 * vc_pages_keep when an unused one comes into use. */
static inline void *vc_pages_slot(struct vc_pages *p, uint64_t id)
{
	size_t k = (size_t)(id >> VC_PAGE_SHIFT);

	if ((k >= p->pages || !p->page[k]) && vc_pages_fill(p, k) < 0)
		return NULL;
	return p->page[k] + (id & (VC_PAGE_RECORDS - 1)) * p->record;
}

static inline void vc_pages_keep(struct vc_pages *p, uint64_t id)
{
	p->live[id >> VC_PAGE_SHIFT]++;
}

/* A zeroed record for an id not in use; NULL: no memory. */
static inline void *vc_pages_put(struct vc_pages *p, uint64_t id)
{
	void *record = vc_pages_slot(p, id);

	if (record)
		vc_pages_keep(p, id);
	return record;
}

/* Forget a record that was put, and which says itself that it is not in use any more. A page that
 * was given back has only such records. */
static inline void vc_pages_forget(struct vc_pages *p, uint64_t id)
{
	size_t k = (size_t)(id >> VC_PAGE_SHIFT);

	if (!--p->live[k] && k != p->newest)
		vc_pages_give_back(p, k);
}

/* Forget a record that was put; it reads as zeroes while its page lives. */
static inline void vc_pages_drop(struct vc_pages *p, uint64_t id)
{
	size_t k = (size_t)(id >> VC_PAGE_SHIFT);

	memset(p->page[k] + (id & (VC_PAGE_RECORDS - 1)) * p->record, 0, p->record);
	vc_pages_forget(p, id);
}

static inline void vc_pages_fini(struct vc_pages *p)
{
	for (size_t k = 0; k < p->pages; k++)
		free(p->page[k]);
	VC_FREE(p->page, p->live, p->spare);
	*p = (struct vc_pages){ 0 };
}
