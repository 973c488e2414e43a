/* SPDX-License-Identifier: Apache-2.0 */
/* accumulate.c - what-if: gradient accumulation over micro-batches of the recorded size.
 *
 * Where the recording accumulates already, its last micro-batch is repeated or left out. Otherwise
 * forward and backward are repeated; in the repetitions a gradient is a temporary: autograd adds it
 * to the one that is there and gives it back, in recordings two allocations later in the median
 * (76 gradients, 0 to 3). */

#include "simulator/replay/transform.h"
#include "simulator/rewrite/copies.h"

enum { LATER = 2 }; /* allocations after which a repeated gradient is given back */
struct config { uint64_t micro; };

static const struct vc_param params[] = {
	{ "micro", VC_P_UINT, offsetof(struct config, micro), "2",
	  "micro-batches of a step, each like the recorded one", NULL },
	VC_PARAM_ALIAS("k", "micro"), VC_PARAM_END };

static const char *unmade(const void *config)
{
	const struct config *c = config;

	return c->micro > 1 ? NULL : "its own loop says how many micro-batches a step has";
}

static int accumulate_open(struct vc_source *s, struct vc_error *err)
{
	const struct config *c = s->config;

	if (c->micro < 1 || c->micro > 4096)
		return vc_fail(err, VC_EUSAGE, "accumulate: micro=%llu is not between 1 and 4096",
			       (unsigned long long)c->micro);
	return VC_OK;
}

struct pending { uint64_t id; size_t due; };

/* One more forward and backward pass whose gradients are temporaries. */
static int repeat(struct vc_clone *c, size_t first, size_t end, struct vc_error *err)
{
	struct pending wait[64];
	size_t waiting = 0, allocs = 0;
	int r = VC_OK;

	for (size_t i = first; r == VC_OK && i < end; i++) {
		const struct vc_event *e = &c->w->in[i];
		const struct vc_block_life *b = vc_clone_block(c, e->id);
		bool gradient = b && e->kind == VC_EV_ALLOC && b->category == VC_CAT_GRADIENT &&
				c->a.span[b->span].phase == VC_PHASE_BACKWARD &&
				b->died_event >= end;

		for (size_t k = 0; r == VC_OK && e->kind == VC_EV_ALLOC && k < waiting; k++)
			if (wait[k].due <= allocs) {
				r = vc_clone_free(c, e, wait[k].id, err);
				wait[k--] = wait[--waiting];
			}
		if (r < 0)
			break;
		allocs += e->kind == VC_EV_ALLOC;
		if (gradient && waiting < 64) {
			wait[waiting].due = allocs + LATER;
			r = vc_clone_alloc(c, e, e->size, &wait[waiting++].id, err);
		} else {
			r = vc_clone_copy(c, e, first, end, err);
		}
	}
	for (size_t k = 0; r == VC_OK && k < waiting; k++)
		r = vc_clone_free(c, &c->w->in[end - 1], wait[k].id, err);
	return r;
}

static int plain(struct vc_clone *c, const struct vc_span *p, struct vc_error *err)
{
	for (size_t i = p->first; i < p->end; i++)
		VC_TRY(vc_clone_event(c, &c->w->in[i], err));
	return VC_OK;
}

/* Leave a span out: its blocks never exist, older blocks still die in it. */
static int drop(struct vc_clone *c, const struct vc_span *p, struct vc_error *err)
{
	for (size_t i = p->first; i < p->end; i++) {
		const struct vc_event *e = &c->w->in[i];

		if (e->kind == VC_EV_ALLOC && e->id < c->ids)
			c->alias[e->id] = 0;
		else
			VC_TRY(vc_clone_event(c, e, err));
	}
	return VC_OK;
}

/* The spans [k, end) of one iteration, with `want` micro-batches. */
static int iteration(struct vc_clone *c, size_t k, size_t end, uint64_t want, struct vc_error *err)
{
	const struct vc_span *p = c->a.span;
	size_t last = k;        /* first span of the last micro-batch */
	uint32_t have = 0;
	int r = VC_OK;

	for (size_t i = k; i < end; i++)
		if (p[i].phase == VC_PHASE_FORWARD || p[i].phase == VC_PHASE_BACKWARD) {
			have = p[i].micro + 1 > have ? p[i].micro + 1 : have;
			if (p[i].phase == VC_PHASE_FORWARD && p[i].micro + 1 == have)
				last = i;
		}
	for (size_t i = k; r == VC_OK && i < end; i++) {
		bool pass = p[i].phase == VC_PHASE_FORWARD || p[i].phase == VC_PHASE_BACKWARD;

		r = pass && p[i].micro >= want ? drop(c, &p[i], err) : plain(c, &p[i], err);
		if (r < 0 || !pass || p[i].micro + 1 != have || p[i].phase != VC_PHASE_BACKWARD)
			continue;
		for (uint64_t n = have; r == VC_OK && n < want; n++)
			r = have > 1 ? vc_clone_range(c, p[last].first, p[i].end, NULL, NULL, err)
				     : repeat(c, p[last].first, p[i].end, err);
	}
	return r;
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	const struct config *cfg = s->config;
	struct vc_clone c = { 0 };
	int r = vc_clone_init(&c, s, w, err);

	if (r == VC_OK && !c.a.iterations)
		r = vc_fail(err, VC_EUSAGE, "accumulate: no iterations found in the recording");
	for (size_t k = 0; r == VC_OK && k < c.a.spans;) {
		size_t end = k + 1;

		if (c.a.span[k].iteration == UINT32_MAX) {
			r = plain(&c, &c.a.span[k++], err);
			continue;
		}
		while (end < c.a.spans && c.a.span[end].iteration == c.a.span[k].iteration)
			end++;
		r = iteration(&c, k, end, cfg->micro, err);
		k = end;
	}
	vc_clone_fini(&c);
	return r;
}

/* Each micro-batch takes one pass. */
static void step(const void *config, struct vc_step_change *c)
{
	c->passes *= (double)((const struct config *)config)->micro;
}

static void split(unsigned n, double each, struct vc_remedy_words *w)
{
	snprintf(w->params, sizeof(w->params), "micro=%u", n);
	snprintf(w->text, sizeof(w->text), "gradient accumulation: %u parts of %.15g", n, each);
	snprintf(w->paste, sizeof(w->paste),
		 "(loss / %u).backward()  # step and zero_grad every %u batches of %.15g", n, n,
		 each);
}

static const struct vc_remedy remedies[] = {
	{ .cost = VC_COST_LOOP, .kind = "code", .estimate = true, .needs = VC_TRAIT_TRAINS,
	  .split = split },
	{ .kind = NULL } };

const struct vc_source_type vc_transform_accumulate = {
	.name = "accumulate",
	.summary = "gradient accumulation over micro-batches of the recorded size",
	.params = params, .config_size = sizeof(struct config),
	.margin = &(const struct vc_margin){ .down = 1, .up = 3 },
	.step = step, .remedies = remedies, .unmade = unmade, .open = accumulate_open,
	VC_WHOLE(rewrite),
};
