/* SPDX-License-Identifier: Apache-2.0 */
/* synthesis.c - the events of a run that nobody made, in the order of one that was recorded. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/vec.h"
#include "simulator/predict/outline.h"
#include "simulator/predict/pinned.h"
#include "simulator/predict/scaling.h"

enum { BUFFER = 1 << 20, COUNTERS = 16 << 10 }; /* bytes: of small segments, of a thousand blocks */

struct make {
	struct vc_family *f;
	const struct vc_scaling *v;
	const struct vc_allocations *b;
	size_t base;
	enum vc_bound bound;
	const struct vc_target *target;
	const struct vc_outline *o;
	double growth[2];          /* product of the axes' ratios, in training and in evaluation */
	const struct vc_looped *looped; /* more turns of loops; NULL: the recorded events */
	size_t workspace;            /* the last row sum that came */
	size_t near[2];              /* where the last row sum and the last sort were found */
	uint64_t next_id;
	uint64_t skip[2];          /* ids of buffers that the target does not ask for */
	int skipping;              /* how many of them are still to come */
	uint64_t partial, semaphores;
	uint32_t *drawn;           /* which step each step gets its data from; NULL: its own */
	unsigned plan;             /* which draw of workspace; 0: none */
	unsigned draw;             /* which draw of the lengths of steps; 0: none */
	double rest;               /* see struct vc_family_ask */
	double off;                /* of data: factor by the bound */
	const struct vc_spread_factors *factors; /* of data, where they are drawn */
	bool bare;                 /* see struct vc_family_ask */
	bool begun;                /* a request has come */
	uint64_t *sized;           /* size_at() + 1 by allocation, once asked for: 0 */
	uint64_t *pinned;          /* bytes of pinned allocations; NULL: as recorded */
	size_t pins;               /* how many have been made */
	struct vc_reduction_card card;
	struct vc_trace *out;
	struct vc_family_report *rep;
};

/* The allocation that made block `id`, or that it repeats, + 1; 0: none. */
static uint32_t alloc_of(const struct make *k, uint64_t id)
{
	if (k->looped && id >= k->looped->from && id < k->looped->ids)
		return k->looped->of[id - k->looped->from] + 1;
	return id < k->b->ids ? k->b->of_id[id] : 0;
}

static enum vc_mode part_of(const struct make *k, size_t i)
{
	return k->target->apart ? (enum vc_mode)k->v->part[i] : VC_MODE_TRAIN;
}

/* Values by axis in the part that allocation i belongs to. */
static const double *values(const struct make *k, size_t i)
{
	return part_of(k, i) == VC_MODE_EVAL ? k->target->eval : k->target->train;
}

static uint64_t kept_size(const struct make *k, size_t i, bool eval)
{
	const double *at = eval ? k->target->eval : k->target->train;
	double size = (double)k->b->take[i].size;

	for (size_t a = 0; k->bound == VC_BOUND_HIGH && k->growth[eval] > 1 && a < k->f->axes; a++)
		size *= vc_single_factor(VC_SINGLE_MOVES, k->f->axis[a].name, k->f->x[k->base][a],
					 at[a], k->bound);
	return (uint64_t)(size + 0.5);
}

/* As vc_scaling_law. */
static double law_at(const struct make *k, size_t i, const double *at)
{
	return k->o->law[k->o->law[1] && at == k->target->eval][i];
}

/* By its law, or with the samples of its step; of several recordings there are draws of those. */
static double law_size(const struct make *k, size_t i, const double *at)
{
	const struct vc_lengths *l = &k->v->lengths;
	enum vc_bound bound = k->f->n > 1 ? VC_BOUND_NONE : k->bound;

	if (l->vary && l->group[i])
		return vc_lengths_size(l, k->b->take[i].size, i, at[0] / k->f->x[k->base][0],
				       bound, k->draw);
	return law_at(k, i, at);
}

/* How many indices an embedding has at the target. */
static uint64_t indices(const struct make *k, const struct vc_sort *s)
{
	return (uint64_t)(law_size(k, s->source, values(k, s->source)) / (double)s->per + 0.5);
}

/* Block i belongs to the sorting for an embedding: its size at the target, 0 = no sorting there. */
static uint64_t sort_size(const struct make *k, size_t i)
{
	const struct vc_sort *s = &k->v->sorts.at[k->v->counterpart[i]];
	uint64_t size[VC_SORT_BLOCKS], n = indices(k, s);
	size_t at = i + VC_SORT_BEFORE - s->owner;

	if (!vc_sort_needed(s, n))
		return 0;
	if (n == k->b->take[s->source].size / s->per)
		return k->b->take[i].size; /* as recorded */
	vc_sort_sizes(s, n, size);
	return size[at > VC_SORT_BEFORE ? at - 1 : at];
}

/* One recording: what it leaves open, along each axis. */
static uint64_t open_size(const struct make *k, size_t i, const double *at)
{
	double size = (double)k->b->take[i].size;

	for (size_t a = 0; a < k->f->axes; a++)
		size *= vc_single_factor(k->v->single[a * k->b->n + i], k->f->axis[a].name,
					 k->f->x[k->base][a], at[a], k->bound);
	if (k->bound && k->v->lengths.vary && k->v->lengths.group[i]) {
		double longer = vc_lengths_longer(&k->v->lengths, i, at[0] / k->f->x[k->base][0],
						  k->bound);
		size *= k->bound == VC_BOUND_HIGH ? fmax(1, longer) : fmin(1, longer);
	}
	return size < 1 ? 1 : (uint64_t)(size + 0.5);
}

/* Does its size follow the data of its step? */
static bool of_data(const struct make *k, size_t i)
{
	const struct vc_lengths *l = &k->v->lengths;

	return (l->vary && l->group[i]) || (k->off > 0 && vc_spread_has(&k->f->spread[k->base], i));
}

/* Data that differ between steps: those of the step that was drawn for this one. */
static double drawn(const struct make *k, size_t i)
{
	const struct vc_spread *s = &k->f->spread[k->base];

	if (!k->off || !vc_spread_has(s, i))
		return 1;
	return k->off * (k->drawn ? vc_spread_factor(s, i, k->drawn, k->factors) : 1);
}

static uint64_t size_with(const struct make *k, size_t i, const double *at)
{
	if (k->v->origin[i] == VC_BY_SORT)
		return sort_size(k, i);
	if (k->v->origin[i] == VC_ALONE)
		return kept_size(k, i, at == k->target->eval);
	if (k->v->origin[i] == VC_OPEN)
		return open_size(k, i, at);
	if (k->v->origin[i] == VC_BY_COUNTERPART) {
		size_t other = k->v->other[i];
		double size = law_at(k, k->v->counterpart[i], at) * drawn(k, i);

		if (k->bound == VC_BOUND_NONE || other == VC_UNMATCHED)
			return (uint64_t)size;
		double second = law_at(k, other, at);
		return (uint64_t)(k->bound == VC_BOUND_LOW ? fmin(size, second) :
							     fmax(size, second));
	}
	/* what a law misses where data decide is the data, of which there are draws */
	bool data = of_data(k, i);
	double size = law_size(k, i, at) * drawn(k, i),
	       open = k->bound && !data ? size * vc_scaling_miss(k->f, k->v, k->base, i) : 0;

	if (k->bound && k->target->constant > 0 && k->target->constant != 1 &&
	    k->v->law[i].kind == VC_LAW_CONST && k->b->take[i].life != VC_NEVER &&
	    !vc_allocations_has_lasting(k->b, k->b->take[i].size))
		size *= k->target->constant;
	if (k->bound && k->v->law[i].pads && k->f->axes == 1)
		size = vc_law_end(&k->v->law[i], at[0], k->bound == VC_BOUND_HIGH);
	if (k->bound == VC_BOUND_HIGH && !data)
		size *= vc_scaling_steep(k->f, k->v, k->base, i, at);
	return (uint64_t)(k->bound == VC_BOUND_HIGH ? size + open : fmax(size - open, 1));
}

/* In how many recordings allocation i was found, the base being one of them. */
static size_t shown(const struct make *k, size_t i)
{
	size_t n = 1;

	for (size_t r = 0; r < k->f->n; r++)
		n += k->v->match[r] && k->v->match[r][i] != VC_UNMATCHED;
	return n;
}

/* Workspace of a plan: by its law, or in proportion to the recording, times what other plans need
 * of that. */
static uint64_t plan_size(const struct make *k, size_t i)
{
	const double *at = values(k, i);
	double size = (double)size_with(k, i, at), up = 1;
	bool agreed = k->f->axes == 1 && k->v->origin[i] == VC_BY_LAW &&
		      vc_plans_agree(&k->v->law[i], shown(k, i));

	for (size_t a = 0; a < k->f->axes; a++)
		up *= at[a] / k->f->x[k->base][a];
	size = k->bound == VC_BOUND_LOW || agreed ?
		       size : fmax(size, up * (double)k->b->take[i].size);
	return (uint64_t)fmax(1, size * vc_plans_factor(k->plan, k->b->take[i].size, agreed));
}

/* What is neither of training nor of evaluation may be of either. */
static uint64_t size_at(const struct make *k, size_t i)
{
	uint64_t size = size_with(k, i, values(k, i)), other;

	if ((k->bound || k->plan) && k->f->n > 1 && !k->rep->same && k->f->plan[k->base][i])
		return plan_size(k, i);

	/* what a turn works on is less in one that is not full; weights and their gradients not */
	if (k->rest && vc_loops_at_end(&k->v->loops, (uint32_t)i, k->rest < 0) &&
	    !vc_allocations_has_lasting(k->b, k->b->take[i].size))
		size = (uint64_t)fmax(1, (double)size * fabs(k->rest));
	if (part_of(k, i) != VC_MODE_ALL || k->bound == VC_BOUND_NONE)
		return size;
	other = size_with(k, i, k->target->eval);
	return (k->bound == VC_BOUND_LOW) == (other < size) ? other : size;
}

/* The same for the events, of which a block has two and more. */
static uint64_t size_of(struct make *k, size_t i)
{
	if (!k->sized[i])
		k->sized[i] = size_at(k, i) + 1;
	return k->sized[i] - 1;
}

static int emit(struct make *k, const struct vc_event *e, uint64_t addr, uint64_t size,
		struct vc_error *err)
{
	struct vc_trace *t = k->out;

	VC_HAVE(vc_vec_room(t->ev, t->cap, t->n + 1), "the events of a prediction", err);
	t->ev[t->n] = *e;
	t->ev[t->n].addr = addr;
	t->ev[t->n++].size = size;
	return VC_OK;
}

/* Buffers that the recording did not need and the target does: asked for and given back at once. */
static int insert_scratch(struct make *k, const struct vc_event *owner, struct vc_error *err)
{
	struct vc_event e[4];

	for (int i = 0; i < 4; i++) {
		e[i] = *owner;
		e[i].addr = 0;
		e[i].kind = i < 2 ? VC_EV_ALLOC : VC_EV_FREE;
		e[i].id = k->next_id + (i == 1 || i == 2);
		e[i].size = i == 1 || i == 2 ? k->semaphores : k->partial;
	}
	k->next_id += 2;
	k->rep->scratch_new++;
	return vc_trace_append(k->out, e, 4, err);
}

static int sort_event(struct make *k, const struct vc_event *like, const uint64_t *size,
		      int block, bool asked, struct vc_error *err)
{
	struct vc_event e = *like;

	e.addr = 0;
	e.kind = asked ? VC_EV_ALLOC : VC_EV_FREE;
	e.id = k->next_id + (uint64_t)block;
	e.size = size[block];
	return vc_trace_append(k->out, &e, 1, err);
}

/* The gradient of an embedding that has too many indices at the target to go without sorting.
 * Blocks 0 to 3 come before it; a negative entry gives the block back (~block). */
static int insert_sort(struct make *k, const struct vc_sort *s, const struct vc_event *owner,
		       struct vc_error *err)
{
	static const signed char before[] = { 0, 1, 2, 3, ~3, ~2 };
	static const signed char after[] = { 4,  5,  6,   7,   ~7,  ~6, 8,  9,  10, ~10, 11,
					    12, 13, ~13, ~12, ~11, ~9, ~8, ~5, ~4, ~1,  ~0 };
	uint64_t size[VC_SORT_BLOCKS];
	int rc = 0;

	vc_sort_sizes(s, indices(k, s), size);
	for (size_t i = 0; !rc && i < sizeof(before); i++)
		rc = sort_event(k, owner, size, before[i] < 0 ? ~before[i] : before[i],
				before[i] >= 0, err);
	if (!rc)
		rc = emit(k, owner, owner->addr, owner->size, err);
	for (size_t i = 0; !rc && i < sizeof(after); i++)
		rc = sort_event(k, owner, size, after[i] < 0 ? ~after[i] : after[i],
				after[i] >= 0, err);
	k->next_id += VC_SORT_BLOCKS;
	k->rep->scratch_new++;
	return rc;
}

/* The embedding whose gradient allocation i is and that has to be sorted for at the target only;
 * NULL: none. */
static const struct vc_sort *starts_sorting(struct make *k, size_t i)
{
	const struct vc_sorts *l = &k->v->sorts; /* in order of their owners */
	size_t from = k->near[1] = vc_first_from_near(l->at, l->n, owner, i, k->near[1]);
	const struct vc_sort *s = from < l->n ? &l->at[from] : NULL;

	return s && s->owner == i && !s->present && vc_sort_needed(s, indices(k, s)) ? s : NULL;
}

static int owner(struct make *k, const struct vc_workspace *s, const struct vc_event *e,
		 struct vc_error *err)
{
	double rows = (double)size_of(k, s->source) / (double)s->row;
	bool needed = vc_workspace_size(s, (uint64_t)(rows + 0.5), &k->card, &k->partial,
				      &k->semaphores);

	k->rep->workspace++;
	if (needed && !s->present)
		return insert_scratch(k, e, err);
	k->skip[0] = k->skip[1] = UINT64_MAX;
	k->skipping = 0;
	if (s->present && !needed)
		k->skipping = 2;
	return 0;
}

/* The row sum that allocation i begins, or VC_UNMATCHED. */
static uint32_t scratch_at(struct make *k, size_t i)
{
	const struct vc_workspaces *l = &k->v->workspace; /* in order of their owners */
	size_t from = k->near[0] = vc_first_from_near(l->at, l->n, owner, i, k->near[0]);

	return from < l->n && l->at[from].owner == i ? (uint32_t)from : VC_UNMATCHED;
}

static int one_alloc(struct make *k, const struct vc_event *from, size_t i, struct vc_error *err)
{
	const struct vc_workspaces *l = &k->v->workspace;
	const struct vc_sort *sort = starts_sorting(k, i);
	uint32_t at = scratch_at(k, i);
	uint64_t size;

	if (k->skipping && k->v->origin[i] == VC_BY_ROWS) {
		k->skip[--k->skipping] = from->id;
		return 0;
	}
	if (k->v->origin[i] == VC_BY_ROWS)
		size = l->at[k->workspace].owner + 1 == i ? k->partial : k->semaphores;
	else
		size = size_of(k, i);
	if (!size && k->v->origin[i] == VC_BY_SORT)
		return 0;
	if (!sort && at == VC_UNMATCHED)
		return emit(k, from, 0, size, err);
	struct vc_event e = *from;

	e.addr = 0;
	e.size = size;
	VC_TRY(sort ? insert_sort(k, sort, &e, err) : emit(k, &e, 0, size, err));
	if (at != VC_UNMATCHED) {
		k->workspace = at;
		VC_TRY(owner(k, &l->at[at], &e, err));
	}
	return VC_OK;
}

static int one_event(struct make *k, const struct vc_event *e, struct vc_error *err)
{
	uint64_t size = e->size;

	if (e->device != k->b->device ||
	    (e->kind >= VC_EV_SEGMENT_ALLOC && e->kind <= VC_EV_DEVICE_SAMPLE))
		return 0;
	if (e->kind >= VC_EV_HEAP_SEGMENT && (e->flags & VC_EVF_FINAL))
		return 0;
	if (e->kind == VC_EV_ALLOC) {
		k->begun = true;
		return one_alloc(k, e, alloc_of(k, e->id) - 1, err);
	}
	if (k->bare && k->begun && (e->kind == VC_EV_MARK || vc_event_is_evidence(e)))
		return 0;
	if (e->kind == VC_EV_FREE || e->kind == VC_EV_FREE_DONE || e->kind == VC_EV_USE) {
		if (e->id == k->skip[0] || e->id == k->skip[1])
			return 0;
		uint32_t a = alloc_of(k, e->id);
		if (a)
			size = size_of(k, a - 1);
		if (a && !size && k->v->origin[a - 1] == VC_BY_SORT)
			return 0;
	}
	if (k->pinned && vc_pinned_is(k->b->trace->meta, e))
		size = k->pinned[k->pins++];
	return emit(k, e, e->addr, size, err);
}

static void report(struct make *k)
{
	struct vc_family_report *r = k->rep;

	r->recordings = k->f->n;
	r->base = k->base;
	r->single = k->f->n == 1;
	r->allocs = k->b->n;
	r->bytes = k->v->bytes;
	r->matched_bytes = k->v->matched;
	r->unsettled_bytes = k->v->unsettled;
	r->residual = k->v->residual;
	r->lengths = k->v->lengths.vary;
	r->noise = r->lengths ? k->v->lengths.sigma : 0;
	for (size_t i = 0; i < k->f->n; i++)
		r->noise = fmax(r->noise, k->f->spread[i].noise);
	r->same = true;
	for (size_t a = 0; a < k->f->axes; a++)
		r->same &= k->target->train[a] == k->f->x[k->base][a] &&
			   k->target->eval[a] == k->f->x[k->base][a];
	r->rounded = !r->same && k->v->rounds;
	for (size_t i = 0; !k->bare && i < k->b->n; i++) {
		r->plans |= k->f->n > 1 && !r->same && k->f->plan[k->base][i];
		enum vc_law_kind kind = k->f->axes ? k->v->law[i].kind : VC_LAW_CONST;

		r->kind[kind]++;
		r->moving += kind == VC_LAW_CONST ? 0 : k->b->take[i].size;
		r->borrowed += k->v->origin[i] == VC_BY_COUNTERPART;
	}
}

static int finish(struct make *k, struct vc_error *err)
{
	struct vc_meta *m = k->bare ? NULL : vc_meta_copy(k->b->trace->meta, err);

	if (!m)
		return k->bare ? VC_OK : VC_ENOMEM;
	k->out->meta = m;
	m->max_id = k->next_id;
	m->how[VC_CAP_ADDRESSES] = m->how[VC_CAP_FINAL_HEAP] = m->how[VC_CAP_SEGMENTS] =
		VC_HOW_ABSENT;
	for (size_t a = 0; a < k->f->axes; a++) {
		const char *name = k->f->axis[a].name;
		char eval[VC_PARAM_TEXT];

		vc_meta_param(m, name,
			      k->f->axis[a].part == VC_MODE_EVAL ? k->target->eval[a] :
								   k->target->train[a]);
		snprintf(eval, sizeof(eval), "eval_%s", name);
		if (k->f->axis[a].part == VC_MODE_ALL && k->target->train[a] != k->target->eval[a])
			vc_meta_param(m, eval, k->target->eval[a]);
	}
	return vc_meta_ok(m) ? 0 : vc_nomem(err, "the predicted trace");
}

/* How far the middle of sizes that vary with the data may be off at that value: a standard error of
 * its logarithm, as of a line through the middles of all steps, whose slope is known half. */
static double error_at(const struct vc_family *f, double at)
{
	double steps = 0, place = 0, away = 0, squares = 0;

	for (size_t k = 0; k < f->n; k++) {
		double n = f->spread[k].varies ? (double)f->spread[k].steps : 0;

		steps += n;
		place += n * log(f->x[k][0]);
		squares += n * f->spread[k].all * f->spread[k].all;
	}
	for (size_t k = 0; steps > 0 && k < f->n; k++)
		away += (f->spread[k].varies ? (double)f->spread[k].steps : 0) *
			pow(log(f->x[k][0]) - place / steps, 2);
	return steps > 0 ? sqrt(squares / steps *
				(1 / steps + (away > 0 ? pow(log(at) - place / steps, 2) /
								 (4 * away) : 1))) : 0;
}

/* Steps are drawn: in the middle of all draws by their peak for the best guess, near the ends for
 * the bounds, with the data two standard errors off. */
static int draw(struct make *k, unsigned which, struct vc_error *err)
{
	static const unsigned rank[] = { [VC_BOUND_NONE] = VC_DRAWS / 2, [VC_BOUND_LOW] = 1,
					 [VC_BOUND_HIGH] = VC_DRAWS - 2 };
	const struct vc_spread *s = &k->f->spread[k->base];
	double error = error_at(k->f, k->target->train[0]);
	double *middle;
	uint32_t *from;
	int rc;

	if (!s->varies || k->rep->same)
		return VC_OK;
	k->rep->lengths = k->rep->drawn = true;
	k->off = exp(k->bound == VC_BOUND_HIGH  ? 2 * error :
		     k->bound == VC_BOUND_LOW ? -2 * error : 0);
	from = k->drawn = calloc(s->steps + 1, sizeof(*from));
	VC_HAVE(from, "the draws of steps", err);
	pthread_mutex_lock(&k->f->lock);
	k->factors = vc_spread_factors_get(&k->f->spread[k->base], k->growth[0]);
	pthread_mutex_unlock(&k->f->lock);
	VC_HAVE(k->factors, "the draws of steps", err);
	if (which) {
		vc_spread_draw(s, which, from);
		return VC_OK;
	}
	k->drawn = NULL; /* in the middle, not drawn yet */
	middle = malloc((k->b->n + 1) * sizeof(*middle));
	for (size_t i = 0; middle && i < k->b->n; i++)
		middle[i] = (double)size_at(k, i);
	rc = middle ? vc_spread_choose(s, k->b, middle, k->factors, rank[k->bound], from, err) :
		      vc_nomem(err, "the draws of steps");
	free(middle);
	k->drawn = from;
	return rc;
}

/* Does its loop make one turn only? Then nothing shows what one that is not full is like. */
static bool one_turn(const struct vc_loops *l, uint32_t i)
{
	for (size_t j = 0; j < l->n; j++)
		if (i >= l->at[j].from && i < l->at[j].to)
			return !l->at[j].count ||
			       l->at[j].to - l->at[j].from < 2 * l->at[j].period;
	return true;
}

/* Twice the largest block of a turn that is not full, which asks for other sizes than all others
 * do, where no replay shows it. */
static void find_varying(struct make *k)
{
	const struct vc_loops *l = &k->v->loops;

	for (size_t i = 0; k->rep->partly && i < k->b->n; i++) {
		bool rest = l->like[i] != VC_UNMATCHED && one_turn(l, (uint32_t)i);
		uint64_t size = rest ? 2 * size_at(k, i) : 0;

		k->rep->one_turn |= rest;
		k->rep->varying = size > k->rep->varying ? size : k->rep->varying;
	}
}

/* The largest buffer of a sum, with its counters behind it, that follows a law because no formula
 * explains it: at other sizes there may be one more. */
static void find_loose(struct make *k)
{
	for (uint32_t i = 0; i + 1 < k->b->n; i++) {
		const struct vc_take *t = &k->b->take[i];
		uint64_t size;

		if (t->size <= BUFFER || t[1].size > COUNTERS || k->f->plan[k->base][i] ||
		    k->v->origin[i] == VC_BY_ROWS || !vc_workspace_is_buffer(k->b, i))
			continue;
		size = size_of(k, i);
		if (size != t->size && size > k->rep->loose) /* a handle's stays as it is */
			k->rep->loose = size;
	}
}

/* Blocks of data that are of one size in a step are of one shape, and stay of one size: where steps
 * differ in how many blocks they ask for (one for each length of a packed sequence), some of them
 * stand in the place of others. All take the size in the middle. */
static int agree(struct make *k, struct vc_error *err)
{
	const struct vc_spread *s = &k->f->spread[k->base];
	uint64_t *size = k->rep->drawn ? malloc((s->twins + 1) * sizeof(*size)) : NULL;

	if (!k->rep->drawn)
		return VC_OK;
	VC_HAVE(size, "the sizes of a prediction", err);
	for (size_t from = 0, to; from < s->twins; from = to) {
		for (to = from; to == from || (to < s->twins && s->twin[to].like); to++)
			size[to - from] = size_at(k, s->twin[to].i);
		if (to - from > 1)
			vc_sort_u64(size, to - from);
		for (size_t i = from; i < to; i++)
			k->sized[s->twin[i].i] = size[(to - from) / 2] + 1;
	}
	free(size);
	return VC_OK;
}

int vc_synthesis(struct vc_family *f, size_t base, const struct vc_family_ask *ask,
		 const struct vc_target *target, struct vc_trace *out, struct vc_family_report *rep,
		 struct vc_error *err)
{
	struct make k = { .f = f, .bound = ask->bound, .out = out, .rep = rep, .base = base,
			  .b = &f->m[base], .v = &f->view[base], .target = target,
			  .card = ask->card.sms ? ask->card : f->recorded,
			  .plan = ask->as_planned ? 0 : ask->draw, .draw = ask->draw,
			  .rest = ask->rest, .bare = ask->bare, .growth = { 1, 1 },
			  .skip = { UINT64_MAX, UINT64_MAX } };
	const struct vc_trace *from = k.b->trace;
	int rc = 0;

	k.next_id = k.b->ids + 1;
	for (size_t a = 0; a < f->axes; a++) {
		k.growth[0] *= target->train[a] / f->x[base][a];
		k.growth[1] *= target->eval[a] / f->x[base][a];
	}
	report(&k);
	k.o = vc_outline_get(f, base, target, ask->bound, err);
	if (!k.o)
		return VC_ENOMEM;
	rep->partly = k.o->partly;
	k.pinned = k.bare ? NULL : vc_pinned_sizes(f, base, target->train);
	k.sized = calloc(k.b->n + 1, sizeof(*k.sized));
	rc = k.sized ? draw(&k, ask->draw, err) : vc_nomem(err, "the sizes of a prediction");
	if (!rc)
		rc = agree(&k, err);
	if (!rc && k.o->turned) {
		k.looped = &k.o->looped;
		k.next_id = k.looped->ids;
		rep->turns = k.looped->turns;
		from = &k.looped->trace;
	}
	if (!rc && !ask->bare) {
		find_varying(&k);
		find_loose(&k);
	}
	if (!rc && !vc_vec_room(out->ev, out->cap, from->n))
		rc = vc_nomem(err, "the events of a prediction");
	for (size_t e = 0; !rc && e < from->n; e++)
		rc = one_event(&k, &from->ev[e], err);
	if (!rc)
		rc = finish(&k, err);
	vc_outline_put(f, k.o);
	pthread_mutex_lock(&f->lock);
	vc_spread_factors_put(k.factors);
	pthread_mutex_unlock(&f->lock);
	VC_FREE(k.drawn, k.pinned, k.sized);
	if (rc)
		vc_trace_fini(out);
	return rc;
}
