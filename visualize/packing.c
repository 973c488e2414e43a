/* SPDX-License-Identifier: Apache-2.0 */
/* packing.c - where segments stand in a picture of address over time. */
#include "visualize/packing.h"

#include "common/error.h"
#include "common/vec.h"

/* A piece on its way into the pile. Pieces of one expandable segment touch: they stay together. */
struct piece {
	struct vc_shelf shelf;
	uint64_t born, died; /* of all that it stays together with */
	size_t group;
	bool joins;
};

VC_COMPARE(by_address, struct piece,
	   VC_THEN(VC_ORDER(x->shelf.addr, y->shelf.addr),
		   VC_ORDER(x->shelf.born, y->shelf.born)))

VC_COMPARE(by_place, struct piece,
	   VC_THEN(VC_ORDER(y->died, x->died),
		   VC_THEN(VC_ORDER(x->born, y->born),
			   VC_THEN(VC_ORDER(x->group, y->group), by_address(first, second)))))

/* Which pieces stay together: those that touch the one before them and may be one block's home. */
static void group(struct piece *t, size_t n)
{
	uint64_t end = 0;
	size_t first = 0;

	for (size_t i = 0; i < n; i++) {
		struct piece *head;

		if (i && !(t[i].joins && t[i - 1].joins && t[i].shelf.addr <= end)) {
			first = i;
			end = 0;
		}
		head = &t[first];
		t[i].group = first;
		end = t[i].shelf.addr + t[i].shelf.size > end ?
			t[i].shelf.addr + t[i].shelf.size : end;
		head->born = t[i].shelf.born < head->born ? t[i].shelf.born : head->born;
		head->died = t[i].shelf.died > head->died ? t[i].shelf.died : head->died;
	}
	for (size_t i = 0; i < n; i++) {
		t[i].born = t[t[i].group].born;
		t[i].died = t[t[i].group].died;
	}
}

/* Blocks without segments: a stretch of addresses that they share is a segment that always stood
 * there. */
static size_t merge(struct piece *t, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct vc_shelf *last = kept ? &t[kept - 1].shelf : NULL, *s = &t[i].shelf;

		if (!last || s->addr > last->addr + last->size)
			t[kept++] = t[i];
		else if (s->addr + s->size > last->addr + last->size)
			last->size = s->addr + s->size - last->addr;
	}
	return kept;
}

static struct piece piece_of(const struct vc_result *r, size_t i)
{
	struct piece p = { .joins = true };

	if (r->segments.n) {
		const struct vc_segment_life *g = &r->segments.at[i];
		p.shelf = (struct vc_shelf){ g->addr, g->size, g->born, g->died, 0 };
		p.joins = g->expandable;
	} else {
		const struct vc_life *l = &r->lives.at[i];
		p.shelf = (struct vc_shelf){ l->addr, l->size, 0, UINT64_MAX, 0 };
	}
	p.born = p.shelf.born;
	p.died = p.shelf.died;
	return p;
}

int vc_packing_init(struct vc_packing *p, const struct vc_result *r, struct vc_error *err)
{
	size_t n = r->segments.n ? r->segments.n : r->lives.n;
	struct piece *t = malloc((n + 1) * sizeof(*t));

	*p = (struct vc_packing){ .at = malloc((n + 1) * sizeof(*p->at)),
				  .guessed = !r->segments.n };
	if (!t || !p->at) {
		free(t);
		vc_packing_fini(p);
		return vc_nomem(err, "the packing of segments");
	}
	for (size_t i = 0; i < n; i++)
		t[i] = piece_of(r, i);
	qsort(t, n, sizeof(*t), by_address);
	if (p->guessed)
		n = merge(t, n);
	group(t, n);
	qsort(t, n, sizeof(*t), by_place);
	for (size_t i = 0; i < n; i++)
		p->at[i] = t[i].shelf;
	p->n = n;
	free(t);
	return VC_OK;
}

void vc_packing_fini(struct vc_packing *p)
{
	free(p->at);
	*p = (struct vc_packing){ 0 };
}

static bool stands(const struct vc_shelf *s, uint64_t event)
{
	return s->born <= event && s->died > event;
}

uint64_t vc_packing_stack(struct vc_packing *p, uint64_t event)
{
	uint64_t top = 0;

	for (size_t i = 0; i < p->n; i++) {
		if (!stands(&p->at[i], event))
			continue;
		p->at[i].offset = top;
		top += p->at[i].size;
	}
	return top;
}

/* ---- places that stay ---- */

/* Shelves that touch are one board: a block may lie on several pieces of an expandable segment. */
struct board { uint64_t size, born, died, offset; size_t first, n; };

VC_COMPARE(by_start, struct board,
	   VC_THEN(VC_ORDER(x->born, y->born), VC_ORDER(x->first, y->first)))

static size_t boards_of(const struct vc_packing *p, struct board *b)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct vc_shelf *s = &p->at[i], *before = i ? s - 1 : NULL;

		if (before && before->addr + before->size == s->addr) {
			struct board *last = &b[n - 1];

			last->size += s->size;
			last->born = s->born < last->born ? s->born : last->born;
			last->died = s->died > last->died ? s->died : last->died;
			last->n++;
		} else
			b[n++] = (struct board){ s->size, s->born, s->died, 0, i, 1 };
	}
	return n;
}

/* Into the lowest gap between those that stand, which are sorted by offset; the gone ones leave. */
static size_t place(struct board *b, struct board **standing, size_t n)
{
	size_t kept = 0, at;
	uint64_t from = 0;

	for (size_t i = 0; i < n; i++)
		if (standing[i]->died > b->born)
			standing[kept++] = standing[i];
	for (at = 0; at < kept && standing[at]->offset - from < b->size; at++)
		from = standing[at]->offset + standing[at]->size;
	memmove(standing + at + 1, standing + at, (kept - at) * sizeof(*standing));
	standing[at] = b;
	b->offset = from;
	return kept + 1;
}

int vc_packing_keep(struct vc_packing *p, uint64_t *height, struct vc_error *err)
{
	enum { MOST = 1 << 15 }; /* the time goes with its square */
	struct board *b = malloc((p->n + 1) * sizeof(*b)), **standing;
	size_t n, up = 0;

	*height = 0;
	standing = malloc((p->n + 1) * sizeof(struct board *));
	if (!b || !standing) {
		VC_FREE(b, standing);
		return vc_nomem(err, "the packing of segments");
	}
	n = p->n > MOST ? 0 : boards_of(p, b);
	qsort(b, n, sizeof(*b), by_start);
	for (size_t i = 0; i < n; i++) {
		up = place(&b[i], standing, up);
		if (b[i].offset + b[i].size > *height)
			*height = b[i].offset + b[i].size;
		for (size_t k = b[i].first; k < b[i].first + b[i].n; k++)
			p->at[k].offset = b[i].offset + (p->at[k].addr - p->at[b[i].first].addr);
	}
	VC_FREE(b, standing);
	return VC_OK;
}

/* ---- which block lies where ---- */

struct known { uint64_t addr, born; uint32_t at; };

VC_COMPARE(by_birth, struct known,
	   VC_THEN(VC_ORDER(x->born, y->born), VC_ORDER(x->addr, y->addr)))

/* Those that stand, by address. */
struct standing { struct known *at; size_t n; };

/* Whatever overlaps it is gone: two segments are never at one place. */
static void enter(struct standing *v, const struct vc_packing *p, const struct known *k)
{
	const struct vc_shelf *s = &p->at[k->at];
	size_t to = vc_first_above(v->at, v->n, addr, k->addr), from = to;

	while (from && v->at[from - 1].addr + p->at[v->at[from - 1].at].size > s->addr)
		from--;
	while (to < v->n && v->at[to].addr < s->addr + s->size)
		to++;
	memmove(v->at + from + 1, v->at + to, (v->n - to) * sizeof(*v->at));
	v->at[from] = *k;
	v->n = v->n - (to - from) + 1;
}

static uint32_t home_of(const struct standing *v, const struct vc_packing *p, uint64_t addr)
{
	size_t i = vc_first_above(v->at, v->n, addr, addr);
	const struct vc_shelf *s = i ? &p->at[v->at[i - 1].at] : NULL;

	return s && addr - s->addr < s->size ? v->at[i - 1].at : VC_NO_SHELF;
}

int vc_packing_homes(const struct vc_packing *p, const struct vc_lives *lives, uint32_t *home,
		     struct vc_error *err)
{
	struct known *k = malloc((p->n + 1) * sizeof(*k));
	struct standing v = { malloc((p->n + 2) * sizeof(*v.at)), 0 };
	size_t next = 0;

	if (!k || !v.at) {
		VC_FREE(k, v.at);
		return vc_nomem(err, "the packing of segments");
	}
	for (size_t i = 0; i < p->n; i++)
		k[i] = (struct known){ p->at[i].addr, p->at[i].born, (uint32_t)i };
	qsort(k, p->n, sizeof(*k), by_birth);
	for (size_t i = 0; i < lives->n; i++) {
		const struct vc_life *l = &lives->at[i];

		for (; next < p->n && k[next].born <= l->born; next++)
			enter(&v, p, &k[next]);
		home[i] = home_of(&v, p, l->addr);
	}
	VC_FREE(k, v.at);
	return VC_OK;
}
