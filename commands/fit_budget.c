/* SPDX-License-Identifier: Apache-2.0 */
/* fit_budget.c - fit --find budget: what to do with the modules of a program so that it stays below
 * a peak, at the least time. Whatever is answered was played in a dry run. */

#include "commands/budget_file.h"
#include "commands/budget_say.h"
#include "commands/fit_find.h"
#include "common/vec.h"
#include "simulator/session/host.h"
#include "simulator/time/time.h"

enum { FITS = 0, NEVER = 3 };
enum { BISECT = 12, /* replays of choices from one dry run to the next */
       REPLAYS = 400, /* that make one better */
       REFUSED = 32 /* a share of the target: steps in which a limit is gone away from */ };

#define ROOM (UINT64_C(1) << 40) /* VC_REHEARSE_ROOM */

static int open_trace(struct vc_recording *rec, const char *path, struct vc_error *err)
{
	const struct vc_recording_ask ask = { .device = VC_NOT_GIVEN, .rank = VC_NOT_GIVEN,
					      .flags = VC_SESSION_IN_MEMORY };

	VC_TRY(vc_recording_open(rec, path, &ask, err));
	return rec->trace.n ? VC_OK : vc_fail(err, VC_ENOSUP, "%s is too long to be searched; run "
					      "fewer steps", path);
}

/* What the allocator may reserve, so that no more than that is used. */
static uint64_t limit_of(const struct vc_budget_find *f, uint64_t used)
{
	return used > f->beside ? used - f->beside : 1;
}

static int play(struct vc_budget_find *f, struct vc_rehearsal *h, const uint8_t *how, bool timed,
		struct vc_kept *ran, struct vc_error *err)
{
	char *spec = vc_budget_spec(&f->b, how, timed, f->limited ? limit_of(f, f->peak) : 0, err);
	int r = spec ? VC_OK : (int)err->status;

	h->budget = spec;
	h->conf = f->grows ? f->grown : NULL;
	if (r == VC_OK)
		r = vc_rehearse(h, ran, err);
	h->budget = h->conf = NULL;
	free(spec);
	return r;
}

/* Which modules there are: one step shows it. */
static int observe(struct vc_budget *b, struct vc_rehearsal *h, bool coarse, struct vc_error *err)
{
	struct vc_recording rec = { 0 };
	struct vc_kept ran;
	int r;

	h->budget = coarse ? "{\"observe\": \"coarse\"}" : "{\"observe\": true}";
	h->steps = 1;
	r = vc_rehearse(h, &ran, err);
	h->budget = NULL;
	h->steps = 0;
	if (r == VC_OK)
		r = open_trace(&rec, ran.path, err);
	if (r == VC_OK)
		r = vc_budget_units(b, &rec.trace, err);
	vc_recording_close(&rec);
	return r;
}

static int pinned_of(const struct vc_recording *rec, uint64_t *bytes, struct vc_error *err)
{
	const struct vc_list none = { .n = 0 };
	struct vc_host h = { 0 };

	VC_TRY(vc_host_read(rec, &none, UINT64_MAX, &h, err));
	*bytes = h.pinned;
	return VC_OK;
}

static int play_way(struct vc_budget_find *f, struct vc_rehearsal *h, int way, struct vc_error *err)
{
	memset(f->how, way, f->b.n * sizeof(*f->how));
	VC_TRY(play(f, h, f->how, true, &f->ran[way], err));
	VC_TRY(open_trace(&f->rec[way], f->ran[way].path, err));
	f->run[way].device = f->rec[way].device->device;
	VC_TRY(vc_budget_times(&f->run[way], &f->rec[way], err));
	f->run[way].t = &f->rec[way].trace;
	return VC_OK;
}

/* A way that the program does not bear is left out. */
static int play_ways(struct vc_budget_find *f, struct vc_rehearsal *h, struct vc_error *err)
{
	uint64_t kept = 0, sent = 0;

	f->b.host = f->on.ask->host;
	f->how = calloc(f->b.n, sizeof(*f->how));
	f->best = calloc(f->b.n, sizeof(*f->best));
	VC_HAVE(f->how && f->best, "a choice of modules", err);
	for (int way = 0; way < VC_BUDGET_WAYS; way++) {
		bool left = way >= VC_BUDGET_OFFLOAD && !f->b.host;
		left |= way && f->ran[VC_BUDGET_KEEP].used <= f->peak; /* nothing to be done */
		int r = left ? VC_OK : play_way(f, h, way, err);

		if (r < 0 && (r == VC_ENOMEM || way <= VC_BUDGET_RECOMPUTE))
			return r;
		*err = (struct vc_error){ 0 };
	}
	VC_TRY(vc_budget_read(&f->b, f->run, err));
	if (!f->b.can[VC_BUDGET_OFFLOAD])
		return VC_OK;
	VC_TRY(pinned_of(&f->rec[VC_BUDGET_KEEP], &kept, err));
	VC_TRY(pinned_of(&f->rec[VC_BUDGET_OFFLOAD], &sent, err));
	memset(f->how, VC_BUDGET_OFFLOAD, f->b.n * sizeof(*f->how));
	uint64_t freed = vc_budget_hosted(&f->b, f->how);
	f->host_share = freed && sent > kept ? (double)(sent - kept) / (double)freed : 1;
	if (f->b.host != VC_NOT_GIVEN)
		f->b.host = (uint64_t)((double)f->b.host / f->host_share);
	return VC_OK;
}

static int begin(void *find, struct vc_rehearsal *h, struct vc_error *err)
{
	struct vc_budget_find *f = find;

	if (!h)
		return vc_fail(err, VC_EUSAGE, "--find budget tries choices in the program: name "
			       "it behind --, in place of a recording");
	f->peak = f->on.ask->peak != VC_NOT_GIVEN ? f->on.ask->peak : f->on.plan[0].capacity;
	for (size_t i = 0, at = 0; i < h->argc && at < sizeof(f->command); i++)
		at += (size_t)snprintf(f->command + at, sizeof(f->command) - at, "%s%s",
				       i ? " " : "", h->argv[i]);
	f->least = f->floor = UINT64_MAX;
	VC_TRY(observe(&f->b, h, false, err));
	return f->b.compiled ? vc_rehearse(h, &f->ran[VC_BUDGET_KEEP], err) : play_ways(f, h, err);
}

static int search(void *find, size_t card, struct vc_error *err)
{
	(void)find;
	(void)card;
	(void)err;
	return VC_OK; /* of a program only, in prove */
}

/* ---- what a choice needs, by a replay ---- */

static size_t steps_of(const struct vc_budget_find *f)
{
	return f->run[VC_BUDGET_KEEP].steps ? f->run[VC_BUDGET_KEEP].steps : 1;
}

static double cost_of(const struct vc_budget_find *f)
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
		*used = target + target / REFUSED;
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
static int replay(struct vc_budget_find *f, struct vc_recording *made, uint64_t target,
		  uint64_t *used, struct vc_error *err)
{
	const struct vc_va_order own = { vc_va_of_first(f->rec[0].device->first_segment), 0 };
	struct vc_plan plan = vc_plan_unlimited(&f->on.plan[0]);
	double emptying = 0;

	if (f->grows)
		vc_plan_set_conf(&plan, f->grown);
	if (f->limited) {
		plan.capacity = ROOM;
		plan.fraction = (double)limit_of(f, target) / (double)ROOM;
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
		r = replay(f, &made, target, used, err);
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
					VC_BUDGET_RECOMPUTE_OFFLOAD, VC_BUDGET_OFFLOAD };

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

static int keep_it(struct vc_budget_find *f, const struct vc_kept *ran, uint64_t says,
		   struct vc_error *err)
{
	double cost = cost_of(f);
	struct vc_recording rec = { 0 };
	uint64_t kept = 0, sent = 0;
	int r;

	if (f->found && (cost > f->cost || (cost >= f->cost && ran->used >= f->used)))
		return VC_OK;
	r = open_trace(&rec, ran->path, err);
	if (r == VC_OK)
		r = pinned_of(&rec, &sent, err);
	if (r == VC_OK)
		r = pinned_of(&f->rec[0], &kept, err);
	vc_recording_close(&rec);
	VC_TRY(r);
	if (f->on.ask->host != VC_NOT_GIVEN && sent > kept && sent - kept > f->on.ask->host)
		return VC_OK;
	f->found = true;
	f->cost = cost;
	f->used = ran->used;
	f->predicted = says;
	f->host = sent > kept ? sent - kept : 0;
	f->expandable = f->grows;
	f->limit = f->limited ? limit_of(f, f->peak) : 0;
	f->flushes = f->limited ? ran->flushes : 0;
	f->empties = f->emptying;
	memcpy(f->best, f->how, f->b.n * sizeof(*f->best));
	return VC_OK;
}

static int next_choice(struct vc_budget_find *f, uint64_t target, uint64_t *says, bool *some,
		       struct vc_error *err)
{
	VC_TRY(choose(f, target, says, some, err));
	if (!f->limited || !f->found)
		VC_TRY(improve(f, target, says, some, err));
	if (*some && f->limited) /* what emptying costs it */
		VC_TRY(predict(f, f->how, target, says, err));
	*some = *some && (!f->found || cost_of(f) < f->cost);
	return VC_OK;
}

/* Choices are played until one stays below the peak; what is left then goes to one more. */
static int try_choices(struct vc_budget_find *f, struct vc_rehearsal *h, struct vc_error *err)
{
	uint64_t target = f->peak, says = 0, bad = UINT64_MAX;
	bool some;

	while (f->runs < f->on.ask->trials && f->runs < VC_BUDGET_TRIED) {
		struct vc_kept ran;

		VC_TRY(next_choice(f, target, &says, &some, err));
		if (!some)
			break;
		VC_TRY(play(f, h, f->how, false, &ran, err));
		f->tried[f->runs].predicted = says;
		f->tried[f->runs].used = ran.used;
		f->tried[f->runs++].cost = cost_of(f);
		f->least = !ran.oom && ran.used < f->least ? ran.used : f->least;
		if (!ran.oom && ran.used <= f->peak) {
			VC_TRY(keep_it(f, &ran, says, err));
			if (f->limited)
				break;
			target = says + (f->peak - ran.used);
			target = target < bad ? target : bad - 1;
			continue;
		}
		bad = says < bad ? says : bad;
		target = f->limited ? target - target / REFUSED :
			 says > ran.used - f->peak ? says - (ran.used - f->peak) : 0;
	}
	return VC_OK;
}

/* What it is held against: the fewest modules computed twice, evenly spread over all, that should
 * stay below. */
static int spread(struct vc_budget_find *f, struct vc_error *err)
{
	for (size_t m = 1; m <= f->b.n && !f->even; m++) {
		uint64_t used;

		for (size_t i = 0; i < f->b.n; i++)
			f->how[i] = (i + 1) * m / f->b.n > i * m / f->b.n ? VC_BUDGET_RECOMPUTE :
									  VC_BUDGET_KEEP;
		VC_TRY(predict(f, f->how, f->peak, &used, err));
		f->even = used <= f->peak;
		f->uniform = vc_budget_cost(&f->b, f->how);
	}
	return VC_OK;
}

/* What the dry runs needed beyond their allocator, which says what the replays leave out. */
static int measure_beside(struct vc_budget_find *f, struct vc_error *err)
{
	uint64_t beside = 0;

	f->beside = 0;
	f->beside_least = UINT64_MAX;
	for (int way = 0; way < VC_BUDGET_WAYS; way++) {
		uint64_t used;

		if (!f->b.can[way])
			continue;
		VC_TRY(replay(f, &f->rec[way], UINT64_MAX, &used, err));
		uint64_t own = f->ran[way].used > used ? f->ran[way].used - used : 0;
		beside = own > beside ? own : beside;
		f->beside_least = own < f->beside_least ? own : f->beside_least;
	}
	f->beside = beside;
	return VC_OK;
}

/* Its settings with segments that expand; "": it says itself whether they do. */
static const char *grown(struct vc_budget_find *f)
{
	const char *own = f->on.plan[0].conf ? f->on.plan[0].conf : "";

	f->grown[0] = '\0';
	if (!strstr(own, "expandable_segments") && !vc_plan_is_drivers(own))
		snprintf(f->grown, sizeof(f->grown), "%.200s%s" VC_BUDGET_CONF, own,
			 *own ? "," : "");
	return f->grown;
}

static int prove_compiled(struct vc_budget_find *f, struct vc_rehearsal *h, struct vc_error *err)
{
	struct vc_budget_shares s = { .peak = f->peak, .whole = &f->ran[VC_BUDGET_KEEP],
				      .plain = vc_time_profile(&f->on.s),
				      .most = f->on.ask->counted ? f->on.ask->trials :
								   VC_BUDGET_TRIED,
				      .grown = grown(f) };

	VC_TRY(vc_budget_shares(&s, h, err));
	memcpy(f->tried, s.tried, s.runs * sizeof(*s.tried));
	f->runs = s.runs;
	f->found = s.found;
	f->share = s.percent;
	f->twice = s.twice;
	f->expandable = s.expandable;
	f->used = f->predicted = s.best.used;
	f->cost = s.best.cost;
	f->added = s.added;
	f->least = s.least;
	f->b.timed = true;
	return VC_OK;
}

/* No choice of these units needs less, and none that stays below costs less: the allocator reserves
 * what is allocated at least. */
static int bound(struct vc_budget_find *f, struct vc_error *err)
{
	bool behind;
	size_t at;
	uint64_t floor = vc_budget_floor(&f->b, &at, &behind) + f->beside;
	uint64_t room = f->peak > f->beside_least ? f->peak - f->beside_least : 0;

	VC_TRY(vc_budget_bound(&f->b, room, &f->bound, &f->bounded, err));
	if (floor >= f->floor)
		return VC_OK;
	f->floor = floor;
	if (at == f->b.n)
		snprintf(f->floor_in, sizeof(f->floor_in), "where none keeps anything");
	else
		snprintf(f->floor_in, sizeof(f->floor_in), "%s %.180s", behind ? "behind" : "in",
			 f->b.at[at].name);
	return VC_OK;
}

/* Without a limit, and with one: where memory is short, the allocator empties its cache before it
 * gives up. */
static int try_both(struct vc_budget_find *f, struct vc_rehearsal *h, struct vc_error *err)
{
	VC_TRY(try_choices(f, h, err));
	f->limited = true;
	int r = try_choices(f, h, err);

	f->limited = false;
	return r;
}

/* Once more in segments that expand. */
static int try_growing(struct vc_budget_find *f, struct vc_rehearsal *h, struct vc_error *err)
{
	int r;

	if (!*grown(f))
		return VC_OK;
	f->grows = true;
	r = try_both(f, h, err);
	f->grows = false;
	if (r == VC_ENOMEM)
		return r;
	*err = (struct vc_error){ 0 }; /* a release that does not know them */
	return VC_OK;
}

static int prove_units(struct vc_budget_find *f, struct vc_rehearsal *h, struct vc_error *err)
{
	VC_TRY(measure_beside(f, err));
	VC_TRY(bound(f, err));
	for (int way = VC_BUDGET_KEEP; way < VC_BUDGET_WAYS; way++) {
		if (!f->b.can[way])
			continue;
		memset(f->how, way, f->b.n * sizeof(*f->how));
		f->least = f->ran[way].used < f->least ? f->ran[way].used : f->least;
		if (f->ran[way].used <= f->peak)
			VC_TRY(keep_it(f, &f->ran[way], f->ran[way].used, err));
	}
	if (f->found && f->cost <= 0)
		return VC_OK;
	VC_TRY(try_both(f, h, err));
	if (!f->found || f->limit)
		VC_TRY(try_growing(f, h, err));
	VC_TRY(spread(f, err));
	f->floor = f->least < f->floor ? f->least : f->floor;
	return VC_OK;
}

static void leave_units(struct vc_budget_find *f)
{
	for (int way = 0; way < VC_BUDGET_WAYS; way++) {
		free(f->run[way].kernel);
		vc_recording_close(&f->rec[way]);
	}
	memset(f->run, 0, sizeof(f->run));
	VC_FREE(f->how, f->best);
	vc_budget_fini(&f->b);
}

/* What is kept between small modules, a larger one that holds them need not keep. */
static int prove_coarse(struct vc_budget_find *f, struct vc_rehearsal *h, struct vc_error *err)
{
	struct vc_budget coarse = { 0 };
	int r = observe(&coarse, h, true, err);

	if (r < 0 || coarse.n == f->b.n) {
		vc_budget_fini(&coarse);
		return r;
	}
	leave_units(f);
	f->b = coarse;
	f->coarse = true;
	f->driver = 0;
	VC_TRY(play_ways(f, h, err));
	return prove_units(f, h, err);
}

/* What the choice adds to a step, by a run of it without marks. */
static int measure(struct vc_budget_find *f, struct vc_rehearsal *h, struct vc_error *err)
{
	struct vc_recording rec = { 0 };
	struct vc_kept ran;
	int r;

	memcpy(f->how, f->best, f->b.n * sizeof(*f->how));
	f->grows = f->expandable;
	f->limited = f->limit;
	r = play(f, h, f->how, false, &ran, err);
	if (r == VC_OK)
		r = open_trace(&rec, ran.path, err);
	if (r == VC_OK)
		r = vc_budget_added(vc_time_profile(&f->on.s), &rec, &f->added, err);
	vc_recording_close(&rec);
	f->added.ns += f->empties;
	f->added.low += f->empties;
	f->added.high += f->empties;
	f->grows = f->limited = false;
	return r;
}

static int prove(void *find, struct vc_rehearsal *h, struct vc_error *err)
{
	struct vc_budget_find *f = find;

	h->capacity = VC_REHEARSE_ROOM;
	if (f->b.compiled)
		return prove_compiled(f, h, err);
	VC_TRY(prove_units(f, h, err));
	if (!f->found)
		VC_TRY(prove_coarse(f, h, err));
	if (f->found && f->cost > 0)
		return measure(f, h, err);
	f->added.by = f->found ? VC_BUDGET_BY_STEPS : VC_BUDGET_BY_NOTHING;
	return VC_OK;
}

/* ---- the command ---- */

static int code_of(const void *find)
{
	return ((const struct vc_budget_find *)find)->found ? FITS : NEVER;
}

static const struct vc_fit_steps steps = { "vramcast.fit-budget/2", begin, search, prove,
					  vc_budget_say,
					   code_of, true };

static int find_budget(const struct vc_fit_ask *ask, size_t argc, char **argv,
		       struct vc_console *con)
{
	struct vc_budget_find f = { .on.ask = ask };
	int r = vc_fit_take(&steps, &f, argc, argv, con);

	if (r == FITS && ask->save) {
		const struct vc_budget_made made = { f.limit, f.share, f.twice, f.expandable,
						     f.used, f.command };
		int lost = vc_budget_save(&f.b, f.best, &made, ask->save, &con->err);

		r = lost < 0 ? lost : r;
	}
	leave_units(&f);
	vc_fit_left(&f.on);
	return r;
}

const struct vc_fit_find vc_fit_budget = { .name = "budget", .run = find_budget };
