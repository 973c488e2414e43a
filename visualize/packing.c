/* SPDX-License-Identifier: Apache-2.0 */
/* packing.c - where segments stand in a picture of address over time. */
#include "visualize/packing.h"

#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/vec.h"

VC_COMPARE(by_address, struct vc_shelf,
	   VC_THEN(VC_ORDER(x->addr, y->addr), VC_ORDER(x->born, y->born)))

static int by_birth(const void *a, const void *b)
{
	const struct vc_shelf *x = *(const struct vc_shelf *const *)a,
			      *y = *(const struct vc_shelf *const *)b;

	if (x->born != y->born)
		return x->born < y->born ? -1 : 1;
	return x < y ? -1 : x > y;
}


/* Pieces that touch and may be one block's home become one shelf, alive as long as any of them. */
static size_t join(struct vc_shelf *s, const bool *joins, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct vc_shelf *last = kept ? &s[kept - 1] : NULL;
		uint64_t end = last ? last->addr + last->size : 0;
		if (!last || !joins[i] || s[i].addr > end) {
			s[kept++] = s[i];
			continue;
		}
		if (s[i].addr + s[i].size > end)
			last->size = s[i].addr + s[i].size - last->addr;
		last->born = s[i].born < last->born ? s[i].born : last->born;
		last->died = s[i].died > last->died ? s[i].died : last->died;
	}
	return kept;
}

struct tagged { struct vc_shelf shelf; bool joins; };

static int collect(struct vc_packing *p, const struct vc_result *r, struct vc_error *err)
{
	size_t n = r->segments.n ? r->segments.n : r->lives.n;
	struct tagged *t = malloc((n + 1) * sizeof(*t));
	bool *joins = malloc(n + 1);

	p->at = malloc((n + 1) * sizeof(*p->at));
	p->guessed = !r->segments.n;
	if (!t || !joins || !p->at) {
		VC_FREE(t, joins);
		return vc_nomem(err, "the packing of segments");
	}
	for (size_t i = 0; i < n; i++) {
		const struct vc_segment_life *g = p->guessed ? NULL : &r->segments.at[i];
		const struct vc_life *l = p->guessed ? &r->lives.at[i] : NULL;
		t[i] = g ? (struct tagged){ { g->addr, g->size, g->born, g->died, 0 },
					   g->expandable } :
			   (struct tagged){ { l->addr, l->size, 0, UINT64_MAX, 0 }, true };
	}
	qsort(t, n, sizeof(*t), by_address);
	for (size_t i = 0; i < n; i++) {
		p->at[i] = t[i].shelf;
		joins[i] = t[i].joins;
	}
	p->n = join(p->at, joins, n);
	VC_FREE(t, joins);
	return VC_OK;
}

struct interval { uint64_t from, to, died; };

/* First fit: the lowest gap between the shelves that are alive. */
static uint64_t place(struct interval *live, size_t *n, const struct vc_shelf *s)
{
	uint64_t at = 0;
	size_t kept = 0, i;

	for (i = 0; i < *n; i++)
		if (live[i].died > s->born)
			live[kept++] = live[i];
	*n = kept;
	for (i = 0; i < *n && live[i].from < at + s->size; i++)
		at = live[i].to;
	memmove(live + i + 1, live + i, (*n - i) * sizeof(*live));
	live[i] = (struct interval){ at, at + s->size, s->died };
	(*n)++;
	return at;
}

int vc_packing_init(struct vc_packing *p, const struct vc_result *r, struct vc_error *err)
{
	struct vc_shelf **order;
	struct interval *live;
	size_t n = 0;

	*p = (struct vc_packing){ 0 };
	if (collect(p, r, err)) {
		vc_packing_fini(p);
		return VC_ENOMEM;
	}
	order = malloc((p->n + 1) * sizeof(struct vc_shelf *));
	live = malloc((p->n + 2) * sizeof(*live));
	for (size_t i = 0; order && i < p->n; i++)
		order[i] = &p->at[i];
	if (order)
		qsort(order, p->n, sizeof(struct vc_shelf *), by_birth);
	for (size_t i = 0; order && live && i < p->n; i++) {
		order[i]->offset = place(live, &n, order[i]);
		if (order[i]->offset + order[i]->size > p->height)
			p->height = order[i]->offset + order[i]->size;
	}
	bool ok = order && live;
	VC_FREE(order, live);
	if (!ok) {
		vc_packing_fini(p);
		return vc_nomem(err, "the packing of segments");
	}
	return VC_OK;
}

void vc_packing_fini(struct vc_packing *p)
{
	free(p->at);
	*p = (struct vc_packing){ 0 };
}

const struct vc_shelf *vc_packing_find(const struct vc_packing *p, uint64_t addr, uint64_t event)
{
	size_t lo = vc_first_above(p->at, p->n, addr, addr);

	/* Segments of different times may overlap: look back a little way. */
	for (size_t back = 0; lo > 0 && back < 64; back++) {
		const struct vc_shelf *s = &p->at[--lo];
		if (addr < s->addr + s->size && s->born <= event && s->died >= event)
			return s;
	}
	return NULL;
}
