/* SPDX-License-Identifier: Apache-2.0 */
/* whatif.c - see whatif.h */
#include "simulator/session/whatif.h"

#include "common/torch_sizes.h"
#include "common/workers.h"
#include "simulator/replay/memo.h"
#include "simulator/session/addresses.h"
#include "simulator/session/completion.h"
#include "simulator/session/host.h"
#include "simulator/session/uncertainty.h"
#include "simulator/session/verify.h"

enum { ORDERS = 32 }; /* of addresses, where the driver's is not known */
enum { RUN = 16 };  /* frees in a row that are a cache being emptied */
enum { MOST = 16 }; /* recordings, and values of --set */

int vc_whatif_parse(const char *text, struct vc_param_value *at, char *buf, struct vc_error *err)
{
	const char *equals = strchr(text, '=');

	if (!equals || equals == text || equals - text >= VC_PARAM_TEXT)
		return vc_fail(err, VC_EUSAGE, "--set %s: write NAME=VALUE, as in batch=32", text);
	snprintf(buf, VC_PARAM_TEXT, "%.*s", (int)(equals - text), text);
	at->name = buf;
	if (vc_parse_amount(equals + 1, &at->value, err) < 0)
		return vc_wrap(err, "--set %s", text);
	return VC_OK;
}

static void describe(const struct vc_whatif *w, struct vc_prediction *p)
{
	const struct vc_family_report *r = &p->report;
	char alone[96] = "", card[96] = "", plans[160] = "", asked[96] = "";

	p->matched = r->bytes ? (double)r->explained / (double)r->bytes : 1;
	if (r->unmatched > 0)
		snprintf(alone, sizeof(alone), "; %.1f %% of the allocations are in some of the "
			 "recordings only", 100 * r->unmatched);
	if (w->any_card && r->workspace)
		snprintf(card, sizeof(card),
			 "; no card is named: row sums as on %u multiprocessors, -g says otherwise",
			 p->card.sms);
	if (r->named)
		snprintf(plans, sizeof(plans), "; cuDNN %s names the workspace of %.0f %% of the "
			 "convolutions", r->cudnn,
			 100 * (double)r->named / (double)r->convolutions);
	else if (r->plans)
		snprintf(plans, sizeof(plans), "; layers may need other workspace: their "
			 "algorithms change");
	if (r->plans && r->named < r->convolutions)
		snprintf(asked, sizeof(asked), " (cuDNN is asked where the PyTorch of these "
			 "recordings is that of python3 in PATH)");
	if (r->same)
		snprintf(p->trust, sizeof(p->trust), "recorded at this value");
	else if (r->single)
		snprintf(p->trust, sizeof(p->trust), "bounds from one recording; a second short "
			 "one at another value would make it exact");
	else
		snprintf(p->trust, sizeof(p->trust), "extrapolated from %zu recordings, %.2f %% of "
			 "the bytes matched%s%s%s%s%s", r->recordings, 100 * p->matched, alone,
			 r->data ? "; sizes of steps vary with their data" : "", plans, asked,
			 card);
}

/* Long runs of frees without a request in between: a cache that is emptied in the order of a hash
 * table of addresses (autocast's copies of weights), another order in every run of the program.
 * stride: every how many-th is taken first. Nothing to do (no such run): 0. */
static int shuffled(const struct vc_trace *t, size_t stride, struct vc_trace *out,
		    struct vc_error *err)
{
	size_t moved = 0;

	*out = (struct vc_trace){ 0 };
	VC_TRY(vc_trace_append(out, t->ev, t->n, err));
	for (size_t i = 0, end; i < t->n; i = end + 1) {
		for (end = i; end < t->n && t->ev[end].kind == VC_EV_FREE; end++)
			;
		size_t n = end - i, at = i;
		for (size_t k = 0; n >= RUN && k < stride; k++)
			for (size_t j = k; j < n; j += stride)
				out->ev[at++] = t->ev[end - 1 - j];
		moved += n >= RUN;
	}
	if (!moved)
		vc_trace_fini(out);
	return moved > 0;
}

/* ---- predictions ---- */

/* What else is on the device is not in a predicted trace: the most that a recording saw; nor is
 * the driver's way with addresses. */
static void inherit(const struct vc_whatif *w, struct vc_census *c)
{
	uint16_t device = w->recording[0].device->device;

	for (size_t k = 0; k < c->devices; k++)
		if (c->device[k].device == device) {
			if (w->outside > c->device[k].outside)
				c->device[k].outside = w->outside;
			c->device[k].first_segment = w->recording[0].device->first_segment;
		}
}

/* Bytes of cuBLAS's workspace on that card, where they are others than on the recorded one; 0: they
 * are not, or nobody knows. */
static uint64_t cublas_on(const struct vc_whatif *w, const struct vc_card *gpu)
{
	const struct vc_recording *rec = &w->recording[0];
	const struct vc_card *own = vc_named_plans_card(w->plans);
	int major = 0, minor = 0;

	if (!own || sscanf(rec->made_by, "%d.%d", &major, &minor) != 2 || major != 2)
		return 0;
	uint64_t there = vc_torch_workspace_on(gpu->cc_major, minor);

	return there == vc_torch_workspace_on(own->cc_major, minor) ? 0 : there;
}

/* By the program itself. */
static int rerun(const struct vc_whatif *w, const struct vc_card *gpu, struct vc_prediction *p,
		 struct vc_error *err)
{
	p->gpu = gpu;
	VC_TRY(vc_rerun_at(w->rerun, w->at, w->n, gpu, &p->rec, &p->ran, err));
	p->rec.path = w->recording[0].path;
	p->matched = w->rerun->found.requests ? (double)w->rerun->found.equal /
						(double)w->rerun->found.requests : 1;
	inherit(w, &p->rec.census);
	vc_rerun_words(w->rerun, p->ran.ran.unknown, p->trust, sizeof(p->trust));
	if (p->ran.carried) {
		size_t n = strlen(p->trust);

		snprintf(p->trust + n, sizeof(p->trust) - n, "; what differs was carried over");
	}
	return VC_OK;
}

/* The prediction for one kind of card; gpu: which, NULL: any of them. After a failure, too,
 * forget. */
static int predict(const struct vc_whatif *w, const struct vc_reduction_card *card,
		   const struct vc_card *gpu, struct vc_prediction *p, struct vc_error *err)
{
	struct vc_family_ask ask;
	struct vc_recording *rec = &p->rec;
	const struct vc_recording *base;
	int r;

	*p = (struct vc_prediction){ .card = *card };
	pthread_mutex_init(&p->lock, NULL);
	if (w->rerun)
		return rerun(w, gpu, p, err);
	if (gpu && !vc_named_plans_same(w->plans, gpu))
		VC_HAVE(p->plans = vc_named_plans_on(gpu, w->asker, err), "the plans of a card",
			err);
	if (gpu)
		p->cublas = cublas_on(w, gpu);
	ask = vc_whatif_ask(w, p);
	VC_TRY(vc_family_at(w->family, &ask, &rec->trace, &p->report, err));
	base = &w->recording[p->report.base];
	rec->meta = rec->trace.meta;
	rec->path = base->path;
	rec->source = base->source;
	rec->fidelity = base->fidelity;
	rec->fidelity.diverged_why =
		base->fidelity.diverged_why ? strdup(base->fidelity.diverged_why) : NULL;
	snprintf(rec->torch, sizeof(rec->torch), "%s", base->torch);
	snprintf(rec->made_by, sizeof(rec->made_by), "%s", base->made_by);
	rec->torch_from = base->torch_from;
	r = vc_recording_count(rec, base->device->device, err);
	inherit(w, &rec->census);
	describe(w, p);
	return r;
}

static void forget(struct vc_prediction *p)
{
	for (size_t k = 0; k < VC_WHATIF_OTHERS; k++)
		vc_trace_fini(&p->other[k]);
	vc_recording_close(&p->rec);
	vc_trace_fini(&p->ran.high);
	vc_named_plans_free(p->plans);
	pthread_mutex_destroy(&p->lock);
}

static void set_values(struct vc_whatif *w, const struct vc_param_value *at, size_t n)
{
	for (w->n = 0; w->n < n; w->n++) {
		snprintf(w->name[w->n], VC_PARAM_TEXT, "%s", at[w->n].name);
		w->at[w->n] = (struct vc_param_value){ w->name[w->n], at[w->n].value };
	}
}

/* ---- opening ---- */

static int open_recordings(struct vc_whatif *w, size_t n, char **paths,
			   const struct vc_recording_ask *ask, struct vc_error *err)
{
	struct vc_recording_ask one = *ask;
	const struct vc_trace *t[MOST];

	if (n > MOST)
		return vc_fail(err, VC_EUSAGE, "at most %d recordings of one family", MOST);
	one.flags |= VC_SESSION_IN_MEMORY;
	w->recording = calloc(n, sizeof(*w->recording));
	VC_HAVE(w->recording, "the recordings", err);
	for (size_t i = 0; i < n; i++) {
		struct vc_recording *rec = &w->recording[w->recordings++];

		VC_TRY(vc_recording_open(rec, paths[i], &one, err));
		if (ask->verify)
			VC_TRY(vc_verify(rec, &one, err));
		t[i] = &rec->trace;
		bool known;

		VC_TRY(vc_addresses_known(rec, &known, err));
		w->any_order |= !known;
		uint64_t outside = vc_host_device(rec).context;

		w->outside = outside > w->outside ? outside : w->outside;
	}
	w->without = ask->without;
	w->family = vc_family_new(t, n, w->recording[0].device->device, w->without, err);
	w->asker = ask->asker;
	w->plans = w->family ? vc_named_plans_new(&w->recording[0], ask->asker, err) : NULL;
	if (w->plans)
		vc_family_ask_cudnn(w->family, vc_named_plans_answers(w->plans));
	w->uncertainty = w->plans ? vc_uncertainty_new(err) : NULL;
	return w->uncertainty ? VC_OK : err->status ? (int)err->status : VC_ENOMEM;
}

static void as_reduction_card(const struct vc_card *c, struct vc_reduction_card *r)
{
	if (c && c->sms)
		*r = (struct vc_reduction_card){c->sms,
						vc_threads_per_sm(c->cc_major, c->cc_minor) };
}

/* Workspace sizes depend on the card that was recorded, and on the one that will run it. */
static struct vc_reduction_card choose_cards(struct vc_whatif *w, const struct vc_list *gpu)
{
	bool known;
	struct vc_reduction_card recorded = vc_family_card(w->family, &known);
	const struct vc_meta *m = w->recording[0].meta;

	for (size_t i = 0; i < m->devices; i++) {
		const struct vc_device_info *d = &m->device[i];

		if (d->sms > 0 && d->cc_major)
			recorded = (struct vc_reduction_card){
				(uint32_t)d->sms, vc_threads_per_sm(d->cc_major, d->cc_minor) };
		else if (d->name)
			as_reduction_card(vc_card_by_name(d->name), &recorded);
		known |= (d->sms > 0 && d->cc_major) || (d->name && vc_card_by_name(d->name));
	}
	vc_family_recorded(w->family, &recorded);
	if (gpu->n)
		as_reduction_card(vc_card_by_name(gpu->at[0]), &recorded);
	w->any_card = !known && !gpu->n;
	return recorded;
}

static struct vc_whatif *new_whatif(struct vc_error *err)
{
	struct vc_whatif *w = calloc(1, sizeof(*w));

	if (!w) {
		vc_nomem(err, "the recordings");
		return NULL;
	}
	pthread_mutex_init(&w->lock, NULL);
	return w;
}

/* Does one of the recordings have just these values? Then it is the answer. */
static bool is_recorded(const struct vc_whatif *w)
{
	bool any = false;

	for (size_t k = 0; k < w->recordings; k++) {
		const struct vc_meta *m = w->recording[k].meta;
		size_t same = 0;

		for (size_t i = 0; i < w->n; i++)
			for (size_t j = 0; j < m->params; j++)
				same += !strcmp(m->param[j].name, w->at[i].name) &&
					m->param[j].value == w->at[i].value;
		any |= same == w->n;
	}
	return any;
}

/* A program that fails with a change is asked without, and one that fails at a value not at all. */
static int predict_asked(struct vc_whatif *w, const struct vc_reduction_card *card,
			 const struct vc_run_options *opt, struct vc_error *err)
{
	const struct vc_card *gpu = opt->gpu.n ? vc_card_by_name(opt->gpu.at[0]) : NULL;

	/* where nothing but a change was asked for, the recording has the rest */
	while (w->rerun || w->n || !vc_rerun_makes(opt)) {
		int r = predict(w, card, gpu, &w->as_asked, err);

		if (r == VC_OK || vc_is_final(r) || !w->rerun || !vc_rerun_asked(opt, "auto"))
			return r;
		snprintf(w->why, sizeof(w->why), "%.399s", err->message);
		*err = (struct vc_error){ 0 };
		forget(&w->as_asked);
		w->as_asked = (struct vc_prediction){ .card = *card };
		if (w->rerun->made.n && !is_recorded(w)) {
			w->rerun->made.n = 0;
			continue;
		}
		vc_rerun_close(w->rerun);
		w->rerun = NULL;
	}
	return VC_OK;
}

static int open_all(struct vc_whatif *w, const struct vc_run_options *opt, size_t n, char **paths,
		    const struct vc_recording_ask *ask, struct vc_error *err)
{
	struct vc_param_value at[MOST];
	char name[MOST][VC_PARAM_TEXT];
	struct vc_reduction_card card;

	if (opt->set.n > MOST)
		return vc_fail(err, VC_EUSAGE, "--set: at most %d values", MOST);
	for (size_t i = 0; i < opt->set.n; i++)
		VC_TRY(vc_whatif_parse(opt->set.at[i], &at[i], name[i], err));
	VC_TRY(open_recordings(w, n, paths, ask, err));
	card = choose_cards(w, &opt->gpu);
	set_values(w, at, opt->set.n);
	if (!is_recorded(w) || vc_rerun_makes(opt))
		w->rerun = vc_rerun_open(opt, &w->recording[0], w->at, w->n, w->why, err);
	if (err->status)
		return (int)err->status;
	return predict_asked(w, &card, opt, err);
}

struct vc_whatif *vc_whatif_open(const struct vc_run_options *opt, size_t n, char **paths,
				 const struct vc_recording_ask *ask, struct vc_error *err)
{
	struct vc_whatif *w = new_whatif(err);

	if (w && open_all(w, opt, n, paths, ask, err) < 0) {
		vc_whatif_close(w);
		w = NULL;
	}
	return w;
}

struct vc_whatif *vc_whatif_again(const struct vc_whatif *from, const struct vc_param_value *at,
				  size_t n, struct vc_error *err)
{
	struct vc_whatif *w;

	if (n > VC_WHATIF_PARAMS) {
		vc_fail(err, VC_EUSAGE, "at most %d parameters", VC_WHATIF_PARAMS);
		return NULL;
	}
	w = new_whatif(err);
	if (!w)
		return NULL;
	w->recording = from->recording;
	w->recordings = from->recordings;
	w->family = from->family;
	w->uncertainty = from->uncertainty;
	w->without = from->without;
	w->plans = from->plans;
	w->asker = from->asker;
	w->any_card = from->any_card;
	w->any_order = from->any_order;
	set_values(w, at, n);
	w->rerun = is_recorded(w) ? NULL : from->rerun;
	w->outside = from->outside;
	w->one_thread = from->one_thread;
	w->borrowed = true;
	if (predict(w, &from->as_asked.card, vc_named_plans_card(from->as_asked.plans),
		    &w->as_asked, err) == VC_OK)
		return w;
	vc_whatif_close(w);
	return NULL;
}

void vc_whatif_close(struct vc_whatif *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->cards; i++) {
		forget(w->on[i]);
		free(w->on[i]);
	}
	forget(&w->as_asked);
	if (!w->borrowed) {
		vc_rerun_close(w->rerun);
		vc_uncertainty_free(w->uncertainty);
		vc_family_free(w->family);
		vc_named_plans_free(w->plans);
		for (size_t i = 0; i < w->recordings; i++)
			vc_recording_close(&w->recording[i]);
		free(w->recording);
	}
	pthread_mutex_destroy(&w->lock);
	free(w);
}

/* Was that card asked for? Of others (advice tries many) the requests are taken to be the same. */
static bool is_named(const struct vc_whatif *w, const struct vc_card *gpu)
{
	const struct vc_list *named = &w->rerun->opt->gpu;

	for (size_t i = 0; i < named->n; i++)
		if (vc_card_by_name(named->at[i]) == gpu)
			return true;
	return false;
}

/* Does that prediction hold for such a card, too? */
static bool is_for(const struct vc_whatif *w, const struct vc_prediction *p,
		   const struct vc_reduction_card *card, const struct vc_card *gpu)
{
	if (w->rerun)
		return !gpu || !is_named(w, gpu) || gpu == p->gpu ||
		       (p->gpu && vc_card_same_class(p->gpu, gpu));
	return !memcmp(&p->card, card, sizeof(*card)) &&
	       (!gpu || p->cublas == cublas_on(w, gpu)) &&
	       (!gpu || vc_named_plans_same(p->plans ? p->plans : w->plans, gpu));
}

/* The caller holds w->lock. */
static struct vc_prediction *for_card(struct vc_whatif *w, const struct vc_reduction_card *card,
				      const struct vc_card *gpu, struct vc_error *err)
{
	struct vc_prediction *p;

	for (size_t i = 0; i < w->cards; i++)
		if (is_for(w, w->on[i], card, gpu))
			return w->on[i];
	if (w->cards == VC_WHATIF_CARDS) {
		vc_fail(err, VC_EUSAGE, "at most %d kinds of cards at once", VC_WHATIF_CARDS);
		return NULL;
	}
	p = calloc(1, sizeof(*p));
	if (!p) {
		vc_nomem(err, "a prediction");
		return NULL;
	}
	if (predict(w, card, gpu, p, err) < 0) {
		forget(p);
		free(p);
		return NULL;
	}
	return w->on[w->cards++] = p;
}

struct vc_prediction *vc_whatif_on(struct vc_whatif *w, const struct vc_card *card,
				   struct vc_error *err)
{
	struct vc_reduction_card wanted = w->as_asked.card;
	struct vc_prediction *p;

	as_reduction_card(card, &wanted);
	if (is_for(w, &w->as_asked, &wanted, card))
		return &w->as_asked;
	pthread_mutex_lock(&w->lock);
	p = for_card(w, &wanted, card, err);
	pthread_mutex_unlock(&w->lock);
	return p;
}

/* ---- the interval ---- */

/* One trace that the recordings allow besides the best guess: unsettled sizes small (0) and large
 * (1), then the same sizes in the order of each other recording. 0: there is no such. */
static int alternative(const struct vc_whatif *w, const struct vc_prediction *p, size_t k,
		       struct vc_trace *out, struct vc_error *err)
{
	struct vc_family_ask ask = vc_whatif_ask(w, p);
	struct vc_error ignored;

	if (k < 2)
		ask.bound = k ? VC_BOUND_HIGH : VC_BOUND_LOW;
	ask.has_order = k >= 2;
	ask.order = k - 2;
	if (ask.has_order && (ask.order == p->report.base || p->report.single || p->report.data))
		return 0; /* samples of data have all orders */
	int r = vc_family_at(w->family, &ask, out, NULL, &ignored);
	if (r == VC_ENOMEM)
		return vc_nomem(err, "the alternatives of a prediction");
	return r >= 0; /* else that recording lacks too much to set the order */
}

/* Snapshots do not name their card: others it may have been, from small to large. */
static const struct vc_reduction_card others[] = { { 40, 1024 },  { 82, 1536 },  { 128, 1536 },
						   { 108, 2048 }, { 170, 1536 }, { 148, 2048 } };
enum { OTHERS = sizeof(others) / sizeof(*others) };

static int on_another_card(const struct vc_whatif *w, const struct vc_prediction *p, size_t k,
			   struct vc_trace *out, struct vc_error *err)
{
	struct vc_family_ask ask = { .at = w->at, .n = w->n, .card = others[k] };
	int r = w->any_card && p->report.workspace ?
			vc_family_at(w->family, &ask, out, NULL, err) : 1;

	return r < 0 ? r : !r;
}

static bool same_events(const struct vc_trace *a, const struct vc_trace *b)
{
	return a->n == b->n && !memcmp(a->ev, b->ev, a->n * sizeof(*a->ev));
}

/* The k-th alternative into p->other[k], found out once. The caller holds p->lock. */
static int find_other(const struct vc_whatif *w, struct vc_prediction *p, size_t k,
		      struct vc_error *err)
{
	size_t n = w->recordings + 2;
	struct vc_trace *t = &p->other[k];
	int r;

	if (p->known[k] != VC_OTHER_UNKNOWN)
		return VC_OK;
	r = k < n     ? alternative(w, p, k, t, err) :
	    k < n + 2 ? shuffled(&p->rec.trace, 2 * (k - n) + 1, t, err) :
			on_another_card(w, p, k - n - 2, t, err);
	if (r > 0 && same_events(t, &p->rec.trace)) {
		vc_trace_fini(t);
		r = 0;
	}
	VC_TRY(r);
	p->known[k] = r ? VC_OTHER_KNOWN : VC_OTHER_NONE;
	return r ? vc_trace_keep(t, err) : VC_OK;
}

/* The runs that an interval is made of: under other ways of the driver with addresses, under other
 * orders of them, and of what the recordings allow besides. None waits for another one. */
struct runs {
	const struct vc_whatif *w;
	struct vc_prediction *p;
	const struct vc_plan *plan;
	struct vc_result *said, *out; /* of each run, of all */
	size_t drivers, orders;       /* the first runs */
	size_t n;
};

static const enum vc_va_policy policies[] = { VC_VA_WINDOW, VC_VA_CONTEXT, VC_VA_DEC, VC_VA_MIX };
enum { POLICIES = sizeof(policies) / sizeof(*policies), DRIVERS = 2 }; /* the driver's own */

static int run_one(void *arg, size_t nth, struct vc_error *err)
{
	struct runs *a = arg;
	size_t i = nth;
	struct vc_job job = { .rec = &a->p->rec };
	struct vc_plan plan = *a->plan;

	if (i < a->drivers + a->orders) {
		plan.va = policies[i < a->drivers ? i : POLICIES - 1];
		plan.va_order = i < a->drivers ? 0 : (unsigned)(i - a->drivers) + 1;
	} else {
		size_t k = i - a->drivers - a->orders;

		plan.va = vc_va_of_first(a->p->rec.device->first_segment);
		VC_TRY(find_other(a->w, a->p, k, err));
		if (a->p->known[k] != VC_OTHER_KNOWN)
			return VC_OK;
		job.events = &a->p->other[k];
	}
	return vc_job_widen(&job, &plan, &a->said[i], err);
}

static int add_said(void *arg, size_t nth, struct vc_error *err)
{
	struct runs *a = arg;
	const struct vc_result *said = &a->said[nth];

	if (!said->has_interval)
		return VC_OK;
	if (!a->out->has_interval || said->low < a->out->low)
		a->out->low = said->low;
	if (!a->out->has_interval || said->high > a->out->high)
		a->out->high = said->high;
	a->out->has_interval = true;
	return VC_OK;
}

/* Which of two equal holes the allocator takes depends on addresses that only the real driver
 * knows: other orders of addresses show how much hangs on that. 1: no more is asked. */
static int widen_by_runs(const struct vc_whatif *w, struct vc_prediction *p,
			 const struct vc_plan *plan, struct vc_result *out, struct vc_error *err)
{
	struct runs a = { .w = w, .p = p, .plan = plan, .out = out,
			  .drivers = w->any_order ? POLICIES : DRIVERS,
			  .orders = w->any_order ? ORDERS : 0 };
	struct vc_work work = { .threads = vc_whatif_threads(w), .arg = &a,
				.job = run_one, .done = add_said };
	int r;

	a.n = work.n = a.drivers + a.orders + w->recordings + 2 + 2 + OTHERS;
	a.said = calloc(work.n, sizeof(*a.said));
	VC_HAVE(a.said, "the runs of an interval", err);
	r = vc_workers_run(&work, err);
	free(a.said);
	return r;
}

static int measure(const struct vc_whatif *w, struct vc_prediction *p,
		   const struct vc_plan *as_planned, const char *settings, struct vc_result *out,
		   struct vc_error *err)
{
	struct vc_plan plan = vc_plan_unlimited(as_planned);

	vc_completion_default(&p->rec, &plan);
	plan.va_order = 0;
	plan.va = vc_va_of_first(p->rec.device->first_segment);
	VC_TRY(widen_by_runs(w, p, &plan, out, err));
	VC_TRY(vc_uncertainty_widen(w, p, &plan, settings, out, err));
	if (out->has_interval && out->low == out->high)
		out->has_interval = false; /* nothing that is open moves the peak */
	return VC_OK;
}

int vc_whatif_interval(const struct vc_whatif *w, struct vc_prediction *p,
		       const struct vc_plan *plan, struct vc_result *out, struct vc_error *err)
{
	char settings[sizeof(p->settings)];
	int rc = VC_OK;

	if (w->rerun)
		return vc_rerun_interval(w->rerun, &p->rec, &p->ran, plan, out, err);
	if (p->report.same)
		return VC_OK;
	int n = snprintf(settings, sizeof(settings), "%s:%s %s %d %s", plan->model->name,
			 plan->params, plan->torch, (int)plan->start, plan->conf);
	bool fits = n > 0 && (size_t)n < sizeof(settings) && !plan->transform.n;

	pthread_mutex_lock(&p->lock);
	if (fits && !strcmp(p->settings, settings)) {
		out->has_interval = p->open;
		out->low = p->low;
		out->high = p->high;
	} else {
		rc = measure(w, p, plan, fits ? settings : "", out, err);
		snprintf(p->settings, sizeof(p->settings), "%s",
			 rc == VC_OK && fits ? settings : "");
		p->open = out->has_interval;
		p->low = out->low;
		p->high = out->high;
	}
	pthread_mutex_unlock(&p->lock);
	return rc;
}
