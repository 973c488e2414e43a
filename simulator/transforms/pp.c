/* SPDX-License-Identifier: Apache-2.0 */
/* pp.c - what-if: pipeline parallel, one forward one backward (torch.distributed.pipelining,
 * Schedule1F1B). The recorded step is one micro-batch. A stage holds its layers, what comes
 * before them (the first) or behind (the last), the activations of min(micro, stages - stage)
 * micro-batches, gradients while later ones run, and buffers for what it receives of every
 * micro-batch; the last keeps the outputs of all and joins them. Without layers: an equal share
 * of everything. */

#include "simulator/replay/transform.h"
#include "simulator/rewrite/resize.h"
#include "simulator/rewrite/fsdp_units.h"

enum { EVERYWHERE = UINT16_MAX, SMALL = 512 };
struct config { uint64_t ranks, stage, micro; };

#define AT(f) offsetof(struct config, f)
static const struct vc_param params[] = {
	{ "ranks", VC_P_UINT, AT(ranks), "2", "cards, each with one stage of the pipeline", NULL },
	VC_PARAM_ALIAS("stages", "ranks"),
	{ "stage", VC_P_UINT, AT(stage), "0", "which one, from 0", NULL },
	{ "micro", VC_P_UINT, AT(micro), "8",
	  "micro-batches of a step, each like the recorded one", NULL },
	VC_PARAM_END };

struct pipe {
	struct vc_resize r;       /* first: hooks get a pointer to it */
	struct vc_units u;
	uint16_t *owner;          /* by block: stage, or EVERYWHERE; NULL: layers are not known */
	uint64_t between, output; /* bytes that go from stage to stage; of the model's result */
	bool started;
};

static struct pipe *pipe_of(struct vc_resize *r)
{
	return (struct pipe *)(void *)r;
}

static const struct config *config_of(const struct pipe *p)
{
	return p->r.config;
}

static int pp_open(struct vc_source *s, struct vc_error *err)
{
	const struct config *c = s->config;

	return c->ranks && c->ranks < EVERYWHERE && c->stage < c->ranks && c->micro ? VC_OK :
	       vc_fail(err, VC_EUSAGE, "pp: stages and micro start at 1, stage is below stages");
}

static uint64_t in_flight(const struct config *c)
{
	return c->ranks - c->stage < c->micro ? c->ranks - c->stage : c->micro;
}

static uint64_t share_of(const struct config *c, const struct vc_block_life *b)
{
	switch ((enum vc_category)b->category) {
	case VC_CAT_PARAMETER: case VC_CAT_GRADIENT: case VC_CAT_STATE: case VC_CAT_OPTIMIZER_TEMP:
		return (b->size + c->ranks - 1) / c->ranks;
	case VC_CAT_ACTIVATION:
		return b->size <= SMALL ? b->size :
					  (b->size * in_flight(c) + c->ranks - 1) / c->ranks;
	default: return b->size;
	}
}

static uint64_t size_of(struct vc_resize *r, const struct vc_block_life *b)
{
	const struct pipe *p = pipe_of(r);
	const struct config *c = config_of(p);

	if (!p->owner)
		return share_of(c, b);
	return p->owner[b->born] == EVERYWHERE || p->owner[b->born] == c->stage ? b->size : 0;
}

static uint16_t stage_of(const struct pipe *p, size_t unit)
{
	return (uint16_t)(unit * config_of(p)->ranks / p->u.n);
}

/* Owners of what passes make: the layer that runs; before the first stage 0, behind the last the
 * last. */
static void own_passes(struct pipe *p)
{
	const struct vc_anatomy *a = &p->r.c.a;
	const struct config *c = config_of(p);
	uint16_t now = 0;
	size_t k = 0;

	for (size_t i = 0; i < a->n; i++) {
		const struct vc_block_life *b = &a->block[i];
		const struct vc_span *s = &a->span[b->span];

		if (i == 0 || b->span != a->block[i - 1].span)
			now = s->phase == VC_PHASE_BACKWARD ? (uint16_t)(c->ranks - 1) : 0;
		for (; k < p->u.actions && p->u.action[k].event <= b->event; k++) {
			const struct vc_unit_action *x = &p->u.action[k];

			if (x->unit >= p->u.n || x->event < s->first)
				continue;
			if (x->moment == VC_UNIT_FORWARD || x->moment == VC_UNIT_BACKWARD)
				now = stage_of(p, x->unit);
		}
		if ((s->phase == VC_PHASE_FORWARD || s->phase == VC_PHASE_BACKWARD) &&
		    b->category != VC_CAT_WORKSPACE)
			p->owner[i] = now;
	}
}

/* The n-th parameter of the model, or what belongs to it. */
static uint16_t owner_of_param(const struct pipe *p, size_t n)
{
	const struct vc_unit_param *x = &p->u.param[n];
	bool behind = false;

	if (x->unit < p->u.n)
		return stage_of(p, x->unit);
	for (size_t k = 0; k < n; k++)
		behind |= p->u.param[k].unit < p->u.n;
	return behind ? (uint16_t)(config_of(p)->ranks - 1) : 0;
}

static void own_parameters(struct pipe *p)
{
	struct vc_anatomy *a = &p->r.c.a;
	size_t states = 0, seen = 0, at = 0;

	for (size_t k = 0; k < p->u.params; k++)
		if (p->u.param[k].block != UINT32_MAX)
			p->owner[p->u.param[k].block] = owner_of_param(p, k);
	for (size_t i = 0; i < a->n; i++)
		states += a->block[i].category == VC_CAT_STATE && a->block[i].size > SMALL / 64;
	size_t each = states / p->u.params;
	for (size_t i = 0; i < a->n; i++) {
		const struct vc_block_life *b = &a->block[i];

		if (b->category == VC_CAT_STATE && each && b->size > SMALL / 64 &&
		    seen / each < p->u.params)
			p->owner[i] = owner_of_param(p, seen++ / each);
		if (b->category != VC_CAT_OPTIMIZER_TEMP)
			continue;
		for (size_t tries = 0; tries < p->u.params; tries++, at++)
			if (p->u.param[at % p->u.params].size == b->size) {
				p->owner[i] = owner_of_param(p, at++ % p->u.params);
				break;
			}
	}
}

/* What a stage hands on is the last thing that a layer keeps; the result is the last that the
 * model makes. */
static void find_results(struct pipe *p)
{
	const struct vc_anatomy *a = &p->r.c.a;

	for (size_t k = 0; k < p->u.actions && !p->output; k++) {
		const struct vc_unit_action *x = &p->u.action[k];
		bool root = x->unit >= p->u.n;

		if (x->moment != VC_UNIT_FORWARD_END)
			continue;
		for (size_t i = a->n; i-- > 0;)
			if (a->block[i].event < x->event && a->block[i].size > SMALL &&
			    (root || a->block[i].category == VC_CAT_ACTIVATION)) {
				*(root ? &p->output : &p->between) = a->block[i].size;
				break;
			}
	}
}

static int prepare(struct vc_resize *r, struct vc_error *err)
{
	struct pipe *p = pipe_of(r);
	const struct config *c = config_of(p);
	struct vc_anatomy *a = &r->c.a;
	int rc = vc_units_find(&p->u, &r->c, r->meta, false, err);

	if (rc == VC_OK)
		rc = vc_anatomy_own(a, err);
	if (rc < 0 || p->u.n < c->ranks)
		return rc;
	p->owner = calloc(a->n + 1, sizeof(*p->owner));
	r->extra = calloc(a->n + 1, sizeof(*r->extra));
	VC_HAVE(p->owner && r->extra, "the stages of a pipeline", err);
	for (size_t i = 0; i < a->n; i++)
		p->owner[i] = EVERYWHERE;
	own_passes(p);
	own_parameters(p);
	find_results(p);
	uint32_t more = (uint32_t)in_flight(c) - 1;
	for (size_t i = 0; i < a->n; i++) {
		struct vc_block_life *b = &a->block[i];

		if (p->owner[i] != c->stage && p->owner[i] != EVERYWHERE) {
			b->category = b->category == VC_CAT_GRADIENT ? VC_CAT_UNKNOWN : b->category;
		} else if (b->category == VC_CAT_ACTIVATION && b->size > SMALL && more) {
			r->extra[i] = (struct vc_extra){
				.beside = more * b->size, .pieces = more, .until = UINT32_MAX };
		}
	}
	return VC_OK;
}

/* The gradients of earlier micro-batches are there while a later one runs. */
static int hold_gradients(struct pipe *p, const struct vc_span *s, const struct vc_event *e,
			  struct vc_error *err)
{
	const struct vc_anatomy *a = &p->r.c.a;

	p->r.gradient_at = 0;
	for (size_t i = 0; i < a->n; i++)
		if (a->block[i].category == VC_CAT_GRADIENT &&
		    a->block[i].iteration == s->iteration)
			VC_TRY(vc_resize_add(&p->r, e, a->block[i].size, true, err));
	return VC_OK;
}

static int enter(struct vc_resize *r, const struct vc_span *s, const struct vc_event *e,
		 struct vc_error *err)
{
	struct pipe *p = pipe_of(r);
	const struct config *c = config_of(p);
	bool last = c->stage + 1 == c->ranks;

	if (p->owner && s->phase == VC_PHASE_BACKWARD && last)
		return vc_resize_add(r, e, p->output, true,
				     err); /* the loss has let go of it, the schedule has not */
	if (!p->owner || s->phase != VC_PHASE_FORWARD)
		return VC_OK;
	for (uint64_t k = 0; !p->started && k < c->micro; k++) {
		VC_TRY(vc_resize_add(r, e, c->stage ? p->between : 0, false, err));
		VC_TRY(vc_resize_add(r, e, last ? 0 : p->between, false, err));
	}
	p->started = true;
	if (c->micro > 1)
		VC_TRY(hold_gradients(p, s, e, err));
	for (uint64_t k = 1; last && k < c->micro; k++)
		VC_TRY(vc_resize_add(r, e, p->output, true, err));
	return VC_OK;
}

static int leave(struct vc_resize *r, const struct vc_span *s, const struct vc_event *e,
		 struct vc_error *err)
{
	struct pipe *p = pipe_of(r);
	const struct config *c = config_of(p);
	uint64_t id;

	if (!p->owner || s->phase != VC_PHASE_BACKWARD)
		return VC_OK;
	int rc = c->stage + 1 == c->ranks && p->output ?
		 vc_clone_alloc(&r->c, e, c->micro * p->output, &id, err) : VC_OK;
	if (rc == VC_OK && c->stage + 1 == c->ranks && p->output)
		rc = vc_clone_free(&r->c, e, id, err);
	return rc == VC_OK ? vc_resize_release(r, e, err) : rc;
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	struct pipe p = { .r = { .config = s->config,
			       .size = size_of, .prepare = prepare, .enter = enter, .leave = leave,
			       .held_by_gradient = true,
			       .meta = s->meta } };
	int rc = vc_resize_run(&p.r, s, w, err);

	if (rc == VC_OK)
		vc_meta_note(s->meta,
			     "pp: %s; the recorded step is one micro-batch of the pipeline",
			     p.owner ? "layers are shared out between the stages" :
				       "fewer layers than stages were found, an equal share of "
				       "everything is taken");
	free(p.owner);
	vc_units_fini(&p.u);
	return rc;
}

const struct vc_source_type vc_transform_pp = {
	.name = "pp", .summary = "pipeline parallel: one stage of several (an estimate)",
	.params = params, .config_size = sizeof(struct config),
	.margin = &(const struct vc_margin){ .down = 12, .up = 22 },
	.open = pp_open,
	VC_WHOLE(rewrite),
};
