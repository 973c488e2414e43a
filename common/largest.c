/* SPDX-License-Identifier: Apache-2.0 */
/* largest.c - allocators are not monotone: what bisection finds is checked with its neighbours. */
#include "common/largest.h"

enum { NEXT = 4, BELOW = 8 };

struct state { const struct vc_search *s; struct vc_found *f; };

static int ask(struct state *t, uint64_t units, bool *fits, struct vc_error *err)
{
	VC_TRY(t->s->probe(t->s->arg, units, fits, err));
	if (*fits && units > t->f->largest)
		t->f->largest = units;
	else if (!*fits && (!t->f->failing || units < t->f->failing))
		t->f->failing = units;
	t->f->holes = t->f->failing && t->f->failing < t->f->largest;
	return 0;
}

/* From the start up to the first failure, or down to the first success. */
static int bracket(struct state *t, uint64_t *good, uint64_t *bad, struct vc_error *err)
{
	uint64_t x = t->s->start ? t->s->start : 1;
	bool fits;
	int r = ask(t, x, &fits, err);

	*good = *bad = 0;
	if (r < 0)
		return r;
	if (fits) {
		*good = x;
		while (!*bad && x < t->s->most) {
			x = x > t->s->most / 2 ? t->s->most : 2 * x;
			VC_TRY(ask(t, x, &fits, err));
			*(fits ? good : bad) = x;
		}
		return 0;
	}
	*bad = x;
	while (!*good && x > 1) {
		x /= 2;
		VC_TRY(ask(t, x, &fits, err));
		*(fits ? good : bad) = x;
	}
	return 0;
}

/* Values worth a look above the first failure: the next ones and the next round ones. */
static int look_above(struct state *t, uint64_t bad, struct vc_error *err)
{
	static const uint64_t round[] = { 8, 16, 32, 64 };
	bool fits;

	for (uint64_t x = bad + 1; x <= bad + NEXT && x <= t->s->most; x++)
		VC_TRY(ask(t, x, &fits, err));
	for (unsigned i = 0; i < sizeof(round) / sizeof(*round); i++) {
		uint64_t x = (bad / round[i] + 1) * round[i];
		if (x <= bad + NEXT || x > bad + bad / 4 || x > t->s->most)
			continue;
		VC_TRY(ask(t, x, &fits, err));
	}
	return 0;
}

/* Smaller values may need more: the ones just below, and some across the last doubling. */
static int look_below(struct state *t, struct vc_error *err)
{
	uint64_t top = t->f->largest, from = top / 2 > t->s->start ? top / 2 : t->s->start;
	bool fits;
	int r = 0;

	for (uint64_t k = 1; r == 0 && k <= NEXT && top > from + k; k++)
		r = ask(t, top - k, &fits, err);
	for (uint64_t k = 1; r == 0 && k < BELOW && top > from + BELOW; k++)
		r = ask(t, from + (top - from) * k / BELOW, &fits, err);
	return r;
}

int vc_search_run(const struct vc_search *s, struct vc_found *out, struct vc_error *err)
{
	struct state t = { s, out };
	uint64_t good, bad;
	bool fits;

	*out = (struct vc_found){ 0 };
	int r = bracket(&t, &good, &bad, err);
	while (r == 0 && bad && bad - good > 1) {
		uint64_t mid = good + (bad - good) / 2;

		r = ask(&t, mid, &fits, err);
		*(fits ? &good : &bad) = mid;
	}
	if (r == 0 && bad)
		r = look_above(&t, bad, err);
	return r == 0 && bad ? look_below(&t, err) : r;
}
