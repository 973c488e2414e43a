/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - see verify.h */
#include "simulator/session/verify.h"

#include "common/vec.h"
#include "simulator/session/job.h"

/* What a replay of the recording showed. */
struct shown { struct vc_fidelity f; struct vc_seen seen; };

static int verify_as(struct vc_recording *rec, const char *version, struct shown *s,
		     struct vc_error *err)
{
	static const struct vc_observer_type *const watch[] = { &vc_observer_fidelity, NULL };
	struct vc_result out;

	VC_TRY(vc_job_follow(rec, version, watch, &out, err));
	*s = (struct shown){ out.fidelity, out.seen };
	out.fidelity.diverged_why = NULL;
	out.seen.witness = NULL;
	vc_result_fini(&out);
	return VC_OK;
}

/* Is `a` closer to the recording than `b`? */
static bool better(const struct vc_fidelity *a, const struct vc_fidelity *b)
{
	if (a->exact != b->exact)
		return a->exact;
	if (a->address_mismatches != b->address_mismatches)
		return a->address_mismatches < b->address_mismatches;
	return a->final_mismatches < b->final_mismatches;
}

/* The result of a replay under another guess: kept when it is closer to the recording. */
static bool adopt(struct vc_recording *rec, const struct shown *s)
{
	bool closer = better(&s->f, &rec->fidelity);
	struct shown worse = *s;

	if (closer) {
		worse = (struct shown){ rec->fidelity, rec->seen };
		rec->fidelity = s->f;
		rec->seen = s->seen;
	}
	VC_FREE(worse.f.diverged_why, worse.seen.witness);
	return closer;
}

/* A snapshot does not say how large its device was: the card whose size reproduces it is taken. */
static int try_totals(struct vc_recording *rec, const struct vc_recording_ask *ask,
		      struct vc_error *err)
{
	const char *conf = rec->meta->conf ? rec->meta->conf : "";
	uint64_t best = 0;
	bool grows = strstr(conf, "expandable_segments") != NULL;

	for (size_t i = 0; grows && i <= vc_cards_n && !rec->fidelity.exact; i++) {
		struct shown f = { .f = { 0 } };

		rec->total = i ? vc_cards[i - 1].total : ask->total;
		if (rec->total < rec->device->peak_reserved)
			continue;
		VC_TRY(verify_as(rec, rec->torch, &f, err));
		if (adopt(rec, &f))
			best = rec->total;
	}
	rec->total = best;
	return VC_OK;
}

/* From 2.12 on equally large blocks stand by their age, which a snapshot does not tell: that of
 * segments follows from the way the driver gives out addresses. */
static int try_orders(struct vc_recording *rec, struct vc_error *err)
{
	enum vc_heap_order best = VC_HEAP_UPWARDS;

	for (int k = VC_HEAP_DOWNWARDS; k < VC_HEAP_ORDERS && !rec->fidelity.exact; k++) {
		struct shown f = { .f = { 0 } };

		rec->heap_order = (enum vc_heap_order)k;
		VC_TRY(verify_as(rec, rec->made_by[0] ? rec->made_by : rec->torch, &f, err));
		if (adopt(rec, &f))
			best = (enum vc_heap_order)k;
	}
	rec->heap_order = best;
	return VC_OK;
}

/* Keep what the replay under this version shows where it comes closer to the recording. */
static int try_version(struct vc_recording *rec, const char *version,
		       const struct vc_recording_ask *ask, struct vc_error *err)
{
	struct shown f = { .f = { 0 } };
	struct vc_error refused = { 0 };
	int r = rec->fidelity.exact ? VC_EUSAGE : verify_as(rec, version, &f, &refused);

	if (r == VC_EUSAGE) /* it refuses the recorded settings: it did not make it */
		return VC_OK;
	if (r < 0) {
		*err = refused;
		return r;
	}
	if (!adopt(rec, &f))
		return VC_OK;
	snprintf(rec->made_by, sizeof(rec->made_by), "%s", version);
	if (!ask->torch) {
		snprintf(rec->torch, sizeof(rec->torch), "%s", version);
		rec->torch_from = "guessed";
	}
	return VC_OK;
}

bool vc_verify_possible(const struct vc_recording *rec)
{
	const struct vc_device_census *d = rec->device;

	return (vc_recording_is_host(rec) || !vc_plan_is_drivers(rec->meta->conf)) &&
	       d->allocs + d->frees + d->ooms > 0 &&
	       (d->segment_allocs || d->final_segments || d->start_segments ||
		rec->meta->how[VC_CAP_ADDRESSES] != VC_HOW_ABSENT);
}

int vc_verify(struct vc_recording *rec, const struct vc_recording_ask *ask, struct vc_error *err)
{
	const struct vc_model_type *m = vc_recording_model(rec);
	bool says = rec->meta->torch && !rec->meta->torch_guessed;
	/* sixteen more replays: not for minutes of recording */
	bool try_others = !says && m && m->versions && rec->device->events < 1000000;
	const char *own = vc_recording_version(rec);
	const char *first = !says && ask->claimed ? ask->claimed : own;
	struct shown now = { .f = { 0 } };
	int r;

	if (m && !vc_verify_possible(rec) && rec->device->has_start) {
		/* A heap and no requests: nothing to check, but what its rules hung on counts. */
		VC_TRY(verify_as(rec, own, &now, err));
		free(now.f.diverged_why);
		rec->seen = now.seen;
	}
	if (!m || !vc_verify_possible(rec))
		return VC_OK;
	r = verify_as(rec, first, &now, err);
	if (r == VC_EUSAGE && first != own) { /* there is no such, or it refuses the settings */
		first = own;
		r = verify_as(rec, first, &now, err);
	}
	VC_TRY(r);
	rec->fidelity = now.f;
	rec->seen = now.seen;
	snprintf(rec->made_by, sizeof(rec->made_by), "%s", first);
	/* The recording does not say which version made it: one that reproduces it may be it. What
	 * the user says comes first, then what the layout of the file says. */
	if (first != own)
		VC_TRY(try_version(rec, own, ask, err));
	for (size_t i = 0; try_others && m->versions[i]; i++)
		VC_TRY(try_version(rec, m->versions[i], ask, err));
	if (!rec->fidelity.exact && rec->device->has_start && rec->device->events < 1000000)
		VC_TRY(try_orders(rec, err));
	bool unsure =
		!rec->fidelity.exact && !vc_recorded_total(rec) && rec->device->events < 200000;
	return unsure ? try_totals(rec, ask, err) : VC_OK;
}
