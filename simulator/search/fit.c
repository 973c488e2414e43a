/* SPDX-License-Identifier: Apache-2.0 */
/* fit.c - see fit.h */
#include "simulator/search/fit.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulator/advise/report.h"
#include "simulator/session/answer.h"
#include "simulator/time/time.h"

enum { NEXT = 6, PARAMS = VC_WHATIF_PARAMS };

enum wish { WISH_PEAK, WISH_INTERVAL, WISH_TIMES };
struct find { struct vc_fit *f; struct vc_fit_card *c; };

const struct vc_fit_probe *vc_fit_at(const struct vc_fit_card *c, uint64_t value)
{
	for (size_t i = 0; i < c->probes; i++)
		if (c->probe[i].value == value)
			return &c->probe[i];
	return NULL;
}

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

/* ---- one prediction ---- */

struct vc_fit_seen { uint64_t value; struct vc_session session; };

static void drop(struct vc_fit_seen **at)
{
	if (*at)
		vc_session_close(&(*at)->session);
	free(*at);
	*at = NULL;
}

void vc_fit_forget(struct vc_fit *f)
{
	for (size_t i = 0; i < VC_FIT_SEEN; i++)
		drop(&f->seen[i]);
	f->seen_n = 0;
}

/* The recordings at that value: a session that f keeps. NULL: failure. */
static struct vc_session *session_at(struct vc_fit *f, uint64_t value, struct vc_error *err)
{
	struct vc_param_value at[PARAMS] = { { (char *)f->key, (double)value } };
	struct vc_fit_seen *s;
	char text[96];

	for (size_t i = 0; i < VC_FIT_SEEN; i++)
		if (f->seen[i] && f->seen[i]->value == value)
			return &f->seen[i]->session;
	s = calloc(1, sizeof(*s));
	if (!s) {
		vc_nomem(err, "a prediction");
		return NULL;
	}
	for (size_t i = 0; i < f->n; i++)
		at[i + 1] = f->also[i];
	s->value = value;
	snprintf(text, sizeof(text), "%s=%" PRIu64, f->key, value);
	if (vc_session_at(f->base, at, f->n + 1, text, &s->session, err) < 0) {
		drop(&s);
		return NULL;
	}
	drop(&f->seen[f->seen_n % VC_FIT_SEEN]);
	f->seen[f->seen_n++ % VC_FIT_SEEN] = s;
	return &s->session;
}

/* Run the prediction at `value`. */
static int predict(const struct find *t, const struct vc_plan *plan, uint64_t value, enum wish wish,
		   struct vc_result *out, struct vc_error *err)
{
	static const struct vc_observer_type *const pace[] = { &vc_observer_pace, NULL };
	struct vc_session *s = session_at(t->f, value, err);

	if (!s)
		return err->status ? (int)err->status : VC_ENOMEM;
	snprintf(t->c->trust, sizeof(t->c->trust), "%s", s->whatif->as_asked.trust);
	t->c->level = vc_level_name(vc_answer_level(s, plan));
	t->c->narrow = vc_report_narrow(s, plan);
	t->c->matched = s->matched;
	VC_TRY(vc_session_replay(s, plan, wish == WISH_TIMES ? pace : NULL, out, err));
	int rc = wish == WISH_INTERVAL ? vc_session_interval(s, plan, out, err) :
					 vc_session_interval_of_change(s, plan, out, err);
	if (rc == VC_OK && wish == WISH_TIMES) {
		rc = vc_time_answer(s, plan, out, err);
		out->info.vary = rc == VC_OK ? strdup(t->f->key) : NULL;
		out->info.value = (double)value;
	}
	if (rc < 0)
		vc_result_fini(out);
	return rc;
}

/* What the run would need where nothing limits it, from its lowest to its highest. */
static int needs(const struct find *t, bool open, struct vc_fit_probe *p, struct vc_error *err)
{
	struct vc_plan free = t->c->plan;
	struct vc_result r;

	free.capacity = free.prop_total = 0;
	free.fraction = -1;
	VC_TRY(predict(t, &free, p->value, open ? WISH_INTERVAL : WISH_PEAK, &r, err));
	uint64_t peak = r.stats.peak_reserved, most = r.stats.peak_used;
	uint64_t beside = most > peak ? most - peak : 0;
	p->low = r.has_interval && r.low < peak ? r.low + beside : most;
	p->high = r.has_interval && r.high > peak ? r.high + beside : most;
	vc_result_fini(&r);
	return VC_OK;
}

/* The probe at `value`; with `open` its interval is known. */
static int look(const struct find *t, uint64_t value, bool open, const struct vc_fit_probe **out,
		struct vc_error *err)
{
	struct vc_fit_card *c = t->c;
	struct vc_fit_probe *p = (struct vc_fit_probe *)vc_fit_at(c, value);
	struct vc_result r;

	*out = p;
	if (p && (p->open || !open))
		return VC_OK;
	if (!p && c->probes == VC_FIT_PROBES)
		return vc_fail(err, VC_EINTERNAL, "the search did not end");
	struct vc_fit_probe new = { .value = value, .open = open };
	int rc = predict(t, &c->plan, value, WISH_PEAK, &r, err);
	if (rc < 0)
		return rc;
	new.verdict = vc_result_verdict(&r);
	new.used = new.low = new.high = r.stats.peak_used;
	vc_result_fini(&r);
	if (open || new.verdict != VC_FITS)
		rc = needs(t, open, &new, err);
	if (rc < 0)
		return rc;
	p = p ? p : &c->probe[c->probes++];
	*p = new;
	p->share = c->plan.capacity ? (double)p->high / (double)c->plan.capacity : 0;
	*out = p;
	return VC_OK;
}

/* ---- what is searched for ---- */

static int fits(void *arg, uint64_t units, bool *yes, struct vc_error *err)
{
	struct find *t = arg;
	const struct vc_fit_probe *p;
	int r = look(t, value_of(t->f, units), false, &p, err);

	*yes = r == VC_OK && p->verdict == VC_FITS;
	return r;
}

static int runs(void *arg, uint64_t units, bool *yes, struct vc_error *err)
{
	struct find *t = arg;
	const struct vc_fit_probe *p;
	int r = look(t, value_of(t->f, units), false, &p, err);

	*yes = r == VC_OK && p->verdict != VC_OOM;
	return r;
}

static int surely(void *arg, uint64_t units, bool *yes, struct vc_error *err)
{
	struct find *t = arg;
	const struct vc_fit_probe *p;
	int r = look(t, value_of(t->f, units), true, &p, err);

	*yes = r == VC_OK && p->verdict == VC_FITS && p->high <= t->c->plan.capacity;
	return r;
}

/* The lower end of what the recordings allow: with a cache that need not be emptied. */
static int perhaps(void *arg, uint64_t units, bool *yes, struct vc_error *err)
{
	struct find *t = arg;
	const struct vc_fit_probe *p;
	int r = look(t, value_of(t->f, units), true, &p, err);

	*yes = r == VC_OK && (p->verdict == VC_FITS || p->low <= t->c->plan.capacity);
	return r;
}

static int search(struct find *t, int (*probe)(void *, uint64_t, bool *, struct vc_error *),
		  uint64_t from, struct vc_found *out, struct vc_error *err)
{
	struct vc_search s = { .start = units_of(t->f, from),
			       .most = units_of(t->f, vc_fit_most(t->f)), .arg = t,
			       .probe = probe };

	s.start = s.start ? s.start : 1;
	int r = vc_search_run(&s, out, err);
	out->largest = value_of(t->f, out->largest);
	out->failing = value_of(t->f, out->failing);
	return r;
}

/* What the recordings leave open moves the answer: how far? */
static int search_bounds(struct find *t, uint64_t from, struct vc_error *err)
{
	struct vc_fit_card *c = t->c;
	const struct vc_fit_probe *p, *q;
	struct vc_found found;

	VC_TRY(look(t, c->largest ? c->largest : value_of(t->f, 1), true, &p, err));
	VC_TRY(look(t, c->failing ? c->failing : value_of(t->f, 1), true, &q, err));
	c->surely = c->perhaps = c->largest;
	if (c->largest && p->high > c->plan.capacity) {
		VC_TRY(search(t, surely, from, &found, err));
		c->surely = found.largest < c->largest ? found.largest : c->largest;
	}
	if (c->failing && q->low <= c->plan.capacity) {
		VC_TRY(search(t, perhaps, c->failing, &found, err));
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
static int is_good(struct find *t, uint64_t units, bool *yes, struct vc_error *err)
{
	const struct vc_fit_probe *p;
	uint64_t value = value_of(t->f, units);
	int r = look(t, value, false, &p, err);

	*yes = false;
	if (r < 0 || p->verdict != VC_FITS || p->share > t->f->high ||
	    (t->c->failing && value > t->c->failing))
		return r;
	r = look(t, value, true, &p, err);
	*yes = r == VC_OK && p->share <= t->f->high;
	return r;
}

/* The largest value below the target: bisection, then the values above it and the round ones. */
static int recommend(struct find *t, struct vc_error *err)
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

		VC_TRY(is_good(t, mid, &below, err));
		*(below ? &good : &bad) = mid;
	}
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
static bool is_doubled(const struct find *t, uint64_t value)
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
static void sum_up(struct find *t)
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

static void explain(struct find *t)
{
	struct vc_fit_card *c = t->c;
	const struct vc_fit_probe *r = vc_fit_at(c, c->recommended), *l = vc_fit_at(c, c->largest);
	const char *open = r && r->high > r->used ? "up to " : "";
	size_t n;

	if (!c->largest)
		snprintf(c->why, sizeof(c->why), "not even %s=%" PRIu64 " fits", t->f->key,
			 value_of(t->f, 1));
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
			 "%s%.1f %%, which leaves no room for fragmentation or other processes",
			 c->recommended, open, 100 * r->share, c->largest,
			 c->largest > c->surely ? "may fit" : "fits",
			 l->high > l->used ? "up to " : "", 100 * l->share);
	n = strlen(c->why);
	if (c->holes)
		snprintf(c->why + n, sizeof(c->why) - n,
			 "; %" PRIu64 " does not fit although %" PRIu64 " does: the need does not "
			 "grow with every step", c->failing, c->largest);
}

/* ---- times ---- */

static int add_run(struct find *t, uint64_t value, struct vc_error *err)
{
	struct vc_fit_card *c = t->c;

	for (size_t i = 0; i < c->runs; i++)
		if ((uint64_t)c->run[i].info.value == value)
			return VC_OK;
	if (!value || c->runs == VC_FIT_PACES)
		return VC_OK;
	int r = predict(t, &c->plan, value, WISH_TIMES, &c->run[c->runs], err);
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
static int compare(struct find *t, struct vc_error *err)
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
static int look_beside(struct find *t, uint64_t largest, struct vc_error *err)
{
	const struct vc_fit_probe *p;
	uint64_t power = 1;

	while (power <= largest / 2)
		power *= 2;
	for (int k = 0; largest && !t->f->among && k < 2; k++, power *= 2)
		if (power <= vc_fit_most(t->f) && value_of(t->f, units_of(t->f, power)) == power)
			VC_TRY(look(t, power, false, &p, err));
	return VC_OK;
}

int vc_fit_search(struct vc_fit *f, struct vc_fit_card *c, struct vc_error *err)
{
	const struct vc_whatif *w = f->base->whatif;
	double from = vc_family_value(w->family, w->as_asked.report.base, f->key);
	struct find t = { f, c };
	struct vc_found found;

	if (!c->plan.capacity)
		return vc_fail(err, VC_EUSAGE,
			       "say what it has to fit on: -g GPU or --capacity SIZE");
	if (f->n >= PARAMS)
		return vc_fail(err, VC_EUSAGE, "--set: at most %d values", PARAMS - 1);
	uint64_t start = from > 0 ? (uint64_t)from : 1;
	int r = search(&t, fits, start, &found, err);
	if (r == VC_OK)
		r = look_beside(&t, found.largest, err);
	if (r == VC_OK)
		r = search(&t, runs, found.largest ? found.largest : start, &found, err);
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
	}
	return r;
}
