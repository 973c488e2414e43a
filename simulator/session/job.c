/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - see job.h */
#include "simulator/session/job.h"

#include "simulator/session/ground.h"

/* Whose allocator: that of the card that was asked for, else that of the recorded one. */
static enum vc_device_kind kind_of(const struct vc_job *job, const struct vc_plan *p)
{
	const struct vc_device_info *d =
		vc_meta_device_known(job->rec->meta, job->rec->device->device);

	return p->card ? p->card->kind : vc_card_kind(p->device ? p->device : d ? d->name : NULL);
}

/* Expandable segments reserve addresses for 9/8 of it: a run that needs less has as much as the
 * best estimate would have on a larger device. */
static uint64_t prop_total(const struct vc_plan *p)
{
	uint64_t total = p->prop_total ? p->prop_total : p->capacity;

	return p->more < 0 && total ? total + (uint64_t)-p->more : p->prop_total;
}

static struct vc_run make_run(const struct vc_job *job, const struct vc_plan *p)
{
	const struct vc_tenants *t = p->tenants;

	return (struct vc_run){
		.model = p->model, .model_params = p->params[0] ? p->params : NULL,
		.version = p->torch[0] ? p->torch : NULL, .conf = p->conf, .fraction = p->fraction,
		/* Where nothing is recorded, addresses come as the recording's driver gave them. */
		.device = { .kind = kind_of(job, p),
			    .va = p->va ? p->va : vc_va_of_first(job->rec->device->first_segment),
			    .order = p->va_order,
			    .total = p->capacity ? p->capacity : VC_DEVICE_UNLIMITED,
			    .prop_total = prop_total(p), .context = p->context, .more = p->more,
			    .others = p->others + (t ? t->others : 0),
			    .process = t ? t->process : NULL,
			    .processes = t && p->capacity ? t->processes : 0,
			    .index = job->rec->device->device },
		.device_index = job->rec->device->device, .heap_order = job->rec->heap_order,
		.start = p->start, .stop_at_oom = p->stop_at_oom,
		.enough = p->enough };
}

static bool copy_text(char **to, const char *from)
{
	if (from)
		*to = strdup(from);
	return !from || *to;
}

char *vc_job_change(const char *change, const struct vc_list *transforms, char *buf, size_t n)
{
	size_t at = (size_t)snprintf(buf, n, "%s", change ? change : "");

	for (size_t i = 0; i < transforms->n && at < n; i++)
		at += (size_t)snprintf(buf + at, n - at, "%s%s", at ? ", " : "",
				       transforms->at[i]);
	return buf;
}

static int fill_info(const struct vc_job *job, const struct vc_plan *p, struct vc_result *out,
		     struct vc_error *err)
{
	const char *path = job->rec->path, *slash = strrchr(path, '/');
	struct vc_run_info *i = &out->info;
	char change[256];

	i->capacity = p->capacity;
	i->context = p->context;
	i->others = p->others + (p->tenants ? p->tenants->others : 0);
	i->device = job->rec->device->device;
	i->owner = p->model->owner ? p->model->owner : p->model->name;
	i->limit = out->stats.limit;
	i->has_limit = out->stats.has_limit;
	if (copy_text(&i->model, p->model->name) && copy_text(&i->params, p->params) &&
	    copy_text(&i->torch, p->torch[0] ? p->torch : NULL) && copy_text(&i->conf, p->conf) &&
	    copy_text(&i->trace, slash ? slash + 1 : path) && copy_text(&i->gpu, p->device) &&
	    copy_text(&i->change,
		      vc_job_change(job->change, &p->transform, change, sizeof(change))))
		return VC_OK;
	return vc_nomem(err, "the result");
}

/* Fills *out and owns run->source. */
static int finish(const struct vc_job *job, const struct vc_plan *plan, struct vc_run *run,
		  struct vc_result *out, struct vc_error *err)
{
	int r = vc_run(run, out, err);

	vc_source_free(run->source);
	VC_TRY(r);
	out->meta = job->rec->meta;
	r = fill_info(job, plan, out, err);
	if (r < 0)
		vc_result_fini(out);
	return r;
}

/* other: what the source reads where the events are not the recording's; it must outlive it. */
static struct vc_source *source_of(const struct vc_job *job, const struct vc_plan *p,
				   struct vc_recording *other, struct vc_error *err)
{
	if (job->source)
		return job->source;
	if (!job->events)
		return vc_recording_source(job->rec, &p->transform, err);
	*other = (struct vc_recording){ .path = job->rec->path, .trace = *job->events };
	other->trace.meta = job->rec->meta; /* alternatives have none of their own */
	return vc_recording_source(other, &p->transform, err);
}

int vc_job_run(const struct vc_job *job, const struct vc_plan *plan,
	       const struct vc_observer_type *const *observers, struct vc_result *out,
	       struct vc_error *err)
{
	const char *path = job->rec->path;
	struct vc_recording other;
	struct vc_stand stand;
	struct vc_footing held;
	struct vc_run run;
	int r;

	if (vc_plan_is_drivers(plan->conf) && strcmp(plan->model->name, "torch") == 0) {
		vc_source_free(job->source);
		return vc_fail(err, VC_ENOSUP, "%s: under backend:cudaMallocAsync the driver's "
			       "own pools serve requests, which know nothing of the torch model's "
			       "parameters: take -m cuda_async, or --conf backend:native for what "
			       "PyTorch's allocator would do", path);
	}
	run = make_run(job, plan);
	run.observers = observers;
	run.source = source_of(job, plan, &other, err);
	if (!run.source)
		return err->status ? (int)err->status : VC_ENOMEM;
	r = vc_ground_find(job, plan, &run, &stand, err);
	if (r == VC_OK)
		r = vc_ground_take(job, plan, &stand, &run, &held, err);
	if (r < 0) {
		vc_source_free(run.source);
		return vc_wrap(err, "%s", path);
	}
	r = finish(job, plan, &run, out, err);
	vc_ground_leave(&held);
	if (r < 0)
		return vc_wrap(err, "%s", path);
	out->basis.ground = stand.ground;
	/* the engine may have had to change it */
	out->info.warm = run.start == VC_START_WARM || run.start == VC_START_TRIMMED;
	out->info.rebuilt = run.start == VC_START_REBUILD;
	return VC_OK;
}

int vc_job_stand(const struct vc_job *job, const struct vc_plan *plan, struct vc_stand *out,
		 struct vc_error *err)
{
	struct vc_run run = make_run(job, plan);
	int r;

	run.source = source_of(job, plan, &(struct vc_recording){ 0 }, err);
	if (!run.source)
		return err->status ? (int)err->status : VC_ENOMEM;
	r = vc_ground_find(job, plan, &run, out, err);
	vc_source_free(run.source);
	return r;
}

int vc_job_follow(const struct vc_recording *rec, const char *version,
		  const struct vc_observer_type *const *observers, struct vc_result *out,
		  struct vc_error *err)
{
	struct vc_job job = { .rec = rec };
	struct vc_plan p = { .model = vc_recording_model(rec), .fraction = -1,
			     .conf = rec->meta->conf ? rec->meta->conf : "",
			     .start = rec->device->has_start ? VC_START_WARM : VC_START_COLD };
	struct vc_run run;
	int r;

	if (!p.model)
		return vc_fail(err, VC_ENOSUP, "the model of its allocator is not built in");
	snprintf(p.torch, sizeof(p.torch), "%s", version);
	p.prop_total = vc_recorded_total(rec);
	run = make_run(&job, &p);
	run.follow = true;
	run.whole = rec->streamed ? NULL : &rec->trace;
	run.observers = observers;
	run.source = vc_recording_source(rec, NULL, err);
	if (!run.source)
		return err->status ? (int)err->status : VC_ENOMEM;
	r = finish(&job, &p, &run, out, err);
	return r < 0 ? vc_wrap(err, "%s: replay under the recorded settings", rec->path) : r;
}

int vc_job_widen(const struct vc_job *job, const struct vc_plan *plan, struct vc_result *out,
		 struct vc_error *err)
{
	static const struct vc_observer_type *const nobody[] = { NULL };
	struct vc_result r;

	VC_TRY(vc_job_run(job, plan, nobody, &r, err));
	if (!out->has_interval || r.stats.peak_reserved < out->low)
		out->low = r.stats.peak_reserved;
	if (!out->has_interval || r.stats.peak_reserved > out->high)
		out->high = r.stats.peak_reserved;
	out->has_interval = true;
	vc_result_fini(&r);
	return VC_OK;
}
