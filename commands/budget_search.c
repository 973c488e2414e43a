/* SPDX-License-Identifier: Apache-2.0 */
/* budget_search.c - see budget_search.h */
#include "commands/budget_search.h"

#include <math.h>

enum { BISECT = 12, /* replays of choices from one dry run to the next */
       REPLAYS = 400 /* that make one better */ };

#define ROOM (UINT64_C(1) << 40) /* VC_REHEARSE_ROOM */

uint64_t vc_budget_limit(const struct vc_budget_find *f, uint64_t used)
{
	return used > f->beside ? used - f->beside : 1;
}

static size_t steps_of(const struct vc_budget_find *f)
{
	return f->run[VC_BUDGET_KEEP].steps ? f->run[VC_BUDGET_KEEP].steps : 1;
}

double vc_budget_costs(const struct vc_budget_find *f)
{
	return vc_budget_cost(&f->b, f->how) + f->emptying;
}

static int replay_one(struct vc_budget_find *f, struct vc_recording *made,
		      const struct vc_plan *plan, uint64_t target, uint64_t *used,
		      struct vc_error *err)
{
	static const struct vc_observer_type *const nobody[] = { NULL };
	struct vc_session s = f->on.s;
	struct vc_result r;

	s.rec = made;
	VC_TRY(vc_session_replay(&s, plan, nobody, &r, err));
	*used = r.stats.peak_reserved + f->beside;
	if (f->limited && r.stats.ooms)
		*used = target + target / VC_BUDGET_REFUSED;
	f->emptying = f->limited && r.stats.driver_ns > f->driver && f->b.timed ?
		      (double)(r.stats.driver_ns - f->driver) / (double)steps_of(f) : 0;
	if (!f->driver)
		f->driver = r.stats.driver_ns;
	vc_result_fini(&r);
	return VC_OK;
}

/* With the addresses of the dry runs, and as a dry run is judged: in all other orders of them, too;
 * more than the target is enough to know. Under a limit it takes the target, or more where a
 * request is refused there; how much more is not known. */
int vc_budget_replay(struct vc_budget_find *f, struct vc_recording *made, uint64_t target,
		  uint64_t *used, struct vc_error *err)
{
	const struct vc_va_order own = { vc_va_of_first(f->rec[0].device->first_segment), 0 };
	struct vc_plan plan = vc_plan_unlimited(&f->on.plan[0]);
	double emptying = 0;

	if (f->grows)
		vc_plan_set_conf(&plan, f->grown);
	if (f->limited) {
		plan.capacity = ROOM;
		plan.fraction = (double)vc_budget_limit(f, target) / (double)ROOM;
	}
	VC_TRY(vc_recording_count(made, f->rec[0].device->device, err));
	*used = 0;
	for (int i = 0; i < VC_VA_ORDERS + 2 && *used <= target; i++) {
		uint64_t so;

		plan.va = i ? i > 1 ? vc_va_order[i - 2].va : VC_VA_UP : own.va;
		plan.va_order = i > 1 ? vc_va_order[i - 2].order : 0;
		VC_TRY(replay_one(f, made, &plan, target, &so, err));
		*used = so > *used ? so : *used;
		emptying = i ? emptying : f->emptying;
	}
	f->emptying = emptying;
	f->replays++;
	return VC_OK;
}

static int predict(struct vc_budget_find *f, const uint8_t *how, uint64_t target, uint64_t *used,
		   struct vc_error *err)
{
	struct vc_recording made = f->rec[0];
	struct vc_meta meta;
	int r;

	made.trace = (struct vc_trace){ .n = 0 };
	made.census = (struct vc_census){ 0 };
	made.fidelity = (struct vc_fidelity){ 0 };
	made.seen = (struct vc_seen){ 0 };
	r = vc_budget_splice(&f->b, f->run, how, &made.trace, &meta, err);
	made.meta = &meta;
	if (r == VC_OK)
		r = vc_budget_replay(f, &made, target, used, err);
	/* Small blocks that live a moment longer may take one more of their segments. */
	if (r == VC_OK)
		*used = f->limited && *used <= target && target - *used < VC_DEVICE_GRANULE ?
			target : *used + VC_DEVICE_GRANULE;
	made.trace.meta = NULL;
	vc_recording_close(&made);
	return r;
}

/* The cheapest choice that should stay below `target`. */
static int choose(struct vc_budget_find *f, uint64_t target, uint64_t *says, bool *found,
		  struct vc_error *err)
{
	uint64_t low = 0, high = target > f->beside ? target - f->beside : 0, bytes = high;
	uint8_t *how = calloc(f->b.n, sizeof(*how));
	int r = how ? VC_OK : vc_nomem(err, "a choice of modules");

	*found = false;
	for (int k = 0; r == VC_OK && k < BISECT && bytes; k++) {
		uint64_t used = 0;
		bool some;
		double cost;

		r = vc_budget_choose(&f->b, bytes, how, &cost, &some, err);
		if (r == VC_OK && some)
			r = predict(f, how, target, &used, err);
		if (r < 0)
			break;
		if (!some) {
			low = bytes;
		} else if (used > target) {
			uint64_t is = vc_budget_peak(&f->b, how), over = used - target;

			high = is < bytes ? is : bytes;
			if (!*found) {
				bytes = high > over ? high - over : 0;
				bytes = bytes > low ? bytes : (low + high) / 2;
				continue;
			}
		} else {
			low = bytes;
			*found = true;
			*says = used;
			memcpy(f->how, how, f->b.n * sizeof(*how));
			if (k == 0)
				break;
		}
		bytes = low + (high - low) / 2;
	}
	free(how);
	return r;
}

/* Unit i in a cheaper way, where that still stays below. */
static int relax(struct vc_budget_find *f, size_t i, uint64_t target, uint64_t *says,
		 struct vc_error *err)
{
	const double *cost = f->b.at[i].cost;
	uint8_t was = f->how[i], now = was;

	for (uint8_t way = 0; way < VC_BUDGET_WAYS && now == was; way++) {
		uint64_t used;

		if (!f->b.can[way] || cost[way] >= cost[was] || f->replays >= f->enough)
			continue;
		f->how[i] = way;
		VC_TRY(predict(f, f->how, target, &used, err));
		if (used <= target && vc_budget_hosted(&f->b, f->how) <= f->b.host) {
			now = way;
			*says = used;
		}
	}
	f->how[i] = now;
	return VC_OK;
}

/* Where none of the cheapest stays below: the best that was played, or the same for all units,
 * which leaves fewer holes. */
static int begin_from(struct vc_budget_find *f, uint64_t target, uint64_t *says, bool *found,
		      struct vc_error *err)
{
	static const uint8_t same[] = { VC_BUDGET_PRODUCTS, VC_BUDGET_RECOMPUTE,
					VC_BUDGET_RECOMPUTE_OFFLOAD, VC_BUDGET_OFFLOAD,
					VC_BUDGET_LOWER };

	for (size_t k = 0; k < sizeof(same) && !*found; k++) {
		if (f->found)
			memcpy(f->how, f->best, f->b.n * sizeof(*f->how));
		else
			memset(f->how, same[k], f->b.n * sizeof(*f->how));
		if ((!f->found && !f->b.can[same[k]]) ||
		    vc_budget_hosted(&f->b, f->how) > f->b.host)
			continue;
		VC_TRY(predict(f, f->how, target, says, err));
		*found = *says <= target;
		if (f->found)
			break;
	}
	return VC_OK;
}

/* Sums of bytes see no fragmentation, replays do: from the choice at hand on, unit by unit, the
 * dearest first. */
static int improve(struct vc_budget_find *f, uint64_t target, uint64_t *says, bool *found,
		   struct vc_error *err)
{
	bool *done = calloc(f->b.n, sizeof(*done));
	int r = done ? VC_OK : vc_nomem(err, "a choice of modules");

	if (r == VC_OK && !*found)
		r = begin_from(f, target, says, found, err);
	f->enough = f->replays + REPLAYS;
	for (size_t k = 0; r == VC_OK && *found && k < f->b.n; k++) {
		size_t top = SIZE_MAX;

		for (size_t i = 0; i < f->b.n; i++)
			if (!done[i] && (top == SIZE_MAX || f->b.at[i].cost[f->how[i]] >
							    f->b.at[top].cost[f->how[top]]))
				top = i;
		done[top] = true;
		r = relax(f, top, target, says, err);
	}
	free(done);
	return r;
}

int vc_budget_even(struct vc_budget_find *f, uint64_t target, uint64_t *says, bool *found,
		struct vc_error *err)
{
	*found = false;
	for (size_t m = 1; m <= f->b.n && !*found; m++) {
		for (size_t i = 0; i < f->b.n; i++)
			f->how[i] = (i + 1) * m / f->b.n > i * m / f->b.n ? VC_BUDGET_RECOMPUTE :
									  VC_BUDGET_KEEP;
		VC_TRY(predict(f, f->how, target, says, err));
		*found = *says <= target;
	}
	return VC_OK;
}

/* The choice at hand, or what comes of these: where holes decide, one choice leads to others than
 * another does. */
static int improve_even(struct vc_budget_find *f, uint64_t target, uint64_t *says, bool *found,
			struct vc_error *err)
{
	double cost = *found ? vc_budget_cost(&f->b, f->how) : INFINITY;
	uint8_t *how = calloc(f->b.n, sizeof(*how));
	uint64_t so = 0;
	bool other;
	int r = how ? VC_OK : vc_nomem(err, "a choice of modules");

	if (r == VC_OK) {
		memcpy(how, f->how, f->b.n * sizeof(*how));
		r = vc_budget_even(f, target, &so, &other, err);
	}
	if (r == VC_OK && other)
		r = improve(f, target, &so, &other, err);
	if (r == VC_OK && other && vc_budget_cost(&f->b, f->how) < cost) {
		*says = so;
		*found = true;
	} else if (r == VC_OK) {
		memcpy(f->how, how, f->b.n * sizeof(*how));
	}
	free(how);
	return r;
}

int vc_budget_next(struct vc_budget_find *f, uint64_t target, uint64_t *says, bool *some,
		       struct vc_error *err)
{
	VC_TRY(choose(f, target, says, some, err));
	if (!f->limited || !f->found)
		VC_TRY(improve(f, target, says, some, err));
	if (!f->limited && (!*some || vc_budget_costs(f) > VC_BUDGET_WORTH * f->bound))
		VC_TRY(improve_even(f, target, says, some, err));
	if (*some && f->limited) /* what emptying costs it */
		VC_TRY(predict(f, f->how, target, says, err));
	*some = *some && (!f->found || vc_budget_costs(f) < f->cost);
	return VC_OK;
}

