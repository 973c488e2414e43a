/* SPDX-License-Identifier: Apache-2.0 */
/* pages.h - records by dense id, in pages that are given back when every record on them is gone.
 *
 * Ids grow with the trace while live blocks do not: memory follows the live ones, and a lookup is
 * two loads. Header only, because it stands in the replay loop. */
#ifndef VC_PAGES_H
#define VC_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define VC_PAGE_SHIFT 9
#define VC_PAGE_RECORDS (1u << VC_PAGE_SHIFT)

struct vc_pages {
	unsigned char **page; /* NULL: no live record there */
	uint32_t *live;       /* records in use per page */
	size_t pages, record; /* record: bytes */
	unsigned char *spare; /* one empty page kept at hand */
};

static inline void vc_pages_init(struct vc_pages *p, size_t record)
{
	*p = (struct vc_pages){ .record = record };
}

/* The record of an id that was put, or NULL when its whole page is empty: the caller's own fields
 * tell whether this record is in use (fresh records are zeroed). */
static inline void *vc_pages_get(const struct vc_pages *p, uint64_t id)
{
	size_t k = (size_t)(id >> VC_PAGE_SHIFT);

	if (k >= p->pages || !p->page[k])
		return NULL;
	return p->page[k] + (id & (VC_PAGE_RECORDS - 1)) * p->record;
}

static inline int vc_pages_grow(struct vc_pages *p, size_t k)
{
	size_t n = p->pages ? p->pages : 64;
	unsigned char **page;
	uint32_t *live;

	while (n <= k)
		n *= 2;
	page = realloc(p->page, n * sizeof(*page));
	if (page)
		p->page = page;
	live = realloc(p->live, n * sizeof(*live));
	if (live)
		p->live = live;
	if (!page || !live)
		return -1;
	memset(page + p->pages, 0, (n - p->pages) * sizeof(*page));
	memset(live + p->pages, 0, (n - p->pages) * sizeof(*live));
	p->pages = n;
	return 0;
}

/* A zeroed record for an id not in use; NULL: no memory. */
static inline void *vc_pages_put(struct vc_pages *p, uint64_t id)
{
	size_t k = (size_t)(id >> VC_PAGE_SHIFT);

	if (k >= p->pages && vc_pages_grow(p, k) < 0)
		return NULL;
	if (!p->page[k]) {
		if (p->spare) {
			p->page[k] = p->spare;
			p->spare = NULL;
			memset(p->page[k], 0, VC_PAGE_RECORDS * p->record);
		} else {
			p->page[k] = calloc(VC_PAGE_RECORDS, p->record);
		}
		if (!p->page[k])
			return NULL;
	}
	p->live[k]++;
	return p->page[k] + (id & (VC_PAGE_RECORDS - 1)) * p->record;
}

/* Forget a record that was put; it reads as zeroes while its page lives. */
static inline void vc_pages_drop(struct vc_pages *p, uint64_t id)
{
	size_t k = (size_t)(id >> VC_PAGE_SHIFT);

	if (--p->live[k]) {
		memset(p->page[k] + (id & (VC_PAGE_RECORDS - 1)) * p->record, 0, p->record);
		return;
	}
	if (p->spare)
		free(p->page[k]);
	else
		p->spare = p->page[k];
	p->page[k] = NULL;
}

static inline void vc_pages_fini(struct vc_pages *p)
{
	for (size_t k = 0; k < p->pages; k++)
		free(p->page[k]);
	free(p->page);
	free(p->live);
	free(p->spare);
	*p = (struct vc_pages){ 0 };
}

#endif
