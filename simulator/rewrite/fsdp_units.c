/* SPDX-License-Identifier: Apache-2.0 */
/* fsdp_units.c - see fsdp_units.h.
 *
 * A layer's backward pass is found through what its forward pass kept: an operation gives its saved
 * tensors back when its gradients are made, so what is allocated before belongs to the layer of the
 * tensors that are given back next. A layer's output is kept by the layer behind it. */
#include "simulator/rewrite/fsdp_units.h"

#include "common/vec.h"
#include "simulator/anatomy/layers.h"

struct finder {
	struct vc_units *u;
	const struct vc_clone *c;
	const struct vc_meta *m;
	bool whole;
	struct vc_layers layers;
	/* By block of the forward pass: unit + 1; 0: root, before the layers; n + 1: root, behind
	 * them; n + 2: behind the model, loss. */
	uint32_t *owner;
	size_t *next;             /* by block of the backward pass: owner of what dies next */
};

static int act(struct finder *f, size_t event, enum vc_unit_moment moment, size_t unit,
	       uint32_t micro, struct vc_error *err)
{
	struct vc_units *u = f->u;

	VC_HAVE(vc_vec_one(u->action, u->actions), "units of a sharded model", err);
	u->action[u->actions++] =
		(struct vc_unit_action){ event, (uint8_t)moment, (uint32_t)unit, micro };
	return VC_OK;
}

static size_t event_at(const struct finder *f, size_t block, const struct vc_span *p)
{
	size_t at = block < f->c->a.n ? f->c->a.block[block].event : p->end;

	return at < p->end ? at : p->end;
}

/* Owners of what the forward pass makes, and the moments of its units. */
static int forward(struct finder *f, size_t span, struct vc_error *err)
{
	const struct vc_anatomy *a = &f->c->a;
	const struct vc_span *p = &a->span[span];
	const struct vc_layers *l = &f->layers;
	size_t n = f->u->n, k = 0, root = n;

	VC_TRY(act(f, event_at(f, l->model_from, p), VC_UNIT_FORWARD, root, p->micro, err));
	for (size_t i = l->model_from; i < l->model_to; i++) {
		while (k < l->n && i >= l->at[k].to)
			k++;
		bool within = k < l->n && i >= l->at[k].from;
		f->owner[i] = (uint32_t)(within         ? k + 1 :
					 k == 0 && l->n ? 0 :
					 k < l->n       ? k + 1 :
							  n + 1);
	}
	for (size_t i = l->model_to; i < a->n && a->block[i].event < p->end; i++)
		f->owner[i] = (uint32_t)(n + 2);
	for (k = 0; k < l->n; k++) {
		size_t output = vc_layers_output(&l->at[k], a, span);

		if (output != SIZE_MAX)
			f->owner[output] = (uint32_t)(k + 2);
		VC_TRY(act(f, event_at(f, l->at[k].from, p), VC_UNIT_FORWARD, k, p->micro, err));
		VC_TRY(act(f, event_at(f, l->at[k].to, p), VC_UNIT_FORWARD_END, k, p->micro,
			   err));
	}
	return act(f, event_at(f, l->model_to, p), VC_UNIT_FORWARD_END, root, p->micro, err);
}

/* For each block of the backward pass the owner of what is given back next: largest of a batch,
 * for an operation at the start of a layer gives its input back together with what it made
 * itself. */
static void look_ahead(struct finder *f, size_t forward_span)
{
	const struct vc_anatomy *a = &f->c->a;
	const struct vc_span *p = &a->span[forward_span + 1];
	size_t owner = 0, later = 0;
	bool batch = false;

	for (size_t i = p->end; i-- > p->first;) {
		const struct vc_event *e = &f->c->w->in[i];
		const struct vc_block_life *b = e->kind == VC_EV_ALLOC || e->kind == VC_EV_FREE ?
						vc_clone_block(f->c, e->id) : NULL;

		if (!b)
			continue;
		if (e->kind == VC_EV_ALLOC) {
			/* one that is older by more than a layer than what follows it is an
			 * exception */
			f->next[b->born] = owner + 1 < later ? later : owner;
			batch = false;
		} else if (b->died_event == i &&
			   b->event < p->first && /* kept, or the batch; not the loss, */
			   (b->size > 512 ||
			    f->owner[b->born] < f->u->n + 2)) { /* held by the script */
			if (!batch)
				later = owner;
			owner = batch && owner > f->owner[b->born] ? owner : f->owner[b->born];
			batch = true;
		}
	}
}

/* From owner `from` to the one before it. */
static int step_back(struct finder *f, size_t event, size_t from, uint32_t micro,
		     struct vc_error *err)
{
	if (from <= f->u->n)
		VC_TRY(act(f, event, VC_UNIT_BACKWARD_END, from - 1, micro, err));
	if (from > 1)
		VC_TRY(act(f, event, VC_UNIT_BACKWARD, from - 2, micro, err));
	return VC_OK;
}

static int backward(struct finder *f, size_t span, struct vc_error *err)
{
	const struct vc_anatomy *a = &f->c->a;
	const struct vc_span *p = &a->span[span];
	size_t now = f->u->n + 2, begun = now;

	look_ahead(f, span - 1);
	for (size_t i = p->first; i < p->end; i++) {
		const struct vc_block_life *b = f->c->w->in[i].kind == VC_EV_ALLOC ?
						vc_clone_block(f->c, f->c->w->in[i].id) : NULL;

		if (!b)
			continue;
		now = f->next[b->born] < now ? f->next[b->born] : now;
		for (; begun > now; begun--)
			VC_TRY(step_back(f, i, begun, p->micro, err));
		if (b->category == VC_CAT_GRADIENT)
			f->u->of_gradient[b->born] =
				(uint32_t)(now && now <= f->u->n ? now : f->u->n + 1);
	}
	for (; begun > 0; begun--)
		VC_TRY(step_back(f, p->end, begun, p->micro, err));
	return act(f, p->end, VC_UNIT_BACKWARD_END, f->u->n, p->micro, err);
}

static int passes(struct finder *f, struct vc_error *err)
{
	const struct vc_anatomy *a = &f->c->a;
	bool wrapped = false;
	int r = VC_OK;

	for (size_t k = 0; r == VC_OK && k < a->spans; k++) {
		const struct vc_span *p = &a->span[k];

		if (p->phase == VC_PHASE_OPTIMIZER)
			r = act(f, p->end, VC_UNIT_REST, 0, 0, err);
		if (p->phase != VC_PHASE_FORWARD || k + 1 == a->spans ||
		    p[1].phase != VC_PHASE_BACKWARD)
			continue;
		vc_layers_fini(&f->layers);
		r = vc_whole_layers(f->c->w, f->m, a, k, &f->layers, err);
		if (r < 0)
			break;
		vc_layers_stacks(&f->layers, a, k);
		f->layers.n = f->whole ? 0 : f->layers.n;
		if (!wrapped) {
			f->u->n = f->layers.n;
			f->u->named = f->layers.named;
			r = act(f, p->first, VC_UNIT_WRAP, 0, 0, err);
		}
		wrapped = true;
		if (f->layers.n > f->u->n)
			f->layers.n = f->u->n;
		if (r == VC_OK)
			r = forward(f, k, err);
		if (r == VC_OK)
			r = backward(f, k + 1, err);
	}
	return r;
}

/* ---- parameters ---- */

VC_COMPARE(by_block, struct vc_unit_param, VC_ORDER(x->block, y->block))

/* A parameter for each gradient: of its size, the first that is left; layers in order. */
static int parameters(struct finder *f, struct vc_error *err)
{
	const struct vc_anatomy *a = &f->c->a;
	struct vc_units *u = f->u;
	uint32_t iteration = UINT32_MAX;
	bool *taken = calloc(a->n + 1, sizeof(*taken));

	u->param = calloc(a->n + 1, sizeof(*u->param));
	u->bytes = calloc(u->n + 1, sizeof(*u->bytes));
	if (!taken || !u->param || !u->bytes) {
		free(taken);
		return vc_nomem(err, "the parameters of units");
	}
	for (size_t i = 0; i < a->n && iteration == UINT32_MAX; i++)
		if (u->of_gradient[i])
			iteration = a->block[i].iteration;
	for (uint32_t k = 0; k <= u->n; k++)
		for (size_t i = a->n;
		     i-- > 0;) { /* gradients come in the order of the backward pass */
			const struct vc_block_life *g = &a->block[i];
			uint32_t found = UINT32_MAX;

			if (u->of_gradient[i] != k + 1 || g->iteration != iteration ||
			    a->span[g->span].micro)
				continue;
			for (size_t j = 0;
			     j < a->n && found == UINT32_MAX && a->block[j].event < g->event; j++)
				if (a->block[j].category == VC_CAT_PARAMETER &&
				    a->block[j].size == g->size && !taken[j])
					found = (uint32_t)j;
			if (found != UINT32_MAX)
				taken[found] = true;
			u->param[u->params++] = (struct vc_unit_param){ g->size, k, found };
			u->bytes[k] += g->size;
		}
	free(taken);
	vc_sort(u->param, u->params, sizeof(*u->param), by_block);
	return VC_OK;
}

int vc_units_find(struct vc_units *u, const struct vc_clone *c, const struct vc_meta *m, bool whole,
		  struct vc_error *err)
{
	struct finder f = { .u = u, .c = c, .m = m, .whole = whole };
	int r = VC_OK;

	*u = (struct vc_units){ 0 };
	u->of_gradient = calloc(c->a.n + 1, sizeof(*u->of_gradient));
	f.owner = calloc(c->a.n + 1, sizeof(*f.owner));
	f.next = calloc(c->a.n + 1, sizeof(*f.next));
	if (!u->of_gradient || !f.owner || !f.next)
		r = vc_nomem(err, "units of a sharded model");
	if (r == VC_OK)
		r = passes(&f, err);
	if (r == VC_OK)
		r = parameters(&f, err);
	if (r == VC_OK && !u->params)
		r = vc_fail(err, VC_EUSAGE, "no gradients found in the recording, so its "
			    "parameters are not known");
	vc_layers_fini(&f.layers);
	VC_FREE(f.owner, f.next);
	if (r < 0)
		vc_units_fini(u);
	return r;
}

void vc_units_fini(struct vc_units *u)
{
	free(u->bytes);
	free(u->param);
	free(u->action);
	free(u->of_gradient);
	*u = (struct vc_units){ 0 };
}
