/* SPDX-License-Identifier: Apache-2.0 */
/* span.c - see span.h
 *
 * The margins are those of random programs of four families that the real allocator judged
 * (docs/measurements/settings.md): best fit is chaotic, so that two pasts that make the same heap
 * part under other rules by up to 7 percent. */
#include "simulator/session/span.h"

#include "simulator/session/completion.h"
#include "simulator/session/ground.h"

enum { PAGES = 40 << 20 }; /* two pages of an expandable segment of the large pool */

struct open {
	const struct vc_job *job;
	const struct vc_plan *plan; /* as asked, or where nothing limits it */
	struct vc_stand stand;
	struct vc_result *out;
	uint64_t low, high; /* of all peaks so far */
	uint64_t first;     /* the first of them */
	uint64_t held;      /* the least that tensors held at a peak */
	bool any, alike;
};

static void add_peak(struct open *o, uint64_t peak)
{
	o->first = o->any ? o->first : peak;
	o->low = !o->any || peak < o->low ? peak : o->low;
	o->high = !o->any || peak > o->high ? peak : o->high;
	o->any = true;
}

static void add_verdict(struct open *o, enum vc_verdict v)
{
	struct vc_basis *b = &o->out->basis;

	b->low = v < b->low ? v : b->low;
	b->high = v > b->high ? v : b->high;
}

static int run_one(struct open *o, const struct vc_plan *plan, struct vc_stats *stats,
		   enum vc_verdict *v, struct vc_error *err)
{
	static const struct vc_observer_type *const nobody[] = { NULL };
	struct vc_plan p = *plan;
	struct vc_result r;

	p.enough = NULL;
	vc_completion_default(o->job->rec, &p);
	VC_TRY(vc_job_run(o->job, &p, nobody, &r, err));
	*v = vc_result_replayed(&r);
	*stats = r.stats;
	vc_result_fini(&r);
	return VC_OK;
}

static int add_run(struct open *o, const struct vc_plan *plan, struct vc_error *err)
{
	struct vc_stats stats;
	enum vc_verdict v;

	VC_TRY(run_one(o, plan, &stats, &v, err));
	o->alike = o->alike && stats.peak_reserved == o->first && v == o->out->basis.low &&
		   v == o->out->basis.high;
	add_peak(o, stats.peak_reserved);
	add_verdict(o, v);
	o->held = stats.peak_allocated < o->held ? stats.peak_allocated : o->held;
	return VC_OK;
}

/* ---- the order of fresh addresses, and of completions ---- */

static const struct { enum vc_va_policy va; unsigned order; } orders[] = {
	{ VC_VA_UP, 0 }, { VC_VA_DEC, 0 }, { VC_VA_MIX, 0 }, { VC_VA_WINDOW, 0 },
	{ VC_VA_MIX, 1 },
};
enum { ORDERS = sizeof(orders) / sizeof(*orders) };

static void take_order(struct vc_plan *p, size_t i)
{
	p->va = orders[i % ORDERS].va;
	p->va_order = orders[i % ORDERS].order;
}

static int try_orders(struct open *o, struct vc_error *err)
{
	uint64_t beyond;

	for (size_t i = 0; i < ORDERS; i++) {
		struct vc_plan p = *o->plan;

		take_order(&p, i);
		VC_TRY(add_run(o, &p, err));
	}
	/* There are many more orders than these. */
	beyond = (o->high - o->low) / 2;
	o->low -= beyond < o->low ? beyond : o->low;
	o->high += beyond;
	return VC_OK;
}

/* When memory comes back that other streams used. */
static int try_completions(struct open *o, struct vc_error *err)
{
	static const char *const policy[] = { "completion=next", "completion=forced" };

	for (size_t i = 0; i < 2 && vc_completion_is_open(o->job, o->plan); i++) {
		struct vc_plan p = *o->plan;

		snprintf(p.params, sizeof(p.params), "%s", policy[i]);
		VC_TRY(add_run(o, &p, err));
	}
	return VC_OK;
}

/* ---- pasts ---- */

struct guess {
	uint64_t low, high; /* what they come to reserve where nothing limits them */
	uint64_t all_low, all_high;
	double explained; /* the most of the recorded peak that one of them reserves by itself */
	double median;
};

static void widen(uint64_t *low, uint64_t *high, double value)
{
	*low = !*high || value < (double)*low ? (uint64_t)value : *low;
	*high = value > (double)*high ? (uint64_t)value : *high;
}

#define EXPANDABLE "expandable_segments:True"
static bool grows_pages(const struct vc_plan *p)
{
	return strstr(p->conf, EXPANDABLE);
}

/* What one past says, as it is and corrected by what it is off under the recorded rules: not where
 * segments grow, whose peak hangs on what lives and hardly on the past. */
static int add_past(struct open *o, enum vc_past_kind kind, double near, struct guess *g,
		    struct vc_error *err)
{
	struct vc_plan p = vc_plan_unlimited(o->plan);
	struct vc_distance *d;
	struct vc_stats stats;
	enum vc_verdict v;
	double share, peak, ratio;

	VC_TRY(vc_ground_distance(o->job->rec, kind, &d, err));
	share = d->share;
	peak = (double)d->peak;
	vc_memo_put(&d->memo);
	if (share < 0 || peak <= 0)
		return VC_OK;
	p.past = 1 + (unsigned)kind;
	take_order(&p, kind);
	VC_TRY(run_one(o, &p, &stats, &v, err));
	ratio = (double)o->stand.most / peak;
	if (kind != VC_PAST_FILLED && 1 / ratio > g->explained)
		g->explained = 1 / ratio;
	widen(&g->all_low, &g->all_high, (double)stats.peak_reserved);
	if (!grows_pages(o->plan))
		widen(&g->all_low, &g->all_high, (double)stats.peak_reserved * ratio);
	if (kind == VC_PAST_FILLED)
		return VC_OK;
	if (grows_pages(o->plan) || share < near)
		widen(&g->low, &g->high, (double)stats.peak_reserved);
	if (!grows_pages(o->plan) && kind != VC_PAST_SIZES)
		widen(&g->low, &g->high, (double)stats.peak_reserved * ratio);
	return VC_OK;
}

/* The recorded heap under the new rules: what they would not have made, but the most that was ever
 * cached. */
static int add_warm(struct open *o, struct guess *g, struct vc_error *err)
{
	struct vc_plan p = vc_plan_unlimited(o->plan);
	struct vc_stats stats;
	enum vc_verdict v;

	p.past = VC_TAKE_WARM;
	VC_TRY(run_one(o, &p, &stats, &v, err));
	widen(&g->all_low, &g->all_high, (double)stats.peak_reserved);
	return VC_OK;
}

static void add_share(uint64_t *low, uint64_t *high, double down, double up)
{
	*low -= down < 1 ? (uint64_t)(down * (double)*low) : *low;
	*high += (uint64_t)(up * (double)*high);
}

/* How far beyond what the pasts say the truth was found, as shares (down, up): more where the new
 * rules move the peak farther, and where no past makes the recorded heap. */
static void add_misses(const struct open *o, bool near, struct guess *g)
{
	const char *was = o->job->rec->meta->conf, *split = "max_split_size_mb";
	bool pages = grows_pages(o->plan), splits = strstr(o->plan->conf, split);
	double most = (double)(o->stand.most ? o->stand.most : 1);
	double change = (double)(g->low / 2 + g->high / 2) / most - 1;
	struct vc_basis *b = &o->out->basis;

	/* A large block that is not split serves requests of its own size alone: how many sizes
	 * there were before nobody knows. */
	b->grows = splits && (double)g->high > 1.15 * most;
	change = change < 0 ? -change : change > 1 ? 1 : change;
	if (near)
		add_share(&g->low, &g->high, (pages ? 0.07 : 0.04) + 0.05 * change,
			  (pages ? 0.07 : 0.04) + 0.05 * change);
	else
		add_share(&g->low, &g->high, 0.2, 0.25 + 0.3 * change);
	if (b->grows)
		g->high *= near ? 2 : 4;
	if (was && strstr(was, split) && !splits)
		g->low /= 2;
	g->low -= pages && g->low > PAGES ? PAGES : 0;
	g->high += pages ? PAGES : 0;
}

/* What the run needs where nothing limits it, from all pasts. */
static int find_need(struct open *o, double share, struct guess *g, struct vc_error *err)
{
	const char *was = o->job->rec->meta->conf;
	bool pages = grows_pages(o->plan), near = share < VC_GROUND_NEAR;

	if (o->stand.same_rules) {
		g->low = g->high = o->stand.most;
		return VC_OK;
	}
	/* Of segments that grow the recorded heap tells only how long they are. */
	near = near && (pages || !(was && strstr(was, EXPANDABLE)));
	for (int k = 0; k < VC_PASTS; k++)
		VC_TRY(add_past(o, (enum vc_past_kind)k, VC_GROUND_NEAR, g, err));
	VC_TRY(add_warm(o, g, err));
	if (!near && (!pages || g->explained < 1)) {
		g->low = pages ? g->low : g->all_low;
		g->high = g->all_high;
	}
	add_misses(o, near, g);
	return VC_OK;
}

/* How the pasts end on the device that was asked for. */
static int end_pasts(struct open *o, struct vc_error *err)
{
	static const unsigned past[] = { VC_TAKE_TRIMMED, 1 + VC_PAST_LATE, 1 + VC_PAST_STATES,
					 1 + VC_PAST_ROUND, 1 + VC_PAST_ALONE };

	for (size_t i = 0; i < sizeof(past) / sizeof(*past); i++) {
		struct vc_plan p = *o->plan;
		struct vc_distance *d;
		bool there = true;

		if (past[i] == VC_TAKE_TRIMMED) {
			there = o->stand.same_rules && o->stand.pinned <= vc_plan_room(o->plan);
		} else {
			VC_TRY(vc_ground_distance(o->job->rec, (enum vc_past_kind)(past[i] - 1),
						  &d, err));
			there = d->share >= 0;
			vc_memo_put(&d->memo);
		}
		p.past = past[i];
		take_order(&p, i);
		if (there)
			VC_TRY(add_run(o, &p, err));
	}
	return VC_OK;
}

/* The same with somewhat more and somewhat less memory: what all of them may miss. */
static int end_beyond(struct open *o, struct vc_error *err)
{
	int64_t some = (int64_t)(vc_plan_room(o->plan) / 10);
	struct vc_plan p = *o->plan;
	struct vc_stats stats;
	enum vc_verdict v;

	p.more = o->out->basis.low == VC_OOM ? -some : some;
	if (o->out->basis.low != o->out->basis.high)
		return VC_OK;
	VC_TRY(run_one(o, &p, &stats, &v, err));
	add_verdict(o, v);
	return VC_OK;
}

/* Settings under which segments are given back one by one before the whole cache is. */
static bool gives_back(const struct vc_plan *p)
{
	return strstr(p->conf, "max_split_size_mb") ||
	       strstr(p->conf, "garbage_collection_threshold");
}

/* The run on a device that may be too small for it. */
static int end_small(struct open *o, const struct guess *g, struct vc_error *err)
{
	struct vc_basis *b = &o->out->basis;
	bool small = g->low > vc_plan_room(o->plan);

	VC_TRY(end_pasts(o, err));
	VC_TRY(end_beyond(o, err));
	/* After a flush no more is reserved than what tensors hold, at the least. */
	o->low = o->held < o->low ? o->held : o->low;
	o->low -= o->low / 10;
	b->high = b->high < VC_FLUSHES ? VC_FLUSHES : b->high;
	b->low = !small ? VC_FITS : b->low == VC_FITS && !gives_back(o->plan) ? VC_FLUSHES : b->low;
	if (b->low == VC_FLUSHES && !o->out->stats.flushes)
		o->out->stats.flushes = 1; /* before the recording began */
	return VC_OK;
}

static int try_pasts(struct open *o, struct vc_error *err)
{
	struct guess g = { 0 };
	struct vc_basis *b = &o->out->basis;
	uint64_t room = vc_plan_room(o->plan);
	enum vc_past_kind kind;
	bool collects = room != UINT64_MAX &&
			strstr(o->plan->conf, "garbage_collection_threshold");

	VC_TRY(vc_ground_nearest(o->job->rec, &kind, &b->missed, err));
	VC_TRY(find_need(o, b->missed, &g, err));
	if (o->job->rec->device->peak_requested > room)
		b->low = b->high = VC_OOM; /* whatever came before */
	else if (g.high > room || collects)
		VC_TRY(end_small(o, &g, err));
	else
		b->low = b->high = VC_FITS;
	add_peak(o, g.low < room ? g.low : room);
	add_peak(o, g.high < room ? g.high : room);
	return VC_OK;
}

/* ---- all of it ---- */

static int add_margin(struct open *o, struct vc_error *err)
{
	uint64_t room = vc_plan_room(o->plan);

	add_share(&o->low, &o->high, 0.15, 0.05);
	if (o->high > room && o->out->basis.low == VC_FITS)
		VC_TRY(end_beyond(o, err));
	o->high = o->high > room ? room : o->high;
	return VC_OK;
}

/* A program that empties its cache now and then, and did so before the recording perhaps. */
static bool empties_cache(const struct open *o)
{
	return o->job->rec->device->trims && vc_ground_hides_before(o->job->rec, o->plan);
}

static int look(struct open *o, struct vc_error *err)
{
	struct vc_basis *b = &o->out->basis;
	enum vc_ground on = o->stand.ground;
	struct vc_plan limited = *o->plan;

	limited.fraction = 1;
	if (on != VC_GROUND_PAST && empties_cache(o)) {
		o->alike = false;
		b->high = b->high < VC_FLUSHES ? VC_FLUSHES : b->high;
		add_peak(o, o->held - o->held / 10);
		add_peak(o, vc_plan_room(o->plan));
	}
	if (on == VC_GROUND_RECORDED)
		return VC_OK;
	VC_TRY(try_completions(o, err));
	if (vc_ground_hides_limit(o->job->rec, o->plan))
		VC_TRY(add_run(o, &limited, err));
	if (on == VC_GROUND_PAST)
		VC_TRY(try_pasts(o, err));
	if (vc_ground_hides_limit(o->job->rec, o->plan)) {
		o->alike = false;
		o->low /= 2;
		b->low = VC_FITS;
		b->high = b->high < VC_FLUSHES ? VC_FLUSHES : b->high;
	}
	if (on == VC_GROUND_PAST)
		return VC_OK;
	if (o->out->stats.by_address)
		VC_TRY(try_orders(o, err));
	if (!o->job->rec->fidelity.exact) {
		o->alike = false;
		return add_margin(o, err);
	}
	b->exact = o->alike && !vc_ground_hides_before(o->job->rec, o->plan);
	return VC_OK;
}

int vc_span_widen(const struct vc_job *job, const struct vc_plan *plan, bool unlimited,
		  struct vc_result *out, struct vc_error *err)
{
	struct vc_plan free = vc_plan_unlimited(plan);
	struct open o = { .job = job, .plan = unlimited ? &free : plan, .out = out,
			  .held = out->stats.peak_allocated };
	enum vc_verdict best = vc_result_replayed(out);

	VC_TRY(vc_job_stand(job, o.plan, &o.stand, err));
	out->basis = (struct vc_basis){ .ground = o.stand.ground, .low = best, .high = best,
					.decided = !unlimited,
					.exact = o.stand.ground == VC_GROUND_RECORDED &&
						 !vc_ground_hides_before(job->rec, o.plan) };
	if (o.stand.ground == VC_GROUND_ASKED) {
		out->basis.decided = false;
		return VC_OK;
	}
	o.alike = o.stand.ground != VC_GROUND_PAST;
	add_peak(&o, unlimited ? out->need : out->stats.peak_reserved);
	VC_TRY(look(&o, err));
	if (o.alike)
		return VC_OK;
	if (!out->has_interval)
		out->low = out->high = o.first;
	out->has_interval = true;
	out->low = o.low < out->low ? o.low : out->low;
	out->high = o.high > out->high ? o.high : out->high;
	return VC_OK;
}
