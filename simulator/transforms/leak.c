/* SPDX-License-Identifier: Apache-2.0 */
/* leak.c - what-if: many more iterations. What an iteration leaves behind adds up; the step at
 * which that runs out of memory is where the replay does. Each is made when it is asked for, so a
 * replay that stops costs the steps before it, and memory is that of one. */
#include "simulator/replay/transform.h"
#include "simulator/rewrite/copies.h"

struct config { uint64_t steps; };

static const struct vc_param params[] = { { "steps", VC_P_UINT, offsetof(struct config, steps),
					  "100", "iterations added at the end", NULL },
					 VC_PARAM_END };

struct leak {
	struct vc_whole w; /* first: the state of vc_whole_next */
	struct vc_clone c;
	size_t first, end, rest; /* events [first, end) are repeated; rest: where the recording's
				  * end begins */
	uint64_t made;
	bool over;
};

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

	for (size_t i = 0, k = 0; i < rest; i++) {
		for (; k < c->a.spans && c->a.span[k].end <= i; k++)
			if (ends(&c->a, k))
				VC_TRY(put_mark(w, &w->in[i], err));
		if (!is_mark(&w->in[i]))
			VC_TRY(vc_clone_event(c, &w->in[i], err));
	}
	return rest ? put_mark(w, &w->in[rest - 1], err) : VC_OK;
}

/* The stretch that is repeated: the steady iteration and what runs behind it. */
static size_t with_other(const struct vc_clone *c, size_t end)
{
	for (size_t k = 0; k + 1 < c->a.spans; k++)
		if (c->a.span[k].first == end && c->a.span[k].phase == VC_PHASE_OTHER)
			return c->a.span[k].end;
	return end;
}

/* The recording itself. */
static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	const struct config *cfg = s->config;
	struct leak *l = s->state;
	struct vc_clone *c = &l->c;
	uint32_t iteration;

	VC_TRY(vc_clone_init(c, s, w, err));
	if (!vc_clone_steady(c, &l->first, &l->end, &iteration) || c->a.iterations < 3)
		return vc_fail(err, VC_EUSAGE, "leak: %u iterations found in the recording, "
			       "three are needed to see what one leaves behind",
			       (unsigned)c->a.iterations);
	l->rest = vc_clone_end(c);
	l->end = with_other(c, l->end);
	for (size_t k = 0; k < c->a.spans; k++)
		c->keeps = c->a.span[k].iteration == c->a.iterations - 1 ? c->a.span[k].end :
									   c->keeps;
	c->keeps = c->keeps < l->rest ? c->keeps : l->rest;
	vc_meta_note(s->meta, "leak: each iteration keeps %.3f MiB that it never gives back; "
		     "%llu more iterations are added", (double)growth(c, iteration) / (1 << 20),
		     (unsigned long long)cfg->steps);
	return recorded(c, l->rest, err);
}

static int one_more(struct leak *l, struct vc_error *err)
{
	const struct vc_event *in = l->w.in;

	for (size_t i = l->first; i < l->end; i++)
		if (!is_mark(&in[i]))
			VC_TRY(vc_clone_copy(&l->c, &in[i], l->first, l->end, err));
	return put_mark(&l->w, &in[l->first], err);
}

static long leak_next(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	const struct config *cfg = s->config;
	struct leak *l = s->state;
	long n;

	while (!(n = vc_whole_next(s, ev, cap, err)) && !l->over) {
		int r;

		l->w.m = l->w.at = 0;
		l->over = l->made++ == cfg->steps;
		VC_TRY(r = l->over ? vc_clone_rest(&l->c, l->rest, err) : one_more(l, err));
		s->meta->max_id = l->w.next_id;
	}
	return n;
}

static void leak_close(struct vc_source *s)
{
	vc_clone_fini(&((struct leak *)s->state)->c);
	vc_whole_close(s);
}

const struct vc_source_type vc_transform_leak = {
	.name = "leak", .summary = "many more iterations: what each leaves behind adds up",
	.params = params, .config_size = sizeof(struct config),
	/* exact: the repeated step was recorded; that it stays the same is the question asked */
	.margin = &(const struct vc_margin){ 0 },
	.step = vc_step_unchanged, .state_size = sizeof(struct leak), .on_demand = true,
	.rewrite = rewrite, .open = leak_open, .next = leak_next, .close = leak_close,
};
