/* SPDX-License-Identifier: Apache-2.0 */
/* fit_budget.c - fit --find budget: what to do with the modules of a program so that it stays below
 * a peak, at the least time. Whatever is answered was played in a dry run. */

#include "commands/budget_file.h"
#include "commands/budget_search.h"
#include "commands/fit_find.h"
#include "common/vec.h"
#include "simulator/session/host.h"
#include "simulator/time/time.h"

enum { FITS = 0, NEVER = 3 };

static int open_trace(struct vc_recording *rec, const char *path, struct vc_error *err)
{
	const struct vc_recording_ask ask = { .device = VC_NOT_GIVEN, .rank = VC_NOT_GIVEN,
					      .flags = VC_SESSION_IN_MEMORY };

	VC_TRY(vc_recording_open(rec, path, &ask, err));
	return rec->trace.n ? VC_OK : vc_fail(err, VC_ENOSUP, "%s is too long to be searched; run "
					      "fewer steps", path);
}

static int play(struct vc_budget_find *f, struct vc_rehearsal *h, const uint8_t *how, bool timed,
		struct vc_kept *ran, struct vc_error *err)
{
	uint64_t limit = f->limited ? vc_budget_limit(f, f->peak) : 0;
	char *spec = vc_budget_spec(&f->b, how, timed, limit, err);
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
		left |= way == VC_BUDGET_LOWER && !f->on.ask->lower;
		left |= way && f->ran[VC_BUDGET_KEEP].used <= f->peak; /* nothing to be done */
		int r = left ? VC_OK : play_way(f, h, way, err);

		if (r < 0 && (vc_is_final(r) || way <= VC_BUDGET_RECOMPUTE))
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

/* ---- choices in dry runs ---- */

static int keep_it(struct vc_budget_find *f, const struct vc_kept *ran, uint64_t says,
		   struct vc_error *err)
{
	double cost = vc_budget_costs(f);
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
	f->limit = f->limited ? vc_budget_limit(f, f->peak) : 0;
	f->flushes = f->limited ? ran->flushes : 0;
	f->empties = f->emptying;
	memcpy(f->best, f->how, f->b.n * sizeof(*f->best));
	return VC_OK;
}

/* Choices are played until one stays below the peak; what is left then goes to one more. What the
 * runs before it took beyond their predictions is added to those that follow. */
static int try_choices(struct vc_budget_find *f, struct vc_rehearsal *h, struct vc_error *err)
{
	uint64_t target = f->peak, says = 0, bad = UINT64_MAX, beyond = 0;
	bool some;

	while (f->runs < f->on.ask->trials && f->runs < VC_BUDGET_TRIED) {
		struct vc_kept ran;

		VC_TRY(vc_budget_next(f, target, &says, &some, err));
		if (!some)
			break;
		VC_TRY(play(f, h, f->how, false, &ran, err));
		f->tried[f->runs].predicted = says;
		f->tried[f->runs].used = ran.used;
		f->tried[f->runs++].cost = vc_budget_costs(f);
		f->least = !ran.oom && ran.used < f->least ? ran.used : f->least;
		if (!ran.oom && ran.used <= f->peak) {
			VC_TRY(keep_it(f, &ran, says + beyond < f->peak ? says + beyond : f->peak,
				       err));
			if (f->limited)
				break;
			target = says + (f->peak - ran.used);
			target = target < bad ? target : bad - 1;
			continue;
		}
		bad = says < bad ? says : bad;
		if (ran.used > says)
			vc_raise(&beyond, ran.used - says + VC_DEVICE_GRANULE);
		target = f->limited ? target - target / VC_BUDGET_REFUSED :
			 says > ran.used - f->peak ? says - (ran.used - f->peak) : 0;
	}
	return VC_OK;
}

/* What it is held against. */
static int spread(struct vc_budget_find *f, struct vc_error *err)
{
	uint64_t says;

	VC_TRY(vc_budget_even(f, f->peak, &says, &f->even, err));
	f->uniform = vc_budget_cost(&f->b, f->how);
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
		VC_TRY(vc_budget_replay(f, &f->rec[way], UINT64_MAX, &used, err));
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
	if (vc_is_final(r))
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
	if (!f->found || f->limit || f->cost > VC_BUDGET_WORTH * f->bound)
		VC_TRY(try_growing(f, h, err));
	VC_TRY(spread(f, err));
	f->floor = f->least < f->floor ? f->least : f->floor;
	f->bound = f->found && f->cost < f->bound ? f->cost : f->bound; /* what runs show, wins */
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
