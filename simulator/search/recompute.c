/* SPDX-License-Identifier: Apache-2.0 */
/* recompute.c - see recompute.h. What is allocated is not what is reserved, so the choices for all
 * budgets are replayed, the uniform ones beside them, and what fits is then tried with less. */
#include "simulator/search/recompute.h"

#include "common/choice.h"
#include "common/vec.h"
#include "common/workers.h"

enum {
	BUDGETS = 192,  /* choices that are replayed at most, ... */
	UNIFORM = 8,    /* ... besides every 1 .. 8 layers together and each 2nd .. 8th */
	ROUNDS = 24,    /* how often the best one is tried with one layer less */
	INTERVALS = 16, /* choices whose interval is asked for */
};

struct search {
	struct vc_recompute_search *q;
	const struct vc_session *s;
	size_t from; /* choices from here on are not replayed yet */
};

/* ---- choices ---- */

static double time_of(const struct vc_layer_costs *c, const bool *take, size_t *layers)
{
	double ns = 0;

	*layers = 0;
	for (size_t i = 0; i < c->n; i++) {
		ns += take[i] ? c->at[i].ns : 0;
		*layers += take[i];
	}
	return ns;
}

static bool is_known(const struct vc_recompute_search *q, const char *change)
{
	for (size_t i = 0; i < q->n; i++)
		if (!strcmp(q->at[i].change, change))
			return true;
	return false;
}

static int add(struct search *x, const bool *take, const char *change, enum vc_recompute_kind kind,
	       struct vc_error *err)
{
	struct vc_recompute_search *q = x->q;
	struct vc_recompute new = { .kind = kind };

	new.alone = !strstr(change, "every=") || !strcmp(change, "checkpoint:every=1");
	if (is_known(q, change))
		return VC_OK;
	VC_HAVE(vc_vec_room(q->at, q->cap, q->n + 1), "choices of layers", err);
	new.take = calloc(q->costs.n + 1, sizeof(*new.take));
	VC_HAVE(new.take, "a choice of layers", err);
	memcpy(new.take, take, q->costs.n * sizeof(*take));
	new.ns = time_of(&q->costs, take, &new.layers);
	snprintf(new.change, sizeof(new.change), "%s", change);
	q->at[q->n++] = new;
	return VC_OK;
}

/* A choice that cannot be written down is left out; a hundred layers taken at random can. */
static int add_taken(struct search *x, const bool *take, enum vc_recompute_kind kind,
		     struct vc_error *err)
{
	char list[VC_PARAM_TEXT], change[VC_PARAM_TEXT + 32];

	if (!vc_choice_write(take, x->q->costs.n, list, sizeof(list)))
		return VC_OK;
	snprintf(change, sizeof(change), "checkpoint:layers=%s", list);
	return add(x, take, list[0] ? change : "", list[0] ? kind : VC_RECOMPUTE_NONE, err);
}

/* One for each budget that makes a difference, from all that there is down to what cannot be. */
static int add_solved(struct search *x, struct vc_error *err)
{
	const struct vc_layer_costs *c = &x->q->costs;
	bool take[VC_LAYERS_MOST] = { false };
	uint64_t peak, step;

	VC_TRY(add_taken(x, take, VC_RECOMPUTE_NONE, err));
	VC_HAVE(vc_recompute_choose(c, UINT64_MAX / 2, take, &peak), "choices of layers", err);
	step = c->total / BUDGETS;
	for (uint64_t budget = peak; budget && vc_recompute_choose(c, budget, take, &peak);) {
		VC_TRY(add_taken(x, take, VC_RECOMPUTE_SOLVED, err));
		budget = peak < budget ? peak : budget;
		if (budget <= step)
			break;
		budget -= step ? step : 1;
	}
	return VC_OK;
}

/* The first so many: where layers are alike, their order is all that the budgets leave open. */
static int add_first(struct search *x, struct vc_error *err)
{
	bool take[VC_LAYERS_MOST] = { false };

	for (size_t i = 0; i < x->q->costs.n && i < BUDGETS; i++) {
		take[i] = true;
		VC_TRY(add_taken(x, take, VC_RECOMPUTE_SOLVED, err));
	}
	return VC_OK;
}

static int add_uniform(struct search *x, struct vc_error *err)
{
	const struct vc_layer_costs *c = &x->q->costs;

	for (uint64_t k = 1; k <= 2 * UNIFORM; k++) {
		struct vc_choice ask = { .every = k <= UNIFORM ? k : 1,
					 .stride = k <= UNIFORM ? 1 : k - UNIFORM + 1,
					 .last = true };
		struct vc_chosen at[VC_LAYERS_MOST];
		bool take[VC_LAYERS_MOST] = { false };
		char change[48];
		size_t n;

		if (ask.every > c->n || ask.stride > c->n)
			continue;
		n = vc_choice_of(&ask, c->n, at);
		for (size_t i = 0; i < n; i++)
			for (size_t y = at[i].from; y < at[i].to; y++)
				take[y] = true;
		snprintf(change, sizeof(change), "checkpoint:%s=%u",
			 k <= UNIFORM ? "every" : "stride",
			 (unsigned)(k <= UNIFORM ? ask.every : ask.stride));
		VC_TRY(add(x, take, change, VC_RECOMPUTE_UNIFORM, err));
	}
	return VC_OK;
}

/* ---- replays ---- */

/* As it is replayed; the plan keeps pointing to text. */
struct change { char text[3 * VC_PARAM_TEXT]; const char **list; };

static int with(const struct vc_recompute_search *q, const struct vc_recompute *p,
		struct vc_plan *plan, struct change *c, struct vc_error *err)
{
	c->list = NULL;
	snprintf(c->text, sizeof(c->text), "%s%s%s", p->change, q->seen ? ",seen=" : "",
		 q->seen ? q->seen : "");
	return p->change[0] ? vc_plan_with(plan, c->text, &c->list, err) : VC_OK;
}

static int replay(const struct vc_session *s, const struct vc_plan *plan, struct vc_result *r,
		  struct vc_error *err)
{
	static const struct vc_observer_type *const nobody[] = { NULL };

	return vc_session_replay(s, plan, nobody, r, err);
}

/* Is what was seen of this run? A program may do something else in each run. */
static bool is_seen(const struct vc_recompute_search *q, const struct vc_session *s)
{
	const struct vc_recompute all = { .change = "checkpoint:every=1" };
	struct vc_plan plan = vc_plan_unlimited(&q->plan);
	struct vc_error ignored = { 0 };
	struct vc_result r;
	struct change c;
	bool is = with(q, &all, &plan, &c, &ignored) == VC_OK &&
		  replay(s, &plan, &r, &ignored) == VC_OK;

	if (is)
		vc_result_fini(&r);
	free(c.list);
	return is;
}

static int one(void *arg, size_t i, struct vc_error *err)
{
	struct search *x = arg;
	struct vc_recompute *p = &x->q->at[x->from + i];
	struct vc_plan plan = x->q->plan, free_plan;
	struct vc_result r;
	struct change c;
	int rc;

	VC_TRY(with(x->q, p, &plan, &c, err));
	free_plan = vc_plan_unlimited(&plan);
	rc = replay(x->s, &free_plan, &r, err);
	p->refused = rc == VC_EUSAGE && p->change[0];
	if (rc == VC_OK) {
		p->reserved = r.stats.peak_reserved;
		p->used = r.stats.peak_reserved + vc_plan_beside(&plan);
		p->verdict = vc_result_replayed(&r);
		vc_result_fini(&r);
	}
	if (rc == VC_OK && plan.capacity) {
		rc = replay(x->s, &plan, &r, err);
		if (rc == VC_OK) {
			p->verdict = vc_result_replayed(&r);
			vc_result_fini(&r);
		}
	}
	free(c.list);
	return p->refused ? VC_OK : rc;
}

/* A choice may have nothing to compute again (layers of a teacher keep nothing for a backward
 * pass): it is none. */
static int replay_new(struct search *x, struct vc_error *err)
{
	struct vc_work w = { .n = x->q->n - x->from, .arg = x, .job = one };
	int r = w.n ? vc_workers_run(&w, err) : VC_OK;
	size_t n = x->from;

	x->q->replays += w.n * (x->q->plan.capacity ? 2 : 1);
	for (size_t i = n; i < x->q->n; i++)
		if (x->q->at[i].refused)
			free(x->q->at[i].take);
		else
			x->q->at[n++] = x->q->at[i];
	x->from = x->q->n = n;
	return r;
}

/* ---- what is best ---- */

static bool is_better(const struct vc_recompute *a, const struct vc_recompute *b)
{
	return a->ns < b->ns || (a->ns == b->ns && a->reserved < b->reserved);
}

static size_t best_of(const struct vc_recompute_search *q, bool uniform)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < q->n; i++)
		if (q->at[i].verdict == VC_FITS &&
		    (!uniform || q->at[i].kind != VC_RECOMPUTE_SOLVED) &&
		    (best == SIZE_MAX || is_better(&q->at[i], &q->at[best])))
			best = i;
	return best;
}

/* The best choice without each of its layers, and with each of them replaced by a cheaper one. */
static int try_less(struct search *x, const struct vc_recompute *best, struct vc_error *err)
{
	const struct vc_layer_costs *c = &x->q->costs;
	bool take[VC_LAYERS_MOST];
	size_t tried = 0;

	memcpy(take, best->take, c->n * sizeof(*take));
	for (size_t i = 0; i < c->n; i++) {
		if (!take[i])
			continue;
		take[i] = false;
		VC_TRY(add_taken(x, take, VC_RECOMPUTE_SOLVED, err));
		for (size_t k = 0; k < c->n && tried < BUDGETS; k++) {
			if (take[k] || k == i || !(c->at[k].ns < 0.98 * c->at[i].ns))
				continue;
			take[k] = true;
			VC_TRY(add_taken(x, take, VC_RECOMPUTE_SOLVED, err));
			take[k] = false;
			tried++;
		}
		take[i] = true;
	}
	return VC_OK;
}

static int improve(struct search *x, struct vc_error *err)
{
	size_t best = best_of(x->q, false), last = SIZE_MAX;

	for (int i = 0; i < ROUNDS && best != SIZE_MAX && best != last; i++) {
		struct vc_recompute now = x->q->at[best];
		last = best;
		VC_TRY(try_less(x, &now, err));
		VC_TRY(replay_new(x, err));
		best = best_of(x->q, false);
	}
	return VC_OK;
}

VC_COMPARE(by_time, struct vc_recompute,
	   VC_THEN(VC_ORDER(x->ns, y->ns), VC_ORDER(x->reserved, y->reserved)))

int vc_recompute_open(struct vc_recompute_search *q, const struct vc_session *s, size_t i,
		      struct vc_error *err)
{
	static const struct vc_observer_type *const nobody[] = { NULL };
	struct vc_recompute *p = &q->at[i];
	struct vc_plan plan = q->plan;
	struct vc_result r;
	struct change c;
	int rc;

	if (p->open)
		return VC_OK;
	VC_TRY(with(q, p, &plan, &c, err));
	rc = vc_session_run(s, &plan, nobody, &r, err);
	free(c.list);
	VC_TRY(rc);
	p->open = true;
	p->low = r.trust.used_low;
	p->high = r.trust.used_high;
	p->sure = r.trust.high;
	vc_result_fini(&r);
	return VC_OK;
}

/* The front, and the first of it that fits with its upper end, too. */
static int finish(struct search *x, struct vc_error *err)
{
	struct vc_recompute_search *q = x->q;
	uint64_t least = UINT64_MAX;
	size_t asked = 0;

	if (q->n)
		vc_sort(q->at, q->n, sizeof(*q->at), by_time);
	q->best = best_of(q, false);
	q->uniform = best_of(q, true);
	q->sure = q->least = SIZE_MAX;
	for (size_t i = 0; i < q->n; i++) {
		struct vc_recompute *p = &q->at[i];

		p->front = p->reserved < least;
		if (p->front) {
			least = p->reserved;
			q->least = i;
		}
		if (p->verdict != VC_FITS || !p->front || q->sure != SIZE_MAX ||
		    asked == INTERVALS)
			continue;
		asked++;
		VC_TRY(vc_recompute_open(q, x->s, i, err));
		q->sure = p->sure == VC_FITS ? i : SIZE_MAX;
	}
	return q->best != SIZE_MAX ? vc_recompute_open(q, x->s, q->best, err) : VC_OK;
}

static int all_of(struct search *x, struct vc_error *err)
{
	VC_TRY(add_solved(x, err));
	VC_TRY(add_first(x, err));
	VC_TRY(add_uniform(x, err));
	VC_TRY(replay_new(x, err));
	VC_TRY(improve(x, err));
	return finish(x, err);
}

int vc_recompute_search(struct vc_recompute_search *q, const struct vc_session *s,
			const struct vc_plan *plan, const char *seen, struct vc_error *err)
{
	struct search x = { .q = q, .s = s };

	*q = (struct vc_recompute_search){ .plan = *plan, .seen = seen };
	VC_TRY(vc_layer_costs_read(&q->costs, s, plan, err));
	if (seen && !is_seen(q, s))
		q->seen = NULL;
	return all_of(&x, err);
}

int vc_recompute_none(struct vc_recompute_search *q, const struct vc_session *s,
		      const struct vc_plan *plan, struct vc_error *err)
{
	struct search x = { .q = q, .s = s };

	*q = (struct vc_recompute_search){ .plan = *plan };
	VC_TRY(add_taken(&x, (bool[]){ false }, VC_RECOMPUTE_NONE, err));
	VC_TRY(replay_new(&x, err));
	return finish(&x, err);
}

void vc_recompute_fini(struct vc_recompute_search *q)
{
	for (size_t i = 0; i < q->n; i++)
		free(q->at[i].take);
	free(q->at);
	vc_layer_costs_fini(&q->costs);
	*q = (struct vc_recompute_search){ 0 };
}
