/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint.c - what-if: activation checkpointing. Layers are the stretches of the forward pass that
 * repeat; what a segment keeps for its backward pass is given back when the segment ends, but for its
 * output, and asked for again in the same order just before the segment's backward pass begins. */
#include <stdlib.h>
#include <string.h>

#include "simulator/transforms/clone.h"

enum { LEAST_LAYER = 3, USED = 8 }; /* USED: allocations until a block has been used; chosen of 1, 2, 4, 8 */
struct config { uint64_t every, least; bool last; };

#define AT(f) offsetof(struct config, f)
static const struct vc_param params[] = {
	{ "every", VC_P_UINT, AT(every), "1", "layers per checkpointed segment", NULL },
	{ "least", VC_P_SIZE, AT(least), "0", "selective: keep blocks smaller than this", NULL },
	{ "last", VC_P_BOOL, AT(last), "true", "checkpoint the last segment too", NULL },
	VC_PARAM_END
};

static int checkpoint_open(struct vc_source *s, struct vc_error *err)
{
	const struct config *c = s->config;

	return c->every ? VC_OK : vc_fail(err, VC_EUSAGE, "checkpoint: every starts at 1");
}

/* A stretch of one forward pass: blocks [from, to); its recomputation comes before event `again`. */
struct segment { size_t from, to, end_event, again; uint64_t output; };

struct plan {
	struct vc_clone *c;
	const struct config *cfg;
	struct segment *at;
	size_t n;
	uint64_t saved;
};

static uint64_t token(const struct plan *p, size_t block)
{
	const struct vc_event *e = &p->c->w->in[p->c->a.block[block].event];

	return e->size * 0x9e3779b97f4a7c15ull ^ e->site;
}

/* The shortest lag at which nearly as much of blocks [from, to) repeats as at any. The site counts
 * only where the recording has no names for layers: the same line of the same file serves all. */
static size_t layer_lag(const struct plan *p, size_t from, size_t to, size_t *first, size_t *layers)
{
	size_t n = to - from, best = 0, lag = 0, *score = calloc(n / 2 + 2, sizeof(*score));

	for (size_t l = LEAST_LAYER; score && l <= n / 2; l++) {
		for (size_t i = from; i + l < to; i++)
			score[l] += token(p, i) == token(p, i + l);
		best = score[l] > best ? score[l] : best;
	}
	for (size_t l = LEAST_LAYER; score && l <= n / 2 && !lag; l++)
		if (score[l] * 100 >= best * 95 && score[l] * 2 >= n - l)
			lag = l;
	free(score);
	*layers = 0;
	if (!lag)
		return 0;
	/* The longest run that repeats, small gaps allowed. */
	size_t run = from, bad = 0, longest = 0;
	for (size_t i = from; i + lag < to; i++) {
		bad = token(p, i) == token(p, i + lag) ? 0 : bad + 1;
		if (bad > 2)
			run = i + 1;
		if (i + 1 - run - bad > longest && i + 1 > run + bad) {
			longest = i + 1 - run - bad;
			*first = run;
		}
	}
	*layers = longest / lag + 1;
	return lag;
}

/* Does the forward pass keep it for the backward pass that follows? */
static bool kept(const struct plan *p, const struct vc_block_life *b, size_t forward)
{
	const struct vc_span *back = &p->c->a.span[forward + 1];

	return b->died_event != SIZE_MAX && b->died_event >= back->first && b->died_event < back->end;
}

static int push(struct plan *p, struct segment s, struct vc_error *err)
{
	if (!(p->n & (p->n - 1))) {
		struct segment *at = realloc(p->at, (p->n ? 2 * p->n : 1) * sizeof(*at));
		if (!at)
			return vc_nomem(err, "checkpointed segments");
		p->at = at;
	}
	p->at[p->n++] = s;
	return VC_OK;
}

static int add_segment(struct plan *p, size_t from, size_t to, size_t forward, struct vc_error *err)
{
	const struct vc_anatomy *a = &p->c->a;
	struct segment s = { .from = from, .to = to, .again = SIZE_MAX,
			     .end_event = to < a->n ? a->block[to].event : a->span[forward].end };

	if (s.end_event > a->span[forward].end)
		s.end_event = a->span[forward].end;
	for (size_t i = from; i < to; i++)
		if (kept(p, &a->block[i], forward)) {
			s.output = a->block[i].id;
			s.again = a->block[i].died_event < s.again ? a->block[i].died_event : s.again;
		}
	return s.output ? push(p, s, err) : VC_OK;
}

static int plan_forward(struct plan *p, size_t forward, struct vc_error *err)
{
	const struct vc_anatomy *a = &p->c->a;
	size_t from = 0, to, first = 0, layers, step;
	int r = VC_OK;

	while (from < a->n && a->block[from].event < a->span[forward].first)
		from++;
	for (to = from; to < a->n && a->block[to].event < a->span[forward].end; to++)
		;
	size_t lag = layer_lag(p, from, to, &first, &layers);
	step = lag * p->cfg->every;
	if (!lag || layers < 2)
		return VC_OK;
	for (size_t k = 0; r == VC_OK && k < layers; k += p->cfg->every) {
		size_t begin = first + k * lag, end = begin + step < first + layers * lag ? begin + step
											    : first + layers * lag;
		if (k + p->cfg->every >= layers && !p->cfg->last)
			break;
		r = add_segment(p, begin, end < to ? end : to, forward, err);
	}
	return r;
}

static bool dropped(const struct plan *p, const struct segment *s, const struct vc_block_life *b)
{
	return b->id != s->output && b->size >= p->cfg->least && b->died_event >= s->end_event &&
	       b->died_event != SIZE_MAX && b->died_event >= s->again;
}

/* What is not kept goes as soon as the operations after it have run, not at the end of the segment:
 * nothing but the forward pass itself holds it. */
static int release(struct plan *p, const struct segment *s, size_t from, size_t to,
		   const struct vc_event *e, struct vc_error *err)
{
	int r = VC_OK;

	for (size_t i = from; r == VC_OK && i < to; i++) {
		const struct vc_block_life *b = &p->c->a.block[i];
		if (!dropped(p, s, b) || !p->c->alias[b->id])
			continue;
		r = vc_clone_free(p->c, e, p->c->alias[b->id], err);
		p->c->alias[b->id] = 0;
		p->saved += b->iteration == 1 ? b->size : 0;
	}
	return r;
}

/* Once more, forward: temporaries as they were, kept blocks anew, the output for the moment only. */
static int recompute(struct plan *p, const struct segment *s, struct vc_error *err)
{
	struct vc_clone *c = p->c;
	size_t first = c->a.block[s->from].event;
	uint64_t output = 0, *temp = calloc(s->to - s->from + 1, sizeof(*temp));
	int r = temp ? VC_OK : vc_nomem(err, "a recomputation");

	for (size_t i = first; r == VC_OK && i < s->end_event; i++) {
		const struct vc_event *e = &c->w->in[i];
		const struct vc_block_life *b = e->kind == VC_EV_ALLOC || e->kind == VC_EV_FREE ?
						vc_clone_block(c, e->id) : NULL;

		if (!b || b->born < s->from || b->born >= s->to)
			continue;
		if (e->kind == VC_EV_FREE)
			r = vc_clone_free(c, e, temp[b->born - s->from], err);
		else if (b->id == s->output)
			r = vc_clone_alloc(c, e, e->size, &output, err);
		else if (dropped(p, s, b))
			r = vc_clone_alloc(c, e, e->size, &c->alias[b->id], err);
		else if (b->died_event < s->end_event)
			r = vc_clone_alloc(c, e, e->size, &temp[b->born - s->from], err);
	}
	if (r == VC_OK)
		r = vc_clone_free(c, &c->w->in[s->again], output, err);
	free(temp);
	return r;
}

static int walk(struct plan *p, struct vc_error *err)
{
	struct vc_whole *w = p->c->w;
	size_t ending = 0;
	int r = VC_OK;

	for (size_t i = 0; r == VC_OK && i < w->n; i++) {
		for (; r == VC_OK && ending < p->n && p->at[ending].end_event <= i; ending++)
			r = release(p, &p->at[ending], p->at[ending].from, p->at[ending].to, &w->in[i], err);
		for (size_t k = ending; r == VC_OK && k-- > 0 && ending - k < 512;)
			if (p->at[k].again == i)
				r = recompute(p, &p->at[k], err);
		if (r == VC_OK)
			r = vc_clone_event(p->c, &w->in[i], err);
		const struct vc_block_life *b = w->in[i].kind == VC_EV_ALLOC && ending < p->n ?
						vc_clone_block(p->c, w->in[i].id) : NULL;
		if (r == VC_OK && b && b->born >= p->at[ending].from + USED &&
		    b->born < p->at[ending].to)
			r = release(p, &p->at[ending], b->born - USED, b->born - USED + 1, &w->in[i], err);
	}
	return r;
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	struct vc_clone c = { 0 };
	struct plan p = { .c = &c, .cfg = s->config };
	int r = vc_clone_init(&c, s, w, err);

	for (size_t k = 0; r == VC_OK && k + 1 < c.a.spans; k++)
		if (c.a.span[k].phase == VC_PHASE_FORWARD && c.a.span[k + 1].phase == VC_PHASE_BACKWARD)
			r = plan_forward(&p, k, err);
	if (r == VC_OK && !p.n)
		r = vc_fail(err, VC_EUSAGE, "checkpoint: no repeating layers found in a forward pass");
	if (r == VC_OK)
		r = walk(&p, err);
	if (r == VC_OK)
		vc_meta_note(s->meta, "checkpoint: %zu segments per pass give back %.2f GiB until their backward "
			     "pass; their forward pass runs twice (about a third more time if all of it does)",
			     p.n / (c.a.iterations ? c.a.iterations * (c.a.micro ? c.a.micro : 1) : 1),
			     (double)p.saved / (1u << 30));
	free(p.at);
	vc_clone_fini(&c);
	return r;
}

static long checkpoint_next(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	return vc_whole_next(s, ev, cap, rewrite, err);
}

const struct vc_source_type vc_transform_checkpoint = {
	.name = "checkpoint", .summary = "activation checkpointing: recompute layers in the backward pass",
	.params = params, .config_size = sizeof(struct config), .state_size = sizeof(struct vc_whole),
	.open = checkpoint_open, .next = checkpoint_next, .close = vc_whole_close,
};
