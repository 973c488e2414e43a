/* SPDX-License-Identifier: Apache-2.0 */
/* fit.c - see fit.h */
#include "simulator/search/fit_look.h"

#include "simulator/time/time.h"

enum { NEXT = 6, SOON = 16 };

/* ---- the values, counted: every multiple of the unit, or those of a list ---- */

static uint64_t value_of(const struct vc_fit *f, uint64_t units)
{
	return !units ? 0 : f->among ? f->among[units - 1] : units * f->unit;
}

/* How many of them are at most `value`. */
static uint64_t units_of(const struct vc_fit *f, uint64_t value)
{
	uint64_t n = 0;

	if (!f->among)
		return value / f->unit;
	while (n < f->amongs && f->among[n] <= value)
		n++;
	return n;
}

uint64_t vc_fit_most(const struct vc_fit *f)
{
	return value_of(f, f->among ? f->amongs : f->most / f->unit);
}

uint64_t vc_fit_next(const struct vc_fit *f, uint64_t value)
{
	uint64_t units = units_of(f, value) + 1;

	return units <= units_of(f, vc_fit_most(f)) ? value_of(f, units) : 0;
}

uint64_t vc_fit_between(const struct vc_fit *f, uint64_t low, uint64_t high)
{
	uint64_t from = units_of(f, low), to = units_of(f, high);

	return to > from + 1 ? value_of(f, from + (to - from) / 2) : 0;
}

void vc_fit_card_fini(struct vc_fit_card *c)
{
	for (size_t i = 0; i < c->runs; i++)
		vc_result_fini(&c->run[i]);
	c->runs = 0;
}

/* ---- what is searched for ---- */

/* Which values are looked for: with their intervals or not, whose bytes decide about them. */
struct aim {
	bool open;
	double (*bytes)(const struct vc_fit_probe *p);
	bool (*is)(const struct vc_fit_probe *p, uint64_t capacity);
};
struct search {
	struct vc_fit_hunt *h;
	const struct aim *aim;
	bool misled; /* the last guess was wrong, ... */
	bool last;   /* and this was the answer */
};

static bool fits(const struct vc_fit_probe *p, uint64_t capacity)
{
	return p->verdict == VC_FITS;
}

static bool runs(const struct vc_fit_probe *p, uint64_t capacity)
{
	return p->verdict != VC_OOM;
}

static bool surely(const struct vc_fit_probe *p, uint64_t capacity)
{
	return p->verdict == VC_FITS && p->high <= capacity;
}

/* The lower end of what the recordings allow: with a cache that need not be emptied. */
static bool perhaps(const struct vc_fit_probe *p, uint64_t capacity)
{
	return p->verdict == VC_FITS || p->low <= capacity;
}

/* Of the best guess: a run that fits needs what it uses, of another one the need was asked for. */
static double guessed(const struct vc_fit_probe *p)
{
	return p->verdict == VC_FITS ? (double)p->used : p->open ? NAN : (double)p->high;
}

static double highest(const struct vc_fit_probe *p)
{
	return p->open ? (double)p->high : NAN;
}

static double lowest(const struct vc_fit_probe *p)
{
	return p->open ? (double)p->low : NAN;
}

static const struct aim to_fit = { false, guessed, fits }, to_run = { false, guessed, runs },
			to_be_sure = { true, highest, surely },
			to_be_possible = { true, lowest, perhaps };

/* Will it be so? What nobody knows fits: a search begins where it was recorded. Where bytes come in
 * leaps no line through them says so, and the last answer is the next one more often. */
static bool expect(void *arg, uint64_t units)
{
	const struct search *t = arg;
	uint64_t value = value_of(t->h->f, units), capacity = t->h->c->plan.capacity;
	const struct vc_fit_probe *p = vc_fit_at(t->h->c, value);

	if (p && (p->open || !t->aim->open))
		return t->aim->is(p, capacity);
	if (t->misled)
		return t->last;
	return !(vc_fit_guess(t->h, t->aim->bytes, value) > (double)capacity);
}

static int probe(void *arg, uint64_t units, bool *yes, struct vc_error *err)
{
	struct search *t = arg;
	const struct vc_fit_probe *p;
	bool expected = expect(t, units);
	int r = vc_fit_look(t->h, value_of(t->h->f, units), t->aim->open, &p, err);

	*yes = r == VC_OK && t->aim->is(p, t->h->c->plan.capacity);
	t->misled |= *yes != expected;
	t->last = *yes;
	return r;
}
static int ahead(void *arg, const uint64_t *units, size_t n, bool surely, struct vc_error *err)
{
	const struct search *t = arg;
	struct vc_fit_soon soon[SOON];

	n = n < SOON ? n : SOON;
	for (size_t i = 0; i < n; i++)
		soon[i] = (struct vc_fit_soon){ value_of(t->h->f, units[i]), t->aim->open };
	return surely ? vc_fit_look_at_all(t->h, soon, n, err) :
			vc_fit_look_beyond(t->h, soon, n, err);
}

static int search(struct vc_fit_hunt *h, const struct aim *aim, uint64_t from,
		  struct vc_found *out, struct vc_error *err)
{
	struct search t = { .h = h, .aim = aim };
	struct vc_search s = { .start = units_of(h->f, from),
			       .most = units_of(h->f, vc_fit_most(h->f)), .arg = &t,
			       .probe = probe, .ahead = ahead, .expect = expect };

	s.start = s.start ? s.start : 1;
	int r = vc_search_run(&s, out, err);
	out->largest = value_of(h->f, out->largest);
	out->failing = value_of(h->f, out->failing);
	return r;
}

/* What the recordings leave open moves the answer: how far? */
static int search_bounds(struct vc_fit_hunt *t, uint64_t from, struct vc_error *err)
{
	struct vc_fit_card *c = t->c;
	const struct vc_fit_probe *p, *q;
	struct vc_found found;

	uint64_t first = value_of(t->f, 1);
	const struct vc_fit_soon ends[] = { { c->largest ? c->largest : first, true },
					    { c->failing ? c->failing : first, true } };

	VC_TRY(vc_fit_look_at_all(t, ends, 2, err));
	VC_TRY(vc_fit_look(t, ends[0].value, true, &p, err));
	VC_TRY(vc_fit_look(t, ends[1].value, true, &q, err));
	c->surely = c->perhaps = c->largest;
	if (c->largest && p->high > c->plan.capacity) {
		VC_TRY(search(t, &to_be_sure, from, &found, err));
		c->surely = found.largest < c->largest ? found.largest : c->largest;
	}
	if (c->failing && q->low <= c->plan.capacity) {
		VC_TRY(search(t, &to_be_possible, c->failing, &found, err));
		c->perhaps = found.largest > c->largest ? found.largest : c->largest;
	}
	return VC_OK;
}

/* What all predictions together say, those made for other reasons included. */
static void settle(struct vc_fit_card *c)
{
	uint64_t runs = 0;

	c->oom = 0;
	for (size_t i = 0; i < c->probes; i++) {
		const struct vc_fit_probe *p = &c->probe[i];

		if (p->verdict == VC_FITS && p->value > c->largest)
			c->largest = p->value;
		if (p->verdict != VC_FITS && (!c->failing || p->value < c->failing))
			c->failing = p->value;
		if (p->verdict == VC_FLUSHES && p->value > runs)
			runs = p->value;
		if (p->verdict == VC_OOM && (!c->oom || p->value < c->oom))
			c->oom = p->value;
	}
	c->flushing = runs > c->largest ? runs : 0;
	c->holes = c->failing && c->failing < c->largest;
}

/* ---- the recommendation ---- */

/* Below the target with the upper end of its interval, and nothing smaller fails. */
static int is_good(struct vc_fit_hunt *t, uint64_t units, bool *yes, struct vc_error *err)
{
	const struct vc_fit_probe *p;
	uint64_t value = value_of(t->f, units);
	int r = vc_fit_look(t, value, false, &p, err);

	*yes = false;
	if (r < 0 || p->verdict != VC_FITS || p->share > t->f->high ||
	    (t->c->failing && value > t->c->failing))
		return r;
	r = vc_fit_look(t, value, true, &p, err);
	*yes = r == VC_OK && p->share <= t->f->high;
	return r;
}

/* How is_good will look at a value; whether it is to be expected that it says yes. */
static bool good_soon(const struct vc_fit_hunt *t, uint64_t units, struct vc_fit_soon *s)
{
	double most = t->f->high * (double)t->c->plan.capacity;
	const struct vc_fit_probe *p = vc_fit_at(t->c, s->value = value_of(t->f, units));

	s->open = p ? p->verdict == VC_FITS && p->share <= t->f->high :
		      vc_fit_guess(t, guessed, s->value) <= most;
	s->open &= !t->c->failing || s->value <= t->c->failing;
	return s->open && (p && p->open ? true : vc_fit_guess(t, highest, s->value) <= most);
}

static int bisect_ahead(struct vc_fit_hunt *t, uint64_t good, uint64_t bad, struct vc_error *err)
{
	struct vc_fit_soon soon[SOON];
	size_t n = 0;

	for (; n < SOON && bad - good > 1; n++) {
		uint64_t mid = good + (bad - good) / 2;

		*(good_soon(t, mid, &soon[n]) ? &good : &bad) = mid;
	}
	return vc_fit_look_beyond(t, soon, n, err);
}

static int next_ahead(struct vc_fit_hunt *t, uint64_t good, uint64_t top, struct vc_error *err)
{
	struct vc_fit_soon soon[NEXT];
	size_t n = 0;

	for (; n < NEXT && good + n < top; n++)
		good_soon(t, good + n + 1, &soon[n]);
	return vc_fit_look_at_all(t, soon, n, err);
}

/* The largest value below the target: bisection, then the values above it and the round ones. */
static int recommend(struct vc_fit_hunt *t, struct vc_error *err)
{
	static const uint64_t round[] = { 64, 32, 16, 8 };
	uint64_t top = units_of(t->f, t->c->largest), good = 0, bad = top + 1;
	bool yes;

	VC_TRY(is_good(t, top, &yes, err));
	if (yes)
		good = top;
	while (!yes && bad - good > 1) {
		uint64_t mid = good + (bad - good) / 2;
		bool below;

		VC_TRY(bisect_ahead(t, good, bad, err));
		VC_TRY(is_good(t, mid, &below, err));
		*(below ? &good : &bad) = mid;
	}
	VC_TRY(next_ahead(t, good, top, err));
	for (uint64_t i = 0, from = good; i < NEXT && from + i < top; i++) {
		VC_TRY(is_good(t, from + i + 1, &yes, err));
		good = yes && from + i + 1 > good ? from + i + 1 : good;
	}
	for (size_t i = 0; !t->f->among && i < sizeof(round) / sizeof(*round); i++) {
		uint64_t x = top / round[i] * round[i];

		if (x <= good)
			continue;
		VC_TRY(is_good(t, x, &yes, err));
		good = yes && x > good ? x : good;
	}
	t->c->recommended = value_of(t->f, good);
	return VC_OK;
}

enum vc_verdict vc_fit_verdict(const struct vc_fit_card *c, const struct vc_fit_probe *p)
{
	bool fits = p->verdict == VC_FITS;

	if (c->plan.assume == VC_ASSUME_BEST || (fits ? p->value <= c->surely :
							p->value > c->perhaps))
		return p->verdict;
	return c->plan.assume == VC_ASSUME_LOW  ? VC_FITS :
	       c->plan.assume == VC_ASSUME_HIGH ? VC_OOM : VC_UNDECIDED;
}

/* Was a value recorded whose ratio to this one is a power of two? Those two tell x from the next
 * power of two above x, or from a constant, least of all. */
static bool is_doubled(const struct vc_fit_hunt *t, uint64_t value)
{
	const struct vc_whatif *w = t->f->base->whatif;
	int exponent;

	for (size_t i = 0; i < w->recordings; i++) {
		double from = vc_family_value(w->family, i, t->f->key);

		if (from > 0 && frexp((double)value / from, &exponent) == 0.5)
			return true;
	}
	return false;
}

/* What to go by, and what to record where that is not all. */
static void sum_up(struct vc_fit_hunt *t)
{
	struct vc_fit_card *c = t->c;
	uint64_t n = units_of(t->f, c->largest ? c->largest : c->perhaps);
	uint64_t sure = units_of(t->f, c->surely);

	c->one = t->f->base->whatif->recordings == 1;
	c->headline = c->plan.assume == VC_ASSUME_LOW			     ? c->perhaps :
		      c->plan.assume == VC_ASSUME_HIGH			     ? c->surely :
		      c->plan.assume == VC_ASSUME_BEST || c->one ? c->largest : c->surely;
	if (c->surely == c->perhaps)
		return;
	if (sure && n > 2 * sure)
		n = 2 * sure; /* far above what is certain the run may fail */
	while (n > 1 && is_doubled(t, value_of(t->f, n)))
		n = n > 3 ? n * 3 / 4 : n - 1;
	c->record = value_of(t->f, n);
}

static void explain(struct vc_fit_hunt *t)
{
	struct vc_fit_card *c = t->c;
	const struct vc_fit_probe *r = vc_fit_at(c, c->recommended), *l = vc_fit_at(c, c->largest);
	const char *open = r && r->high > r->used ? "up to " : "";
	size_t n;

	if (!c->largest)
		snprintf(c->why, sizeof(c->why), "not even %s=%" PRIu64 " fits", t->f->key,
			 value_of(t->f, 1));
	else if (!c->recommended && l->high > l->used)
		snprintf(c->why, sizeof(c->why), "the best estimate of %" PRIu64 " is %.1f %% of "
			 "the card, but it may be up to %.1f %%", c->largest,
			 100 * (double)l->used / (double)c->plan.capacity, 100 * l->share);
	else if (!c->recommended)
		snprintf(c->why, sizeof(c->why), "%" PRIu64 " fits, but with %.1f %% of the card "
			 "used nothing is left for surprises", c->largest, 100 * l->share);
	else if (c->recommended == c->largest)
		snprintf(c->why, sizeof(c->why), "%" PRIu64 " is the largest that fits and uses "
			 "%s%.1f %% of the card%s", c->recommended, open, 100 * r->share,
			 r->share < t->f->low && c->failing ? "; the next step up is too large" :
			 "");
	else
		snprintf(c->why, sizeof(c->why),
			 "%" PRIu64 " uses %s%.1f %% of the card; %" PRIu64 " %s too but uses "
			 "%s%.1f %%, which %s",
			 c->recommended, open, 100 * r->share, c->largest,
			 c->largest > c->surely ? "may fit" : "fits",
			 l->high > l->used ? "up to " : "", 100 * l->share, l->share > 1 ?
			 "is more than there is" :
			 "leaves no room for fragmentation or other processes");
	n = strlen(c->why);
	if (c->holes)
		snprintf(c->why + n, sizeof(c->why) - n,
			 "; %" PRIu64 " does not fit although %" PRIu64 " does: the need does not "
			 "grow with every step", c->failing, c->largest);
}

/* ---- times ---- */

static int add_run(struct vc_fit_hunt *t, uint64_t value, struct vc_error *err)
{
	struct vc_fit_card *c = t->c;

	for (size_t i = 0; i < c->runs; i++)
		if ((uint64_t)c->run[i].info.value == value)
			return VC_OK;
	if (!value || c->runs == VC_FIT_PACES)
		return VC_OK;
	int r = vc_fit_look_times(t, value, &c->run[c->runs], err);
	c->runs += r == VC_OK;
	return r;
}

/* The roundest value in (low, high], both units; of a list the highest. */
static uint64_t roundest(const struct vc_fit *f, uint64_t low, uint64_t high)
{
	for (uint64_t k = f->among ? 1 : 1ull << 40; k > 1; k /= 2)
		if (high / k * k > low)
			return value_of(f, high / k * k);
	return value_of(f, high);
}

/* "batch 24 gives 1.31x the samples/s of 16; 32 would flush the cache 14 times per step" */
static int compare(struct vc_fit_hunt *t, struct vc_error *err)
{
	struct vc_fit_card *c = t->c;
	uint64_t best = c->recommended ? c->recommended : c->largest, n = units_of(t->f, best);
	uint64_t from = units_of(t->f, c->failing ? c->failing - 1 : c->largest);
	uint64_t value[] = { best, n > 1 ? roundest(t->f, n / 2, n - 1) : 0, c->largest,
			     c->flushing > c->largest ?
			     roundest(t->f, from, units_of(t->f, c->flushing)) : 0 };
	size_t at = 0;

	for (size_t i = 0; i < sizeof(value) / sizeof(*value); i++)
		VC_TRY(add_run(t, value[i], err));
	while (at < c->runs && (uint64_t)c->run[at].info.value != best)
		at++;
	if (best)
		vc_time_compare(c->run, c->runs, at, c->pace, sizeof(c->pace));
	return VC_OK;
}

/* The need does not grow with every step: sums over rows borrow no buffer at a power of two, and a
 * block just above a size class leaves holes that a larger one does not. People try powers of two
 * first: the next one may fit where smaller values do not, and the last one may not where larger
 * ones do. */
static int look_beside(struct vc_fit_hunt *t, uint64_t largest, struct vc_error *err)
{
	const struct vc_fit_probe *p;
	uint64_t power = 1;

	while (power <= largest / 2)
		power *= 2;
	for (int k = 0; largest && !t->f->among && k < 2; k++, power *= 2)
		if (power <= vc_fit_most(t->f) && value_of(t->f, units_of(t->f, power)) == power)
			VC_TRY(vc_fit_look(t, power, false, &p, err));
	return VC_OK;
}

int vc_fit_search(struct vc_fit *f, struct vc_fit_card *c, struct vc_error *err)
{
	const struct vc_whatif *w = f->base->whatif;
	double from = vc_family_value(w->family, w->as_asked.report.base, f->key);
	struct vc_fit_hunt t = { f, c, NULL, 0 };
	struct vc_found found;

	if (!c->plan.capacity)
		return vc_fail(err, VC_EUSAGE,
			       "say what it has to fit on: -g GPU or --capacity SIZE");
	if (f->n >= VC_WHATIF_PARAMS)
		return vc_fail(err, VC_EUSAGE, "--set: at most %d values",
			       VC_WHATIF_PARAMS - 1);
	uint64_t start = from > 0 ? (uint64_t)from : 1;
	int r = search(&t, &to_fit, start, &found, err);
	if (r == VC_OK)
		r = look_beside(&t, found.largest, err);
	if (r == VC_OK)
		r = search(&t, &to_run, found.largest ? found.largest : start, &found, err);
	settle(c);
	if (r == VC_OK)
		r = search_bounds(&t, start, err);
	settle(c);
	if (r == VC_OK && c->largest)
		r = recommend(&t, err);
	settle(c);
	if (r == VC_OK)
		r = compare(&t, err);
	if (r == VC_OK) {
		explain(&t);
		sum_up(&t);
		if (c->cannot[0] && c->record)
			r = vc_fit_ask(&t, c->record, err);
	}
	vc_fit_hunt_end(&t);
	return r;
}
