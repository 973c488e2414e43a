/* SPDX-License-Identifier: Apache-2.0 */
/* advice.c - see advice.h. One row per change, cheapest first. */
#include "simulator/advise/advice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/emit.h"
#include "common/largest.h"
#include "simulator/anatomy/anatomy.h"
#include "simulator/session/whatif.h"

/* The band of the card within which nothing is said: README, "recommended" of fit lies in it. */
#define ROOMY 0.70
#define TIGHT 0.99
/* Searching a batch replays some twenty times. */
#define MOST_EVENTS 300000u

enum act { CONF, TRANSFORM, ACCUMULATE, BATCH, CARD };

static const struct change {
	enum act act;
	const char *kind, *text, *how, *paste;
	bool estimate; /* what the transform assumes is not in the recording */
} changes[] = {
	{ CONF, "conf", "let segments grow instead of lying side by side",
	  "expandable_segments:True", NULL, false },
	{ CONF, "conf", "keep large blocks whole", "max_split_size_mb:128", NULL, false },
	{ CONF, "conf", "give cached memory back before the card is full",
	  "garbage_collection_threshold:0.8", NULL, false },
	{ CONF, "conf", "round sizes up so that freed blocks fit again",
	  "roundup_power2_divisions:4", NULL, false },
	{ TRANSFORM, "code", "empty the cache between training and evaluation",
	  "empty_cache:at=switches", "torch.cuda.empty_cache()", false },
	{ TRANSFORM, "code", "empty the cache before each iteration (slower)",
	  "empty_cache:at=iterations", "torch.cuda.empty_cache()", false },
	{ TRANSFORM, "code", "give back cached memory at a limit below the card's",
	  "fraction:f=0.95", "torch.cuda.set_per_process_memory_fraction(0.95)", false },
	{ TRANSFORM, "code", "a fused optimizer step, without temporaries",
	  "optimizer:to=adamw,step=fused",
	  "optimizer = torch.optim.AdamW(model.parameters(), fused=True)", true },
	{ ACCUMULATE, "code", "gradient accumulation: the same batch in smaller parts", NULL, NULL,
	  true },
	{ TRANSFORM, "code", "activation checkpointing (about a third more time per step)",
	  "checkpoint", "x = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)",
	  true },
	{ TRANSFORM, "code", "an optimizer with 8-bit states", "optimizer:to=adam8bit",
	  "optimizer = bitsandbytes.optim.AdamW8bit(model.parameters())", true },
	{ TRANSFORM, "code", "an optimizer with factored states", "optimizer:to=adafactor",
	  "optimizer = torch.optim.Adafactor(model.parameters())", true },
	{ TRANSFORM, "code", "activations wait in host memory (slower)", "offload",
	  "with torch.autograd.graph.save_on_cpu(pin_memory=True): loss = model(x)", true },
	{ TRANSFORM, "code", "autocast to bf16", "precision:to=amp",
	  "with torch.autocast('cuda', torch.bfloat16): loss = model(x)", true },
	{ TRANSFORM, "code", "low-rank adapters instead of full training", "lora",
	  "model = peft.get_peft_model(model, peft.LoraConfig(r=8, target_modules='all-linear'))",
	  true },
	{ TRANSFORM, "hardware", "two cards with ZeRO stage 2", "zero:stage=2,ranks=2",
	  "{\"zero_optimization\": {\"stage\": 2}}", true },
	{ TRANSFORM, "hardware", "two cards with FSDP", "fsdp:ranks=2",
	  "torch.distributed.fsdp.fully_shard(model)", true },
	{ BATCH, "batch", "a smaller batch", NULL, NULL, true },
	{ CARD, "hardware", "a larger card", NULL, NULL, false },
};

/* ---- one change ---- */

struct asked {
	const struct vc_session *s;
	const struct vc_plan *p;
	struct vc_batch batch;
	bool batch_tried;
	bool trains; /* iterations with gradients were found: changes to them can be advised */
	bool casts, convolutional; /* under autocast already; hardly a layer is linear */
};

/* Fits with certainty, as far as the answer goes: the upper end of its interval does, too. */
static bool is_sure(const struct vc_plan *p, const struct vc_session *s, const struct vc_result *r)
{
	uint64_t beside = vc_session_beside(s, p);

	return vc_result_verdict(r) == VC_FITS &&
	       (!r->has_interval || !p->capacity || r->high + beside <= p->capacity);
}

static const char *file_at(const struct vc_session *s, const struct vc_event *e)
{
	const struct vc_frame *f =
		e->site && e->site < s->meta->frames ? &s->meta->frame[e->site] : NULL;

	return f && f->file < s->meta->strings ? s->meta->string[f->file] : "";
}

/* A copy of half of a weight's size where a layer is called: autocast's. */
static bool is_cast(const struct vc_anatomy *a, uint64_t size)
{
	for (size_t i = 0; i < a->n && i < 4096; i++)
		if (a->block[i].category == VC_CAT_PARAMETER && a->block[i].size == 2 * size)
			return true;
	return false;
}

/* What the recording shows: training at all (the transforms that change it find something to
 * change in any program that repeats itself), autocast, linear layers. */
static void read_traits(struct asked *q)
{
	const struct vc_session *s = q->s;
	size_t casts = 0, linear = 0, layers = 0;
	struct vc_anatomy a;

	if (vc_anatomy_read(&a, s->trace.ev, s->trace.n, s->device->device, s->meta, NULL) < 0)
		return;
	q->trains = a.iterations && a.confidence >= 0.5 && (a.gradients || a.states) &&
		    (a.gradients + a.states) * 50 >= a.parameters;
	for (size_t i = 0; q->trains && i < a.n; i++) {
		const char *file = file_at(s, &s->trace.ev[a.block[i].event]);
		bool is_linear =
			strstr(file, "modules/linear.py") || strstr(file, "pytorch_utils.py");
		bool is_layer = is_linear || strstr(file, "modules/conv.py");

		linear += is_linear;
		layers += is_layer;
		/* the copy, then the copy of what comes in or the result, in one call */
		casts += is_layer && casts < 2 && a.block[i].size >= 65536 && i + 1 < a.n &&
			 s->trace.ev[a.block[i].event].site ==
				 s->trace.ev[a.block[i + 1].event].site &&
			 is_cast(&a, a.block[i].size);
	}
	q->casts = casts > 1;
	q->convolutional = layers > 0 && linear * 4 < layers;
	vc_anatomy_fini(&a);
}

/* Is the change made already, or is there nothing to make it to? */
static bool is_idle(const struct asked *q, const char *transform)
{
	size_t n = strcspn(transform, ":");

	for (size_t i = 0; i < q->s->opt->transform.n; i++)
		if (!strncmp(q->s->opt->transform.at[i], transform, n) &&
		    strcspn(q->s->opt->transform.at[i], ":") == n)
			return true;
	return (q->casts && !strncmp(transform, "precision", n)) ||
	       (q->convolutional && !strncmp(transform, "lora", n));
}

static int try_transform(const struct asked *q, const char *text, struct vc_result *out,
			 struct vc_error *err)
{
	struct vc_run_options o = *q->s->opt;
	struct vc_session t = *q->s;
	struct vc_plan plan = *q->p;
	const char **at = calloc(o.transform.n + 1, sizeof(*at));
	int r;

	if (!at)
		return vc_nomem(err, "advice");
	if (o.transform.n)
		memcpy(at, o.transform.at, o.transform.n * sizeof(*at));
	at[o.transform.n] = text;
	o.transform = (struct vc_list){ at, o.transform.n + 1 };
	t.opt = &o;
	if (plan.start == VC_START_WARM) /* other requests: not the recorded segments */
		plan.start = VC_START_REBUILD;
	r = vc_session_run(&t, &plan, NULL, out, err);
	free(at);
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
	if (plan.start == VC_START_WARM)
		plan.start = VC_START_REBUILD;
	snprintf(a->how, sizeof(a->how), "--conf %s", all);
	snprintf(a->paste, sizeof(a->paste), "export PYTORCH_CUDA_ALLOC_CONF=%s", all);
	return vc_session_run(q->s, &plan, NULL, out, err);
}

static struct vc_batch *batch_of(struct asked *q, struct vc_error *err)
{
	if (!q->batch_tried) {
		q->batch_tried = true;
		if (q->s->device->events > MOST_EVENTS || vc_batch_open(&q->batch, q->s, err) < 0)
			q->batch.open = false;
	}
	return q->batch.open ? &q->batch : NULL;
}

/* Two parts, then four, ...: the first that fits. */
static int try_accumulate(struct asked *q, struct vc_result *out, struct vc_advice *a,
			  struct vc_error *err)
{
	struct vc_batch *b = batch_of(q, err);

	if (!b)
		return vc_fail(err, VC_ENOSUP, "the batch is not known");
	for (unsigned k = 2;
	     k <= 16 && b->value / k >= 1 && (double)(uint64_t)(b->value / k) * k == b->value;
	     k *= 2) {
		char text[32];
		int r;

		snprintf(text, sizeof(text), "accumulate:k=%u", k);
		r = vc_batch_run(b, q->p, b->value / k, text, out, err);
		if (r < 0)
			return r;
		if (vc_result_verdict(out) == VC_FITS) {
			snprintf(a->text, sizeof(a->text),
				 "gradient accumulation: %u parts of %.15g", k, b->value / k);
			snprintf(a->how, sizeof(a->how), "--set %s=%.15g -x %s", b->name,
				 b->value / k, text);
			snprintf(a->paste, sizeof(a->paste),
				 "(loss / %u).backward()  # step and zero_grad every %u batches of "
				 "%.15g", k, k, b->value / k);
			return VC_OK;
		}
		vc_result_fini(out);
	}
	return vc_fail(err, VC_ENOSUP, "no number of parts fits");
}

enum wanted { SURE, POSSIBLE };
struct probe { struct asked *q; enum wanted wanted; };

/* SURE: with all that is open grown; POSSIBLE: with none of it. */
static int does_batch_fit(void *arg, uint64_t units, bool *fits, struct vc_error *err)
{
	struct probe *p = arg;
	struct vc_result r = { 0 };
	VC_TRY(vc_batch_run(&p->q->batch, p->q->p, (double)units, NULL, &r, err));
	*fits = is_sure(p->q->p, p->q->s, &r);
	if (p->wanted == POSSIBLE && !*fits)
		*fits = vc_result_verdict(&r) == VC_FITS ||
			(r.has_interval &&
			 r.low + vc_session_beside(p->q->s, p->q->p) <= p->q->p->capacity);
	vc_result_fini(&r);
	return VC_OK;
}

static uint64_t largest(struct asked *q, enum wanted wanted, uint64_t start, uint64_t most,
			struct vc_error *err)
{
	struct probe p = { q, wanted };
	struct vc_search s = { start, most, &p, does_batch_fit };
	struct vc_found f;

	return start && vc_search_run(&s, &f, err) == VC_OK ? f.largest : 0;
}

static int try_batch(struct asked *q, struct vc_result *out, struct vc_advice *a,
		     struct vc_error *err)
{
	struct vc_batch *b = batch_of(q, err);
	uint64_t now = b ? (uint64_t)b->value : 0,
		 best = now > 1 ? largest(q, SURE, now / 2, now - 1, err) : 0;

	if (!best)
		return vc_fail(err, VC_ENOSUP, "no smaller batch fits");
	snprintf(a->text, sizeof(a->text),
		 "a batch of %llu instead of %.15g: the largest that surely fits",
		 (unsigned long long)best, b->value);
	snprintf(a->how, sizeof(a->how), "--set %s=%llu", b->name, (unsigned long long)best);
	return vc_batch_run(b, q->p, (double)best, NULL, out, err);
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

/* The smallest card of the list that is larger and on which it fits. */
static int try_card(const struct asked *q, struct vc_result *out, struct vc_advice *a,
		    struct vc_error *err)
{
	uint64_t above = q->p->capacity;

	for (;;) {
		const struct vc_card *next = NULL;
		struct vc_plan plan = *q->p;
		int r;

		for (size_t i = 0; i < vc_cards_n; i++)
			if (vc_cards[i].total > above + above / 50 &&
			    strncmp(vc_cards[i].title, "AMD", 3) &&
			    (!next || vc_cards[i].total < next->total))
				next = &vc_cards[i];
		if (!next)
			return vc_fail(err, VC_ENOSUP, "no card is larger");
		use_card(q->s, next, &plan);
		r = vc_session_run(q->s, &plan, NULL, out, err);
		if (r < 0)
			return r;
		if (is_sure(&plan, q->s, out)) {
			char total[32];

			snprintf(a->text, sizeof(a->text), "a larger card: %s with %s%s",
				 next->title, vc_bytes_text(next->total, total),
				 out->stats.cut_short ?
					 " (at least: the rest of the run is not recorded)" : "");
			snprintf(a->how, sizeof(a->how), "-g %s", next->name);
			return VC_OK;
		}
		vc_result_fini(out);
		above = next->total;
	}
}

static int try_change(struct asked *q, const struct change *c, struct vc_result *out,
		      struct vc_advice *a, struct vc_error *err)
{
	switch (c->act) {
	case CONF:
		return try_conf(q, c->how, out, a, err);
	case TRANSFORM:
		if (c->estimate && !q->trains)
			return vc_fail(err, VC_ENOSUP, "nothing in it looks like training");
		if (is_idle(q, c->how))
			return vc_fail(err, VC_ENOSUP,
				       "it is there already, or there is nothing to change");
		snprintf(a->how, sizeof(a->how), "-x %s", c->how);
		return try_transform(q, c->how, out, err);
	case ACCUMULATE:
		if (!q->trains)
			return vc_fail(err, VC_ENOSUP, "nothing in it looks like training");
		return try_accumulate(q, out, a, err);
	case BATCH:
		return try_batch(q, out, a, err);
	case CARD:
		return try_card(q, out, a, err);
	}
	return vc_fail(err, VC_EINTERNAL, "an unknown change");
}

static void keep(struct vc_advice *a, const struct vc_result *r)
{
	a->peak_reserved = r->stats.peak_reserved;
	a->flushes = r->stats.flushes;
	a->verdict = vc_result_verdict(r);
	a->has_interval = r->has_interval;
	a->low = r->low;
	a->high = r->high;
}

static size_t helpful(struct asked *q, const struct vc_result *now,
		      struct vc_advice out[VC_ADVICE_MOST])
{
	size_t n = 0;

	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes) && n < VC_ADVICE_MOST; i++) {
		const struct change *c = &changes[i];
		struct vc_advice a = { .kind = c->kind, .estimate = c->estimate };
		struct vc_result then = { 0 };
		struct vc_error err = { 0 };

		snprintf(a.text, sizeof(a.text), "%s", c->text);
		snprintf(a.paste, sizeof(a.paste), "%s", c->paste ? c->paste : "");
		if (try_change(q, c, &then, &a, &err) < 0)
			continue;
		if (vc_result_verdict(&then) < vc_result_verdict(now)) {
			keep(&a, &then);
			out[n++] = a;
		}
		vc_result_fini(&then);
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
	keep(a, r);
	if (!b) {
		snprintf(a->text, sizeof(a->text), "%.0f %% of the card is used; how much larger "
			 "the batch may be is known where the recording says its own "
			 "(TRACE@batch=N, or record --param batch=N)",
			 100 * share);
		return 1;
	}
	least = largest(q, SURE, now, now * 64, &err);
	most = largest(q, POSSIBLE, least > now ? least : now, now * 64, &err);
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
	keep(a, &then);
	snprintf(a->how, sizeof(a->how), "--context %llu", (unsigned long long)plan.context);
	vc_bytes_text(less, bytes);
	snprintf(a->text, sizeof(a->text), "risky: %.1f %% of the card is used. With %s less "
		 "(another process, a larger workspace of a library) it %s", 100 * share, bytes,
		 a->verdict == VC_OOM ? "runs out of memory" :
		 a->verdict == VC_FLUSHES ? "fits only by emptying its cache again and again" :
					    "would still fit, from memory that it has cached");
	vc_result_fini(&then);
	return 1;
}

size_t vc_advise(const struct vc_session *s, const struct vc_plan *p, const struct vc_result *r,
		 struct vc_advice out[VC_ADVICE_MOST])
{
	struct asked q = { .s = s, .p = p };
	double used = (double)r->stats.peak_used, all = (double)p->capacity;
	size_t n = 0;

	if (s->streamed)
		return 0;
	if (vc_result_verdict(r) != VC_FITS)
		read_traits(&q);
	if (vc_result_verdict(r) != VC_FITS)
		n = helpful(&q, r, out);
	else if (p->capacity && used >= TIGHT * all)
		n = risk(&q, r, out);
	else if (p->capacity && used < ROOMY * all && s->device->allocs && !r->stats.cut_short)
		n = room(&q, r, out);
	vc_batch_close(&q.batch);
	return n;
}
