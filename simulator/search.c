/* SPDX-License-Identifier: Apache-2.0 */
/* search.c - allocators are not monotone: what bisection finds is checked with its neighbours. */
#include "simulator/search.h"

struct state { const struct vc_search *s; struct vc_found *f; };

static int ask(struct state *t, uint64_t units, bool *fits, struct vc_error *err)
{
	int r = t->s->probe(t->s->arg, units, fits, err);

	if (r < 0)
		return r;
	if (*fits && units > t->f->largest) {
		t->f->holes |= t->f->failing && units > t->f->failing;
		t->f->largest = units;
	} else if (!*fits && (!t->f->failing || units < t->f->failing)) {
		t->f->holes |= units < t->f->largest;
		t->f->failing = units;
	}
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
			r = ask(t, x, &fits, err);
			if (r < 0)
				return r;
			*(fits ? good : bad) = x;
		}
		return 0;
	}
	*bad = x;
	while (!*good && x > 1) {
		x /= 2;
		r = ask(t, x, &fits, err);
		if (r < 0)
			return r;
		*(fits ? good : bad) = x;
	}
	return 0;
}

/* Values worth a look above the first failure: the next three and the next round ones. */
static int look_above(struct state *t, uint64_t bad, struct vc_error *err)
{
	static const uint64_t round[] = { 8, 16, 32, 64 };
	bool fits;

	for (uint64_t x = bad + 1; x <= bad + 3 && x <= t->s->most; x++) {
		int r = ask(t, x, &fits, err);
		if (r < 0)
			return r;
	}
	for (unsigned i = 0; i < sizeof(round) / sizeof(*round); i++) {
		uint64_t x = (bad / round[i] + 1) * round[i];
		if (x <= bad + 3 || x > bad + bad / 4 || x > t->s->most)
			continue;
		int r = ask(t, x, &fits, err);
		if (r < 0)
			return r;
	}
	return 0;
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
	return r;
}
