/* SPDX-License-Identifier: Apache-2.0 */
/* offload.c - what-if: activations wait in host memory (torch.autograd.graph.save_on_cpu): copied
 * out soon after they are made, back when the operation that needs them begins, and gone when it
 * ends. What an operation saves includes its weights: their copies come back beside the
 * activations. */

#include "common/vec.h"
#include "simulator/replay/transform.h"
#include "simulator/rewrite/copies.h"

struct config { uint64_t least, after; };
enum { WEIGHTS = 8 }; /* of one layer; bounds a table */
enum { WEIGHT = 65536 }; /* smaller gradients are of vectors, which are not saved */

#define AT(f) offsetof(struct config, f)
static const struct vc_param params[] = {
	{ "least", VC_P_SIZE, AT(least), "1MiB", "smaller blocks stay", NULL },
	{ "after", VC_P_UINT, AT(after), "2", "allocations until the copy is out", NULL },
	VC_PARAM_END
};

static const char *unmade(const void *config)
{
	const struct config *c = config;

	return c->least == 1 << 20 && c->after == 2 ? NULL :
						      "save_on_cpu moves blocks of all sizes";
}

static int offload_open(struct vc_source *s, struct vc_error *err)
{
	return VC_OK;
}

static bool moves(const struct vc_clone *c, const struct config *cfg, const struct vc_block_life *b)
{
	return b && b->category == VC_CAT_ACTIVATION && b->size >= cfg->least &&
	       b->died_event != SIZE_MAX && b->died - b->born > 2 * cfg->after &&
	       c->a.span[b->span].phase == VC_PHASE_FORWARD;
}

/* What comes back before an event of the backward pass: chained by block, at[event] and
 * next[block] hold the number of a block + 1. A gradient stands for the copy of its weight. */
struct back { uint32_t *at, *next; uint64_t *copy; size_t copies; };

static void chain(struct back *k, size_t event, const struct vc_block_life *b)
{
	k->next[b->born] = k->at[event];
	k->at[event] = b->born + 1;
}

/* An operation ends where saved tensors are given back; it began at the first request behind the
 * end of the one before. */
static void operations(struct vc_clone *c, const struct config *cfg, const struct vc_span *p,
		       struct back *k)
{
	const struct vc_block_life *weight[WEIGHTS];
	size_t begin = SIZE_MAX, weights = 0;
	bool over = true;

	for (size_t i = p->first; i < p->end; i++) {
		const struct vc_event *e = &c->w->in[i];
		const struct vc_block_life *b = e->kind == VC_EV_ALLOC || e->kind == VC_EV_FREE ?
						vc_clone_block(c, e->id) : NULL;

		if (b && e->kind == VC_EV_ALLOC) {
			begin = over ? i : begin;
			weights = over ? 0 : weights;
			over = false;
			if (b->category == VC_CAT_GRADIENT && b->size >= WEIGHT &&
			    weights < WEIGHTS)
				weight[weights++] = b;
		} else if (b && b->event < p->first && b->category == VC_CAT_ACTIVATION) {
			bool out = moves(c, cfg, b);
			if (out)
				chain(k, begin == SIZE_MAX ? i : begin, b);
			while (out && weights) /* an embedding saves no weight, and nothing large */
				chain(k, begin, weight[--weights]);
			over = true;
		}
	}
}

struct sum { uint64_t host, most; };

static int come_back(struct vc_source *s, struct vc_clone *c, struct back *k, size_t i,
		     struct sum *m, struct vc_error *err)
{
	const struct vc_event *e = &c->w->in[i];

	for (uint32_t at = k->at[i]; at; at = k->next[at - 1]) {
		const struct vc_block_life *b = &c->a.block[at - 1];

		if (b->category == VC_CAT_GRADIENT) {
			VC_TRY(vc_clone_alloc(c, e, b->size, &k->copy[k->copies++], err));
			continue;
		}
		VC_TRY(vc_clone_alloc(c, e, b->size, &c->alias[b->id], err));
		VC_TRY(vc_whole_host(s, c->w, e, b->id, 0, err));
		m->host -= b->size;
	}
	return VC_OK;
}

static int go_out(struct vc_source *s, struct vc_clone *c, const struct vc_event *e,
		  const struct vc_block_life *b, struct sum *m, struct vc_error *err)
{
	VC_TRY(vc_clone_free(c, e, c->alias[b->id], err));
	c->alias[b->id] = 0;
	m->host += b->size;
	m->most = m->host > m->most ? m->host : m->most;
	return vc_whole_host(s, c->w, e, b->id, b->size, err);
}

static int walk(struct vc_source *s, struct vc_clone *c, struct back *k, struct sum *m,
		struct vc_error *err)
{
	const struct config *cfg = s->config;
	struct vc_whole *w = c->w;

	for (size_t i = 0, block = 0; i < w->n; i++) {
		const struct vc_event *e = &w->in[i];
		const struct vc_block_life *b =
			e->kind == VC_EV_FREE ? vc_clone_block(c, e->id) : NULL;

		VC_TRY(come_back(s, c, k, i, m, err));
		if (e->kind == VC_EV_ALLOC && e->device == w->device && block++ >= cfg->after) {
			const struct vc_block_life *out = &c->a.block[block - 1 - cfg->after];
			if (moves(c, cfg, out))
				VC_TRY(go_out(s, c, e, out, m, err));
		}
		VC_TRY(vc_clone_event(c, e, err));
		while (b && moves(c, cfg, b) && k->copies)
			VC_TRY(vc_clone_free(c, e, k->copy[--k->copies], err));
	}
	return VC_OK;
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	struct vc_clone c = { 0 };
	struct sum m = { 0 };
	int r = vc_clone_init(&c, s, w, err);
	struct back k = { .at = calloc(w->n + 1, sizeof(*k.at)),
			 .next = calloc(c.a.n + 1, sizeof(*k.next)),
			 .copy = calloc(c.a.n + 1, sizeof(*k.copy)) };

	if (r == VC_OK && (!k.at || !k.next || !k.copy))
		r = vc_nomem(err, "what comes back from the host");
	for (size_t i = 0; r == VC_OK && i < c.a.spans; i++)
		if (c.a.span[i].phase == VC_PHASE_BACKWARD)
			operations(&c, s->config, &c.a.span[i], &k);
	if (r == VC_OK)
		r = walk(s, &c, &k, &m, err);
	if (r == VC_OK)
		vc_meta_note(s->meta,
			     "offload: up to %.2f GiB of activations wait in pinned host memory",
			     (double)m.most / (1u << 30));
	VC_FREE(k.at, k.next, k.copy);
	vc_clone_fini(&c);
	return r;
}

static const struct vc_remedy remedies[] = {
	{ .cost = VC_COST_TRAFFIC, .kind = "code", .estimate = true, .needs = VC_TRAIT_TRAINS,
	  .text = "activations wait in host memory", .slower = "slower",
	  .paste = "with torch.autograd.graph.save_on_cpu(pin_memory=True): loss = model(x)" },
	{ .kind = NULL } };

const struct vc_source_type vc_transform_offload = {
	.name = "offload", .summary = "activations wait in host memory",
	.params = params, .config_size = sizeof(struct config),
	.margin = &(const struct vc_margin){ .down = 17, .up = 13, .layout = true },
	.remedies = remedies, .unmade = unmade, .open = offload_open,
	VC_WHOLE(rewrite),
};
