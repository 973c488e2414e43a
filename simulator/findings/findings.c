/* SPDX-License-Identifier: Apache-2.0 */
/* findings.c - see findings.h */
#include "simulator/findings/findings.h"

#include "common/event.h"
#include "common/site.h"
#include "common/vec.h"

const char *vc_cause_name(enum vc_cause c)
{
	static const char *const name[] = { NULL, "unknown", "impossible_request", "limit",
		"oversubscribed", "device_refused", "fragmentation", "outside", "demand",
		"undecided", "leak" };

	return name[c];
}

bool vc_step_at(const struct vc_result *r, uint64_t event, uint64_t *step)
{
	const struct vc_steps *t = &r->steps;
	bool marked = false;

	*step = 0;
	for (size_t i = 0; i < t->marks; i++) {
		marked |= t->mark[i].kind == VC_MARK_STEP;
		*step += t->mark[i].kind == VC_MARK_STEP && t->mark[i].event < event;
	}
	for (size_t i = 0; i < t->phases && t->phase[i].event <= event && !marked; i++)
		*step = t->phase[i].iteration;
	return marked || (t->phases && t->phase[t->phases - 1].iteration && *step != UINT32_MAX);
}

/* The phase that an event lies in: as it was found, else as the program marks it. "" unknown. */
static const char *phase_at(const struct vc_result *r, uint64_t event)
{
	const struct vc_steps *t = &r->steps;
	const char *name = "";
	size_t depth = 0;

	for (size_t i = 0; i < t->phases && t->phase[i].event <= event; i++)
		name = t->phase[i].end_event > event ? t->phase[i].name : "";
	for (size_t i = 0; i < t->marks && t->mark[i].event <= event && !t->phases; i++) {
		if (t->mark[i].kind == VC_MARK_BEGIN && !depth++)
			name = vc_label_text(r->meta, t->mark[i].label);
		else if (t->mark[i].kind == VC_MARK_END && depth && !--depth)
			name = "";
	}
	return strcmp(name, "other") ? name : "";
}

/* What the run needs where nothing limits it. The first request that failed is rarely the one that
 * needs most. */
static void find_need(struct vc_findings *f, const struct vc_result *r)
{
	uint64_t beside = r->stats.peak_used - r->stats.peak_reserved;
	uint64_t need = r->need ? r->need + beside : 0;

	f->used = need > r->stats.peak_used ? need : r->stats.peak_used;
	f->low = r->has_interval ? r->trust.used_low : f->used;
	f->high = r->has_interval ? r->trust.used_high : f->used;
	f->room = r->info.capacity;
	if (r->info.has_limit && (!f->room || r->info.limit + beside < f->room))
		f->room = r->info.limit + beside;
	f->floor = r->stats.lower_bound + beside;
	if (r->moment.at_oom && r->moment.allocated + r->moment.request + beside > f->floor)
		f->floor = r->moment.allocated + r->moment.request + beside;
}

/* How much less would have to be in use: as far as the whole need is known, by that. */
static void find_lack(struct vc_findings *f, const struct vc_result *r)
{
	bool whole = (r->has_interval || r->need) && !f->at_least && f->high > f->room;

	if (!f->room)
		return;
	if (whole) {
		f->lacks_low = f->low > f->room ? f->low - f->room : 0;
		f->lacks_high = f->high - f->room;
	} else if (f->floor > f->room) {
		f->lacks_low = f->lacks_high = f->floor - f->room;
	}
}

enum vc_cause vc_cause_of(const struct vc_shortage *s)
{
	if (s->request.low > s->device.high)
		return VC_CAUSE_IMPOSSIBLE;
	if (s->need.high <= s->have.low) /* all that is live would fit */
		return s->beside ? VC_CAUSE_OUTSIDE : VC_CAUSE_FRAGMENTATION;
	if (s->need.low <= s->have.high)
		return VC_CAUSE_UNDECIDED;
	if (vc_minus(s->need.high, s->leak) <= s->have.low)
		return VC_CAUSE_LEAK;
	if (s->need.high <= s->all)
		return VC_CAUSE_LIMIT;
	return vc_minus(s->need.high, s->others) <= s->have.low ? VC_CAUSE_OUTSIDE :
								   VC_CAUSE_DEMAND;
}

static enum vc_cause cause_of(const struct vc_findings *f, const struct vc_result *r)
{
	uint64_t all = r->info.capacity, n = r->oom.alloc_size;
	bool limited = r->info.has_limit && (!all || f->room < all);
	uint64_t device = limited && all ? all : f->room;
	struct vc_shortage s = { { f->request, f->request }, { device, device },
				 { f->floor, f->floor }, { f->room, f->room }, f->others,
				 r->leak.bytes, limited ? all : 0,
				 f->others && n && r->oom.device_free + f->others >= n };

	if (f->verdict != VC_OOM || !r->moment.at_oom)
		return VC_CAUSE_NONE;
	return f->room ? vc_cause_of(&s) : VC_CAUSE_UNKNOWN;
}

/* The first that surely fits, else the first that may. */
static uint32_t best_try(const struct vc_tries *t)
{
	uint32_t found = VC_NO_TRY;

	for (size_t i = t->n; i-- > 0;) {
		enum vc_verdict v = vc_result_verdict(t->at[i].run);

		if (v == VC_FITS || (v == VC_UNDECIDED && (found == VC_NO_TRY ||
		    vc_result_verdict(t->at[found].run) != VC_FITS)))
			found = (uint32_t)i;
	}
	return found;
}

/* Of the device, as far as this process may have it. */
static uint64_t free_at(const struct vc_result *r)
{
	uint64_t left = vc_minus(r->info.limit, r->moment.reserved);

	return r->info.has_limit && left < r->moment.free ? left : r->moment.free;
}

struct vc_findings vc_findings_of(const struct vc_result *r)
{
	struct vc_findings f = { .verdict = vc_result_verdict(r), .left = UINT64_MAX,
				 .card = r->info.capacity || r->info.has_limit,
				 .at_least = r->trust.endless, .help = best_try(&r->tries) };

	find_need(&f, r);
	f.free = r->moment.cached + free_at(r);
	f.request = r->moment.request;
	f.piece = r->oom.alloc_size ? r->oom.alloc_size : r->oom.request;
	f.others = r->info.others;
	f.leak = r->leak.steps ? r->leak.bytes / r->leak.steps : 0;
	if (f.leak && f.room && f.verdict != VC_OOM)
		f.left = f.room > f.high ? (f.room - f.high) / f.leak : 0;
	f.phase = phase_at(r, r->moment.event);
	f.stepped = vc_step_at(r, r->moment.event, &f.step);
	if (!f.stepped && r->moment.steps) { /* nobody kept the marks, but they were counted */
		f.stepped = true;
		f.step = r->moment.steps;
	}
	find_lack(&f, r);
	f.cause = cause_of(&f, r);
	return f;
}
