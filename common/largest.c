/* SPDX-License-Identifier: Apache-2.0 */
/* largest.c - allocators are not monotone: what bisection finds is checked with its neighbours. */
#include "common/largest.h"

enum { NEXT = 4, BELOW = 8, AHEAD = 8, MOST = 16 };

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

/* ---- what will be asked for ---- */

static int ahead(struct state *t, const uint64_t *units, size_t n, bool surely,
		 struct vc_error *err)
{
	return t->s->ahead && n ? t->s->ahead(t->s->arg, units, n, surely, err) : 0;
}

static bool expects(const struct state *t, uint64_t units)
{
	return t->s->expect(t->s->arg, units);
}

/* From x on up, for as long as all fits, or down, for as long as nothing does. */
static int double_ahead(struct state *t, uint64_t x, bool up, struct vc_error *err)
{
	uint64_t next[AHEAD], most = t->s->most;
	size_t n = 0;

	if (!t->s->ahead)
		return 0;
	for (next[n++] = x; n < AHEAD && (up ? x < most : x > 1) && expects(t, x) == up; n++)
		next[n] = x = !up ? x / 2 : x > most / 2 ? most : 2 * x;
	return ahead(t, next, n, false, err);
}

static int bisect_ahead(struct state *t, uint64_t good, uint64_t bad, struct vc_error *err)
{
	uint64_t next[AHEAD];
	size_t n = 0;

	for (; t->s->ahead && n < AHEAD && bad - good > 1; n++) {
		next[n] = good + (bad - good) / 2;
		*(expects(t, next[n]) ? &good : &bad) = next[n];
	}
	return ahead(t, next, n, false, err);
}

static int ask_all(struct state *t, const uint64_t *units, size_t n, struct vc_error *err)
{
	bool fits;

	VC_TRY(ahead(t, units, n, true, err));
	for (size_t i = 0; i < n; i++)
		VC_TRY(ask(t, units[i], &fits, err));
	return 0;
}

/* Those that fit decide only by the largest of them. */
static int ask_down(struct state *t, const uint64_t *units, size_t n, struct vc_error *err)
{
	bool fits = false;

	for (size_t i = n; i > 0 && !fits; i--)
		VC_TRY(ask(t, units[i - 1], &fits, err));
	return 0;
}

/* ---- the search ---- */

/* From the start up to the first failure, or down to the first success. */
static int bracket(struct state *t, uint64_t *good, uint64_t *bad, struct vc_error *err)
{
	uint64_t x = t->s->start ? t->s->start : 1;
	bool fits;

	*good = *bad = 0;
	VC_TRY(double_ahead(t, x, true, err));
	VC_TRY(ask(t, x, &fits, err));
	if (fits) {
		*good = x;
		while (!*bad && x < t->s->most) {
			x = x > t->s->most / 2 ? t->s->most : 2 * x;
			VC_TRY(double_ahead(t, x, true, err));
			VC_TRY(ask(t, x, &fits, err));
			*(fits ? good : bad) = x;
		}
		return 0;
	}
	*bad = x;
	while (!*good && x > 1) {
		x /= 2;
		VC_TRY(double_ahead(t, x, false, err));
		VC_TRY(ask(t, x, &fits, err));
		*(fits ? good : bad) = x;
	}
	return 0;
}

/* Values worth a look above the first failure: the next ones and the next round ones. */
static int look_above(struct state *t, uint64_t bad, struct vc_error *err)
{
	static const uint64_t round[] = { 8, 16, 32, 64 };
	uint64_t next[MOST];
	size_t n = 0;

	for (uint64_t x = bad + 1; x <= bad + NEXT && x <= t->s->most; x++)
		next[n++] = x;
	for (unsigned i = 0; i < sizeof(round) / sizeof(*round); i++) {
		uint64_t x = (bad / round[i] + 1) * round[i];
		if (x <= bad + NEXT || x > bad + bad / 4 || x > t->s->most)
			continue;
		next[n++] = x;
	}
	return t->s->only_largest ? ask_down(t, next, n, err) : ask_all(t, next, n, err);
}

/* Smaller values may need more: the ones just below, and some across the last doubling. */
static int look_below(struct state *t, struct vc_error *err)
{
	uint64_t top = t->f->largest, from = top / 2 > t->s->start ? top / 2 : t->s->start;
	uint64_t next[MOST];
	size_t n = 0;

	for (uint64_t k = 1; k <= NEXT && top > from + k; k++)
		next[n++] = top - k;
	for (uint64_t k = 1; k < BELOW && top > from + BELOW; k++)
		next[n++] = from + (top - from) * k / BELOW;
	return ask_all(t, next, n, err);
}

int vc_search_run(const struct vc_search *s, struct vc_found *out, struct vc_error *err)
{
	struct state t = { s, out };
	uint64_t good, bad;
	bool fits = false;

	*out = (struct vc_found){ 0 };
	int r = bracket(&t, &good, &bad, err);
	while (r == 0 && bad && bad - good > 1) {
		uint64_t mid = good + (bad - good) / 2;

		r = bisect_ahead(&t, good, bad, err);
		if (r == 0)
			r = ask(&t, mid, &fits, err);
		*(fits ? &good : &bad) = mid;
	}
	if (r == 0 && bad)
		r = look_above(&t, bad, err);
	return r == 0 && bad && !s->only_largest ? look_below(&t, err) : r;
}
