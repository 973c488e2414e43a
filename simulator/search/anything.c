/* SPDX-License-Identifier: Apache-2.0 */
/* anything.c - see anything.h. Each change is first tried by itself: what it saves and what it
 * costs in time. Combinations are put in the order of their product of times and of how many
 * changes they are, those that cannot save enough are left out, and the rest is replayed until
 * enough of each kind fit. */
#include "simulator/search/anything.h"

#include "common/vec.h"
#include "common/workers.h"
#include "simulator/time/time.h"

enum { BATCH = 64, PARTS = 4, LAYERS = 12 };
/* Combinations that are put in order at most. */
#define MOST_KEPT ((size_t)1 << 20)
#define SLACK 0.15 /* of what is reserved as it is */
/* What one more change to make, to keep and to explain has to be worth in time. */
#define TROUBLE 1.1f

/* What is guessed where kernels do not tell: only the order of suggestions rests on it. Sharded and
 * offloaded steps wait for a bus, 16-bit products are faster, a smaller model has less to do. */
static const double guess[] = {
	[VC_COST_SETTING] = 1.0, [VC_COST_CALL] = 1.02, [VC_COST_LIMIT] = 1.01,
	[VC_COST_STEP] = 0.99, [VC_COST_LOOP] = 1.05, [VC_COST_RECOMPUTE] = 1.33,
	[VC_COST_STATES] = 1.0, [VC_COST_TRAFFIC] = 1.6, [VC_COST_PRECISION] = 0.7,
	[VC_COST_MODEL] = 0.8, [VC_COST_CARDS] = 1.2, [VC_COST_BATCH] = 1.0, [VC_COST_CARD] = 1.0,
};

static enum vc_any_effect effect_of(enum vc_cost cost)
{
	switch (cost) {
	case VC_COST_STEP: case VC_COST_LOOP: /* sums in another order */
		return VC_ANY_ROUNDING;
	case VC_COST_PRECISION:
		return VC_ANY_PRECISION;
	case VC_COST_STATES: case VC_COST_MODEL: case VC_COST_BATCH:
		return VC_ANY_OTHER;
	case VC_COST_CARDS: case VC_COST_CARD:
		return VC_ANY_CARDS;
	case VC_COST_SETTING: case VC_COST_CALL: case VC_COST_LIMIT: case VC_COST_RECOMPUTE:
	case VC_COST_TRAFFIC:
		break;
	}
	return VC_ANY_SAME;
}

/* The order in which changes are made to the events: what changes the model and its numbers before
 * what repeats or moves them. */
static int order_of(enum vc_cost cost)
{
	static const enum vc_cost order[] = { VC_COST_SETTING, VC_COST_MODEL, VC_COST_PRECISION,
		VC_COST_STATES, VC_COST_STEP, VC_COST_LOOP, VC_COST_RECOMPUTE, VC_COST_TRAFFIC,
		VC_COST_CARDS, VC_COST_CALL, VC_COST_LIMIT };
	int i = 0;

	while (i < (int)(sizeof(order) / sizeof(*order)) && order[i] != cost)
		i++;
	return i;
}

struct search {
	struct vc_anything *q;
	const struct vc_session *s;
	struct vc_any_found now[BATCH]; /* of a batch of replays, */
	int rc[BATCH];                  /* and how each of them went */
};

/* ---- one combination ---- */

static const struct vc_any_way *way(const struct vc_anything *q, const uint8_t *pick, size_t axis)
{
	return pick[axis] ? &q->axis[axis].at[pick[axis] - 1] : NULL;
}

struct made { struct vc_plan plan; const struct vc_session *s; const char **list; char conf[256]; };

/* The plan and the session of a combination; m->list is the caller's. */
static int make(const struct search *x, const uint8_t *pick, struct made *m, struct vc_error *err)
{
	const struct vc_anything *q = x->q;
	const struct vc_list *own = &q->plan.transform;
	size_t n = own->n;

	m->plan = q->plan;
	m->s = x->s;
	m->list = calloc(own->n + VC_ANY_AXES + 1, sizeof(*m->list));
	VC_HAVE(m->list, "a combination", err);
	snprintf(m->conf, sizeof(m->conf), "%s", q->plan.conf);
	if (n)
		memcpy(m->list, own->at, n * sizeof(*m->list));
	for (size_t i = 0; i < VC_ANY_AXES; i++) { /* the axis that is being filled, too */
		const struct vc_any_way *w = way(q, pick, i);
		size_t len = strlen(m->conf);

		if (!w)
			continue;
		if (w->setting)
			snprintf(m->conf + len, sizeof(m->conf) - len, "%s%.*s", len ? "," : "",
				 200, w->change);
		else
			m->list[n++] = w->change;
		for (int k = 0; w->parts && k < PARTS; k++)
			if (w->parts == 2u << k)
				m->s = &q->part[k];
	}
	m->plan.conf = m->conf;
	m->plan.transform = (struct vc_list){ m->list, n };
	return VC_OK;
}

static int replay(const struct made *m, bool limited, struct vc_result *r, struct vc_error *err)
{
	static const struct vc_observer_type *const nobody[] = { NULL };
	struct vc_plan plan = limited ? m->plan : vc_plan_unlimited(&m->plan);

	return vc_session_replay(m->s, &plan, nobody, r, err);
}

/* Settings move the cache alone: they are tried where the tensors themselves would fit. */
static int try_settings(const struct search *x, struct vc_any_found *f, struct vc_error *err)
{
	size_t n = x->q->axis[0].n && x->q->axis[0].at[0].setting ? x->q->axis[0].n : 0;
	int rc = VC_OK;

	for (size_t i = 0; i < n && f->sure != VC_FITS && rc == VC_OK; i++) {
		struct vc_any_found with = *f;
		struct vc_result r;
		struct made m;

		with.pick[0] = (uint8_t)(i + 1);
		VC_TRY(make(x, with.pick, &m, err));
		rc = replay(&m, true, &r, err);
		free(m.list);
		if (rc < 0)
			break;
		with.sure = vc_result_replayed(&r);
		with.reserved = r.stats.peak_reserved;
		with.used = r.stats.peak_used;
		vc_result_fini(&r);
		*f = with.sure == VC_FITS ? with : *f;
	}
	return rc;
}

static int try_one(void *arg, size_t i, struct vc_error *err)
{
	struct search *x = arg;
	struct vc_any_found *f = &x->now[i];
	uint64_t beside = vc_plan_beside(&x->q->plan), capacity = x->q->plan.capacity;
	struct vc_error why = { 0 };
	struct vc_result r;
	struct made m;

	x->rc[i] = make(x, f->pick, &m, err);
	if (x->rc[i] < 0)
		return x->rc[i];
	x->rc[i] = replay(&m, false, &r, &why);
	free(m.list);
	if (x->rc[i] == VC_OK) {
		bool close = r.stats.peak_allocated + beside <= capacity;

		f->reserved = r.stats.peak_reserved;
		f->used = f->reserved + beside;
		f->sure = f->used <= capacity ? VC_FITS : VC_OOM;
		vc_result_fini(&r);
		if (close && f->sure != VC_FITS)
			x->rc[i] = try_settings(x, f, &why);
	}
	return x->rc[i] == VC_ENOMEM ? vc_nomem(err, "a replay") : VC_OK;
}

/* 1: its interval cannot be had, so it is not offered; the others are. */
static int decide(const struct search *x, struct vc_any_found *f, struct vc_error *err)
{
	static const struct vc_observer_type *const nobody[] = { NULL };
	struct vc_error why = { 0 };
	struct made m;
	struct vc_result r;
	int rc = make(x, f->pick, &m, err);

	VC_TRY(rc);
	rc = vc_session_run(m.s, &m.plan, nobody, &r, &why);
	if (rc == VC_OK) {
		f->sure = r.trust.high;
		f->low = r.trust.used_low;
		f->high = r.trust.used_high;
		vc_result_fini(&r);
	}
	free(m.list);
	return rc == VC_ENOMEM ? vc_nomem(err, "a replay") : rc < 0 ? 1 : VC_OK;
}

/* ---- the ways ---- */

/* What one change saves and costs by itself; false: it cannot be made here. */
static bool weigh(const struct search *x, size_t axis, struct vc_any_way *w)
{
	uint8_t pick[VC_ANY_AXES] = { 0 };
	struct vc_error err = { 0 };
	struct vc_timing base, with;
	struct vc_result r;
	struct made m;
	bool works;

	pick[axis] = (uint8_t)(w - x->q->axis[axis].at + 1);
	w->factor = 1 + (guess[w->cost] - 1) * w->share;
	if (make(x, pick, &m, &err) < 0)
		return false;
	works = replay(&m, false, &r, &err) == VC_OK;
	if (works) {
		w->saved = x->q->reserved > r.stats.peak_reserved ?
			   x->q->reserved - r.stats.peak_reserved : 0;
		vc_result_fini(&r);
	}
	if (works && vc_time_step(x->s, &x->q->plan, &base, &err) == VC_OK && base.step_ns &&
	    vc_time_step(m.s, &m.plan, &with, &err) == VC_OK && with.step_ns) {
		w->factor = (double)with.step_ns / (double)base.step_ns;
		w->timed = true;
	}
	/* the same work in smaller parts, or some of it twice: no law makes that less */
	if (w->cost == VC_COST_LOOP || w->cost == VC_COST_RECOMPUTE)
		w->factor = fmax(w->factor, 1);
	if (w->setting)
		w->timed = true;
	free(m.list);
	return works;
}

static void add_way(struct search *x, size_t axis, struct vc_any_way w)
{
	struct vc_any_axis *a = &x->q->axis[axis];

	if (a->n == VC_ANY_WAYS)
		return;
	a->at[a->n++] = w;
	if (!weigh(x, axis, &a->at[a->n - 1]))
		a->n--;
}

static struct vc_any_way way_of(const struct vc_remedy *r, const char *name)
{
	struct vc_any_way w = { .remedy = r, .cost = r->cost, .setting = !name, .share = 1 };

	snprintf(w.change, sizeof(w.change), "%s%s%s", name ? name : "",
		 name && r->params ? ":" : "", r->params ? r->params : "");
	snprintf(w.text, sizeof(w.text), "%s", r->text ? r->text : "");
	if (name)
		snprintf(w.paste, sizeof(w.paste), "%s", r->paste ? r->paste : "");
	else
		snprintf(w.paste, sizeof(w.paste), "export PYTORCH_CUDA_ALLOC_CONF=%.200s",
			 w.change);
	return w;
}

static void add_settings(struct search *x)
{
	const struct vc_remedy *r;

	for (size_t i = 0; x->q->plan.model->versions && (r = vc_advice_setting(i)); i++) {
		char key[64];

		snprintf(key, sizeof(key), "%.*s", (int)strcspn(r->params, ":"), r->params);
		if (!strstr(x->q->plan.conf, key))
			add_way(x, x->q->axes, way_of(r, NULL));
	}
	x->q->axes += x->q->axis[x->q->axes].n > 0;
}

static void add_parts(struct search *x, size_t axis, const struct vc_source_type *t,
		      const struct vc_remedy *r)
{
	struct vc_anything *q = x->q;

	for (int k = 0; k < PARTS && q->batch.open; k++) {
		struct vc_any_way w = way_of(r, t->name);
		struct vc_remedy_words words;
		struct vc_error err = { 0 };
		unsigned parts = 2u << k;
		double each = q->batch.value / parts;

		if (each < 1 || each != floor(each))
			return;
		if (!q->part_open[k])
			q->part_open[k] = vc_batch_at(&q->batch, each, &q->part[k], &err) == VC_OK;
		if (!q->part_open[k])
			return;
		r->split(parts, each, &words);
		snprintf(w.change, sizeof(w.change), "%s:%s", t->name, words.params);
		memcpy(w.text, words.text, sizeof(w.text));
		memcpy(w.paste, words.paste, sizeof(w.paste));
		w.parts = parts;
		add_way(x, axis, w);
	}
}

/* Layers computed twice: those of the search for them that are worth it, spread over the whole. */
static void add_layers(struct search *x, size_t axis, const struct vc_remedy *r)
{
	const struct vc_recompute_search *l = &x->q->layers;
	size_t front = 0, k = 0;

	for (size_t i = 0; i < l->n; i++)
		front += l->at[i].front && l->at[i].layers;
	for (size_t i = 0; i < l->n; i++) {
		struct vc_any_way w = way_of(r, "checkpoint");

		if (!l->at[i].front || !l->at[i].layers)
			continue;
		k++;
		if (front > LAYERS && k * LAYERS / front == (k - 1) * LAYERS / front)
			continue;
		w.remedy = NULL;
		w.share = (double)l->at[i].layers / (double)l->costs.n;
		snprintf(w.change, sizeof(w.change), "%s", l->at[i].change);
		snprintf(w.text, sizeof(w.text), "compute %zu of %zu layers twice (%s)",
			 l->at[i].layers, l->costs.n, strchr(l->at[i].change, ':') + 1);
		add_way(x, axis, w);
	}
}

/* Twice as many cards, and twice as many again. */
static void add_cards(struct search *x, size_t axis, const struct vc_source_type *t,
		      const struct vc_remedy *r)
{
	const char *ranks = r->params ? strstr(r->params, "ranks=2") : NULL;

	for (int cards = 2; cards <= (ranks ? 8 : 2); cards *= 2) {
		struct vc_any_way w = way_of(r, t->name);

		if (ranks)
			snprintf(w.change, sizeof(w.change), "%s:%.*sranks=%d%s", t->name,
				 (int)(ranks - r->params), r->params, cards, ranks + 7);
		if (cards > 2)
			snprintf(w.text, sizeof(w.text), "%d cards instead of %.200s", cards,
				 r->text);
		add_way(x, axis, w);
	}
}

static bool is_made(const struct vc_plan *p, const struct vc_source_type *t)
{
	struct vc_transform_use u;
	struct vc_error err = { 0 };

	for (size_t i = 0; i < p->transform.n; i++)
		if (vc_transform_parse(&u, p->transform.at[i], &err) == VC_OK && u.type == t)
			return true;
	return false;
}

static void add_transform(struct search *x, const struct vc_source_type *t, unsigned traits,
			  int order)
{
	struct vc_anything *q = x->q;
	size_t axis = q->axes;

	for (const struct vc_remedy *r = t->remedies; r && r->kind; r++) {
		if ((traits & r->needs) != r->needs || traits & r->avoid ||
		    order_of(r->cost) != order)
			continue;
		/* alternatives of one transform exclude each other, also those of other costs */
		for (size_t i = 0; i < q->axes; i++)
			if (q->axis[i].n && !q->axis[i].at[0].setting &&
			    !strncmp(q->axis[i].at[0].change, t->name, strlen(t->name)))
				axis = i;
		if (r->split)
			add_parts(x, axis, t, r);
		else if (r->cost == VC_COST_RECOMPUTE && q->layers.n)
			add_layers(x, axis, r);
		else if (r->cost == VC_COST_CARDS)
			add_cards(x, axis, t, r);
		else
			add_way(x, axis, way_of(r, t->name));
	}
	q->axes += q->axis[q->axes].n > 0;
}

static void add_ways(struct search *x)
{
	unsigned traits = vc_advice_traits(x->s);

	add_settings(x);
	for (int order = 0; order <= order_of(VC_COST_LIMIT); order++)
		for (size_t i = 0; vc_transforms[i] && x->q->axes < VC_ANY_AXES; i++)
			if (!is_made(&x->q->plan, vc_transforms[i]))
				add_transform(x, vc_transforms[i], traits, order);
}

/* ---- combinations ---- */

struct key { uint64_t code; float factor, worth; uint8_t effect, changes; };

static void decode(const struct vc_anything *q, uint64_t code, uint8_t *pick)
{
	for (size_t i = 0; i < q->axes; i++) {
		pick[i] = (uint8_t)(code % (q->axis[i].n + 1));
		code /= q->axis[i].n + 1;
	}
}

static float worth_of(double factor, unsigned changes)
{
	return (float)factor * powf(TROUBLE, (float)changes);
}

/* By what it is worth, and whether it can be enough at all. */
static bool judge(const struct vc_anything *q, const uint8_t *pick, struct key *k)
{
	uint64_t beside = vc_plan_beside(&q->plan);
	double left = 1, all = q->reserved ? (double)q->reserved : 1;
	unsigned effect = VC_ANY_SAME, sharded = 0;
	double factor = 1;

	k->changes = 0;
	for (size_t i = 0; i < q->axes; i++) {
		const struct vc_any_way *w = way(q, pick, i);

		if (!w)
			continue;
		left *= 1 - (double)w->saved / all;
		factor *= w->factor;
		effect = effect_of(w->cost) > effect ? effect_of(w->cost) : effect;
		sharded += w->cost == VC_COST_CARDS;
		k->changes++;
	}
	k->effect = (uint8_t)effect;
	k->factor = (float)factor;
	k->worth = worth_of(factor, k->changes);
	/* each saves its share of what the others leave; what they do together, and to the cache,
	 * may be so much less */
	return sharded < 2 &&
	       left * all + (double)beside <= (double)q->plan.capacity + SLACK * all;
}

VC_COMPARE(by_worth, struct key,
	   VC_THEN(VC_ORDER(x->effect, y->effect),
		   VC_THEN(VC_ORDER(x->worth, y->worth), VC_ORDER(x->changes, y->changes))))
VC_COMPARE(by_time, struct vc_any_found, VC_ORDER(x->factor, y->factor))

static unsigned changes_of(const struct vc_anything *q, const uint8_t *pick)
{
	unsigned n = 0;

	for (size_t i = 0; i < q->axes; i++)
		n += pick[i] != 0;
	return n;
}

/* One that contains a combination which fits already adds nothing, unless what is added to it pays
 * by time. */
static bool is_more_of_it(const struct vc_anything *q, const uint8_t *pick, double factor)
{
	float worth = worth_of(factor, changes_of(q, pick));

	for (int e = 0; e < VC_ANY_EFFECTS; e++)
		for (size_t i = 0; i < q->n[e]; i++) {
			const struct vc_any_found *f = &q->found[e][i];
			bool contains = true;

			for (size_t a = 0; contains && a < q->axes; a++)
				contains = !f->pick[a] || f->pick[a] == pick[a];
			if (contains && worth >= worth_of(f->factor, changes_of(q, f->pick)))
				return true;
		}
	return false;
}

static int accept(struct search *x, struct vc_any_found *f, struct vc_error *err)
{
	struct vc_anything *q = x->q;

	if (f->sure != VC_FITS || q->n[f->effect] == VC_ANY_FOUND ||
	    is_more_of_it(q, f->pick, f->factor))
		return VC_OK;
	int r = decide(x, f, err);
	if (r == VC_OK)
		q->found[f->effect][q->n[f->effect]++] = *f;
	q->refused += r > 0;
	return r < 0 ? r : VC_OK;
}

/* The next ones in order that are worth a replay; returns how many. */
static size_t next_batch(struct search *x, const struct key *k, size_t n, size_t *at)
{
	size_t m = 0;

	for (; *at < n && m < BATCH; ++*at) {
		struct vc_any_found f = { .effect = (enum vc_any_effect)k[*at].effect,
					  .factor = (double)k[*at].factor, .timed = true };

		if (x->q->n[f.effect] == VC_ANY_FOUND)
			continue;
		decode(x->q, k[*at].code, f.pick);
		if (is_more_of_it(x->q, f.pick, f.factor))
			continue;
		for (size_t a = 0; a < x->q->axes; a++)
			f.timed &= !way(x->q, f.pick, a) || way(x->q, f.pick, a)->timed;
		x->now[m++] = f;
	}
	return m;
}

static int replay_in_order(struct search *x, const struct key *k, size_t n, uint64_t most,
			   struct vc_error *err)
{
	uint64_t spent[VC_ANY_EFFECTS] = { 0 };
	size_t at = 0, m;

	while (x->q->tried < most && (m = next_batch(x, k, n, &at)) > 0) {
		struct vc_work w = { .n = m, .arg = x, .job = try_one };

		VC_TRY(vc_workers_run(&w, err));
		x->q->tried += m;
		for (size_t i = 0; i < m; i++) {
			x->q->refused += x->rc[i] < 0;
			spent[x->now[i].effect]++;
			if (x->rc[i] == VC_OK)
				VC_TRY(accept(x, &x->now[i], err));
		}
		/* no kind of change takes more than its share of the time */
		unsigned effect = x->now[m - 1].effect;
		while (at < n && spent[effect] * VC_ANY_EFFECTS > most && k[at].effect == effect)
			at++;
	}
	return VC_OK;
}

static int combine(struct search *x, uint64_t most, struct vc_error *err)
{
	struct vc_anything *q = x->q;
	struct key *k = NULL;
	size_t n = 0, cap = 0;
	int r = VC_OK;

	q->combinations = 1;
	for (size_t i = 0; i < q->axes; i++)
		q->combinations *= q->axis[i].n + 1;
	bool settings = q->axis[0].n && q->axis[0].at[0].setting;
	for (uint64_t c = 0; c < q->combinations && n < MOST_KEPT && r == VC_OK; c++) {
		struct key one = { .code = c };
		if (settings && c % (q->axis[0].n + 1))
			continue; /* those of the first axis are tried where they may help */
		uint8_t pick[VC_ANY_AXES];

		decode(q, c, pick);
		if (!judge(q, pick, &one))
			continue;
		if (!vc_vec_room(k, cap, n + 1))
			r = vc_nomem(err, "combinations");
		else
			k[n++] = one;
	}
	if (r == VC_OK && n) {
		vc_sort(k, n, sizeof(*k), by_worth);
		r = replay_in_order(x, k, n, most, err);
	}
	free(k);
	return r;
}

static int as_it_is(struct search *x, struct vc_error *err)
{
	uint8_t none[VC_ANY_AXES] = { 0 };
	struct vc_result r;
	struct made m;
	int rc = make(x, none, &m, err);

	if (rc == VC_OK)
		rc = replay(&m, false, &r, err);
	if (rc == VC_OK) {
		x->q->reserved = r.stats.peak_reserved;
		vc_result_fini(&r);
		rc = replay(&m, true, &r, err);
	}
	if (rc == VC_OK) {
		x->q->verdict = vc_result_replayed(&r);
		vc_result_fini(&r);
	}
	free(m.list);
	return rc;
}

int vc_anything_search(struct vc_anything *q, const struct vc_session *s,
		       const struct vc_plan *plan, uint64_t most, struct vc_error *err)
{
	struct search x = { .q = q, .s = s };
	struct vc_error ignored = { 0 };
	int r;

	*q = (struct vc_anything){ .plan = *plan };
	r = as_it_is(&x, err);
	if (r < 0 || q->verdict == VC_FITS)
		return r;
	if (vc_batch_open(&q->batch, s, &ignored) < 0)
		q->batch.open = false;
	if (q->batch.open && q->batch.owned && vc_time_open(&q->batch.own, &ignored) == VC_ENOMEM)
		return vc_nomem(err, "the time of a step");
	if (vc_recompute_search(&q->layers, s, plan, NULL, &ignored) < 0)
		vc_recompute_fini(&q->layers);
	add_ways(&x);
	r = combine(&x, most, err);
	for (int e = 0; e < VC_ANY_EFFECTS; e++)
		vc_sort(q->found[e], q->n[e], sizeof(*q->found[e]), by_time);
	return r;
}

void vc_anything_fini(struct vc_anything *q)
{
	for (int k = 0; k < PARTS; k++)
		if (q->part_open[k])
			vc_session_close(&q->part[k]);
	vc_batch_close(&q->batch);
	vc_recompute_fini(&q->layers);
	*q = (struct vc_anything){ 0 };
}

const char *vc_any_text(const struct vc_anything *q, const struct vc_any_found *f, char *buf,
			size_t n)
{
	size_t at = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < q->axes && at < n; i++)
		if (f->pick[i])
			at += (size_t)snprintf(buf + at, n - at, "%s%s", at ? " + " : "",
					       way(q, f->pick, i)->change);
	return buf;
}
