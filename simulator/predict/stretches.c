/* SPDX-License-Identifier: Apache-2.0 */
/* stretches.c - see stretches.h
 *
 * A turn is asked for from the same places, in the same order and sizes, as the one before it. A
 * block that a turn makes once stands a turn away from the next like it, so the distance between
 * neighbours of one kind is a period to try. */
#include "simulator/predict/stretches.h"

#include <stdlib.h>

#include "common/vec.h"

enum {
	SHORTEST = 2,  /* allocations of a turn */
	ACTIVE = 8,    /* loops that stand inside each other; bounds time */
	TRIES = 3,     /* next blocks of one kind that may begin the next turn; bounds time */
};

struct key { uint64_t size, site; uint32_t stream, i; };

VC_COMPARE(by_key, struct key,
	   VC_THEN(VC_ORDER(x->site, y->site),
		   VC_THEN(VC_ORDER(x->size, y->size),
			   VC_THEN(VC_ORDER(x->stream, y->stream), VC_ORDER(x->i, y->i)))))

VC_COMPARE(by_extent, struct vc_stretch,
	   VC_THEN(VC_ORDER(x->from, y->from), VC_ORDER(y->to, x->to)))

struct search {
	const struct vc_allocations *m;
	uint32_t *kind, *next;       /* by allocation: its kind, and the next one of it */
	struct vc_stretch active[ACTIVE]; /* the last ones found */
	size_t found;
	struct vc_stretches *out;
};

static int number_kinds(struct search *s)
{
	size_t n = s->m->n;
	struct key *k = malloc((n + 1) * sizeof(*k));

	s->kind = malloc((n + 1) * sizeof(*s->kind));
	s->next = malloc((n + 1) * sizeof(*s->next));
	if (!k || !s->kind || !s->next) {
		free(k);
		return VC_ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		k[i] = (struct key){ s->m->take[i].size, s->m->take[i].site,
				     s->m->take[i].stream, i };
	qsort(k, n, sizeof(*k), by_key);
	for (uint32_t i = 0, kind = 0; i < n; i++) {
		bool last = i + 1 == n || k[i].site != k[i + 1].site ||
			    k[i].size != k[i + 1].size || k[i].stream != k[i + 1].stream;

		s->kind[k[i].i] = kind;
		s->next[k[i].i] = last ? VC_UNMATCHED : k[i + 1].i;
		kind += last;
	}
	free(k);
	return VC_OK;
}

/* Is [i, i + p) inside a run that is known, whose period divides p? */
static bool is_known(const struct search *s, uint32_t i, uint32_t p)
{
	for (size_t k = 0; k < s->found && k < ACTIVE; k++) {
		const struct vc_stretch *r = &s->active[k];

		if (p % r->period == 0 && i >= r->from && i + p < r->to)
			return true;
	}
	return false;
}

static int note(struct search *s, struct vc_stretch new)
{
	for (uint32_t i = new.from; i < new.from + new.period; i++)
		new.named |= s->m->take[i].site != 0;
	if (!vc_vec_one(s->out->at, s->out->n))
		return VC_ENOMEM;
	s->active[s->found++ % ACTIVE] = new;
	s->out->at[s->out->n++] = new;
	return VC_OK;
}

/* A run of period p around allocations i and i + p. */
static int try_period(struct search *s, uint32_t i, uint32_t p)
{
	uint32_t from = i, to = i, n = (uint32_t)s->m->n;

	if (p < SHORTEST || is_known(s, i, p))
		return VC_OK;
	while (to + p < n && s->kind[to] == s->kind[to + p])
		to++;
	while (from > 0 && to - from < n && s->kind[from - 1] == s->kind[from - 1 + p])
		from--;
	if (to - from < p)
		return VC_OK;
	return note(s, (struct vc_stretch){ .from = from, .to = to + p, .period = p });
}

int vc_stretches_find(const struct vc_allocations *m, struct vc_stretches *out,
		      struct vc_error *err)
{
	struct search s = { .m = m, .out = out };
	int rc;

	*out = (struct vc_stretches){ 0 };
	rc = number_kinds(&s);
	for (uint32_t i = 0; rc == VC_OK && i < m->n; i++) {
		uint32_t j = s.next[i];

		for (int k = 0; rc == VC_OK && k < TRIES && j != VC_UNMATCHED; k++, j = s.next[j])
			rc = try_period(&s, i, j - i);
	}
	VC_FREE(s.kind, s.next);
	if (rc)
		return vc_nomem(err, "the loops of a recording");
	if (out->n)
		qsort(out->at, out->n, sizeof(*out->at), by_extent);
	return VC_OK;
}

void vc_stretches_fini(struct vc_stretches *r)
{
	free(r->at);
	*r = (struct vc_stretches){ 0 };
}
