/* SPDX-License-Identifier: Apache-2.0 */
/* whatif.c - sessions over several recordings of one program. */
#include "simulator/session/whatif.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulator/session/bounds.h"

enum { RUN = 16 };  /* frees in a row that are a cache being emptied */
/* One recording: where blocks land with other sizes moved the peak by up to 10 % down and 12 % up
 * from both ends on 1,106 pairs of recordings (docs/measurements/predictions.md). */
enum { GUARD_LOW = 10, GUARD_HIGH = 8 };
/* But at least so many bytes: small runs are as large as the 20 MiB segments that their few large
 * blocks break up (a run of 360 MiB needed 96 MiB more than that guard at four times its batch).
 */
enum { LEAST_LOW = 32 << 20, LEAST_HIGH = 128 << 20 };
/* Sizes that are not exact may fall on the other side of 1 MiB, where another pool of segments
 * begins: one of 2 MiB more for each pool. */
enum { SLACK = 4 << 20 };
enum { MOST = 16 }; /* recordings, and values of --set */

int vc_whatif_parse(const char *text, struct vc_param_value *at, char *buf, struct vc_error *err)
{
	const char *equals = strchr(text, '=');

	if (!equals || equals == text || equals - text >= VC_PARAM_TEXT)
		return vc_fail(err, VC_EUSAGE, "--set %s: write NAME=VALUE, as in batch=32", text);
	snprintf(buf, VC_PARAM_TEXT, "%.*s", (int)(equals - text), text);
	at->name = buf;
	if (vc_parse_real(equals + 1, &at->value, err) < 0)
		return vc_wrap(err, "--set %s", text);
	return VC_OK;
}

static void describe(struct vc_session *s)
{
	struct vc_whatif *w = s->whatif;
	const struct vc_family_report *r = &w->report;
	char alone[96] = "", card[96] = "";

	s->matched = r->bytes ? (double)r->matched_bytes / (double)r->bytes : 1;
	if (r->unsettled_bytes)
		snprintf(alone, sizeof(alone), "; %.2f %% of the bytes have no counterpart",
			 100 * (1 - s->matched));
	if (w->any_card && r->workspace)
		snprintf(card, sizeof(card),
			 "; no card is named: row sums as on %u multiprocessors, -g says "
			 "otherwise",
			 w->card.sms);
	if (r->same)
		snprintf(w->trust, sizeof(w->trust), "recorded at this value");
	else if (r->single)
		snprintf(w->trust, sizeof(w->trust),
			 "bounds from one recording; a second short one at another value would "
			 "make it exact");
	else
		snprintf(w->trust, sizeof(w->trust),
			 "extrapolated from %zu recordings, %.2f %% of the bytes matched%s%s%s",
			 r->recordings, 100 * s->matched, alone,
			 r->lengths ? "; steps differ in the length of their samples: the "
				      "longest decides" :
				      "",
			 card);
}

const char *vc_whatif_level(const struct vc_session *s)
{
	if (!s->whatif || s->whatif->report.same)
		return vc_bounds_wanted(s->opt) ? "bounds" : "exact";
	return s->whatif->report.single ? "bounds" : "extrapolated";
}

/* Long runs of frees without a request in between: a cache that is emptied in the order of a hash
 * table of addresses (autocast's copies of weights), another order in every run of the program.
 * stride: every how many-th is taken first. Nothing to do (no such run): 0. */
static int shuffled(const struct vc_session *s, size_t stride, struct vc_trace *out,
		    struct vc_error *err)
{
	const struct vc_trace *t = &s->trace;
	size_t moved = 0;

	*out = (struct vc_trace){ 0 };
	if (vc_trace_append(out, t->ev, t->n, err) < 0)
		return VC_ENOMEM;
	for (size_t i = 0, end; i < t->n; i = end + 1) {
		for (end = i; end < t->n && t->ev[end].kind == VC_EV_FREE; end++)
			;
		size_t n = end - i, at = i;
		for (size_t k = 0; n >= RUN && k < stride; k++)
			for (size_t j = k; j < n; j += stride)
				out->ev[at++] = t->ev[end - 1 - j];
		moved += n >= RUN;
	}
	if (!moved)
		vc_trace_fini(out);
	return moved > 0;
}

/* What else is on the device is not in a predicted trace: the most that a recording saw. */
static void inherit(const struct vc_session *s, struct vc_device_census *d)
{
	for (size_t i = 0; i < s->whatif->recordings; i++) {
		const struct vc_device_census *m = s->whatif->recording[i].device;

		d->outside = m && m->outside > d->outside ? m->outside : d->outside;
	}
}

static int recount(struct vc_session *s, uint16_t device, struct vc_error *err)
{
	vc_census_fini(&s->census);
	vc_census_init(&s->census);
	if (vc_census_add(&s->census, s->trace.ev, s->trace.n, err) < 0)
		return VC_ENOMEM;
	for (size_t i = 0; i < s->census.devices; i++)
		if (s->census.device[i].device == device)
			inherit(s, &s->census.device[i]);
	s->device = vc_census_of(&s->census, device);
	return s->device ? VC_OK : vc_fail(err, VC_EINTERNAL, "the prediction lost its device");
}

static int predict(struct vc_session *s, const struct vc_param_value *at, size_t n,
		   struct vc_error *err)
{
	struct vc_whatif *w = s->whatif;
	struct vc_family_ask ask = { .at = w->at, .n = n, .card = w->card };

	for (w->n = 0; w->n < n; w->n++) {
		snprintf(w->name[w->n], VC_PARAM_TEXT, "%s", at[w->n].name);
		w->at[w->n] = (struct vc_param_value){ w->name[w->n], at[w->n].value };
	}
	int r = vc_family_at(w->family, &ask, &s->trace, &w->report, err);

	if (r < 0)
		return r;
	const struct vc_session *base = &w->recording[w->report.base];
	w->nearest = base->path;
	s->meta = s->trace.meta;
	s->path = base->path;
	s->source = base->source;
	s->fidelity = base->fidelity;
	s->fidelity.diverged_why =
		base->fidelity.diverged_why ? strdup(base->fidelity.diverged_why) : NULL;
	snprintf(s->torch, sizeof(s->torch), "%s", base->torch);
	s->torch_from = base->torch_from;
	r = recount(s, base->device->device, err);
	describe(s);
	return r;
}

static int open_members(struct vc_session *s, size_t n, char **paths, unsigned flags,
			struct vc_error *err)
{
	struct vc_whatif *w = s->whatif;
	const struct vc_trace *t[MOST];

	if (n > MOST)
		return vc_fail(err, VC_EUSAGE, "at most %d recordings of one family", MOST);
	w->recording = calloc(n, sizeof(*w->recording));
	if (!w->recording)
		return vc_nomem(err, "the recordings");
	for (size_t i = 0; i < n; i++) {
		int r = vc_session_open_one(&w->recording[w->recordings++], s->opt, paths[i],
					    flags | VC_SESSION_IN_MEMORY, err);
		if (r < 0)
			return r;
		t[i] = &w->recording[i].trace;
	}
	w->family = vc_family_new(t, n, w->recording[0].device->device, false, err);
	return w->family ? VC_OK : err->status ? (int)err->status : VC_ENOMEM;
}

static void as_reduction_card(const struct vc_card *c, struct vc_reduction_card *r)
{
	if (c && c->sms)
		*r = (struct vc_reduction_card){c->sms,
						vc_threads_per_sm(c->cc_major, c->cc_minor) };
}

/* Scratch sizes depend on the card that was recorded, and on the one that will run it. */
static void choose_cards(struct vc_session *s)
{
	struct vc_whatif *w = s->whatif;
	struct vc_reduction_card recorded = vc_family_card(w->family);
	bool known = vc_family_card_known(w->family);
	const struct vc_meta *m = w->recording[0].meta;

	for (size_t i = 0; i < m->devices; i++) {
		const struct vc_device_info *d = &m->device[i];

		if (d->sms > 0 && d->cc_major)
			recorded = (struct vc_reduction_card){
				(uint32_t)d->sms, vc_threads_per_sm(d->cc_major, d->cc_minor) };
		else if (d->name)
			as_reduction_card(vc_card_by_name(d->name), &recorded);
		known |= (d->sms > 0 && d->cc_major) || (d->name && vc_card_by_name(d->name));
	}
	vc_family_recorded(w->family, &recorded);
	w->card = recorded;
	if (s->opt->gpu.n)
		as_reduction_card(vc_card_by_name(s->opt->gpu.at[0]), &w->card);
	w->any_card = !known && !s->opt->gpu.n;
}

int vc_whatif_open(struct vc_session *s, size_t n, char **paths, unsigned flags,
		   struct vc_error *err)
{
	struct vc_param_value at[MOST];
	char name[MOST][VC_PARAM_TEXT];

	s->whatif = calloc(1, sizeof(*s->whatif));
	if (!s->whatif)
		return vc_nomem(err, "the recordings");
	pthread_mutex_init(&s->whatif->lock, NULL);
	if (s->opt->set.n > MOST)
		return vc_fail(err, VC_EUSAGE, "--set: at most %d values", MOST);
	for (size_t i = 0; i < s->opt->set.n; i++) {
		int r = vc_whatif_parse(s->opt->set.at[i], &at[i], name[i], err);
		if (r < 0)
			return r;
	}
	int r = open_members(s, n, paths, flags, err);
	if (r < 0)
		return r;
	choose_cards(s);
	return predict(s, at, s->opt->set.n, err);
}

static int open_at(const struct vc_session *from, const struct vc_param_value *at, size_t n,
		   const struct vc_reduction_card *card, const char *text, struct vc_session *out,
		   struct vc_error *err)
{
	*out = *from;
	out->trace = (struct vc_trace){ 0 };
	out->fidelity.diverged_why = NULL;
	vc_census_init(&out->census);
	snprintf(out->change, sizeof(out->change), "%s", text);
	out->whatif = calloc(1, sizeof(*out->whatif));
	if (!out->whatif)
		return vc_nomem(err, "a prediction");
	pthread_mutex_init(&out->whatif->lock, NULL);
	out->whatif->recording = from->whatif->recording;
	out->whatif->recordings = from->whatif->recordings;
	out->whatif->family = from->whatif->family;
	out->whatif->borrowed = true;
	out->whatif->card = *card;
	out->whatif->any_card = from->whatif->any_card;
	return predict(out, at, n, err);
}

int vc_whatif_at(const struct vc_session *from, const struct vc_param_value *at, size_t n,
		 const char *text, struct vc_session *out, struct vc_error *err)
{
	if (n > VC_WHATIF_PARAMS)
		return vc_fail(err, VC_EUSAGE, "at most %d parameters", VC_WHATIF_PARAMS);
	return open_at(from, at, n, &from->whatif->card, text, out, err);
}

static int for_card(const struct vc_session *s, const struct vc_reduction_card *card,
		    const struct vc_session **out, struct vc_error *err)
{
	struct vc_whatif *w = s->whatif;

	for (size_t i = 0; i < w->cards; i++)
		if (!memcmp(&w->on[i]->whatif->card, card, sizeof(*card))) {
			*out = w->on[i];
			return VC_OK;
		}
	if (w->cards == VC_WHATIF_CARDS)
		return vc_fail(err, VC_EUSAGE, "at most %d kinds of cards at once",
			       VC_WHATIF_CARDS);
	struct vc_session *new = calloc(1, sizeof(*new));
	if (!new)
		return vc_nomem(err, "a prediction");
	w->on[w->cards++] = new;
	*out = new;
	return open_at(s, w->at, w->n, card, s->change, new, err);
}

const struct vc_session *vc_whatif_on(const struct vc_session *s, const struct vc_card *card,
				      struct vc_session *mixed, struct vc_error *err)
{
	const struct vc_session *on = NULL;

	if (!s->whatif || !card || !card->sms)
		return s;
	struct vc_reduction_card wanted = s->whatif->card;
	as_reduction_card(card, &wanted);
	if (!memcmp(&wanted, &s->whatif->card, sizeof(wanted)))
		return s;
	pthread_mutex_lock(&s->whatif->lock);
	int r = for_card(s, &wanted, &on, err);
	pthread_mutex_unlock(&s->whatif->lock);
	if (r < 0)
		return NULL;
	*mixed = *s;
	mixed->trace = on->trace;
	mixed->meta = on->meta;
	mixed->census = on->census;
	mixed->device = on->device;
	mixed->whatif = on->whatif;
	return mixed;
}

/* Peak reserved of another trace, or of this one with other addresses, into the interval. */
static int widen(const struct vc_session *s, const struct vc_trace *t, const struct vc_plan *p,
		 struct vc_result *out, struct vc_error *err)
{
	struct vc_session other = *s;
	struct vc_result r;

	other.trace = *t;
	other.trace.meta = s->trace.meta; /* shuffled ones have none of their own */
	other.whatif = NULL;
	other.others = 0;
	other.processes = 0;
	int rc = vc_session_run(&other, p, NULL, &r, err);
	if (rc < 0)
		return rc;
	if (!out->has_interval || r.stats.peak_reserved < out->low)
		out->low = r.stats.peak_reserved;
	if (!out->has_interval || r.stats.peak_reserved > out->high)
		out->high = r.stats.peak_reserved;
	out->has_interval = true;
	vc_result_fini(&r);
	return VC_OK;
}

static int measure(const struct vc_session *s, const struct vc_plan *plan, struct vc_result *out,
		   struct vc_error *err);

int vc_whatif_interval(const struct vc_session *s, const struct vc_plan *plan,
		       struct vc_result *out, struct vc_error *err)
{
	struct vc_whatif *w = s->whatif;
	char settings[256];
	int rc = VC_OK;

	if (!w || w->report.same)
		return VC_OK;
	int n = snprintf(settings, sizeof(settings), "%s:%s %s %d %s", plan->model->name,
			 plan->params, plan->torch, (int)plan->start, plan->conf);
	bool fits = n > 0 && (size_t)n < sizeof(settings) && !s->opt->transform.n;

	pthread_mutex_lock(&w->lock);
	if (fits && !strcmp(w->settings, settings)) {
		out->has_interval = w->open;
		out->low = w->low;
		out->high = w->high;
	} else {
		rc = measure(s, plan, out, err);
		snprintf(w->settings, sizeof(w->settings), "%s",
			 rc == VC_OK && fits ? settings : "");
		w->open = out->has_interval;
		w->low = out->low;
		w->high = out->high;
	}
	pthread_mutex_unlock(&w->lock);
	return rc;
}

/* One trace that the recordings allow besides the best guess: unsettled sizes small (0) and large
 * (1), then the same sizes in the order of each other recording. 0: there is no such. */
static int alternative(const struct vc_session *s, size_t k, struct vc_trace *out,
		       struct vc_error *err)
{
	struct vc_whatif *w = s->whatif;
	struct vc_family_ask ask = { .at = w->at, .n = w->n, .card = w->card };
	struct vc_error ignored;

	if (k < 2)
		ask.bound = k ? VC_BOUND_HIGH : VC_BOUND_LOW;
	ask.has_order = k >= 2;
	ask.order = k - 2;
	if (ask.has_order && (ask.order == w->report.base || w->report.single || w->report.turns))
		return 0; /* recordings of fewer turns do not set the order of more */
	int r = vc_family_at(w->family, &ask, out, NULL, &ignored);
	if (r == VC_ENOMEM)
		return vc_nomem(err, "the alternatives of a prediction");
	return r >= 0; /* else that recording lacks too much to set the order */
}

/* Snapshots do not name their card: others it may have been, from small to large. */
static const struct vc_reduction_card others[] = { { 40, 1024 },  { 82, 1536 },  { 128, 1536 },
						  { 108, 2048 }, { 170, 1536 }, { 148, 2048 } };
enum { OTHERS = sizeof(others) / sizeof(*others) };

static int on_another_card(const struct vc_session *s, size_t k, struct vc_trace *out,
			   struct vc_error *err)
{
	struct vc_whatif *w = s->whatif;
	struct vc_family_ask ask = { .at = w->at, .n = w->n, .card = others[k] };
	int r = w->any_card && w->report.workspace ? vc_family_at(w->family, &ask, out, NULL, err) :
						   1;

	return r < 0 ? r : !r;
}

static bool same_events(const struct vc_trace *a, const struct vc_trace *b)
{
	return a->n == b->n && !memcmp(a->ev, b->ev, a->n * sizeof(*a->ev));
}

static int widen_by_alternatives(const struct vc_session *s, const struct vc_plan *p,
				 struct vc_result *out, struct vc_error *err)
{
	size_t n = s->whatif->recordings + 2;
	int rc = VC_OK;

	for (size_t k = 0; rc == VC_OK && k < n + 2 + OTHERS; k++) {
		struct vc_trace t = { 0 };
		int r = k < n ? alternative(s, k, &t, err) :
			k < n + 2 ? shuffled(s, 2 * (k - n) + 1, &t, err) :
				    on_another_card(s, k - n - 2, &t, err);

		if (r < 0)
			return r;
		if (r && !same_events(&t, &s->trace))
			rc = widen(s, &t, p, out, err);
		if (r)
			vc_trace_fini(&t);
	}
	return rc;
}

/* Both ends of what one recording says. */
static void guard(struct vc_result *out)
{
	uint64_t down = out->low / GUARD_LOW, up = out->high / GUARD_HIGH;

	down = down > LEAST_LOW ? down : LEAST_LOW;
	out->low -= down < out->low / 2 ? down : out->low / 2;
	out->high += up > LEAST_HIGH ? up : LEAST_HIGH;
}

/* Which of two equal holes the allocator takes depends on addresses that only the real driver
 * knows: other orders of addresses show how much hangs on that. */
static int measure(const struct vc_session *s, const struct vc_plan *plan, struct vc_result *out,
		   struct vc_error *err)
{
	static const enum vc_va_policy policy[] = { VC_VA_WINDOW, VC_VA_DEC, VC_VA_MIX };
	struct vc_plan p = *plan;
	int rc = VC_OK;

	p.capacity = p.prop_total = 0; /* what they would need, not what they get */
	p.fraction = -1;
	for (size_t i = 0; rc == VC_OK && i < sizeof(policy) / sizeof(*policy); i++) {
		p.va = policy[i];
		rc = widen(s, &s->trace, &p, out, err);
	}
	p.va = VC_VA_WINDOW;
	if (rc == VC_OK)
		rc = widen_by_alternatives(s, &p, out, err);
	if (rc == VC_OK && s->whatif->report.single)
		guard(out);
	else if (rc == VC_OK && (s->whatif->report.residual > 0 || s->whatif->report.rounded))
		out->high += SLACK;
	if (out->has_interval && out->low == out->high)
		out->has_interval = false; /* nothing that is open moves the peak */
	return rc;
}

void vc_whatif_close(struct vc_session *s)
{
	struct vc_whatif *w = s->whatif;

	if (!w)
		return;
	for (size_t i = 0; i < w->cards; i++) {
		vc_session_close(w->on[i]);
		free(w->on[i]);
	}
	if (!w->borrowed) {
		vc_family_free(w->family);
		for (size_t i = 0; i < w->recordings; i++)
			vc_session_close(&w->recording[i]);
		free(w->recording);
	}
	pthread_mutex_destroy(&w->lock);
	free(w);
	s->whatif = NULL;
}
