/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c - see engine.h: a run is set up, replayed or found among the known ones, handed over. */
#include "simulator/replay/engine.h"

#include "common/vec.h"
#include "simulator/replay/engine_parts.h"
#include "simulator/replay/known.h"

static void on_device(void *arg, const struct vc_device_change *c)
{
	struct vc_engine *e = arg;

	e->stats.driver_calls++;
	if (!c->failed) {
		e->stats.segment_allocs += c->what == VC_DRV_MALLOC;
		e->stats.segment_frees += c->what == VC_DRV_FREE;
	}
	for (size_t i = 0; i < e->nobs; i++)
		if (e->obs[i].type->device)
			e->obs[i].type->device(&e->obs[i], c);
}

static void on_trace(void *arg, const struct vc_trace_entry *t)
{
	struct vc_engine *e = arg;

	for (size_t i = 0; i < e->nobs; i++)
		if (e->obs[i].type->trace)
			e->obs[i].type->trace(&e->obs[i], t);
}

static int setup_observers(struct vc_engine *e, struct vc_error *err)
{
	const struct vc_observer_type *const *t = e->run->observers;

	for (; t && t[e->nobs]; e->nobs++) {
		struct vc_observer *o = &e->obs[e->nobs];

		if (e->nobs == VC_ENGINE_OBSERVERS)
			return vc_fail(err, VC_EINTERNAL, "more than %d observers",
				       VC_ENGINE_OBSERVERS);
		o->type = t[e->nobs];
		o->meta = e->meta;
		o->state = calloc(1, o->type->state_size ? o->type->state_size : 1);
		VC_HAVE(o->state, o->type->name, err);
		e->has_step |= o->type->step != NULL;
		e->ntrace += o->type->trace != NULL;
	}
	if (e->ntrace) {
		e->model.trace = on_trace;
		e->model.trace_arg = e;
	}
	return VC_OK;
}

static int setup(struct vc_engine *e, struct vc_error *err)
{
	const struct vc_model_type *t = e->run->model;
	void *cfg = calloc(1, t->config_size ? t->config_size : 1);

	e->meta = e->run->source->meta;
	e->device_index = e->run->device_index;
	e->streams = (struct vc_streams){ e->meta->stream, e->meta->streams };
	vc_pages_init(&e->live, sizeof(struct vc_live));
	e->live.as_it_was = true;
	e->model = (struct vc_model){ .type = t, .config = cfg, .streams = &e->streams,
				      .version = e->run->version, .conf = e->run->conf,
				      .first_text = e->run->follow,
				      .state = calloc(1, t->state_size ? t->state_size : 1) };
	VC_HAVE(cfg && e->model.state, "the model", err);
	if (e->run->follow)
		e->run->device.va = VC_VA_LIST;
	e->device = vc_device_new(&e->run->device, err);
	if (!e->device)
		return VC_ENOMEM;
	e->model.device = e->device;
	e->beside = e->run->device.context + e->run->device.others;
	vc_device_listen(e->device, on_device, e);
	if (e->run->follow &&
	    !(e->follow = vc_follow_new(e->device, e->run->whole, e->run->device_index, err)))
		return VC_ENOMEM;
	if (vc_params_parse(t->params, cfg, e->run->model_params, err) < 0 ||
	    (t->init && t->init(&e->model, err) < 0))
		return vc_wrap(err, "%s", t->name);
	if (e->run->fraction >= 0 && t->fraction) {
		int r = t->fraction(&e->model, e->run->fraction, err);

		if (r == VC_RAISED)
			return vc_fail(err, VC_EUSAGE, "%s", e->model.note);
		VC_TRY(r);
	}
	return setup_observers(e, err);
}

static void teardown(struct vc_engine *e)
{
	if (e->model.type->fini && e->model.state)
		e->model.type->fini(&e->model);
	VC_FREE((void *)e->model.config, e->model.state);
	for (size_t i = 0; i < e->nobs; i++) {
		if (e->obs[i].type->fini)
			e->obs[i].type->fini(&e->obs[i]);
		free(e->obs[i].state);
	}
	vc_follow_free(e->follow);
	vc_device_free_all(e->device);
	vc_pages_fini(&e->live);
	vc_beside_fini(&e->outside);
	VC_FREE(e->heap, e->heap_site);
}

/* What the run depended on, for others that may be the same. */
static int keep_seen(const struct vc_engine *e, struct vc_result *out, struct vc_error *err)
{
	const struct vc_model_type *t = e->model.type;
	struct vc_device_span span = vc_device_span(e->device);

	out->seen = (struct vc_seen){ NULL, span.least, span.below };
	if (e->resettled || !t->witness)
		return VC_OK;
	out->seen.witness = calloc(1, t->witness_size);
	VC_HAVE(out->seen.witness, "what a run depended on", err);
	t->witness(&e->model, out->seen.witness);
	return VC_OK;
}

static int finish(struct vc_engine *e, struct vc_result *out, struct vc_error *err)
{
	e->stats.events = e->index;
	e->stats.limited |= e->run->fraction >= 0;
	if (!e->stats.ooms)
		vc_engine_limit(e);
	e->stats.cut_short |= !e->stats.allocs; /* the heap at one moment, no requests */
	e->stats.flushes = e->model.now.retries + e->trimmed;
	e->stats.by_address = e->model.now.by_address;
	e->stats.final_reserved = e->model.now.reserved;
	e->stats.final_allocated = e->model.now.allocated;
	e->stats.driver_ns = vc_device_clock_ns(e->device);
	e->stats.has_times = e->stats.time_ns != 0;
	out->stats = e->stats;
	out->meta = e->meta;
	if (e->run->follow)
		VC_TRY(keep_seen(e, out, err));
	for (size_t i = 0; i < e->nobs; i++)
		VC_TRY(e->obs[i].type->end(&e->obs[i], &e->model, out, err));
	return VC_OK;
}

static int replay_all(struct vc_engine *e, struct vc_result *out, struct vc_error *err)
{
	const struct vc_trace *t = vc_known_trace(e->run);
	enum vc_start asked = e->run->start;

	if (vc_known_find(t, e->run, &e->model, out)) {
		out->meta = e->meta;
		return VC_OK;
	}
	VC_TRY(vc_engine_loop(e, err));
	VC_TRY(finish(e, out, err));
	out->given_up = e->given_up;
	/* Whether the heap could be taken over hangs on more than the answers of the device. */
	if (!e->alone && (asked == e->run->start || !e->model.type->seed))
		vc_known_keep(t, e->run, asked, &e->model, out);
	return VC_OK;
}

int vc_run(struct vc_run *run, struct vc_result *out, struct vc_error *err)
{
	struct vc_engine e = { .run = run, .alert = true };
	int r = setup(&e, err);

	*out = (struct vc_result){ 0 };
	if (r == VC_OK)
		r = replay_all(&e, out, err);
	if (r < 0)
		vc_result_fini(out);
	teardown(&e);
	return r < 0 ? r : VC_OK;
}

int vc_run_would_repeat(struct vc_run *run, const struct vc_trace *t, const struct vc_seen *seen,
			bool *same, bool *rules, struct vc_error *err)
{
	struct vc_engine e = { .run = run };
	int r = setup(&e, err);

	*same = *rules = false;
	if (r == VC_OK) {
		uint64_t room = vc_device_available(e.device);

		if (seen->witness && e.model.type->repeats)
			*rules = vc_known_repeats(t, &e.model, seen->witness);
		*same = *rules && seen->below && room >= seen->least && room < seen->below;
	}
	teardown(&e);
	return r;
}
