/* SPDX-License-Identifier: Apache-2.0 */
/* fit_look.c - see fit_look.h
 *
 * A search asks for one value after another, and a prediction is mostly one thread's work. What a
 * search will ask for is known, or likely, some values ahead: these are predicted at the same time.
 * Nobody sees that: what was not asked for in the end is forgotten. */
#include "simulator/search/fit_look.h"

#include "common/vec.h"
#include "common/workers.h"
#include "simulator/advise/report.h"
#include "simulator/session/answer.h"
#include "simulator/time/time.h"

enum { PARAMS = VC_WHATIF_PARAMS, BEYOND = 8 };

/* ---- one prediction ---- */

struct vc_fit_seen { uint64_t value; struct vc_session session; };

/* What is said of all predictions is taken from the last one. */
struct vc_fit_told {
	struct vc_fit_probe probe;
	char trust[sizeof(((struct vc_fit_card *)0)->trust)];
	char cannot[sizeof(((struct vc_fit_card *)0)->cannot)];
	const char *level, *narrow;
	double matched;
	bool failed;
};

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

/* The recordings at that value. NULL: failure. */
static struct vc_fit_seen *open_at(const struct vc_fit *f, uint64_t value, struct vc_error *err)
{
	struct vc_param_value at[PARAMS] = { { (char *)f->key, (double)value } };
	struct vc_fit_seen *s = calloc(1, sizeof(*s));
	char text[96];

	if (!s) {
		vc_nomem(err, "a prediction");
		return NULL;
	}
	for (size_t i = 0; i < f->n; i++)
		at[i + 1] = f->also[i];
	s->value = value;
	snprintf(text, sizeof(text), "%s=%" PRIu64, f->key, value);
	if (vc_session_at(f->base, at, f->n + 1, text, &s->session, err) < 0)
		drop(&s);
	return s;
}

/* The same in a session that f keeps. NULL: failure. */
static struct vc_session *session_at(struct vc_fit *f, uint64_t value, struct vc_error *err)
{
	struct vc_fit_seen *s;

	for (size_t i = 0; i < VC_FIT_SEEN; i++)
		if (f->seen[i] && f->seen[i]->value == value)
			return &f->seen[i]->session;
	s = open_at(f, value, err);
	if (!s)
		return NULL;
	drop(&f->seen[f->seen_n % VC_FIT_SEEN]);
	f->seen[f->seen_n++ % VC_FIT_SEEN] = s;
	return &s->session;
}

/* Its peak; with `open` its interval. */
static int replay(const struct vc_session *s, const struct vc_plan *plan, bool open,
		  struct vc_result *out, struct vc_error *err)
{
	VC_TRY(vc_session_replay(s, plan, NULL, out, err));
	int rc = open ? vc_session_interval(s, plan, out, err) :
			vc_session_interval_of_change(s, plan, out, err);
	if (rc < 0)
		vc_result_fini(out);
	return rc;
}

/* What the run would need where nothing limits it, from its lowest to its highest. */
static int needs(const struct vc_session *s, const struct vc_plan *plan, struct vc_fit_probe *p,
		 struct vc_error *err)
{
	struct vc_plan free = *plan;
	struct vc_result r;

	free.capacity = free.prop_total = 0;
	free.fraction = -1;
	VC_TRY(replay(s, &free, p->open, &r, err));
	uint64_t peak = r.stats.peak_reserved, most = r.stats.peak_used;
	uint64_t beside = most > peak ? most - peak : 0;
	p->low = r.has_interval && r.low < peak ? r.low + beside : most;
	p->high = r.has_interval && r.high > peak ? r.high + beside : most;
	vc_result_fini(&r);
	return VC_OK;
}

static void tell(const struct vc_session *s, const struct vc_plan *plan, struct vc_fit_told *t)
{
	snprintf(t->trust, sizeof(t->trust), "%s", s->whatif->as_asked.trust);
	t->level = vc_level_name(vc_answer_level(s, plan, NULL));
	t->narrow = vc_report_narrow(s, plan, NULL);
	t->matched = s->matched;
}

/* Fill t for its value, of which `known` is known without an interval (NULL: nothing is). */
static int find_out(const struct vc_session *s, const struct vc_plan *plan,
		    const struct vc_fit_probe *known, struct vc_fit_told *t, struct vc_error *err)
{
	struct vc_fit_probe *p = &t->probe;
	struct vc_result r;

	tell(s, plan, t);
	if (known) {
		p->verdict = known->verdict;
		p->used = known->used;
	} else {
		VC_TRY(replay(s, plan, false, &r, err));
		p->verdict = vc_result_verdict(&r);
		p->used = r.stats.peak_used;
		vc_result_fini(&r);
	}
	p->low = p->high = p->used;
	if (p->open || p->verdict != VC_FITS)
		VC_TRY(needs(s, plan, p, err));
	p->share = plan->capacity ? (double)p->high / (double)plan->capacity : 0;
	vc_answer_cannot(s, p->verdict == VC_FITS ? p->used : p->low / 2 + p->high / 2, p->low,
			 p->high, t->cannot, sizeof(t->cannot));
	return VC_OK;
}

/* ---- looking ---- */

const struct vc_fit_probe *vc_fit_at(const struct vc_fit_card *c, uint64_t value)
{
	for (size_t i = 0; i < c->probes; i++)
		if (c->probe[i].value == value)
			return &c->probe[i];
	return NULL;
}

/* What is at hand for that value; a closed probe is a part of an open one that fits. */
static struct vc_fit_told *at_hand(const struct vc_fit_hunt *h, uint64_t value, bool open)
{
	for (size_t i = 0; i < h->tolds; i++) {
		struct vc_fit_probe *p = &h->told[i].probe;

		if (p->value == value &&
		    (p->open == open || (p->open && p->verdict == VC_FITS)))
			return &h->told[i];
	}
	return NULL;
}

static bool is_ready(const struct vc_fit_hunt *h, const struct vc_fit_soon *s)
{
	const struct vc_fit_probe *p = vc_fit_at(h->c, s->value);

	return (p && (p->open || !s->open)) || at_hand(h, s->value, s->open);
}

static void say(struct vc_fit_card *c, const struct vc_fit_told *t)
{
	snprintf(c->trust, sizeof(c->trust), "%s", t->trust);
	if (t->cannot[0])
		snprintf(c->cannot, sizeof(c->cannot), "%s", t->cannot);
	c->level = t->level;
	c->narrow = t->narrow;
	c->matched = t->matched;
}

/* Without the interval that nobody has asked for yet. */
static struct vc_fit_probe closed(const struct vc_fit_card *c, struct vc_fit_probe p)
{
	p.open = false;
	p.low = p.high = p.used;
	p.share = c->plan.capacity ? (double)p.high / (double)c->plan.capacity : 0;
	return p;
}

int vc_fit_look(struct vc_fit_hunt *h, uint64_t value, bool open,
		const struct vc_fit_probe **out, struct vc_error *err)
{
	struct vc_fit_card *c = h->c;
	struct vc_fit_probe *p = (struct vc_fit_probe *)vc_fit_at(c, value);
	struct vc_fit_told now = { .probe = { .value = value, .open = open } }, *t;

	*out = p;
	if (p && (p->open || !open))
		return VC_OK;
	if (!p && c->probes == VC_FIT_PROBES)
		return vc_fail(err, VC_EINTERNAL, "the search did not end");
	t = at_hand(h, value, open);
	if (!t) {
		struct vc_session *s = session_at(h->f, value, err);

		if (!s)
			return err->status ? (int)err->status : VC_ENOMEM;
		VC_TRY(find_out(s, &c->plan, p, &now, err));
		t = &now;
	}
	say(c, t);
	p = p ? p : &c->probe[c->probes++];
	*p = t->probe.open == open ? t->probe : closed(c, t->probe);
	*out = p;
	if (t != &now && t->probe.open == open)
		*t = h->told[--h->tolds];
	return VC_OK;
}

int vc_fit_ask(struct vc_fit_hunt *h, uint64_t value, struct vc_error *err)
{
	struct vc_session *s = session_at(h->f, value, err);

	if (!s)
		return err->status ? (int)err->status : VC_ENOMEM;
	vc_answer_who_can(s, h->c->cannot, sizeof(h->c->cannot));
	return VC_OK;
}

int vc_fit_look_times(struct vc_fit_hunt *h, uint64_t value, struct vc_result *out,
		      struct vc_error *err)
{
	static const struct vc_observer_type *const pace[] = { &vc_observer_pace, NULL };
	const struct vc_plan *plan = &h->c->plan;
	struct vc_session *s = session_at(h->f, value, err);
	struct vc_fit_told now = { .matched = 0 };
	int rc;

	if (!s)
		return err->status ? (int)err->status : VC_ENOMEM;
	tell(s, plan, &now);
	say(h->c, &now);
	VC_TRY(vc_session_replay(s, plan, pace, out, err));
	rc = vc_session_interval_of_change(s, plan, out, err);
	if (rc == VC_OK)
		rc = vc_time_answer(s, plan, out, err);
	out->info.vary = rc == VC_OK ? strdup(h->f->key) : NULL;
	out->info.value = (double)value;
	if (rc < 0)
		vc_result_fini(out);
	return rc;
}

/* ---- before anybody asks ---- */

struct soon {
	const struct vc_fit_hunt *h;
	struct vc_fit_told *told;
};

static int make_ready(void *arg, size_t i, struct vc_error *err)
{
	const struct soon *a = arg;
	struct vc_fit_told *t = &a->told[i];
	struct vc_error why = { 0 };
	struct vc_fit_seen *s = open_at(a->h->f, t->probe.value, &why);

	t->failed = !s || find_out(&s->session, &a->h->c->plan,
				   vc_fit_at(a->h->c, t->probe.value), t, &why) < 0;
	drop(&s);
	return VC_OK;
}

static bool is_among(const struct vc_fit_told *t, size_t n, uint64_t value)
{
	while (n > 0 && t[n - 1].probe.value != value)
		n--;
	return n > 0;
}

int vc_fit_look_at_all(struct vc_fit_hunt *h, const struct vc_fit_soon *soon, size_t n,
		       struct vc_error *err)
{
	struct vc_whatif *w = h->f->base->whatif;
	struct soon a = { .h = h };
	struct vc_work work = { .arg = &a, .job = make_ready,
				.threads = vc_workers_most(VC_WHATIF_THREADS) };
	struct vc_fit_told *all = realloc(h->told, (h->tolds + n + 1) * sizeof(*all));
	int r = VC_OK;

	VC_HAVE(all, "what a search looks at", err);
	h->told = all;
	a.told = &all[h->tolds];
	for (size_t i = 0; i < n; i++)
		if (!is_ready(h, &soon[i]) && !is_among(a.told, work.n, soon[i].value))
			a.told[work.n++] = (struct vc_fit_told){
				.probe = { .value = soon[i].value, .open = soon[i].open } };
	if (work.n < 2 || work.threads < 2)
		return VC_OK; /* alone it has all processors for itself */
	w->one_thread = true;
	r = vc_workers_run(&work, err);
	w->one_thread = false;
	for (size_t i = 0; r == VC_OK && i < work.n; i++)
		if (!a.told[i].failed)
			all[h->tolds++] = a.told[i];
	return r;
}

int vc_fit_look_beyond(struct vc_fit_hunt *h, const struct vc_fit_soon *soon, size_t n,
		       struct vc_error *err)
{
	size_t most = vc_workers_most(VC_WHATIF_THREADS), k = 0;
	struct vc_fit_soon next[BEYOND];

	/* Data that are resampled make a prediction of many replays, all of which can run at once.
	 */
	if (!n || h->f->base->whatif->as_asked.report.data || is_ready(h, &soon[0]))
		return VC_OK;
	for (size_t i = 0; i < n && k < most && k < BEYOND; i++)
		if (!is_ready(h, &soon[i]))
			next[k++] = soon[i];
	return vc_fit_look_at_all(h, next, k, err);
}

double vc_fit_guess(const struct vc_fit_hunt *h, double (*of)(const struct vc_fit_probe *),
		    uint64_t value)
{
	double x[2] = { 0, INFINITY }, y[2] = { NAN, NAN }, before[2] = { 0, NAN };

	for (size_t i = 0; i < h->c->probes; i++) {
		const struct vc_fit_probe *p = &h->c->probe[i];
		double at = (double)p->value, bytes = of(p);

		if (isnan(bytes))
			continue;
		if (p->value <= value && at > x[0]) {
			before[0] = x[0];
			before[1] = y[0];
			x[0] = at;
			y[0] = bytes;
		} else if (p->value <= value && at > before[0]) {
			before[0] = at;
			before[1] = bytes;
		} else if (p->value > value && at < x[1]) {
			x[1] = at;
			y[1] = bytes;
		}
	}
	if (isnan(y[1]) && !isnan(before[1])) /* beyond the last: on the line through two */
		return y[0] + (y[0] - before[1]) / (x[0] - before[0]) * ((double)value - x[0]);
	if (isnan(y[0]) || isnan(y[1]))
		return isnan(y[0]) ? y[1] : y[0];
	return y[0] + (y[1] - y[0]) / (x[1] - x[0]) * ((double)value - x[0]);
}

void vc_fit_hunt_end(struct vc_fit_hunt *h)
{
	free(h->told);
	h->told = NULL;
	h->tolds = 0;
}
