/* SPDX-License-Identifier: Apache-2.0 */
/* time_change.c - see time_change.h */
#include "simulator/time/time_change.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulator/anatomy/anatomy.h"
#include "simulator/anatomy/layers.h"

/* ---- transforms ---- */

enum effect { NOTHING, PASSES, RECOMPUTE };
static const struct { const char *name; enum effect effect;
} effects[] = {
	/* memory only; what they cost in driver calls is counted where it happens */
	{ "empty_cache", NOTHING }, { "fraction", NOTHING },     { "window", NOTHING },
	{ "leak", NOTHING },        { "tail_batch", NOTHING }, /* one shorter step at the end */
	{ "accumulate", PASSES },   { "checkpoint", RECOMPUTE },
};

static uint64_t number(const char *text, const char *name, uint64_t otherwise)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : otherwise;
}

static int one_transform(const char *text, struct vc_change *c, char *why, size_t n)
{
	size_t len = strcspn(text, ":");
	const char *k = strstr(text, "k=");

	for (size_t i = 0; i < sizeof(effects) / sizeof(*effects); i++) {
		if (strlen(effects[i].name) != len || strncmp(effects[i].name, text, len))
			continue;
		if (effects[i].effect == PASSES)
			c->passes *= k ? strtod(k + 2, NULL) : 2;
		c->recompute |= effects[i].effect == RECOMPUTE;
		if (effects[i].effect == RECOMPUTE) {
			c->every = number(text, "every=", 1);
			c->stride = number(text, "stride=", 1);
			c->first = number(text, "first=", 0);
			c->count = number(text, "count=", 0);
		}
		return VC_OK;
	}
	snprintf(why, n, "what %.*s does to the kernels is not known", (int)len, text);
	return 1;
}

/* ---- another card ---- */

static const struct vc_card *recorded_card(const struct vc_session *s)
{
	for (size_t i = 0; i < s->meta->devices; i++)
		if (s->meta->device[i].index == s->device->device && s->meta->device[i].name)
			return vc_card_by_name(s->meta->device[i].name);
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
	c->half = ratio(there->half_tflops, here->half_tflops);
	c->other_card = c->bytes != 1 || c->fp32 != 1 || c->half != 1;
}

/* A checkpointed segment is computed again up to the last thing that was kept of it: its result
 * and what only leads there are not needed (early stop of torch.utils.checkpoint without
 * reentry). */
static void add_parts(const struct vc_layers *l, const struct vc_anatomy *a, size_t span,
		      struct vc_change *c, size_t first, size_t n)
{
	size_t seen = 0;

	c->parts = 0;
	for (size_t k = c->first; k < l->n && c->parts < VC_CHANGE_PARTS;
	     k += c->every * c->stride) {
		size_t end = k + c->every < l->n ? k + c->every : l->n, last = l->at[k].from;
		struct vc_layer all = { .from = l->at[k].from, .to = l->at[end - 1].to };
		size_t output = vc_layers_output(&all, a, span);

		if (c->count && seen++ >= c->count)
			break;
		for (size_t i = all.from; i < all.to; i++)
			if (i != output && vc_layers_kept(a, &a->block[i], span))
				last = i + 1;
		c->part[c->parts++] =
			(struct vc_tempo_part){ (double)(all.from - first) / (double)n,
					       (double)(last - first) / (double)n };
	}
}

/* The part of the forward pass that lies in layers, by its requests: what is before and behind
 * them (an embedding, a large last product, the loss) is not computed again. Kernels come in the
 * order of the requests of their operations, nearly one for one. */
static void find_layers(const struct vc_session *s, const struct vc_anatomy *a, struct vc_change *c)
{
	struct vc_error err;
	struct vc_layers l = { 0 };
	size_t k = 0, first = 0, n = 0;

	while (k < a->spans &&
	       (a->span[k].phase != VC_PHASE_FORWARD || a->span[k].iteration == UINT32_MAX ||
		a->span[k].iteration + 2 < a->iterations))
		k++;
	if (k < a->spans && vc_layers_find(&l, a, s->trace.ev, s->meta, k, &err) == VC_OK &&
	    l.n > 1) {
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

	if (s->trace.n &&
	    vc_anatomy_read(&a, s->trace.ev, s->trace.n, s->device->device, s->meta, &err) == VC_OK)
		find_layers(s, &a, c);
	vc_anatomy_fini(&a);
}

int vc_change_read(const struct vc_session *s, const struct vc_plan *plan, struct vc_change *c,
		   char *why, size_t n)
{
	int r = VC_OK;

	*c = (struct vc_change){
		.passes = 1, .parts = 1, .part = { { 0, 1 } }, .bytes = 1, .fp32 = 1, .half = 1 };
	for (size_t i = 0; r == VC_OK && i < s->opt->transform.n; i++)
		r = one_transform(s->opt->transform.at[i], c, why, n);
	if (r == VC_OK && !(c->passes >= 1 && c->passes <= 4096)) {
		snprintf(why, n, "so many passes per step are not predicted");
		r = 1;
	}
	if (r == VC_OK && plan->card && !recorded_card(s)) {
		snprintf(why, n,
			 "the card of the recording is not known, so its times say nothing about "
			 "the %s",
			 plan->card->title);
		r = 1;
	}
	if (r == VC_OK && c->recompute)
		read_recomputed(s, c);
	if (r == VC_OK)
		read_card(s, plan, c);
	return r;
}

/* ---- flushes ---- */

/* What the allocator did in the later half of the iterations, per iteration. Segments that are
 * asked for and never given back are growth, not a cost of every step. */
static void per_step(const struct vc_anatomy *a, const struct vc_trace *t, uint16_t device,
		     const struct vc_pace *pace, struct vc_timing *o)
{
	uint64_t requests = 0, ns = 0;
	uint32_t first = a->iterations / 2, last = UINT32_MAX;
	size_t span = 0, k = 0;
	double steps = 0, flushes = 0, mallocs = 0, frees = 0;

	for (size_t i = 0; i < t->n; i++) {
		while (span < a->spans && a->span[span].end <= i)
			span++;
		uint32_t it = span < a->spans ? a->span[span].iteration : UINT32_MAX;
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

static int events_of(const struct vc_session *s, struct vc_trace *t, struct vc_error *err)
{
	struct vc_source *src = vc_session_source(s, err);
	int r = src ? vc_trace_read(t, src, err) : VC_EIO;

	vc_source_free(src);
	return r;
}

int vc_change_flushes(const struct vc_session *s, struct vc_result *r, struct vc_error *err)
{
	struct vc_timing *o = &r->timing;
	const struct vc_trace *from = &s->trace;
	struct vc_trace own = { 0 };
	struct vc_anatomy a = { 0 };
	int rc = VC_OK;

	o->flushes = o->mallocs = o->frees = -1;
	o->driver_ns = 0;
	if (s->streamed || !s->trace.n || vc_result_verdict(r) == VC_OOM)
		return VC_OK;
	if (!r->pace.n) {
		o->flushes = o->mallocs = o->frees = 0;
		return VC_OK;
	}
	if (s->opt->transform.n) {
		rc = events_of(s, &own, err);
		from = &own;
	}
	if (rc == VC_OK)
		rc = vc_anatomy_read(&a, from->ev, from->n, s->device->device, from->meta, err);
	if (rc == VC_OK)
		per_step(&a, from, s->device->device, &r->pace, o);
	vc_anatomy_fini(&a);
	vc_trace_fini(&own);
	return rc;
}
