/* SPDX-License-Identifier: Apache-2.0 */
/* advice.c - see advice.h. Changes are tried from cheap to costly. */
#include "simulator/advise/advice.h"

#include "common/emit.h"
#include "common/largest.h"
#include "common/torch_names.h"
#include "simulator/anatomy/anatomy.h"
#include "simulator/replay/transform.h"
#include "simulator/time/time.h"

/* The band of the card within which nothing is said: README, "recommended" of fit lies in it. */
#define ROOMY 0.70
#define TIGHT 0.99
/* Searching a batch replays some twenty times. */
#define MOST_EVENTS 300000u
/* Of so many events the runs that are kept have their layers; eight of them fit into memory. */
#define LAYERED_BELOW 100000u

enum act { CONF, TRANSFORM, BATCH, CARD };

/* Those of transforms stand in their own rows (simulator/transforms/). */
static const struct { enum act act; struct vc_remedy remedy; } others[] = {
	{ CONF, { .kind = "conf", .text = "let segments grow instead of lying side by side",
		  .params = "expandable_segments:True" } },
	{ CONF, { .kind = "conf", .text = "keep large blocks whole",
		  .params = "max_split_size_mb:128" } },
	{ CONF, { .kind = "conf", .text = "give cached memory back before the card is full",
		  .params = "garbage_collection_threshold:0.8" } },
	{ CONF, { .kind = "conf", .text = "round sizes up so that freed blocks fit again",
		  .params = "roundup_power2_divisions:4" } },
	{ BATCH, { VC_COST_BATCH, "batch", "a smaller batch", .estimate = true } },
	{ CARD, { VC_COST_CARD, "hardware", "a larger card", .estimate = false } },
};
#define OTHERS (sizeof(others) / sizeof(*others))

struct change { enum act act; const struct vc_source_type *type; const struct vc_remedy *remedy; };

/* ---- one change ---- */

struct asked {
	const struct vc_session *s;
	const struct vc_plan *p;
	enum vc_verdict now; /* of the run in question */
	struct vc_batch batch;
	bool batch_tried;
	unsigned traits; /* enum vc_trait */
	struct vc_timing time; /* of the run in question, as far as nothing stops it */
	struct vc_advice_listener *heard;
	const struct vc_observer_type *const *watch; /* of the changes */
	size_t done, all; /* changes */
};

static void tell(struct asked *q)
{
	if (q->heard && q->heard->tell)
		q->heard->tell(q->heard, q->done++, q->all);
}

/* A copy of half of a weight's size where a layer is called: autocast's. */
static bool is_cast(const struct vc_anatomy *a, uint64_t size)
{
	for (size_t i = 0; i < a->n && i < 4096; i++)
		if (a->block[i].category == VC_CAT_PARAMETER && a->block[i].size == 2 * size)
			return true;
	return false;
}

/* What the optimizer keeps, as far as it was seen: a run that dies in its first backward pass has
 * not shown it, and most have Adam. */
static unsigned states(const struct vc_anatomy *a)
{
	bool seen = false;

	for (size_t i = 0; i < a->spans; i++)
		seen |= a->span[i].phase == VC_PHASE_OPTIMIZER;
	return (!seen || a->states * 2 >= a->gradients ? VC_TRAIT_STATES : 0u) |
	       (!seen || a->states * 2 >= a->gradients * 3 ? VC_TRAIT_MOMENTS : 0u);
}

/* Training at all: the transforms that change it find something to change in any program that
 * repeats itself. */
static void read_traits(struct asked *q)
{
	const struct vc_session *s = q->s;
	size_t casts = 0, linear = 0, layers = 0;
	struct vc_anatomy a;

	if (vc_anatomy_of(&a, &s->rec->trace, s->rec->device->device, NULL) < 0)
		return;
	bool trains = a.iterations && a.confidence >= 0.5 && (a.gradients || a.states) &&
		    (a.gradients + a.states) * 50 >= a.parameters;

	for (size_t i = 0; trains && i < a.n; i++) {
		uint32_t site = s->rec->trace.ev[a.block[i].event].site;
		uint32_t name = vc_frame_roles(s->rec->meta, site,
					       VC_NAME_LINEAR | VC_NAME_CONV1D | VC_NAME_CONV);
		bool is_linear = name & (VC_NAME_LINEAR | VC_NAME_CONV1D), is_layer = name != 0;

		linear += is_linear;
		layers += is_layer;
		/* the copy, then the copy of what comes in or the result, in one call */
		casts += is_layer && casts < 2 && a.block[i].size >= 65536 && i + 1 < a.n &&
			 s->rec->trace.ev[a.block[i].event].site ==
				 s->rec->trace.ev[a.block[i + 1].event].site &&
			 is_cast(&a, a.block[i].size);
	}
	q->traits = (trains ? VC_TRAIT_TRAINS : 0u) |
		    (casts > 1 || vc_time_is_half(s) ? VC_TRAIT_CASTS : 0u) |
		    (layers > 0 && linear * 4 < layers ? VC_TRAIT_CONVOLUTIONAL : 0u) | states(&a);
	vc_anatomy_fini(&a);
}

static bool is_made(const struct asked *q, const struct vc_source_type *type)
{
	struct vc_error ignored = { 0 };
	struct vc_transform_use u;

	for (size_t i = 0; i < q->p->transform.n; i++)
		if (vc_transform_parse(&u, q->p->transform.at[i], &ignored) == VC_OK &&
		    u.type == type)
			return true;
	return false;
}

static int try_transform(const struct asked *q, const char *text, struct vc_result *out,
			 struct vc_error *err)
{
	struct vc_plan plan = *q->p;
	const char **list;
	int r = vc_plan_with(&plan, text, &list, err);

	if (r == VC_OK)
		r = vc_advice_run(q->s, &plan, q->now, q->watch, out, err);
	free(list);
	return r;
}

/* The user's own settings stay; one that sets the same is not replaced. */
static int try_conf(const struct asked *q, const char *conf, struct vc_result *out,
		    struct vc_advice *a, struct vc_error *err)
{
	struct vc_plan plan = *q->p;
	const char *own = q->p->conf;
	char key[64], all[160];

	snprintf(key, sizeof(key), "%.*s", (int)strcspn(conf, ":"), conf);
	if (!q->p->model->versions || strstr(own, key))
		return vc_fail(err, VC_ENOSUP, "settings are given");
	if (snprintf(all, sizeof(all), "%s%s%s", own, *own ? "," : "", conf) >= (int)sizeof(all))
		return vc_fail(err, VC_ENOSUP, "the settings are long");
	plan.conf = all;
	snprintf(a->how, sizeof(a->how), "--conf %s", all);
	snprintf(a->paste, sizeof(a->paste), "export PYTORCH_CUDA_ALLOC_CONF=%s", all);
	return vc_advice_run(q->s, &plan, q->now, q->watch, out, err);
}

static struct vc_batch *batch_of(struct asked *q, struct vc_error *err)
{
	if (!q->batch_tried) {
		q->batch_tried = true;
		if (q->s->rec->device->events > MOST_EVENTS ||
		    vc_batch_open(&q->batch, q->s, err) < 0)
			q->batch.open = false;
	}
	return q->batch.open ? &q->batch : NULL;
}

/* The batch in two parts, then four, ...: the first that fits. */
static int try_split(struct asked *q, const struct change *c, struct vc_result *out,
		     struct vc_advice *a, struct vc_error *err)
{
	struct vc_batch *b = batch_of(q, err);

	if (!b)
		return vc_fail(err, VC_ENOSUP, "the batch is not known");
	b->watch = q->watch;
	for (unsigned k = 2;
	     k <= 16 && b->value / k >= 1 && (double)(uint64_t)(b->value / k) * k == b->value;
	     k *= 2) {
		struct vc_remedy_words w;
		char text[96];
		int r;

		c->remedy->split(k, b->value / k, &w);
		snprintf(text, sizeof(text), "%s:%s", c->type->name, w.params);
		VC_TRY(r = vc_batch_run(b, q->p, b->value / k, text, q->now, out, err));
		if (vc_advice_ending(out) == VC_FITS) {
			memcpy(a->text, w.text, sizeof(a->text));
			memcpy(a->paste, w.paste, sizeof(a->paste));
			snprintf(a->how, sizeof(a->how), "--set %s=%.15g -x %s", b->name,
				 b->value / k, text);
			return VC_OK;
		}
		vc_result_fini(out);
	}
	return vc_fail(err, VC_ENOSUP, "no number of parts fits");
}

struct probe { struct asked *q; enum vc_wanted wanted; };

static int does_batch_fit(void *arg, uint64_t units, bool *fits, struct vc_error *err)
{
	const struct probe *p = arg;

	return vc_batch_fits(&p->q->batch, p->q->p, (double)units, p->wanted, fits, err);
}

static uint64_t largest(struct asked *q, enum vc_wanted wanted, uint64_t start, uint64_t most,
			struct vc_error *err)
{
	struct probe p = { q, wanted };
	struct vc_search s = { .start = start, .most = most, .arg = &p,
			       .probe = does_batch_fit, .only_largest = true };
	struct vc_found f;

	return start && vc_search_run(&s, &f, err) == VC_OK ? f.largest : 0;
}

static int try_batch(struct asked *q, struct vc_result *out, struct vc_advice *a,
		     struct vc_error *err)
{
	struct vc_batch *b = batch_of(q, err);
	uint64_t now = b ? (uint64_t)b->value : 0, best;

	best = now > 1 ? largest(q, VC_SURELY, now / 2, now - 1, err) : 0;
	q->batch.watch = q->watch;
	if (!best)
		return vc_fail(err, VC_ENOSUP, "no smaller batch fits");
	snprintf(a->text, sizeof(a->text),
		 "a batch of %llu instead of %.15g: the largest that surely fits",
		 (unsigned long long)best, b->value);
	snprintf(a->how, sizeof(a->how), "--set %s=%llu", b->name, (unsigned long long)best);
	return vc_batch_run(b, q->p, (double)best, NULL, q->now, out, err);
}

static void use_card(const struct vc_session *s, const struct vc_card *c, struct vc_plan *p)
{
	p->card = c;
	p->capacity = c->total;
	p->prop_total = c->prop_total;
	p->device = c->title;
	if (s->opt->context == VC_NOT_GIVEN)
		p->context = c->context + p->libraries;
}

/* The smallest card of the list that is larger and on which it fits; of the same maker, for whose
 * libraries the program was written. */
static int try_card(const struct asked *q, struct vc_result *out, struct vc_advice *a,
		    struct vc_error *err)
{
	const struct vc_card *own = q->p->card;
	enum vc_device_kind kind = own ? own->kind : vc_card_kind(q->p->device);
	uint64_t above = q->p->capacity;

	for (;;) {
		const struct vc_card *next = NULL;
		struct vc_plan plan = *q->p;
		int r;

		for (size_t i = 0; i < vc_cards_n; i++)
			if (vc_cards[i].total > above + above / 50 &&
			    vc_cards[i].kind == kind &&
			    (!next || vc_cards[i].total < next->total))
				next = &vc_cards[i];
		if (!next)
			return vc_fail(err, VC_ENOSUP, "no card is larger");
		use_card(q->s, next, &plan);
		VC_TRY(r = vc_advice_run(q->s, &plan, q->now, q->watch, out, err));
		if (out->stats.cut_short) {
			vc_result_fini(out);
			return vc_fail(err, VC_ENOSUP, "how much the rest needs is not recorded");
		}
		if (vc_advice_ending(out) == VC_FITS) {
			char total[32];

			snprintf(a->text, sizeof(a->text), "a larger card: %s with %s",
				 next->title, vc_bytes_text(next->total, total));
			snprintf(a->how, sizeof(a->how), "-g %s", next->name);
			return VC_OK;
		}
		vc_result_fini(out);
		above = next->total;
	}
}

static int try_row(struct asked *q, const struct change *c, struct vc_result *out,
		   struct vc_advice *a, struct vc_error *err)
{
	const struct vc_remedy *r = c->remedy;
	char text[128];

	if ((q->traits & r->needs) != r->needs || q->traits & r->avoid || is_made(q, c->type))
		return vc_fail(err, VC_ENOSUP,
			       "it is there already, or there is nothing to change");
	if (r->split)
		return try_split(q, c, out, a, err);
	snprintf(text, sizeof(text), "%s%s%s", c->type->name, r->params ? ":" : "",
		 r->params ? r->params : "");
	snprintf(a->how, sizeof(a->how), "-x %s", text);
	return try_transform(q, text, out, err);
}

static int try_change(struct asked *q, const struct change *c, struct vc_result *out,
		      struct vc_advice *a, struct vc_error *err)
{
	switch (c->act) {
	case CONF:
		return try_conf(q, c->remedy->params, out, a, err);
	case TRANSFORM:
		return try_row(q, c, out, a, err);
	case BATCH:
		return try_batch(q, out, a, err);
	case CARD:
		return try_card(q, out, a, err);
	}
	return vc_fail(err, VC_EINTERNAL, "an unknown change");
}

/* The run itself, for whoever draws it; its recording may be closed before that. */
static struct vc_result *kept(struct vc_result *then)
{
	struct vc_result *run = malloc(sizeof(*run));

	if (run) {
		*run = *then;
		run->meta = NULL;
		*then = (struct vc_result){ 0 };
	}
	return run;
}

static void keep(struct vc_advice *a, const struct vc_timing *now, const struct vc_result *r)
{
	const struct vc_timing *then = &r->timing;

	/* of a modelled step without an interval nobody knows how far it is off */
	if (now && now->step_ns && then->step_ns &&
	    (!now->modelled || (now->high_ns > now->low_ns && then->high_ns > then->low_ns)))
		a->times = (double)then->step_ns / (double)now->step_ns;
	if (now && now->samples > 0 && then->samples > 0)
		a->times *= now->samples / then->samples;
	a->peak_reserved = r->stats.peak_reserved;
	a->flushes = r->stats.flushes;
	a->verdict = vc_advice_ending(r);
	a->has_interval = r->has_interval;
	a->low = r->low;
	a->high = r->high;
}

/* Appends the change to the n that help, if it does. */
static size_t consider(struct asked *q, const struct vc_result *now, const struct change *c,
		       struct vc_advice *out, size_t n)
{
	struct vc_advice a = { .kind = c->remedy->kind, .estimate = c->remedy->estimate };
	struct vc_result then = { 0 };
	struct vc_error err = { 0 };

	snprintf(a.text, sizeof(a.text), "%s", c->remedy->text ? c->remedy->text : "");
	snprintf(a.paste, sizeof(a.paste), "%s", c->remedy->paste ? c->remedy->paste : "");
	tell(q);
	if (n == VC_ADVICE_MOST || try_change(q, c, &then, &a, &err) < 0)
		return n;
	if (vc_advice_ending(&then) < vc_advice_ending(now)) {
		keep(&a, &q->time, &then);
		if (!(a.times > 0) && c->remedy->slower)
			snprintf(a.text, sizeof(a.text), "%s (%s)", c->remedy->text,
				 c->remedy->slower);
		a.run = q->heard && q->heard->keep ? kept(&then) : NULL;
		out[n++] = a;
	}
	vc_result_fini(&then);
	return n;
}

static size_t helpful(struct asked *q, const struct vc_result *now,
		      struct vc_advice out[VC_ADVICE_MOST])
{
	size_t n = 0;

	q->all = OTHERS;
	for (size_t i = 0; vc_transforms[i]; i++)
		for (const struct vc_remedy *r = vc_transforms[i]->remedies; r && r->kind; r++)
			q->all++;
	for (unsigned cost = 0; cost <= VC_COST_CARD; cost++) {
		for (size_t i = 0; i < OTHERS; i++)
			if (others[i].remedy.cost == cost)
				n = consider(q, now, &(struct change){ others[i].act, NULL,
								       &others[i].remedy }, out, n);
		for (size_t i = 0; vc_transforms[i]; i++) {
			const struct vc_remedy *r = vc_transforms[i]->remedies;

			for (; r && r->kind; r++)
				if (r->cost == cost)
					n = consider(q, now, &(struct change){ TRANSFORM,
						     vc_transforms[i], r }, out, n);
		}
	}
	return n;
}

/* ---- when it fits ---- */

static void say_room(const struct asked *q, double percent, struct vc_advice *a)
{
	unsigned long long least = a->at_least, most = a->at_most;
	bool one = !q->s->whatif;

	if (most > least)
		snprintf(a->text, sizeof(a->text), "%.0f %% of the card is used: a batch of %llu "
			 "surely fits, of more than %llu surely does not (%s); now %.15g", percent,
			 least, most, one ? "bounds from one recording; a second one narrows them" :
			 "from these recordings",
			 q->batch.value);
	else
		snprintf(a->text, sizeof(a->text), "%.0f %% of the card is used: the batch may be "
			 "%llu instead of %.15g (%s)", percent, least, q->batch.value,
			 one ? "as far as one recording can tell; a second one would" :
			 "from these recordings");
}

static size_t room(struct asked *q, const struct vc_result *r, struct vc_advice *a)
{
	struct vc_error err = { 0 };
	struct vc_batch *b = batch_of(q, &err);
	double share = (double)r->stats.peak_used / (double)q->p->capacity;
	uint64_t now = b ? (uint64_t)b->value : 0, least, most;

	*a = (struct vc_advice){ .kind = "room", .estimate = true };
	keep(a, NULL, r);
	tell(q);
	if (!b) {
		snprintf(a->text, sizeof(a->text), "%.0f %% of the card is used; how much larger "
			 "the batch may be is known where the recording says its own "
			 "(TRACE@batch=N, or record --param batch=N)",
			 100 * share);
		return 1;
	}
	vc_batch_known(b, q->s, q->p, r);
	least = largest(q, VC_SURELY, now, now * 64, &err);
	most = largest(q, VC_POSSIBLY, least > now ? least : now, now * 64, &err);
	if (!least && !most)
		return 0;
	a->at_least = least;
	a->at_most = most > least ? most : least;
	snprintf(a->how, sizeof(a->how), "--set %s=%llu", b->name, (unsigned long long)least);
	say_room(q, 100 * share, a);
	return 1;
}

/* What a hundredth of the card less would do: another process, a larger workspace, a new library.
 */
static size_t risk(const struct asked *q, const struct vc_result *r, struct vc_advice *a)
{
	double share = (double)r->stats.peak_used / (double)q->p->capacity;
	uint64_t less = q->p->capacity / 100;
	struct vc_plan plan = *q->p;
	struct vc_result then = { 0 };
	struct vc_error err = { 0 };
	char bytes[32];

	*a = (struct vc_advice){ .kind = "risk" };
	plan.context += less;
	if (vc_session_run(q->s, &plan, NULL, &then, &err) < 0)
		return 0;
	keep(a, NULL, &then);
	snprintf(a->how, sizeof(a->how), "--context %llu", (unsigned long long)plan.context);
	vc_bytes_text(less, bytes);
	snprintf(a->text, sizeof(a->text), "risky: %.1f %% of the card is used. With %s less "
		 "(another process, a larger workspace of a library) it %s", 100 * share, bytes,
		 a->verdict == VC_OOM ? "runs out of memory" :
		 a->verdict == VC_UNDECIDED ? "may run out of memory" :
		 a->verdict == VC_FLUSHES ? "fits only by emptying its cache again and again" :
					    "would still fit, from memory that it has cached");
	vc_result_fini(&then);
	return 1;
}

size_t vc_advise(const struct vc_session *s, const struct vc_plan *p, const struct vc_result *r,
		 struct vc_advice_listener *heard, struct vc_advice out[VC_ADVICE_MOST])
{
	const struct vc_observer_type *const curve[] = { &vc_observer_pace, &vc_observer_timeline,
		s->rec->device->events < LAYERED_BELOW ? &vc_observer_lives : NULL, NULL };
	const struct vc_observer_type *const pace[] = { &vc_observer_pace, NULL };
	struct asked q = { .s = s, .p = p, .now = vc_advice_ending(r), .heard = heard,
			   .time = r->timing, .watch = heard && heard->keep ? curve : pace };
	double used = (double)r->stats.peak_used, all = (double)p->capacity;
	struct vc_error err = { 0 };
	size_t n = 0;

	if (s->rec->streamed)
		return 0;
	if (vc_advice_ending(r) != VC_FITS) {
		read_traits(&q);
		q.traits |= r->stats.limited ? VC_TRAIT_LIMITED : 0u;
		if (q.time.step_ns || vc_time_step(s, p, &q.time, &err) == VC_OK)
			n = helpful(&q, r, out);
	} else if (p->capacity && used >= TIGHT * all)
		n = risk(&q, r, out);
	else if (p->capacity && used < ROOMY * all && s->rec->device->allocs && !r->stats.cut_short)
		n = room(&q, r, out);
	vc_batch_close(&q.batch);
	return n;
}

const struct vc_remedy *vc_advice_setting(size_t i)
{
	return i < OTHERS && others[i].act == CONF ? &others[i].remedy : NULL;
}

unsigned vc_advice_traits(const struct vc_session *s)
{
	struct asked q = { .s = s };

	read_traits(&q);
	return q.traits;
}
