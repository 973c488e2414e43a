/* SPDX-License-Identifier: Apache-2.0 */
/* ground.c - see ground.h */
#include "simulator/session/ground.h"

#include "common/map.h"
#include "simulator/replay/calls.h"

/* ---- which ---- */

/* Parameters that leave the rules as they are: when memory that other streams used comes back. */
static bool is_own(const struct vc_plan *p)
{
	return !p->params[0] ||
	       (!strncmp(p->params, "completion=", 11) && !strchr(p->params, ','));
}

/* None that the user gave: what vc_completion_default adds is what the recording leaves open. */
static bool is_default(const struct vc_recording *rec, const struct vc_plan *p)
{
	return !p->params[0] || (!strcmp(p->params, "completion=next") &&
				 rec->meta->how[VC_CAP_COMPLETION] == VC_HOW_ABSENT);
}

/* The recorded requests and no others, of a recording whose replay was looked at. */
static bool has_recorded_requests(const struct vc_job *job, const struct vc_plan *p)
{
	const struct vc_recording *rec = job->rec;

	bool changed = job->change && *job->change && !job->reran;

	return p->start == VC_START_ARGUED && !job->events && !job->source && !changed &&
	       !p->transform.n && !rec->streamed && rec->trace.memos && rec->seen.below;
}

/* The allocator that was recorded, too. */
static bool is_argued(const struct vc_job *job, const struct vc_plan *p)
{
	return has_recorded_requests(job, p) && is_own(p) && p->model->seed &&
	       p->model == vc_recording_model(job->rec);
}

static void count_heap(const struct vc_recording *rec, struct vc_stand *s)
{
	const struct vc_event *segment = NULL;
	bool lives = false;

	for (size_t i = 0; i < rec->trace.n; i++) {
		const struct vc_event *e = &rec->trace.ev[i];

		if (e->device != rec->device->device || (e->flags & VC_EVF_FINAL))
			continue;
		if (e->kind != VC_EV_HEAP_SEGMENT && e->kind != VC_EV_HEAP_BLOCK)
			break;
		if (e->kind == VC_EV_HEAP_SEGMENT) {
			segment = e;
			lives = false;
			s->start += e->size;
		} else if (segment && !lives && (e->flags & (VC_EVF_LIVE | VC_EVF_PENDING))) {
			lives = true;
			s->pinned += segment->size;
		}
	}
}

static bool same_text(const char *a, const char *b)
{
	return !strcmp(a ? a : "", b ? b : "");
}

bool vc_ground_hides_limit(const struct vc_recording *rec, const struct vc_plan *p)
{
	const char *word = "garbage_collection_threshold", *was = rec->meta->conf;

	return rec->device->has_start && p->fraction < 0 && p->capacity &&
	       (strstr(p->conf, word) || (was && strstr(was, word))) &&
	       !vc_plan_on_recorded_device(rec, p);
}

bool vc_ground_hides_before(const struct vc_recording *rec, const struct vc_plan *p)
{
	const struct vc_device_info *d = vc_meta_device_known(rec->meta, rec->device->device);
	uint64_t total = d && d->total ? d->total : rec->device->total;

	return rec->device->has_start && vc_plan_room(p) / 2 < rec->device->peak_reserved &&
	       !(total && p->capacity >= total && p->fraction < 0) &&
	       !vc_plan_on_recorded_device(rec, p);
}

/* Could nothing that the plan changes have changed anything? */
static int is_recorded(const struct vc_recording *rec, const struct vc_plan *plan,
		       struct vc_run *run, bool *rules, bool *same, struct vc_error *err)
{
	VC_TRY(vc_run_would_repeat(run, &rec->trace, &rec->seen, same, rules, err));
	/* The same settings, letter by letter, are the same rules on any device, but not the same
	 * run: how far a segment can grow hangs on the size of the device. */
	*rules |= same_text(plan->conf, rec->meta->conf) && same_text(plan->torch, rec->made_by);
	*same = (*same || (*rules && vc_plan_on_recorded_device(rec, plan))) &&
		!vc_ground_hides_limit(rec, plan) && plan->fraction < 0 && !plan->va &&
		!plan->more && is_default(rec, plan);
	return VC_OK;
}

int vc_ground_find(const struct vc_job *job, const struct vc_plan *plan, struct vc_run *run,
		   struct vc_stand *out, struct vc_error *err)
{
	const struct vc_recording *rec = job->rec;
	bool same;

	*out = (struct vc_stand){ .ground = VC_GROUND_ASKED,
				  .most = rec->device->peak_reserved };
	if (!is_argued(job, plan))
		return VC_OK;
	VC_TRY(is_recorded(rec, plan, run, &out->same_rules, &same, err));
	if (!rec->fidelity.checked)
		return VC_OK;
	if (same) {
		out->ground = rec->fidelity.exact ? VC_GROUND_RECORDED : VC_GROUND_ASKED;
		return VC_OK;
	}
	out->ground = VC_GROUND_WHOLE;
	if (!rec->device->has_start)
		return VC_OK;
	count_heap(rec, out);
	out->ground = VC_GROUND_PAST;
	if (out->same_rules && out->start <= vc_plan_room(plan))
		out->ground = VC_GROUND_WARM;
	return VC_OK;
}

/* ---- how far a past is off ---- */

struct seen_heap { struct vc_map *count; int by; };

/* Segments by size, stream and pool; of those that grow the bytes. */
static int count_extent(void *arg, const struct vc_extent *x)
{
	const struct seen_heap *h = arg;
	uint64_t where = (uint64_t)x->stream << 40 | (uint64_t)x->small << 39, *v;
	uint64_t key = where | (x->expandable ? 1 : x->size >> 9);
	uint64_t by = x->expandable ? x->size : 1, now;
	const uint64_t none = UINT64_C(1) << 62;

	if (x->what != VC_X_SEGMENT)
		return 0;
	v = vc_map_get(h->count, key);
	now = (v ? *v : none) + (h->by > 0 ? by : -by);
	return vc_map_put(h->count, key, now) ? 0 : VC_ENOMEM;
}

static uint64_t off_by(const struct vc_map *m)
{
	const uint64_t none = UINT64_C(1) << 62, sizes = (UINT64_C(1) << 39) - 1;
	uint64_t off = 0;

	for (size_t i = 0; m->slot && i <= m->mask; i++) {
		uint64_t value = m->slot[i].value, unit = m->slot[i].key & sizes;
		uint64_t n = value > none ? value - none : none - value;

		off += value ? n * (unit == 1 ? 1 : unit << 9) : 0;
	}
	return off;
}

static int count_recorded(const struct vc_recording *rec, struct vc_map *count,
			  uint64_t *reserved)
{
	const struct seen_heap h = { count, -1 };

	*reserved = 0;
	for (size_t i = 0; i < rec->trace.n; i++) {
		const struct vc_event *e = &rec->trace.ev[i];
		struct vc_extent x = { .what = VC_X_SEGMENT, .size = e->size,
				       .stream = e->stream, .small = e->flags & VC_EVF_SMALL,
				       .expandable = e->flags & VC_EVF_EXPANDABLE };

		if (e->device != rec->device->device || e->kind != VC_EV_HEAP_SEGMENT ||
		    (e->flags & VC_EVF_FINAL))
			continue;
		*reserved += e->size;
		if (count_extent((void *)(uintptr_t)&h, &x) < 0)
			return VC_ENOMEM;
	}
	return VC_OK;
}

static void drop(struct vc_memo *m)
{
	free(m);
}

/* What the past has left at the first event against what was recorded. */
static int compare_heaps(const struct vc_recording *rec, const struct vc_segments *now,
			 double *share, struct vc_error *err)
{
	struct vc_map count = { 0 };
	uint64_t reserved;
	int r = count_recorded(rec, &count, &reserved);

	for (size_t i = 0; r == VC_OK && i < now->n; i++) {
		const struct vc_segment_life *s = &now->at[i];
		struct seen_heap h = { &count, 1 };
		struct vc_extent x = { .what = VC_X_SEGMENT, .size = s->size,
				       .stream = s->stream, .small = s->small,
				       .expandable = s->expandable };

		r = s->born ? VC_OK : count_extent(&h, &x);
	}
	*share = reserved ? (double)off_by(&count) / (double)reserved : 1;
	vc_map_fini(&count);
	return r == VC_OK ? VC_OK : vc_nomem(err, "the heap of a history");
}

static int play(const struct vc_recording *rec, const struct vc_past *past, struct vc_distance *d,
		struct vc_error *err)
{
	static const struct vc_observer_type *const watch[] = { &vc_observer_segments, NULL };
	struct vc_run run = {
		.model = vc_recording_model(rec), .version = rec->made_by,
		.conf = rec->meta->conf ? rec->meta->conf : "", .fraction = -1,
		.device = { .total = VC_DEVICE_UNLIMITED, .prop_total = vc_recorded_total(rec),
			    .va = vc_va_of_first(rec->device->first_segment),
			    .index = rec->device->device },
		.device_index = rec->device->device, .start = VC_START_REBUILD, .before = past,
		.observers = watch };
	struct vc_result r;
	int rc;

	run.source = vc_source_memory(&rec->trace, err);
	if (!run.source)
		return VC_ENOMEM;
	rc = vc_run(&run, &r, err);
	vc_source_free(run.source);
	VC_TRY(rc);
	d->peak = r.stats.peak_reserved;
	rc = compare_heaps(rec, &r.segments, &d->share, err);
	vc_result_fini(&r);
	return rc;
}

static int measure(const struct vc_trace *t, uint64_t key, const void *arg, struct vc_memo **out,
		   struct vc_error *err)
{
	const struct vc_recording *rec = arg;
	struct vc_distance *d = calloc(1, sizeof(*d));
	struct vc_past *past = NULL;
	int r = d ? vc_past_of(t, rec->device->device, (enum vc_past_kind)(key & 0xff), &past, err)
		  : vc_nomem(err, "the heap of a history");

	if (r == VC_OK && past->n)
		r = play(rec, past, d, err);
	else if (r == VC_OK)
		d->share = -1;
	if (past)
		vc_memo_put(&past->memo);
	if (r < 0) {
		free(d);
		return r;
	}
	d->memo.drop = drop;
	*out = &d->memo;
	return VC_OK;
}

int vc_ground_distance(const struct vc_recording *rec, enum vc_past_kind kind,
		       struct vc_distance **out, struct vc_error *err)
{
	struct vc_memo *m;

	VC_TRY(vc_memo_get(&rec->trace, (uint64_t)rec->device->device << 8 | kind, measure, rec,
			   &m, err));
	*out = (struct vc_distance *)m;
	return VC_OK;
}

int vc_ground_nearest(const struct vc_recording *rec, enum vc_past_kind *kind, double *share,
		      struct vc_error *err)
{
	static const enum vc_past_kind one_of[] = { VC_PAST_LATE, VC_PAST_STATES,
						     VC_PAST_ROUND, VC_PAST_ALONE };

	*share = 1e9;
	*kind = VC_PAST_ALONE;
	for (size_t i = 0; i < sizeof(one_of) / sizeof(*one_of); i++) {
		struct vc_distance *d;

		VC_TRY(vc_ground_distance(rec, one_of[i], &d, err));
		if (d->share >= 0 && d->share < *share) {
			*share = d->share;
			*kind = one_of[i];
		}
		vc_memo_put(&d->memo);
	}
	return VC_OK;
}

/* ---- the run ---- */

static int take_kind(const struct vc_recording *rec, enum vc_past_kind kind, struct vc_run *run,
		     struct vc_footing *held, struct vc_error *err)
{
	struct vc_past *past;

	VC_TRY(vc_past_of(&rec->trace, rec->device->device, kind, &past, err));
	held->past = &past->memo;
	run->before = past;
	return VC_OK;
}

/* Another allocator meets what a program has probably done before. */
static int take_nearest(const struct vc_recording *rec, struct vc_run *run,
			struct vc_footing *held, struct vc_error *err)
{
	enum vc_past_kind kind;
	double share;

	VC_TRY(vc_ground_nearest(rec, &kind, &share, err));
	return take_kind(rec, kind, run, held, err);
}

static int take_past(const struct vc_job *job, const struct vc_plan *plan,
		     const struct vc_stand *s, struct vc_run *run, struct vc_footing *held,
		     struct vc_error *err)
{
	enum vc_past_kind kind = VC_PAST_ALONE;
	double share;

	run->start = VC_START_REBUILD;
	if (plan->past == VC_TAKE_WARM || plan->past == VC_TAKE_TRIMMED) {
		run->start = plan->past == VC_TAKE_WARM ? VC_START_WARM : VC_START_TRIMMED;
		return VC_OK;
	}
	if (plan->past == VC_TAKE_BEST) {
		if (s->same_rules && s->pinned <= vc_plan_room(plan)) {
			run->start = VC_START_TRIMMED;
			return VC_OK;
		}
		VC_TRY(vc_ground_nearest(job->rec, &kind, &share, err));
		if (share > VC_GROUND_NEAR && !s->same_rules && !plan->capacity &&
		    !strstr(plan->conf, "expandable_segments:True"))
			kind = VC_PAST_FILLED;
	} else {
		kind = (enum vc_past_kind)(plan->past - 1);
	}
	return take_kind(job->rec, kind, run, held, err);
}

/* Where nothing is argued: the recorded heap if these rules made it, else its blocks anew. */
static enum vc_start start_of(const struct vc_recording *rec, const struct vc_plan *plan,
			      const struct vc_stand *s)
{
	bool same = s->same_rules || (same_text(plan->conf, rec->meta->conf) && !plan->params[0]);

	if (!rec->device->has_start)
		return VC_START_COLD;
	return same && !plan->transform.n && plan->model->seed ? VC_START_WARM : VC_START_REBUILD;
}

/* Addresses as recorded for as long as the driver is asked for the same. */
static int take_calls(const struct vc_recording *rec, struct vc_run *run, struct vc_footing *held,
		      struct vc_error *err)
{
	struct vc_calls *calls;

	VC_TRY(vc_calls_of(&rec->trace, rec->device->device, &calls, err));
	held->calls = &calls->memo;
	run->device.call = calls->at;
	run->device.calls = calls->n;
	return VC_OK;
}

int vc_ground_take(const struct vc_job *job, const struct vc_plan *plan, const struct vc_stand *s,
		   struct vc_run *run, struct vc_footing *held, struct vc_error *err)
{
	const struct vc_recording *rec = job->rec;

	*held = (struct vc_footing){ NULL, NULL };
	if (plan->start == VC_START_ARGUED)
		run->start = start_of(rec, plan, s);
	if (s->ground == VC_GROUND_ASKED)
		return run->start == VC_START_REBUILD && has_recorded_requests(job, plan) &&
				       rec->fidelity.exact ?
			       take_nearest(rec, run, held, err) : VC_OK;
	if (s->ground == VC_GROUND_PAST)
		return take_past(job, plan, s, run, held, err);
	run->start = rec->device->has_start ? VC_START_WARM : VC_START_COLD;
	if (s->ground == VC_GROUND_RECORDED) {
		run->model_params = NULL; /* as it was verified */
		run->follow = true;
		run->whole = &rec->trace;
		return VC_OK;
	}
	return plan->va ? VC_OK : take_calls(rec, run, held, err);
}

void vc_ground_leave(struct vc_footing *held)
{
	vc_memo_put(held->past);
	vc_memo_put(held->calls);
	*held = (struct vc_footing){ NULL, NULL };
}
