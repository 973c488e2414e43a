/* SPDX-License-Identifier: Apache-2.0 */
/* session.c - see session.h */
#include "simulator/session/session.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulator/session/bounds.h"
#include "simulator/session/completion.h"
#include "simulator/session/host.h"
#include "simulator/replay/infer.h"
#include "simulator/session/purposes.h"
#include "simulator/time/time.h"
#include "simulator/session/whatif.h"

#define KEEP_EVENTS (1u << 20)         /* beyond this (50 MB) a single run streams the file */
#define UNLIMITED (4ull << 40)         /* "no capacity given": more than any card has */

#define AT(f) offsetof(struct vc_run_options, f)
const struct vc_option vc_run_options[] = {
	{ 'm', "model", VC_O_LIST, AT(model), "NAME[:K=V,...]",
	  "allocator model; repeat for several runs (vramcast list models)", NULL },
	{ 0, "torch", VC_O_LIST, AT(torch), "VERSION",
	  "PyTorch version whose allocator is replayed; repeat for several", NULL },
	{ 0, "conf", VC_O_LIST, AT(conf), "STRING",
	  "a PYTORCH_CUDA_ALLOC_CONF value; repeat for several runs", NULL },
	{ 'g', "gpu", VC_O_LIST, AT(gpu), "NAME",
	  "card profile (vramcast gpus), default the recorded one; repeat for several", NULL },
	{ 0, "capacity", VC_O_SIZE, AT(capacity), "SIZE",
	  "total memory of the device instead of a card", NULL },
	{ 0, "used", VC_O_LIST, AT(used), "SIZE[@PID]",
	  "memory held by another process; repeat for several", NULL },
	{ 0, "context", VC_O_SIZE, AT(context), "SIZE",
	  "memory of this process outside the allocator (CUDA context, NCCL)", NULL },
	{ 0, "fraction", VC_O_REAL, AT(fraction), "F",
	  "torch.cuda.set_per_process_memory_fraction(F) from the start", NULL },
	{ 0, "set", VC_O_LIST, AT(set), "NAME=VALUE",
	  "value of a recorded parameter to extrapolate to", NULL },
	{ 'x', "transform", VC_O_LIST, AT(transform), "NAME[:K=V,...]",
	  "a what-if on the events, in the order given (vramcast list transforms)", NULL },
	{ 0, "start", VC_O_TEXT, AT(start), "warm|rebuild|cold",
	  "heap at the first event: as recorded, asked for anew, or empty", NULL },
	{ 0, "device", VC_O_UINT, AT(device), "N",
	  "which device of the trace (default: the one that ran out, or the fullest)", NULL },
	{ 0, "rank", VC_O_UINT, AT(rank), "N", "the same, for traces of several ranks", NULL },
	{ 0, "verify", VC_O_FLAG, AT(verify), NULL,
	  "replay under the recorded settings first and report fidelity (default)", "yes" },
	{ 0, "no-verify", VC_O_NOT, AT(verify), NULL, "skip that replay", NULL },
	{ 0, "treat-segments-as-requests", VC_O_FLAG, AT(treat_segments), NULL,
	  "simulate a trace that has segments only", NULL },
	VC_OPTION_END
};

struct vc_run_options vc_run_options_none(void)
{
	return (struct vc_run_options){ .capacity = VC_NOT_GIVEN,
				       .context = VC_NOT_GIVEN,
				       .fraction = NAN,
				       .device = VC_NOT_GIVEN,
				       .rank = VC_NOT_GIVEN };
}

/* ---- opening ---- */

static int read_events(struct vc_session *s, struct vc_source *src, unsigned flags,
		       struct vc_error *err)
{
	struct vc_event ev[512];
	bool keep = true;
	long n;

	while ((n = src->type->next(src, ev, 512, err)) > 0) {
		if (vc_census_add(&s->census, ev, (size_t)n, err) < 0)
			return VC_ENOMEM;
		if (keep && s->trace.n + (size_t)n > KEEP_EVENTS &&
		    !(flags & VC_SESSION_IN_MEMORY) && !vc_input_is_stream(s->path)) {
			free(s->trace.ev);
			s->trace = (struct vc_trace){ 0 };
			s->streamed = true;
			keep = false;
		}
		if (keep && vc_trace_append(&s->trace, ev, (size_t)n, err) < 0)
			return VC_ENOMEM;
	}
	return n < 0 ? (int)n : VC_OK;
}

static int read_trace(struct vc_session *s, unsigned flags, struct vc_error *err)
{
	struct vc_source *src = vc_source_open(s->path, err);
	int r;

	if (!src)
		return err->status ? (int)err->status : VC_EIO;
	r = read_events(s, src, flags, err);
	s->source = src->type->name;
	s->meta = src->meta;
	s->trace.meta = src->meta;
	src->meta = NULL;
	vc_source_free(src);
	return r == VC_OK && !s->streamed ? vc_infer(&s->trace, err) : r;
}

static int choose_device(struct vc_session *s, struct vc_error *err)
{
	uint64_t want = s->opt->device != VC_NOT_GIVEN ? s->opt->device : s->opt->rank;

	if (want == VC_NOT_GIVEN)
		s->device = vc_census_deciding(&s->census);
	else if (want <= UINT16_MAX)
		s->device = vc_census_of(&s->census, (uint16_t)want);
	if (!s->device && want != VC_NOT_GIVEN && s->census.devices)
		return vc_fail(err, VC_EUSAGE,
			       "%s: no events of device %" PRIu64 " (the trace has device %u%s)",
			       s->path, want, s->census.device[0].device,
			       s->census.devices > 1 ? " and others" : "");
	if (!s->device)
		return vc_fail(err, VC_EFORMAT, "%s: there are no events in it%s", s->path,
			       s->meta->complete ?
				       "" :
				       " that can be read: the file is cut off or damaged");
	return VC_OK;
}

static int need_requests(struct vc_session *s, struct vc_error *err)
{
	const struct vc_device_census *d = s->device;

	if (d->allocs + d->frees + d->preexisting + d->ooms)
		return VC_OK;
	if (d->segment_allocs || d->start_segments || d->has_final)
		return vc_fail(err, VC_EFORMAT,
			       "%s: has segments only, no allocation requests to replay "
			       "(recorded without memory history; see 'vramcast info')",
			       s->path);
	return vc_fail(err, VC_EFORMAT, "%s: has no allocation requests to replay", s->path);
}

/* "18.81GiB" or "18.81GiB@4711" */
static int parse_used(struct vc_session *s, struct vc_error *err)
{
	for (size_t i = 0; i < s->opt->used.n; i++) {
		const char *text = s->opt->used.at[i], *at = strchr(text, '@');
		char size[64];
		uint64_t bytes, pid = 0;

		snprintf(size, sizeof(size), "%.*s", at ? (int)(at - text) : (int)strlen(text),
			 text);
		if (vc_parse_size(size, &bytes, err) < 0 ||
		    (at && vc_parse_uint(at + 1, &pid, err) < 0))
			return vc_wrap(err, "--used %s", text);
		if (s->processes + 1 == sizeof(s->process) / sizeof(*s->process))
			return vc_fail(err, VC_EUSAGE, "--used: at most %zu processes",
				       s->processes);
		if (s->others + bytes < bytes)
			return vc_fail(err, VC_EUSAGE, "--used: the sum is larger than any memory");
		s->others += bytes;
		if (at)
			s->process[s->processes++] =
				(struct vc_process){ false, (uint32_t)pid, bytes };
	}
	/* PyTorch on Linux lists the processes of the card, ours among them */
	s->process[s->processes++] = (struct vc_process){ .self = true };
	return VC_OK;
}

static const char *newest(const struct vc_model_type *m)
{
	const char *v = "";

	for (size_t i = 0; m->versions && m->versions[i]; i++)
		v = m->versions[i];
	return v;
}

/* A recording of a PyTorch that came after this program: the newest rules known, until the
 * verification says otherwise. */
static bool is_later(const char *version, const char *known)
{
	char *v = NULL, *k = NULL;
	unsigned long a = strtoul(version, &v, 10), b = strtoul(known, &k, 10);

	if (a != b || *v != '.' || *k != '.')
		return a > b && *v == '.';
	return strtoul(v + 1, NULL, 10) > strtoul(k + 1, NULL, 10);
}

static const char *recorded_version(const struct vc_session *s, const struct vc_model_type *m)
{
	const char *known = m ? newest(m) : "";

	return s->meta->torch && !is_later(s->meta->torch, known) ? s->meta->torch : known;
}

static void choose_version(struct vc_session *s)
{
	const struct vc_model_type *m = vc_model_by_name("torch");
	const char *recorded = recorded_version(s, m);

	if (s->opt->torch.n) {
		snprintf(s->torch, sizeof(s->torch), "%s", s->opt->torch.at[0]);
		s->torch_from = "given";
	} else {
		snprintf(s->torch, sizeof(s->torch), "%s", recorded);
		s->torch_from = recorded != s->meta->torch ? "newest" :
				s->meta->torch_guessed ? "guessed" : "recorded";
	}
}

static void describe_change(struct vc_session *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->opt->set.n + s->opt->transform.n && n < sizeof(s->change); i++) {
		const char *t = i < s->opt->set.n ? s->opt->set.at[i]
						  : s->opt->transform.at[i - s->opt->set.n];

		n += (size_t)snprintf(s->change + n, sizeof(s->change) - n, "%s%s", n ? ", " : "",
				      t);
	}
}

int vc_session_open_one(struct vc_session *s, const struct vc_run_options *opt, const char *path,
			unsigned flags, struct vc_error *err)
{
	int r;

	*s = (struct vc_session){ .opt = opt, .path = path, .matched = 1 };
	vc_census_init(&s->census);
	r = read_trace(s, flags, err);
	if (r == VC_OK)
		r = choose_device(s, err);
	if (r == VC_OK && !(flags & VC_SESSION_NO_REQUESTS_OK))
		r = need_requests(s, err);
	if (r < 0)
		return r;
	choose_version(s);
	return opt->verify ? vc_session_verify(s, err) : VC_OK;
}

int vc_session_open(struct vc_session *s, const struct vc_run_options *opt, size_t n, char **paths,
		    unsigned flags, struct vc_error *err)
{
	int r;

	if (!n) {
		*s = (struct vc_session){ .opt = opt, .matched = 1 };
		vc_census_init(&s->census);
		return vc_fail(err, VC_EUSAGE,
			       "name a trace (a recording, a snapshot, or - for standard input)");
	}
	if (n == 1 && !opt->set.n) {
		r = vc_session_open_one(s, opt, paths[0], flags, err);
	} else {
		*s = (struct vc_session){ .opt = opt, .matched = 1, .path = paths[0] };
		vc_census_init(&s->census);
		r = vc_whatif_open(s, n, paths, flags, err);
	}
	if (r == VC_OK)
		r = parse_used(s, err);
	describe_change(s);
	return r;
}

void vc_session_close(struct vc_session *s)
{
	free(s->fidelity.diverged_why);
	vc_time_close(s);
	vc_whatif_close(s);
	vc_census_fini(&s->census);
	vc_trace_fini(&s->trace);
	s->meta = NULL;
}

/* ---- sources ---- */

static struct vc_source *base_source(const struct vc_session *s, struct vc_error *err)
{
	return s->streamed ? vc_source_open(s->path, err) : vc_source_memory(&s->trace, err);
}

static struct vc_source *apply(struct vc_source *up, const char *text, struct vc_error *err)
{
	const char *colon = strchr(text, ':');
	const struct vc_source_type *t;
	char name[64];

	snprintf(name, sizeof(name), "%.*s", colon ? (int)(colon - text) : (int)strlen(text), text);
	t = vc_transform_find(name, err);
	return t ? vc_source_transform(t, up, colon ? colon + 1 : NULL, err) : NULL;
}

struct vc_source *vc_session_source(const struct vc_session *s, struct vc_error *err)
{
	struct vc_source *src = base_source(s, err);

	for (size_t i = 0; src && i < s->opt->transform.n; i++) {
		struct vc_source *next = apply(src, s->opt->transform.at[i], err);

		if (!next)
			vc_source_free(src);
		src = next;
	}
	return src;
}

/* ---- plans ---- */

static int plan_model(const char *text, struct vc_plan *p, struct vc_error *err)
{
	const char *colon = strchr(text, ':');
	const char *names[64], *near;
	char name[64];
	size_t n = 0;

	snprintf(name, sizeof(name), "%.*s", colon ? (int)(colon - text) : (int)strlen(text), text);
	snprintf(p->params, sizeof(p->params), "%s", colon ? colon + 1 : "");
	p->model = vc_model_by_name(name);
	if (p->model)
		return VC_OK;
	while (n < 64 && vc_models[n]) {
		names[n] = vc_models[n]->name;
		n++;
	}
	near = vc_nearest(name, names, n);
	return vc_fail(err, VC_EUSAGE, near ? "no model is called '%s' (did you mean %s?)" :
		       "no model is called '%s' ('vramcast list models')", name, near);
}

static int plan_device(const struct vc_session *s, size_t card, struct vc_plan *p,
		       struct vc_error *err)
{
	const struct vc_device_info *recorded = vc_meta_device_known(s->meta, s->device->device);
	const struct vc_run_options *o = s->opt;

	if (o->gpu.n) {
		int r = vc_card_find(o->gpu.at[card], &p->card, err);

		if (r < 0)
			return r;
		p->capacity = p->card->total;
		p->prop_total = p->card->prop_total;
		p->context = p->card->context;
		p->device = p->card->title;
	}
	if (o->capacity != VC_NOT_GIVEN) {
		p->capacity = o->capacity;
		p->prop_total = o->capacity;
	} else if (!p->card && recorded &&
		   recorded->total) { /* with what was beside PyTorch's segments */
		p->capacity = recorded->total;
		p->device = recorded->name;
		p->context = s->device->outside ?
				     s->device->outside :
				     vc_card_context(recorded->name,
						     recorded->total - s->device->peak_reserved);
	} else if (!p->card && s->device->oom_reserved) {
		const struct vc_card *c =
			vc_card_full(s->device->oom_reserved + s->device->oom_free, &p->context);

		p->capacity = s->device->oom_reserved + s->device->oom_free + p->context;
		p->device = c ? c->title : NULL;
	}
	if (o->context != VC_NOT_GIVEN) { /* NCCL and the like included */
		p->context = o->context;
	} else {
		p->libraries = vc_host_libraries(s);
		p->context += p->libraries;
	}
	return VC_OK;
}

static int plan_start(const struct vc_session *s, struct vc_plan *p, struct vc_error *err)
{
	const char *recorded = s->meta->conf ? s->meta->conf : "";
	const char *want = s->opt->start;

	if (want && strcmp(want, "warm") && strcmp(want, "cold") && strcmp(want, "rebuild"))
		return vc_fail(err, VC_EUSAGE, "--start %s: must be warm, rebuild or cold", want);
	if (want)
		p->start = !strcmp(want, "cold") ? VC_START_COLD :
			   !strcmp(want, "rebuild") ? VC_START_REBUILD : VC_START_WARM;
	else /* segments laid out by other rules would be taken over as they are: ask for them
		anew */
		p->start = p->params[0] || strcmp(p->conf, recorded) || s->opt->transform.n ||
			   !p->model->seed ? VC_START_REBUILD : VC_START_WARM;
	if (!s->device->has_start)
		p->start = VC_START_COLD;
	return VC_OK;
}

static int fill_plan(const struct vc_session *s, const size_t pick[4], struct vc_plan *p,
		     struct vc_error *err)
{
	const struct vc_run_options *o = s->opt;
	int r = plan_model(o->model.n ? o->model.at[pick[0]] : "torch", p, err);

	if (r < 0)
		return r;
	if (p->model->versions)
		snprintf(p->torch, sizeof(p->torch), "%s",
			 o->torch.n ? o->torch.at[pick[1]] : s->torch);
	p->conf = o->conf.n ? o->conf.at[pick[2]] : s->meta->conf ? s->meta->conf : "";
	p->fraction = isnan(o->fraction) ? -1 : o->fraction;
	p->stop_at_oom = !s->device->ooms; /* a program that survived one goes on after it */
	r = plan_device(s, pick[3], p, err);
	return r < 0 ? r : plan_start(s, p, err);
}

static int check_numbers(const struct vc_run_options *o, struct vc_error *err)
{
	if (o->capacity == 0)
		return vc_fail(
			err, VC_EUSAGE,
			"--capacity 0: a device has some memory (leave it out for no limit)");
	if (o->fraction < 0 || o->fraction > 1)
		return vc_fail(err, VC_EUSAGE, "--fraction %g: goes from 0 to 1", o->fraction);
	return VC_OK;
}

static size_t at_least_one(size_t n)
{
	return n ? n : 1;
}

int vc_session_plans(struct vc_session *s, struct vc_plan **plans, size_t *n, struct vc_error *err)
{
	const struct vc_run_options *o = s->opt;
	size_t dim[4] = { at_least_one(o->model.n), at_least_one(o->torch.n),
			 at_least_one(o->conf.n), at_least_one(o->gpu.n) };
	size_t pick[4];
	int r = check_numbers(o, err);

	*n = 0;
	*plans = r == VC_OK ? calloc(dim[0] * dim[1] * dim[2] * dim[3], sizeof(**plans)) : NULL;
	if (r < 0)
		return r;
	if (!*plans)
		return vc_nomem(err, "the plans");
	for (pick[0] = 0; pick[0] < dim[0]; pick[0]++)
		for (pick[1] = 0; pick[1] < dim[1]; pick[1]++)
			for (pick[2] = 0; pick[2] < dim[2]; pick[2]++)
				for (pick[3] = 0; pick[3] < dim[3] && r == VC_OK; pick[3]++)
					r = fill_plan(s, pick, &(*plans)[(*n)++], err);
	if (r < 0) {
		free(*plans);
		*plans = NULL;
	}
	return r;
}

/* ---- runs ---- */

static struct vc_run make_run(const struct vc_session *s, const struct vc_plan *p)
{
	return (struct vc_run){ .model = p->model,
			       .model_params = p->params[0] ? p->params : NULL,
			       .version = p->torch[0] ? p->torch : NULL,
			       .conf = p->conf,
			       .fraction = p->fraction,
			       /* Where nothing is recorded, addresses come as the Linux driver
				  hands them out. */
			       .device = { .va = p->va ? p->va : VC_VA_WINDOW,
					  .total = p->capacity ? p->capacity : UNLIMITED,
					  .prop_total = p->prop_total,
					  .context = p->context,
					  .others = s->others,
					  .process = s->process,
					  .processes = p->capacity ? s->processes : 0,
					  .index = s->device->device },
			       .device_index = s->device->device,
			       .start = p->start,
			       .stop_at_oom = p->stop_at_oom };
}

static bool copy_text(char **to, const char *from)
{
	if (from)
		*to = strdup(from);
	return !from || *to;
}

static int fill_info(const struct vc_session *s, const struct vc_plan *p, struct vc_result *out,
		     struct vc_error *err)
{
	struct vc_run_info *i = &out->info;
	const char *slash = strrchr(s->path, '/');

	i->capacity = p->capacity;
	i->context = p->context;
	i->others = s->others;
	i->device = s->device->device;
	if (p->fraction >= 0) {
		i->has_limit = true;
		i->limit =
			(uint64_t)(p->fraction * (double)(p->capacity ? p->capacity : UNLIMITED));
	}
	if (copy_text(&i->model, p->model->name) &&
	    copy_text(&i->torch, p->torch[0] ? p->torch : NULL) && copy_text(&i->conf, p->conf) &&
	    copy_text(&i->trace, slash ? slash + 1 : s->path) && copy_text(&i->gpu, p->device) &&
	    copy_text(&i->change, s->change))
		return VC_OK;
	return vc_nomem(err, "the result");
}

/* Under backend:cudaMallocAsync the driver decides, not PyTorch's allocator. */
static bool is_drivers(const char *conf)
{
	return conf && strstr(conf, "cudaMallocAsync");
}

int vc_session_run(const struct vc_session *s, const struct vc_plan *plan,
		   const struct vc_observer_type *const *observers, struct vc_result *out,
		   struct vc_error *err)
{
	struct vc_plan p = *plan;
	struct vc_session on;
	struct vc_run run;
	int r;

	if (is_drivers(plan->conf) && strcmp(plan->model->name, "torch") == 0)
		return vc_fail(
			err, VC_ENOSUP,
			"%s: under backend:cudaMallocAsync the driver's own pools serve "
			"requests, and there is no model of them; --conf backend:native tells "
			"what PyTorch's allocator would do, -m direct what no cache would",
			s->path);
	s = vc_whatif_on(s, plan->card, &on, err);
	if (!s)
		return err->status ? (int)err->status : VC_ENOMEM;
	vc_completion_default(s, &p);
	run = make_run(s, &p);
	run.observers = observers;
	run.source = vc_session_source(s, err);
	if (!run.source)
		return err->status ? (int)err->status : VC_ENOMEM;
	r = vc_run(&run, out, err);
	vc_source_free(run.source);
	if (r < 0)
		return vc_wrap(err, "%s", s->path);
	out->info.warm = run.start == VC_START_WARM; /* the engine may have had to change it */
	out->info.rebuilt = run.start == VC_START_REBUILD;
	out->meta = s->meta;
	r = fill_info(s, plan, out, err);
	if (r == VC_OK)
		r = vc_purposes_fill(s, out, err);
	if (r == VC_OK)
		r = vc_whatif_interval(s, plan, out, err);
	if (r == VC_OK)
		r = vc_completion_interval(s, plan, out, err);
	if (r == VC_OK)
		r = vc_bounds_interval(s, plan, out, err);
	if (r < 0)
		vc_result_fini(out);
	return r;
}

uint64_t vc_session_beside(const struct vc_session *s, const struct vc_plan *plan)
{
	return plan->context + s->others;
}

/* What the recorded device held in all, 0 = unknown. Expandable segments reserve 9/8 of it, and how
 * far one can still grow decides which block is the best fit. */
static uint64_t recorded_total(const struct vc_session *s)
{
	const struct vc_device_info *d = vc_meta_device_known(s->meta, s->device->device);

	if (s->total)
		return s->total;
	return d && d->total ? d->total : s->device->total;
}

int vc_session_follow(const struct vc_session *s, const char *version,
		      const struct vc_observer_type *const *observers, struct vc_result *out,
		      struct vc_error *err)
{
	struct vc_plan p = { .model = vc_model_by_name("torch"), .fraction = -1,
			     .conf = s->meta->conf ? s->meta->conf : "",
			     .start = s->device->has_start ? VC_START_WARM : VC_START_COLD };
	struct vc_run run;
	int r;

	if (!p.model)
		return vc_fail(err, VC_ENOSUP, "the torch model is not built in");
	snprintf(p.torch, sizeof(p.torch), "%s", version);
	p.prop_total = recorded_total(s);
	run = make_run(s, &p);
	run.device.others = 0;
	run.follow = true;
	run.whole = s->streamed ? NULL : &s->trace;
	run.observers = observers;
	run.source = base_source(s, err);
	if (!run.source)
		return err->status ? (int)err->status : VC_ENOMEM;
	r = vc_run(&run, out, err);
	vc_source_free(run.source);
	if (r < 0)
		return vc_wrap(err, "%s: replay under the recorded settings", s->path);
	out->meta = s->meta;
	r = fill_info(s, &p, out, err);
	if (r < 0)
		vc_result_fini(out);
	return r;
}

static int verify_as(struct vc_session *s, const char *version, struct vc_fidelity *f,
		     struct vc_error *err)
{
	static const struct vc_observer_type *const watch[] = { &vc_observer_fidelity, NULL };
	struct vc_result out;
	int r = vc_session_follow(s, version, watch, &out, err);

	if (r < 0)
		return r;
	*f = out.fidelity;
	out.fidelity.diverged_why = NULL;
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
static bool adopt(struct vc_session *s, struct vc_fidelity *f)
{
	bool closer = better(f, &s->fidelity);
	struct vc_fidelity worse = closer ? s->fidelity : *f;

	free(worse.diverged_why);
	if (closer)
		s->fidelity = *f;
	return closer;
}

/* A snapshot does not say how large its device was: the card whose size reproduces it is taken. */
static int try_totals(struct vc_session *s, struct vc_error *err)
{
	const char *conf = s->meta->conf ? s->meta->conf : "";
	uint64_t given = s->opt->capacity != VC_NOT_GIVEN ? s->opt->capacity : 0, best = 0;
	bool grows = strstr(conf, "expandable_segments") != NULL;

	for (size_t i = 0; grows && i <= vc_cards_n && !s->fidelity.exact; i++) {
		struct vc_fidelity f = { 0 };

		s->total = i ? vc_cards[i - 1].total : given;
		if (s->total < s->device->peak_reserved)
			continue;
		int r = verify_as(s, s->torch, &f, err);
		if (r < 0)
			return r;
		if (adopt(s, &f))
			best = s->total;
	}
	s->total = best;
	return VC_OK;
}

int vc_session_verify(struct vc_session *s, struct vc_error *err)
{
	const struct vc_model_type *m = vc_model_by_name("torch");
	/* sixteen more replays: not for minutes of recording */
	bool try_others =
		!(s->meta->torch && !s->meta->torch_guessed) && s->device->events < 1000000;
	const char *first = recorded_version(s, m);
	int r;

	/* A script, requests alone, or another allocator's work: there is nothing to compare
	 * with. */
	if (!m || is_drivers(s->meta->conf) ||
	    (!s->device->segment_allocs && !s->device->final_segments &&
	     !s->device->start_segments && s->meta->how[VC_CAP_ADDRESSES] == VC_HOW_ABSENT))
		return VC_OK;
	r = verify_as(s, first, &s->fidelity, err);
	if (r < 0)
		return r;
	/* The recording does not say which version made it: the one that reproduces it did. */
	for (size_t i = 0; try_others && !s->fidelity.exact && m->versions && m->versions[i]; i++) {
		struct vc_fidelity f = { 0 };

		r = verify_as(s, m->versions[i], &f, err);
		if (r == VC_EUSAGE) { /* a version that refuses the recorded settings did not make
					 it */
			r = VC_OK;
			continue;
		}
		if (r < 0)
			return r;
		if (adopt(s, &f) && !s->opt->torch.n) {
			snprintf(s->torch, sizeof(s->torch), "%s", m->versions[i]);
			s->torch_from = "guessed";
		}
	}
	bool unsure = !s->fidelity.exact && !recorded_total(s) && s->device->events < 200000;
	return unsure ? try_totals(s, err) : VC_OK;
}
