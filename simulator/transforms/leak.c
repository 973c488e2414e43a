/* SPDX-License-Identifier: Apache-2.0 */
/* leak.c - what-if: many more iterations. What an iteration leaves behind adds up; the step at
 * which that runs out of memory is where the replay does. */
#include "simulator/replay/transform.h"
#include "simulator/rewrite/copies.h"

struct config { uint64_t steps; };

static const struct vc_param params[] = { { "steps", VC_P_UINT, offsetof(struct config, steps),
					  "100", "iterations added at the end", NULL },
					 VC_PARAM_END };

static int leak_open(struct vc_source *s, struct vc_error *err)
{
	const struct config *c = s->config;

	return c->steps && c->steps <= 100000 ? VC_OK :
	       vc_fail(err, VC_EUSAGE, "leak: steps is 1 to 100000");
}

/* Bytes that one iteration keeps: not given back before the next one is over. */
static uint64_t growth(const struct vc_clone *c, uint32_t iteration)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < c->a.n; i++)
		if (c->a.block[i].iteration == iteration && c->a.block[i].died_event >= c->keeps)
			sum += c->a.block[i].size;
	return sum;
}

/* Does the iteration of span k end with it? What runs between two of them (an evaluation) is of
 * the former. */
static bool ends(const struct vc_anatomy *a, size_t k)
{
	uint32_t next = k + 1 < a->spans ? a->span[k + 1].iteration : UINT32_MAX;

	if (a->span[k].iteration == UINT32_MAX)
		return a->span[k].phase == VC_PHASE_OTHER && next != UINT32_MAX;
	return next != a->span[k].iteration && (next != UINT32_MAX || k + 1 == a->spans);
}

static bool is_mark(const struct vc_event *e)
{
	return e->kind == VC_EV_MARK && e->flags == VC_MARK_STEP;
}

static int put_mark(struct vc_whole *w, const struct vc_event *like, struct vc_error *err)
{
	struct vc_event mark = vc_event_like(like, VC_EV_MARK, 0, 0);

	mark.flags = VC_MARK_STEP;
	return vc_whole_put(w, &mark, 1, err);
}

/* The recording up to `rest`, with a mark where each of its steps ends. */
static int recorded(struct vc_clone *c, size_t rest, struct vc_error *err)
{
	struct vc_whole *w = c->w;
	int r = VC_OK;

	for (size_t i = 0, k = 0; r == VC_OK && i < rest; i++) {
		for (; r == VC_OK && k < c->a.spans && c->a.span[k].end <= i; k++)
			if (ends(&c->a, k))
				r = put_mark(w, &w->in[i], err);
		if (r == VC_OK && !is_mark(&w->in[i]))
			r = vc_clone_event(c, &w->in[i], err);
	}
	return r == VC_OK && rest ? put_mark(w, &w->in[rest - 1], err) : r;
}

/* The stretch that is repeated: the steady iteration and what runs behind it. */
static size_t with_other(const struct vc_clone *c, size_t end)
{
	for (size_t k = 0; k + 1 < c->a.spans; k++)
		if (c->a.span[k].first == end && c->a.span[k].phase == VC_PHASE_OTHER)
			return c->a.span[k].end;
	return end;
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	const struct config *cfg = s->config;
	struct vc_clone c = { 0 };
	size_t first, end, rest;
	uint32_t iteration;
	int r = vc_clone_init(&c, s, w, err);

	if (r == VC_OK && (!vc_clone_steady(&c, &first, &end, &iteration) || c.a.iterations < 3))
		r = vc_fail(err, VC_EUSAGE,
			    "leak: %u iterations found in the recording, three are needed to see "
			    "what one leaves behind",
			    (unsigned)c.a.iterations);
	if (r == VC_OK) {
		rest = vc_clone_end(&c);
		end = with_other(&c, end);
		for (size_t k = 0; k < c.a.spans; k++)
			c.keeps = c.a.span[k].iteration == c.a.iterations - 1 ? c.a.span[k].end :
										c.keeps;
		c.keeps = c.keeps < rest ? c.keeps : rest;
		r = recorded(&c, rest, err);
	}
	for (uint64_t k = 0; r == VC_OK && k < cfg->steps; k++) {
		for (size_t i = first; r == VC_OK && i < end; i++)
			if (!is_mark(&w->in[i]))
				r = vc_clone_copy(&c, &w->in[i], first, end, err);
		if (r == VC_OK)
			r = put_mark(w, &w->in[first], err);
	}
	if (r == VC_OK)
		vc_meta_note(s->meta,
			     "leak: each iteration keeps %.3f MiB that it never gives back; %llu "
			     "more iterations are added",
			     (double)growth(&c, iteration) / (1 << 20),
			     (unsigned long long)cfg->steps);
	if (r == VC_OK)
		r = vc_clone_rest(&c, rest, err);
	vc_clone_fini(&c);
	return r;
}

const struct vc_source_type vc_transform_leak = {
	.name = "leak",
	.summary = "many more iterations: what each leaves behind adds up",
	.params = params,
	.config_size = sizeof(struct config),
	/* exact: the repeated step was recorded; that it stays the same is the question asked */
	.margin = &(const struct vc_margin){ 0 },
	.step = vc_step_unchanged,
	.open = leak_open,
	VC_WHOLE(rewrite),
};
