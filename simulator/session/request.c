/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - see request.h */
#include "simulator/session/request.h"

#include "simulator/session/host.h"

#define AT(f) offsetof(struct vc_run_options, f)
const struct vc_option vc_run_options[] = {
	{ 'm', "model", VC_O_LIST, AT(model), "NAME[:K=V,...]",
	  "allocator model; repeat for several runs, all: each (vramcast list models)", NULL },
	{ 0, "torch", VC_O_LIST, AT(torch), "VERSION",
	  "PyTorch version whose allocator is replayed; repeat for several", NULL },
	{ 0, "conf", VC_O_LIST, AT(conf), "STRING",
	  "a PYTORCH_CUDA_ALLOC_CONF value; repeat for several runs", NULL },
	{ 'g', "gpu", VC_O_LIST, AT(gpu), "NAME",
	  "card (vramcast gpus), default the recorded one; repeat for several, all: each", NULL },
	{ 0, "capacity", VC_O_SIZE, AT(capacity), "SIZE",
	  "total memory of the device instead of a card", NULL },
	{ 0, "used", VC_O_LIST, AT(used), "SIZE[@PID]",
	  "memory held by another process; repeat for several", NULL },
	{ 0, "context", VC_O_SIZE, AT(context), "SIZE",
	  "memory of this process outside the allocator (CUDA context, NCCL)", NULL },
	{ 0, "fraction", VC_O_REAL, AT(fraction), "F",
	  "torch.cuda.set_per_process_memory_fraction(F) from the start", NULL },
	{ 0, "set", VC_O_LIST, AT(set), "NAME=VALUE",
	  "another value of a recorded parameter", NULL },
	{ 0, "speed", VC_O_FILE, AT(speed), "FILE",
	  "measured speeds of a card (vramcast probe), for the time of a step", NULL },
	{ 0, "by", VC_O_TEXT, AT(by), "rerun|recordings|auto",
	  "who answers for other values: the program, run again without a card; what the "
	  "recordings imply; or the program where it can", "auto" },
	{ 0, "program", VC_O_TEXT, AT(program), "LINE",
	  "the program that was recorded, with {NAME} where a value stands; kept beside the "
	  "recording", NULL },
	{ 0, "seeds", VC_O_UINT, AT(seeds), "N",
	  "how often the program is run at a value where its data decide (default 4)", NULL },
	{ 'x', "transform", VC_O_LIST, AT(transform), "NAME[:K=V,...]",
	  "a what-if on the events, in the order given (vramcast list transforms)", NULL },
	{ 0, "start", VC_O_TEXT, AT(start), "warm|rebuild|cold",
	  "heap at the first event: as recorded, asked for anew, or empty", NULL },
	{ 0, "assume", VC_O_TEXT, AT(assume), "low|best|high",
	  "which value of an interval decides where its ends differ (default: undecided)", NULL },
	{ 0, "force", VC_O_FLAG, AT(force), NULL,
	  "say the best guess of a prediction however wide its interval is", NULL },
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
				       .context = VC_NOT_GIVEN, .fraction = NAN,
				       .device = VC_NOT_GIVEN, .seeds = VC_NOT_GIVEN,
				       .rank = VC_NOT_GIVEN };
}

/* "18.81GiB" or "18.81GiB@4711" */
static int add_tenant(struct vc_tenants *t, const char *text, struct vc_error *err)
{
	const char *at = strchr(text, '@');
	uint64_t bytes, pid = 0;
	char size[64];

	snprintf(size, sizeof(size), "%.*s", at ? (int)(at - text) : (int)strlen(text), text);
	if (vc_parse_size(size, &bytes, err) < 0 || (at && vc_parse_uint(at + 1, &pid, err) < 0))
		return vc_wrap(err, "--used %s", text);
	if (t->processes + 1 == sizeof(t->process) / sizeof(*t->process))
		return vc_fail(err, VC_EUSAGE, "--used: at most %zu processes", t->processes);
	if (t->others + bytes < bytes)
		return vc_fail(err, VC_EUSAGE, "--used: the sum is larger than any memory");
	t->others += bytes;
	if (at)
		t->process[t->processes++] = (struct vc_process){ false, (uint32_t)pid, bytes };
	return VC_OK;
}

int vc_tenants_parse(const struct vc_list *used, struct vc_tenants *t, struct vc_error *err)
{
	*t = (struct vc_tenants){ .others = 0 };
	for (size_t i = 0; i < used->n; i++)
		VC_TRY(add_tenant(t, used->at[i], err));
	/* PyTorch on Linux lists the processes of the card, ours among them */
	t->process[t->processes++] = (struct vc_process){ .self = true };
	return VC_OK;
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

size_t vc_request_models(const struct vc_list *model)
{
	size_t n = 0, all = 0;

	while (vc_models[all])
		all++;
	for (size_t i = 0; i < model->n; i++)
		n += strcmp(model->at[i], "all") ? 1 : all;
	return n ? n : 1;
}

/* The text of the i-th, "NAME:K=V,..."; NULL: it names none. */
static const char *model_at(const struct vc_list *model, size_t i)
{
	for (size_t k = 0; k < model->n; k++) {
		if (strcmp(model->at[k], "all")) {
			if (!i--)
				return model->at[k];
			continue;
		}
		for (size_t j = 0; vc_models[j]; j++)
			if (!i--)
				return vc_models[j]->name;
	}
	return NULL;
}

/* What the census saw, less managed pages, which make room; never less than such a card's own. */
static uint64_t context_of(const struct vc_recording *rec, const struct vc_device_info *card,
			   const struct vc_host_device *beside)
{
	uint64_t usual = vc_card_context(card->name, card->total - rec->device->peak_reserved);
	uint64_t seen = beside->context, managed = beside->managed;

	if (!usual || seen <= usual)
		return seen ? seen : usual;
	return seen - usual > managed ? seen - managed : usual;
}

static int plan_device(const struct vc_recording *rec, const struct vc_run_options *o,
		       size_t card, struct vc_plan *p, struct vc_error *err)
{
	const struct vc_device_info *recorded =
		vc_meta_device_known(rec->meta, rec->device->device);
	struct vc_host_device beside = vc_host_device(rec);

	if (o->gpu.n) {
		VC_TRY(vc_card_find(o->gpu.at[card], &p->card, err));
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
		p->others = o->used.n ? 0 : beside.others;
		p->context = context_of(rec, recorded, &beside);
	} else if (!p->card && rec->device->oom_reserved) {
		const struct vc_card *c = vc_card_full(
			rec->device->oom_reserved + rec->device->oom_free, &p->context);

		p->capacity = rec->device->oom_reserved + rec->device->oom_free + p->context;
		p->device = c ? c->title : NULL;
	}
	if (o->context != VC_NOT_GIVEN) { /* NCCL and the like included */
		p->context = o->context;
	} else {
		p->libraries = beside.libraries;
		p->context += p->libraries;
	}
	return VC_OK;
}

static int plan_start(const struct vc_recording *rec, const struct vc_run_options *o,
		      struct vc_plan *p, struct vc_error *err)
{
	const char *want = o->start;

	if (want && strcmp(want, "warm") && strcmp(want, "cold") && strcmp(want, "rebuild"))
		return vc_fail(err, VC_EUSAGE, "--start %s: must be warm, rebuild or cold", want);
	p->start = !want ? VC_START_ARGUED : !strcmp(want, "cold") ? VC_START_COLD :
		   !strcmp(want, "rebuild") ? VC_START_REBUILD : VC_START_WARM;
	if (want && !rec->device->has_start)
		p->start = VC_START_COLD;
	return VC_OK;
}

static int plan_assume(const struct vc_run_options *o, struct vc_plan *p, struct vc_error *err)
{
	static const char *const name[] = { "low", "best", "high" };

	for (int i = 0; o->assume && i < 3 && !p->assume; i++)
		if (!strcmp(o->assume, name[i]))
			p->assume = (enum vc_assume)(VC_ASSUME_LOW + i);
	if (o->assume && !p->assume)
		return vc_fail(err, VC_EUSAGE, "--assume %s: must be low, best or high",
			       o->assume);
	return VC_OK;
}

/* Does --torch name another version than the recorded one, or --capacity another device? */
static bool is_changed(const struct vc_recording *rec, const struct vc_run_options *o,
		       const struct vc_plan *p)
{
	return o->capacity != VC_NOT_GIVEN ||
	       (o->torch.n && !(rec->meta->torch && !strcmp(p->torch, rec->meta->torch)));
}

bool vc_plan_is_drivers(const char *conf)
{
	return conf && strstr(conf, "cudaMallocAsync");
}

#define DRIVERS "framework=torch" /* of cuda_async, when settings chose it */

void vc_plan_set_conf(struct vc_plan *p, const char *conf)
{
	bool was = vc_plan_is_drivers(p->conf), is = vc_plan_is_drivers(conf);
	const char *now = p->model->name;

	p->conf = conf;
	if (is && !strcmp(now, "torch") && !p->params[0]) {
		p->model = vc_model_by_name("cuda_async");
		snprintf(p->params, sizeof(p->params), DRIVERS);
	} else if (was && !is && !strcmp(now, "cuda_async") && !strcmp(p->params, DRIVERS)) {
		p->model = vc_model_by_name("torch");
		p->params[0] = '\0';
	}
}

/* What the recording used; settings, versions and cards are of PyTorch's allocator for cards. */
static const char *default_model(const struct vc_recording *rec, const struct vc_run_options *o)
{
	return o->gpu.n || o->conf.n || o->torch.n ? "torch" : vc_recording_model(rec)->name;
}

static int fill_plan(const struct vc_recording *rec, const struct vc_run_options *o,
		     const size_t pick[4], struct vc_plan *p, struct vc_error *err)
{
	const char *model = model_at(&o->model, pick[0]);
	int r = plan_model(model ? model : default_model(rec, o), p, err);

	VC_TRY(r);
	vc_plan_set_conf(p, o->conf.n ? o->conf.at[pick[2]] :
			    rec->meta->conf ? rec->meta->conf : "");
	if (p->model->versions)
		snprintf(p->torch, sizeof(p->torch), "%s",
			 o->torch.n ? o->torch.at[pick[1]] : rec->torch);
	p->fraction = isnan(o->fraction) ? -1 : o->fraction;
	p->stop_at_oom = !rec->device->ooms; /* a program that survived one goes on after it */
	p->transform = o->transform;
	p->changed = is_changed(rec, o, p);
	VC_TRY(plan_assume(o, p, err));
	VC_TRY(plan_device(rec, o, pick[3], p, err));
	return plan_start(rec, o, p, err);
}

bool vc_plan_on_recorded_device(const struct vc_recording *rec, const struct vc_plan *p)
{
	struct vc_run_options none = vc_run_options_none();
	struct vc_error ignored = { 0 };
	struct vc_plan own = { .conf = "" };

	return plan_device(rec, &none, 0, &own, &ignored) == VC_OK && !p->card &&
	       p->fraction < 0 && !p->more && !p->va && p->capacity == own.capacity &&
	       vc_plan_beside(p) == vc_plan_beside(&own);
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

int vc_request_plans(const struct vc_recording *rec, const struct vc_run_options *o,
		     const struct vc_tenants *tenants, struct vc_plan **plans, size_t *n,
		     struct vc_error *err)
{
	size_t dim[4] = { vc_request_models(&o->model), at_least_one(o->torch.n),
			 at_least_one(o->conf.n), at_least_one(o->gpu.n) };
	size_t pick[4];
	int r = check_numbers(o, err);

	*n = 0;
	*plans = r == VC_OK ? calloc(dim[0] * dim[1] * dim[2] * dim[3], sizeof(**plans)) : NULL;
	VC_TRY(r);
	if (!*plans)
		return vc_nomem(err, "the plans");
	for (pick[0] = 0; pick[0] < dim[0]; pick[0]++)
		for (pick[1] = 0; pick[1] < dim[1]; pick[1]++)
			for (pick[2] = 0; pick[2] < dim[2]; pick[2]++)
				for (pick[3] = 0; pick[3] < dim[3] && r == VC_OK; pick[3]++)
					r = fill_plan(rec, o, pick, &(*plans)[(*n)++], err);
	for (size_t i = 0; i < *n; i++)
		(*plans)[i].tenants = tenants;
	if (r < 0) {
		free(*plans);
		*plans = NULL;
	}
	return r;
}

uint64_t vc_plan_beside(const struct vc_plan *plan)
{
	return plan->context + plan->others + (plan->tenants ? plan->tenants->others : 0);
}

uint64_t vc_plan_room(const struct vc_plan *p)
{
	uint64_t beside = vc_plan_beside(p), more = p->more > 0 ? (uint64_t)p->more : 0, room;

	if (!p->capacity)
		return UINT64_MAX;
	room = p->capacity > beside ? p->capacity - beside : 0;
	if (p->fraction >= 0 && p->fraction * (double)p->capacity < (double)room)
		room = (uint64_t)(p->fraction * (double)p->capacity);
	return room > more ? room - more : 0;
}

struct vc_plan vc_plan_unlimited(const struct vc_plan *plan)
{
	struct vc_plan p = *plan;

	if (vc_transforms_on_demand(&plan->transform))
		return p; /* what has no end goes no further than the device does */
	p.capacity = p.prop_total = 0;
	p.fraction = -1;
	p.tenants = NULL;
	p.others = 0;
	return p;
}

int vc_plan_with(struct vc_plan *p, const char *transform, const char ***list,
		 struct vc_error *err)
{
	size_t n = p->transform.n;

	*list = calloc(n + 1, sizeof(**list));
	if (!*list)
		return vc_nomem(err, "a change");
	if (n)
		memcpy(*list, p->transform.at, n * sizeof(**list));
	(*list)[n] = transform;
	p->transform = (struct vc_list){ *list, n + (transform != NULL) };
	if (p->start == VC_START_WARM)
		p->start = VC_START_REBUILD;
	return VC_OK;
}
