/* SPDX-License-Identifier: Apache-2.0 */
/* sizes.c - see sizes.h */
#include "simulator/predict/sizes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/vec.h"
#include "common/param.h"
#include "simulator/predict/plans.h"

enum { FEW = 32 }; /* that are sorted in their places */

static enum vc_mode part_of(const struct vc_sizes *k, size_t i)
{
	return k->target->apart ? (enum vc_mode)k->v->part[i] : VC_MODE_TRAIN;
}

/* Values by axis in the part that allocation i belongs to. */
static const double *values(const struct vc_sizes *k, size_t i)
{
	return part_of(k, i) == VC_MODE_EVAL ? k->target->eval : k->target->train;
}

static uint64_t kept_size(const struct vc_sizes *k, size_t i, bool eval)
{
	const double *at = eval ? k->target->eval : k->target->train;
	double size = (double)k->b->take[i].size;

	for (size_t a = 0; k->bound == VC_BOUND_HIGH && k->growth[eval] > 1 && a < k->f->axes; a++)
		size *= vc_single_factor(VC_SINGLE_MOVES, k->f->axis[a].name, k->f->x[k->base][a],
					 at[a], k->bound);
	return vc_size_of(size + 0.5);
}

/* As vc_scaling_law. */
static double law_at(const struct vc_sizes *k, size_t i, const double *at)
{
	return k->o->law[k->o->law[1] && at == k->target->eval][i];
}

/* In how many recordings allocation i was found, the base being one of them. */
static size_t shown(const struct vc_sizes *k, size_t i)
{
	size_t n = 1;

	for (size_t r = 0; r < k->f->n; r++)
		n += k->v->match[r] && k->v->match[r][i] != VC_UNMATCHED;
	return n;
}

/* Does the target lie beyond all recordings that have allocation i, seen from the base? */
static bool is_beyond(const struct vc_sizes *k, size_t i, double at)
{
	double own = k->f->x[k->base][0] - at;

	for (size_t r = 0; r < k->f->n; r++)
		if ((r == k->base || (k->v->match[r] && k->v->match[r][i] != VC_UNMATCHED)) &&
		    !((k->f->x[r][0] - at) * own > 0))
			return false;
	return true;
}

/* Workspace of two plans, whose line says nothing beyond them: that of the base in proportion. The
 * interval takes the line as well (plan_size). 0: it is of one. */
static double unlike_size(const struct vc_sizes *k, size_t i, double at)
{
	double side = k->v->side[0] > 2 ? 3 : k->v->side[0] ? 2 : 1;

	if (k->bound || k->plan || k->f->n < 2 || k->f->axes != 1 || !k->f->plan[k->base][i] ||
	    vc_plans_shows(&k->v->law[i], shown(k, i)) || !is_beyond(k, i, at))
		return 0;
	return pow(at / k->f->x[k->base][0], side) * (double)k->b->take[i].size;
}

/* By its law, or with the samples of its step; of several recordings there are draws of those. */
static double law_size(const struct vc_sizes *k, size_t i, const double *at)
{
	const struct vc_lengths *l = &k->v->lengths;
	enum vc_bound bound = k->f->n > 1 ? VC_BOUND_NONE : k->bound;

	if (l->vary && l->group[i])
		return vc_lengths_size(l, k->b->take[i].size, i, at[0] / k->f->x[k->base][0],
				       bound, k->draw);
	double unlike = unlike_size(k, i, at[0]);

	return unlike > 0 ? unlike : law_at(k, i, at);
}

/* How many indices an embedding has at the target. */
uint64_t vc_sizes_indices(const struct vc_sizes *k, const struct vc_sort *s)
{
	return vc_size_of(law_size(k, s->source, values(k, s->source)) / (double)s->per + 0.5);
}

/* Block i belongs to the sorting for an embedding: its size at the target, 0 = no sorting there. */
static uint64_t sort_size(const struct vc_sizes *k, size_t i)
{
	const struct vc_sort *s = &k->v->sorts.at[k->v->counterpart[i]];
	uint64_t size[VC_SORT_BLOCKS], n = vc_sizes_indices(k, s);
	size_t at = i + VC_SORT_BEFORE - s->owner;

	if (!vc_sort_needed(s, n))
		return 0;
	if (n == k->b->take[s->source].size / s->per)
		return k->b->take[i].size; /* as recorded */
	vc_sort_sizes(s, n, size);
	return size[at > VC_SORT_BEFORE ? at - 1 : at];
}

/* One recording: what it leaves open, along each axis. */
static uint64_t open_size(const struct vc_sizes *k, size_t i, const double *at)
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
	return size < 1 ? 1 : vc_size_of(size + 0.5);
}

/* Does its size follow the data of its step? */
static bool of_data(const struct vc_sizes *k, size_t i)
{
	const struct vc_lengths *l = &k->v->lengths;

	return (l->vary && l->group[i]) || (k->off > 0 && vc_spread_has(&k->f->spread[k->base], i));
}

/* Data that differ between steps: those of the step that was drawn for this one. */
static double drawn(const struct vc_sizes *k, size_t i)
{
	const struct vc_spread *s = &k->f->spread[k->base];

	if (!k->off || !vc_spread_has(s, i))
		return 1;
	return k->off * (k->drawn ? vc_spread_factor(s, i, k->drawn, k->factors) : 1);
}

static uint64_t size_with(const struct vc_sizes *k, size_t i, const double *at)
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
			return vc_size_of(size);
		double second = law_at(k, other, at);
		return vc_size_of(k->bound == VC_BOUND_LOW ? fmin(size, second) :
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
	return vc_size_of(k->bound == VC_BOUND_HIGH ? size + open : fmax(size - open, 1));
}

/* Workspace of a plan: by its law, or in proportion to the recording, times what other plans need
 * of that. */
static uint64_t plan_size(const struct vc_sizes *k, size_t i)
{
	const double *at = values(k, i);
	double size = (double)size_with(k, i, at), up = 1;
	bool by_law = k->f->axes == 1 && k->v->origin[i] == VC_BY_LAW;
	unsigned kept = by_law ? vc_plans_kept(&k->v->law[i], shown(k, i)) : 0;

	for (size_t a = 0; a < k->f->axes; a++)
		up *= at[a] / k->f->x[k->base][a];
	size = k->bound == VC_BOUND_LOW || kept ?
		       size : fmax(size, up * (double)k->b->take[i].size);
	return vc_size_of(fmax(1, size * vc_plans_factor(k->plan, k->b->take[i].size, kept)));
}

/* Workspace of a plan that cuDNN names: on a card it may take another. */
static uint64_t named_size(const struct vc_sizes *k, size_t i)
{
	double bytes = (double)(k->o->borrowed.size[i] - 1);

	if (k->f->simulated)
		return vc_size_of(bytes);
	return vc_size_of(bytes * vc_plans_factor(k->plan, k->b->take[i].size, VC_PLANS_NAMED));
}

/* What is neither of training nor of evaluation may be of either. */
uint64_t vc_sizes_at(const struct vc_sizes *k, size_t i)
{
	uint64_t size, other;

	if (vc_outline_cublas(k->b, i, k->target))
		return k->target->cublas;
	if (k->o && k->o->borrowed.size && k->o->borrowed.size[i])
		return named_size(k, i);
	size = size_with(k, i, values(k, i));
	if ((k->bound || k->plan) && k->f->n > 1 && !k->same && k->f->plan[k->base][i])
		return plan_size(k, i);

	/* what a turn works on is less in one that is not full; weights and their gradients not */
	if (k->rest && vc_loops_at_end(&k->v->loops, (uint32_t)i, k->rest < 0) &&
	    !vc_allocations_has_lasting(k->b, k->b->take[i].size))
		size = vc_size_of(fmax(1, (double)size * fabs(k->rest)));
	if (part_of(k, i) != VC_MODE_ALL || k->bound == VC_BOUND_NONE)
		return size;
	other = size_with(k, i, k->target->eval);
	return (k->bound == VC_BOUND_LOW) == (other < size) ? other : size;
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
static int draw(struct vc_sizes *k, unsigned which, struct vc_error *err)
{
	static const unsigned rank[] = { [VC_BOUND_NONE] = VC_DRAWS / 2, [VC_BOUND_LOW] = 1,
					 [VC_BOUND_HIGH] = VC_DRAWS - 2 };
	const struct vc_spread *s = &k->f->spread[k->base];
	double error = error_at(k->f, k->target->train[0]);
	double *middle;
	uint32_t *from;
	int rc;

	if (!s->varies || k->same)
		return VC_OK;
	k->data = true;
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
		middle[i] = (double)(k->sized[i] ? k->sized[i] - 1 : vc_sizes_at(k, i));
	rc = middle ? vc_spread_choose(s, k->b, middle, k->factors, rank[k->bound], from, err) :
		      vc_nomem(err, "the draws of steps");
	free(middle);
	k->drawn = from;
	return rc;
}

/* Most are of one size, and few are many. */
static void sort_few(uint64_t *size, size_t n)
{
	size_t sorted = n > 0;

	while (sorted < n && size[sorted - 1] <= size[sorted])
		sorted++;
	if (sorted < n && n > FEW)
		vc_sort_u64(size, n);
	for (size_t i = sorted; i < n && n <= FEW; i++)
		for (size_t k = i; k > 0 && size[k - 1] > size[k]; k--) {
			uint64_t one = size[k];

			size[k] = size[k - 1];
			size[k - 1] = one;
		}
}

/* Blocks of data that are of one size in a step are of one shape, and stay of one size: where steps
 * differ in how many blocks they ask for (one for each length of a packed sequence), some of them
 * stand in the place of others. All take the size in the middle. */
static int agree(struct vc_sizes *k, struct vc_error *err)
{
	const struct vc_spread *s = &k->f->spread[k->base];
	uint64_t *size = k->data ? malloc((s->twins + 1) * sizeof(*size)) : NULL;

	if (!k->data)
		return VC_OK;
	VC_HAVE(size, "the sizes of a prediction", err);
	for (size_t from = 0, to; from < s->twins; from = to) {
		for (to = from; to == from || (to < s->twins && s->twin[to].like); to++)
			size[to - from] = vc_sizes_at(k, s->twin[to].i);
		sort_few(size, to - from);
		for (size_t i = from; i < to; i++)
			k->sized[s->twin[i].i] = size[(to - from) / 2] + 1;
	}
	free(size);
	return VC_OK;
}

struct vc_sizes vc_sizes_of_ask(struct vc_family *f, size_t base, const struct vc_family_ask *ask,
				const struct vc_target *target)
{
	struct vc_sizes k = { .f = f, .bound = ask->bound, .base = base, .b = &f->m[base],
			      .v = &f->view[base], .target = target, .growth = { 1, 1 },
			      .plan = ask->as_planned ? 0 : ask->draw, .draw = ask->draw,
			      .rest = ask->rest, .same = true };

	for (size_t a = 0; a < f->axes; a++) {
		k.growth[0] *= target->train[a] / f->x[base][a];
		k.growth[1] *= target->eval[a] / f->x[base][a];
		k.same &= target->train[a] == f->x[base][a] && target->eval[a] == f->x[base][a];
	}
	return k;
}

int vc_sizes_begin(struct vc_sizes *k, struct vc_error *err)
{
	const size_t bytes = (k->b->n + 1) * sizeof(*k->sized);

	k->o = vc_outline_get(k->f, k->base, k->target, k->bound, err);
	if (!k->o)
		return VC_ENOMEM;
	k->sized = calloc(1, bytes);
	VC_HAVE(k->sized, "the sizes of a prediction", err);
	if (!k->bound && !k->rest) /* sizes that the law alone decides */
		memcpy(k->sized, k->o->sized, bytes);
	VC_TRY(draw(k, k->draw, err));
	return agree(k, err);
}

void vc_sizes_end(struct vc_sizes *k)
{
	if (k->o)
		vc_outline_put(k->f, k->o);
	pthread_mutex_lock(&k->f->lock);
	vc_spread_factors_put(k->factors);
	pthread_mutex_unlock(&k->f->lock);
	VC_FREE(k->drawn, k->sized);
}
