/* SPDX-License-Identifier: Apache-2.0 */
/* time_change.c - see time_change.h */
#include "simulator/time/time_change.h"

#include "simulator/anatomy/anatomy.h"
#include "simulator/anatomy/layers.h"

/* ---- transforms ---- */

static int one_transform(const char *text, struct vc_change *c, char *why, size_t n)
{
	struct vc_transform_use u;
	struct vc_error err = { 0 };

	if (vc_transform_parse(&u, text, &err) < 0) {
		snprintf(why, n, "%s", err.message);
		return 1;
	}
	if (!u.type->step) {
		snprintf(why, n, "what %s does to the kernels is not known", u.type->name);
		return 1;
	}
	u.type->step(u.config, &c->step);
	return VC_OK;
}

/* ---- another card ---- */

static const struct vc_card *recorded_card(const struct vc_session *s)
{
	for (size_t i = 0; i < s->rec->meta->devices; i++)
		if (s->rec->meta->device[i].index == s->rec->device->device &&
		    s->rec->meta->device[i].name)
			return vc_card_by_name(s->rec->meta->device[i].name);
	return NULL;
}

static double ratio(double there, double here)
{
	return there > 0 && here > 0 ? there / here : 1;
}

static void read_card(const struct vc_session *s, const struct vc_plan *plan, struct vc_change *c)
{
	const struct vc_card *here = recorded_card(s), *there = plan->card;

	if (!here || !there || here == there)
		return;
	c->bytes = ratio(there->bandwidth_gbs, here->bandwidth_gbs);
	c->fp32 = ratio(there->fp32_tflops, here->fp32_tflops);
	c->tf32 = ratio(vc_card_tflops(there, VC_RATE_TF32), vc_card_tflops(here, VC_RATE_TF32));
	c->half = ratio(vc_card_tflops(there, VC_RATE_FP16), vc_card_tflops(here, VC_RATE_FP16));
	c->there = there;
	c->other_card = c->bytes != 1 || c->fp32 != 1 || c->tf32 != 1 || c->half != 1;
}

/* ---- precision, optimizer, adapters ---- */

/* Of the peak that the card's maker names, what PyTorch's kernels that only move bytes reach:
 * docs/measurements/fit.md, "Times of changes". */
#define MOVED 0.8
/* Convolutions take TF32 where there is no other wish (torch.backends.cudnn.allow_tf32), which is
 * half as fast as 16 bit since Ampere. */
#define FROM_TF32 2.0
/* The same page: with this share of its kernels' time in convolutions a net of 16 bit spends more
 * on changing layouts than it saves elsewhere. */
#define CONVOLUTIONS 0.1
/* The same page: a product in 16 bit on an H100 at least, and what autocast's copies add to one. */
#define LEAST_NS 3000.0
#define COPIES_NS 3200.0
/* An adapter trains some hundredth of the weights. */
#define ADAPTED 0.01

static double convolutions(const struct vc_profile *p)
{
	double sum = 0, all = 0;

	for (size_t i = 0; i < p->beats; i++) {
		all += p->beat[i].ns;
		if (vc_kernel_call(p->beat[i].name) == VC_CALL_CONVOLUTION)
			sum += p->beat[i].ns;
	}
	return all > 0 ? sum / all : 0;
}

/* Products go as much faster as the card is with 16 bit, attention half as much, which also waits
 * for exponentials; everything else moves as many bytes under autocast, copies between types
 * counted, and half as many where all is of 16 bit. */
static void read_cast(const struct vc_profile *p, const struct vc_card *card, struct vc_change *c)
{
	double faster = card->half_tflops / card->fp32_tflops;
	bool all = c->step.cast == VC_CAST_ALL, layouts = convolutions(p) > CONVOLUTIONS;
	double old = card->cc_major < 8 ? faster : FROM_TF32;

	double copies = all ? 0 : COPIES_NS;

	c->cast = (struct vc_tempo_cast){ { all ? 1.8 : 1, faster, old, faster / 2 }, LEAST_NS,
					  copies };
	c->slow = (struct vc_tempo_cast){ { layouts ? 0.4 : all ? 1.5 : 0.75, faster * 0.6,
					    old * 0.8, faster * 0.4 }, 2 * LEAST_NS, 2 * copies };
	c->fast = (struct vc_tempo_cast){ { all ? 2.2 : 1.4, faster * 1.1, old * 1.8, faster },
					  LEAST_NS, copies / 2 };
	if (layouts)
		c->cast.by[VC_CALL_OTHER] = all ? 0.6 : 0.5;
}

static int read_optimizer(const struct vc_session *s, const struct vc_card *card,
			  struct vc_change *c, char *why, size_t n)
{
	struct vc_anatomy a = { 0 };
	struct vc_error err;
	double bytes, accesses = c->step.accesses;

	if (isnan(accesses)) {
		snprintf(why, n, "the kernels of that optimizer are not known");
		return 1;
	}
	if (vc_anatomy_of(&a, &s->rec->trace, s->rec->device->device, &err) < 0)
		return VC_OK;
	bytes = (double)(a.gradients ? a.gradients : a.parameters);
	if (c->step.frozen) {
		bytes *= ADAPTED;
		accesses = accesses > 0 ? accesses : 20; /* of AdamW */
	}
	c->optimizer_ns = accesses * bytes / (MOVED * card->bandwidth_gbs);
	vc_anatomy_fini(&a);
	return VC_OK;
}

static int read_kernels(const struct vc_session *s, const struct vc_profile *p,
			const struct vc_plan *plan, struct vc_change *c, char *why, size_t n)
{
	const struct vc_card *card = plan->card ? plan->card : recorded_card(s);

	if (!c->step.cast && c->step.accesses == 0 && !c->step.frozen)
		return VC_OK;
	if (!card || !(card->fp32_tflops > 0) || !(card->bandwidth_gbs > 0) ||
	    (c->step.cast && !(card->half_tflops > card->fp32_tflops))) {
		snprintf(why, n, "how fast the card is with %s is not known",
			 c->step.cast ? "16 bit" : "its memory");
		return 1;
	}
	if (c->step.cast)
		read_cast(p, card, c);
	return c->step.accesses == 0 && !c->step.frozen ? VC_OK :
							  read_optimizer(s, card, c, why, n);
}

/* A checkpointed segment is computed again up to the last thing that was kept of it: its result
 * and what only leads there are not needed (early stop of torch.utils.checkpoint without
 * reentry). */
static void add_parts(const struct vc_layers *l, const struct vc_anatomy *a, size_t span,
		      struct vc_change *c, size_t first, size_t n)
{
	struct vc_chosen *at = calloc(l->n + 1, sizeof(*at));
	size_t m = at ? vc_choice_of(&c->step.layers, l->n, at) : 0;

	c->parts = 0;
	for (size_t k = 0; k < m && c->parts < VC_CHANGE_PARTS; k++) {
		const struct vc_layer all = { .from = l->at[at[k].from].from,
					      .to = l->at[at[k].to - 1].to };
		size_t last = all.from, output = vc_layers_output(&all, a, span);

		for (size_t i = all.from; i < all.to; i++)
			if (i != output && vc_layers_kept(a, &a->block[i], span))
				last = i + 1;
		c->part[c->parts++] =
			(struct vc_tempo_part){ (double)(all.from - first) / (double)n,
					       (double)(last - first) / (double)n };
	}
	free(at);
}

/* The part of the forward pass that lies in layers, by its requests: what is before and behind
 * them (an embedding, a large last product, the loss) is not computed again. Kernels come in the
 * order of the requests of their operations, nearly one for one. */
static void find_layers(const struct vc_recording *s, const struct vc_anatomy *a,
			struct vc_change *c)
{
	struct vc_error err;
	struct vc_layers l = { 0 };
	size_t k = 0, first = 0, n = 0;

	while (k < a->spans &&
	       (a->span[k].phase != VC_PHASE_FORWARD || a->span[k].iteration == UINT32_MAX ||
		a->span[k].iteration + 2 < a->iterations))
		k++;
	if (k < a->spans && vc_layers_of(&l, &s->trace, s->device->device, k, &err) == VC_OK &&
	    l.n > 1) {
		if (!c->step.every_kind)
			vc_layers_stacks(&l, a, k);
		while (first < a->n && a->block[first].event < a->span[k].first)
			first++;
		while (first + n < a->n && a->block[first + n].event < a->span[k].end)
			n++;
		add_parts(&l, a, k, c, first, n);
	}
	vc_layers_fini(&l);
}

static void read_recomputed(const struct vc_session *s, struct vc_change *c)
{
	struct vc_error err;
	struct vc_anatomy a = { 0 };

	if (s->rec->trace.n &&
	    vc_anatomy_of(&a, &s->rec->trace, s->rec->device->device, &err) == VC_OK)
		find_layers(s->rec, &a, c);
	vc_anatomy_fini(&a);
}

int vc_change_read(const struct vc_session *s, const struct vc_profile *p,
		   const struct vc_plan *plan, struct vc_change *c, char *why, size_t n)
{
	int r = VC_OK;

	*c = (struct vc_change){
		.step = { .passes = 1 }, .parts = 1, .part = { { 0, 1 } },
		.bytes = 1, .fp32 = 1, .tf32 = 1, .half = 1 };
	for (size_t i = 0; r == VC_OK && i < plan->transform.n; i++)
		r = one_transform(plan->transform.at[i], c, why, n);
	if (r == VC_OK && !(c->step.passes >= 1 && c->step.passes <= 4096)) {
		snprintf(why, n, "so many passes per step are not predicted");
		r = 1;
	}
	if (r == VC_OK && plan->card && !recorded_card(s)) {
		snprintf(why, n, "the card of the recording is not known, so its times say "
			 "nothing about the %s", plan->card->title);
		r = 1;
	}
	if (r == VC_OK && c->step.recompute)
		read_recomputed(s, c);
	if (r == VC_OK)
		read_card(s, plan, c);
	return r == VC_OK ? read_kernels(s, p, plan, c, why, n) : r;
}

/* ---- flushes ---- */

/* Events, and the spans they belong to: those of the anatomy of `of`. */
struct timed {
	const struct vc_trace *t, *of;
	const struct vc_anatomy *a;
	size_t span;
};

/* Do the moments of the changed events tell the span they come from? Not where a transform
 * repeats or moves events, or puts a step before those that were recorded (with a heap at the
 * first event), nor without moments. */
static bool is_in_order(const struct timed *x)
{
	const struct vc_event *ev = x->of->ev;

	if (x->of->n && x->of->ev[0].kind >= VC_EV_HEAP_SEGMENT)
		return false;
	for (size_t i = 1; i < x->t->n; i++)
		if (x->t->ev[i].time_ns < x->t->ev[i - 1].time_ns)
			return false;
	for (size_t k = 1; k < x->a->spans; k++)
		if (ev[x->a->span[k].first].time_ns <= ev[x->a->span[k - 1].first].time_ns)
			return false;
	return x->a->spans > 0;
}

/* The iteration of event i, UINT32_MAX for none; i only grows. */
static uint32_t iteration_at(struct timed *x, size_t i)
{
	const struct vc_span *s = x->a->span;
	size_t n = x->a->spans;

	if (x->t == x->of)
		while (x->span < n && s[x->span].end <= i)
			x->span++;
	else
		while (x->span + 1 < n &&
		       x->of->ev[s[x->span + 1].first].time_ns <= x->t->ev[i].time_ns)
			x->span++;
	return x->span < n ? s[x->span].iteration : UINT32_MAX;
}

/* What the allocator did in the later half of the iterations, per iteration. Segments that are
 * asked for and never given back are growth, not a cost of every step. */
static void per_step(struct timed *x, uint16_t device, const struct vc_pace *pace,
		     struct vc_timing *o)
{
	const struct vc_trace *t = x->t;
	uint64_t requests = 0, ns = 0;
	uint32_t first = x->a->iterations / 2, last = UINT32_MAX;
	size_t k = 0;
	double steps = 0, flushes = 0, mallocs = 0, frees = 0;

	for (size_t i = 0; i < t->n; i++) {
		uint32_t it = iteration_at(x, i);
		bool counts = it != UINT32_MAX && it >= first;

		steps += counts && it != last;
		last = counts ? it : last;
		requests += t->ev[i].kind == VC_EV_ALLOC && t->ev[i].device == device;
		for (; k < pace->n && pace->at[k].request <= requests; k++) {
			if (!counts)
				continue;
			flushes += pace->at[k].flushes;
			mallocs += pace->at[k].mallocs;
			frees += pace->at[k].frees;
			ns += pace->at[k].ns;
		}
	}
	if (!(steps > 0))
		return;
	o->flushes = flushes / steps;
	o->mallocs = mallocs / steps;
	o->frees = frees / steps;
	o->driver_ns = frees > 0 ? (uint64_t)((double)ns / steps + 0.5) : 0;
}

int vc_change_flushes(const struct vc_session *s, const struct vc_plan *plan, struct vc_result *r,
		      struct vc_error *err)
{
	const struct vc_recording *rec = s->rec;
	struct vc_timing *o = &r->timing;
	struct vc_trace own = { 0 };
	struct vc_source *src;
	struct timed x;
	struct vc_anatomy a = { 0 };
	int rc = VC_OK;

	o->flushes = o->mallocs = o->frees = -1;
	o->driver_ns = 0;
	if (rec->streamed || !rec->trace.n || vc_result_replayed(r) == VC_OOM)
		return VC_OK;
	if (!r->pace.n) {
		o->flushes = o->mallocs = o->frees = 0;
		return VC_OK;
	}
	src = vc_recording_source(rec, &plan->transform, err);
	if (!src)
		return (int)err->status;
	if (!src->type->trace)
		rc = vc_trace_read(&own, src, err);
	if (rc == VC_OK)
		rc = vc_anatomy_of(&a, &rec->trace, rec->device->device, err);
	x = (struct timed){ src->type->trace ? src->type->trace(src) : &own, &rec->trace, &a, 0 };
	if (rc == VC_OK && x.t != x.of && !is_in_order(&x)) {
		vc_anatomy_fini(&a);
		rc = vc_anatomy_of(&a, x.t, rec->device->device, err);
		x.of = x.t;
	}
	if (rc == VC_OK)
		per_step(&x, rec->device->device, &r->pace, o);
	vc_anatomy_fini(&a);
	vc_trace_fini(&own);
	vc_source_free(src);
	return rc;
}
