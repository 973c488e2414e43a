/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.c - see stacks.h */
#include "visualize/stacks.h"

#include "common/site.h"
#include "common/vec.h"

enum { LIVE = 1, PENDING = 2 }; /* of vc_heap_extent.what */

VC_COMPARE(by_origin, struct vc_stack,
	   VC_THEN(VC_ORDER(x->site, y->site), VC_ORDER(x->label, y->label)))

/* A site says more than a label: blocks of one stack are one entry whatever their labels. */
static uint32_t label_of(uint32_t site, uint32_t label)
{
	return site ? 0 : label;
}

static void merge(struct vc_stacks *s)
{
	size_t m = 0;

	if (s->n)
		vc_sort(s->at, s->n, sizeof(*s->at), by_origin);
	for (size_t i = 0; i < s->n; i++) {
		if (!m || by_origin(&s->at[m - 1], &s->at[i])) {
			s->at[m++] = s->at[i];
			continue;
		}
		s->at[m - 1].bytes += s->at[i].bytes;
		s->at[m - 1].blocks += s->at[i].blocks;
		s->at[m - 1].all_bytes += s->at[i].all_bytes;
		s->at[m - 1].all_blocks += s->at[i].all_blocks;
	}
	s->n = m;
}

int vc_stacks_init(struct vc_stacks *s, const struct vc_result *r, struct vc_error *err)
{
	const struct vc_heap_map *map;

	*s = (struct vc_stacks){ .at_oom = r->oom.happened && r->last.n,
				 .has_all = r->lives.n && !r->lives.dropped };
	map = s->at_oom ? &r->last : &r->peak;
	s->event = map->event;
	s->at = calloc(map->n + r->lives.n + 1, sizeof(*s->at));
	VC_HAVE(s->at, "the call stacks", err);
	for (size_t i = 0; i < map->n; i++) {
		const struct vc_heap_extent *x = &map->at[i];

		if (x->what == LIVE || x->what == PENDING)
			s->at[s->n++] = (struct vc_stack){ vc_site_asking(r->meta, x->site),
				label_of(x->site, x->label), x->size, 1, 0, 0 };
	}
	for (size_t i = 0; s->has_all && i < r->lives.n; i++) {
		const struct vc_life *l = &r->lives.at[i];

		s->at[s->n++] =
			(struct vc_stack){ vc_site_asking(r->meta, l->site),
				label_of(l->site, l->label), 0, 0, l->size, 1 };
	}
	merge(s);
	return VC_OK;
}

void vc_stacks_fini(struct vc_stacks *s)
{
	free(s->at);
	*s = (struct vc_stacks){ 0 };
}
