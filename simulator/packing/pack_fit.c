/* SPDX-License-Identifier: Apache-2.0 */
/* pack_fit.c - one block after the other into the lowest or tightest gap.
 *
 * Those placed so far that live together with a block are gathered from a tree over the sections:
 * each placed piece hangs on the O(log n) nodes that tile its life, so a gathering costs what it
 * finds. Of very many blocks those that live most of the time are placed first, and the others
 * stand above them: so they need not be gathered again and again. */

#include "common/vec.h"
#include "simulator/packing/pack_parts.h"

#define NONE UINT32_MAX
enum { MANY = 20000 };

struct span { uint64_t offset, end; };
struct link { struct span span; uint32_t piece, next; };

struct vc_fit {
	const struct vc_pieces *s;
	uint32_t leaves;          /* a power of two */
	uint32_t *own;            /* per node: first link of the pieces that tile it */
	uint32_t *below;          /* per node: pieces anywhere under it, 0 = none */
	struct link *link; size_t links, cap;
	uint32_t *seen, round;    /* per piece: gathered in this round */
	struct span *found; size_t n;
	uint64_t *offset;
	uint64_t *base;           /* per section: above what lives most of the time; else 0 */
};

struct vc_fit *vc_fit_new(const struct vc_pieces *s, struct vc_error *err)
{
	struct vc_fit *f = calloc(1, sizeof(*f));

	if (f) {
		f->s = s;
		f->leaves = 1;
		while (f->leaves < s->sections)
			f->leaves *= 2;
		f->own = malloc(2 * (size_t)f->leaves * sizeof(*f->own));
		f->below = malloc(2 * (size_t)f->leaves * sizeof(*f->below));
		f->seen = calloc(s->n + 1, sizeof(*f->seen));
		f->found = calloc(s->n + 1, sizeof(*f->found));
		f->base = calloc(s->sections + 1, sizeof(*f->base));
	}
	if (f && f->own && f->below && f->seen && f->found && f->base)
		return f;
	vc_fit_free(f);
	vc_nomem(err, "the placed blocks");
	return NULL;
}

void vc_fit_free(struct vc_fit *f)
{
	if (f)
		VC_FREE(f->own, f->below, f->link, f->seen, f->found, f->base);
	free(f);
}

static void clear(struct vc_fit *f, uint64_t *offset)
{
	memset(f->own, 0xff, 2 * (size_t)f->leaves * sizeof(*f->own));
	memset(f->below, 0, 2 * (size_t)f->leaves * sizeof(*f->below));
	memset(f->seen, 0, (f->s->n + 1) * sizeof(*f->seen));
	f->links = 0;
	f->round = 0;
	f->offset = offset;
}

/* ---- putting a piece on the tree ---- */

static int hang(struct vc_fit *f, uint32_t node, uint32_t piece, struct vc_error *err)
{
	uint64_t from = f->offset[piece], end = from + f->s->at[piece].size;

	VC_HAVE(vc_vec_room(f->link, f->cap, f->links + 1), "the placed blocks", err);
	f->link[f->links] = (struct link){ { from, end }, piece, f->own[node] };
	f->own[node] = (uint32_t)f->links++;
	for (uint32_t up = node; up && !f->below[up]; up /= 2)
		f->below[up] = 1;
	return VC_OK;
}

static int put(struct vc_fit *f, uint32_t piece, struct vc_error *err)
{
	const struct vc_piece *p = &f->s->at[piece];

	for (uint32_t k = 0; k < p->stretches; k++) {
		uint32_t l = p->at[k].from + f->leaves, r = p->at[k].to + f->leaves;

		for (; l < r; l /= 2, r /= 2) {
			if (l & 1)
				VC_TRY(hang(f, l++, piece, err));
			if (r & 1)
				VC_TRY(hang(f, --r, piece, err));
		}
	}
	return VC_OK;
}

/* ---- gathering ---- */

static void take(struct vc_fit *f, uint32_t node)
{
	for (uint32_t k = f->own[node]; k != NONE; k = f->link[k].next) {
		const struct link *x = &f->link[k];

		if (f->seen[x->piece] == f->round)
			continue;
		f->seen[x->piece] = f->round;
		f->found[f->n++] = x->span;
	}
}

static void take_below(struct vc_fit *f, uint32_t node)
{
	if (!f->below[node])
		return;
	take(f, node);
	if (node < f->leaves) {
		take_below(f, 2 * node);
		take_below(f, 2 * node + 1);
	}
}

/* Whatever lives in a stretch hangs on a node that tiles it, below one, or above one. */
static void gather_stretch(struct vc_fit *f, struct vc_stretch at)
{
	uint32_t l = at.from + f->leaves, r = at.to + f->leaves;

	for (uint32_t up = l / 2; up; up /= 2)
		take(f, up);
	for (uint32_t up = (r - 1) / 2; up; up /= 2)
		take(f, up);
	for (; l < r; l /= 2, r /= 2) {
		if (l & 1)
			take_below(f, l++);
		if (r & 1)
			take_below(f, --r);
	}
}

static int steps_of(size_t n)
{
	int log = 1;

	while (n >>= 1)
		log++;
	return log;
}

VC_COMPARE(by_offset, struct span, VC_ORDER(x->offset, y->offset))

/* Quicksort by the middle one of three: half the time of a placement is this order, and a call for
 * each comparison would double it. Where that does not halve, vc_sort. */
static void sort(struct span *a, size_t n, int depth)
{
	while (n > 12 && depth--) {
		uint64_t x = a[0].offset, y = a[n / 2].offset, z = a[n - 1].offset;
		uint64_t low = x < y ? x : y, high = x < y ? y : x;
		uint64_t mid = z < low ? low : z > high ? high : z;
		size_t i = 0, k = n - 1;

		for (;; i++, k--) {
			while (a[i].offset < mid)
				i++;
			while (a[k].offset > mid)
				k--;
			if (i >= k)
				break;
			struct span kept = a[i];
			a[i] = a[k];
			a[k] = kept;
		}
		sort(a + k + 1, n - k - 1, depth);
		n = k + 1;
	}
	if (n > 12) {
		vc_sort(a, n, sizeof(*a), by_offset);
		return;
	}
	for (size_t i = 1; i < n; i++) {
		struct span x = a[i];
		size_t k = i;

		for (; k && a[k - 1].offset > x.offset; k--)
			a[k] = a[k - 1];
		a[k] = x;
	}
}

static void gather(struct vc_fit *f, const struct vc_piece *p)
{
	f->n = 0;
	f->round++;
	for (uint32_t k = 0; k < p->stretches; k++)
		gather_stretch(f, p->at[k]);
}

/* ---- placing ---- */

static uint64_t gap_for(const struct vc_fit *f, uint64_t top, uint64_t size, bool tight)
{
	uint64_t best = UINT64_MAX, tightest = UINT64_MAX;

	for (size_t i = 0; i < f->n; i++) {
		const struct span *x = &f->found[i];

		if (x->offset >= top + size) {
			if (!tight)
				return top;
			if (x->offset - top < tightest) {
				tightest = x->offset - top;
				best = top;
			}
		}
		if (x->end > top)
			top = x->end;
	}
	return best == UINT64_MAX ? top : best;
}

static uint64_t base_of(const struct vc_fit *f, const struct vc_piece *p)
{
	uint64_t most = 0;

	for (uint32_t k = 0; k < p->stretches; k++)
		for (uint32_t s = p->at[k].from; s < p->at[k].to; s++)
			most = f->base[s] > most ? f->base[s] : most;
	return most;
}

static int place(struct vc_fit *f, uint32_t i, bool tight, struct vc_layout *l,
		 struct vc_budget *b, struct vc_error *err)
{
	const struct vc_piece *p = &f->s->at[i];

	gather(f, p);
	sort(f->found, f->n, 2 * steps_of(f->n));
	b->left -= 64 + p->length / 4 + (int64_t)f->n * steps_of(f->n);
	l->offset[i] = gap_for(f, base_of(f, p), p->size, tight);
	if (l->offset[i] + p->size > l->height)
		l->height = l->offset[i] + p->size;
	return put(f, i, err);
}

static bool lives_long(const struct vc_fit *f, uint32_t i)
{
	return f->s->n > MANY && f->s->at[i].length > f->s->sections / 2;
}

/* What lives long is placed: the others come on top of it. */
static void raise(struct vc_fit *f, const struct vc_layout *l)
{
	for (uint32_t i = 0; i < f->s->n; i++) {
		const struct vc_piece *p = &f->s->at[i];
		uint64_t end = l->offset[i] + p->size;

		for (uint32_t k = 0; lives_long(f, i) && k < p->stretches; k++)
			for (uint32_t s = p->at[k].from; s < p->at[k].to; s++)
				f->base[s] = end > f->base[s] ? end : f->base[s];
	}
	clear(f, l->offset);
}

int vc_fit_place(struct vc_fit *f, const uint32_t *order, bool tight, uint64_t give_up,
		 struct vc_layout *l, struct vc_budget *b, struct vc_error *err)
{
	memset(f->base, 0, (f->s->sections + 1) * sizeof(*f->base));
	clear(f, l->offset);
	l->height = 0;
	for (int longest = f->s->n > MANY; longest >= 0; longest--) {
		for (size_t k = 0; k < f->s->n; k++) {
			if (lives_long(f, order[k]) != longest)
				continue;
			VC_TRY(place(f, order[k], tight, l, b, err));
			if (l->height >= give_up || b->left < 0) {
				l->height = UINT64_MAX;
				return VC_OK;
			}
		}
		if (longest)
			raise(f, l);
	}
	return VC_OK;
}
