/* SPDX-License-Identifier: Apache-2.0 */
/* layer_costs.c - see layer_costs.h. A forward and a backward pass are cut where layers begin. What
 * is allocated between two cuts needs that many bytes, less what layers before it gave back. */
#include "simulator/search/layer_costs.h"

#include "common/vec.h"
#include "simulator/anatomy/layers.h"
#include "simulator/time/time.h"

enum { BLOCK = 512 }; /* PyTorch rounds requests to it (c10/cuda: kMinBlockSize) */
enum zone { FORWARD, BEHIND, BACKWARD, ELSEWHERE };

/* From this event on the run is in that zone of that layer. */
struct cut { size_t event; enum zone zone; size_t layer; };

struct reader {
	const struct vc_session *s;
	const struct vc_anatomy *a;
	struct vc_layer_costs *c;
	struct cut *cut; size_t cuts, cap;
	uint64_t *size; uint64_t ids; /* of live blocks, by id */
	uint64_t *start, *peak; /* by layer: allocated when its forward pass ends, most in it */
};

VC_COMPARE(by_event, struct cut, VC_ORDER(x->event, y->event))

static int add_cut(struct reader *r, size_t event, enum zone zone, size_t layer,
		   struct vc_error *err)
{
	VC_HAVE(vc_vec_room(r->cut, r->cap, r->cuts + 1), "the layers of a run", err);
	r->cut[r->cuts++] = (struct cut){ event, zone, layer };
	return VC_OK;
}

/* When the backward pass needs the first thing that a layer kept for it; SIZE_MAX: nothing. */
static size_t first_use(const struct vc_anatomy *a, const struct vc_layer *y, size_t span,
			uint64_t *kept)
{
	size_t output = vc_layers_output(y, a, span), at = SIZE_MAX;

	*kept = 0;
	for (size_t i = y->from; i < y->to; i++) {
		const struct vc_block_life *b = &a->block[i];

		if (i == output || !vc_layers_kept(a, b, span))
			continue;
		*kept += (b->size + BLOCK - 1) / BLOCK * BLOCK;
		at = b->died_event < at ? b->died_event : at;
	}
	return at;
}

/* The cuts of one forward pass and the backward pass behind it. */
static int cut_passes(struct reader *r, const struct vc_layers *l, size_t span, bool steady,
		      struct vc_error *err)
{
	const struct vc_anatomy *a = r->a;
	size_t end = a->span[span].end, last = a->span[span + 1].end;

	for (size_t i = 0; i < l->n; i++) {
		struct vc_layer_cost *y = &r->c->at[i];
		uint64_t kept;
		size_t use = first_use(a, &l->at[i], span, &kept);

		VC_TRY(add_cut(r, a->block[l->at[i].from].event, FORWARD, i, err));
		if (use != SIZE_MAX)
			VC_TRY(add_cut(r, use, BACKWARD, i, err));
		if (!steady)
			continue;
		y->kept = kept;
		y->frame = l->at[i].frame;
		y->low = l->at[i].low;
		y->high = l->at[i].high;
	}
	size_t behind = l->at[l->n - 1].to;
	if (behind < a->n && a->block[behind].event < end)
		VC_TRY(add_cut(r, a->block[behind].event, BEHIND, l->n, err));
	return add_cut(r, last, ELSEWHERE, l->n, err);
}

/* Layers of the forward pass that the transform chooses from. */
static int layers_at(struct vc_layers *l, const struct reader *r, size_t span, struct vc_error *err)
{
	const struct vc_recording *rec = r->s->rec;

	VC_TRY(vc_layers_of(l, &rec->trace, rec->device->device, span, err));
	if (l->n > 1)
		vc_layers_stacks(l, r->a, span);
	return VC_OK;
}

static bool is_pass(const struct vc_anatomy *a, size_t k)
{
	return k + 1 < a->spans && a->span[k].phase == VC_PHASE_FORWARD &&
	       a->span[k + 1].phase == VC_PHASE_BACKWARD;
}

/* A pass of the last iteration but one, which neither starts anything nor was cut off. */
static size_t steady_pass(const struct vc_anatomy *a)
{
	size_t found = SIZE_MAX;

	for (size_t k = 0; k < a->spans; k++)
		if (is_pass(a, k) && a->span[k].iteration != UINT32_MAX &&
		    (found == SIZE_MAX || a->span[k].iteration + 2 <= a->iterations))
			found = k;
	return found;
}

static int cut_all(struct reader *r, struct vc_error *err)
{
	size_t steady = steady_pass(r->a);
	struct vc_layers l = { 0 };
	int rc;

	if (steady == SIZE_MAX)
		return vc_fail(err, VC_ENOSUP, "no forward pass with a backward pass behind it was "
			       "found: there is nothing to compute twice");
	rc = layers_at(&l, r, steady, err);
	r->c->n = rc == VC_OK ? l.n : 0;
	r->c->named = l.named;
	vc_layers_fini(&l);
	if (rc == VC_OK && r->c->n < 2)
		return vc_fail(err, VC_ENOSUP, "no repeating layers were found in a forward pass; "
			       "record call sites as well: --stacks py");
	if (r->c->n > VC_LAYERS_MOST)
		return vc_fail(err, VC_ENOSUP, "%zu layers: at most %d are searched", r->c->n,
			       VC_LAYERS_MOST);
	r->c->at = calloc(r->c->n + 1, sizeof(*r->c->at));
	VC_HAVE(r->c->at, "the layers of a run", err);
	for (size_t k = 0; rc == VC_OK && k < r->a->spans; k++) {
		if (!is_pass(r->a, k))
			continue;
		rc = layers_at(&l, r, k, err);
		if (rc == VC_OK && l.n == r->c->n)
			rc = cut_passes(r, &l, k, k == steady, err);
		vc_layers_fini(&l);
	}
	return rc;
}

/* ---- what is allocated ---- */

static void note(struct reader *r, const struct cut *at, uint64_t live)
{
	struct vc_layer_costs *c = r->c;

	switch (at ? at->zone : ELSEWHERE) {
	case FORWARD:
		vc_raise(&c->at[at->layer].need, live);
		vc_raise(&r->peak[at->layer], live);
		break;
	case BACKWARD:
		vc_raise(&c->at[at->layer].need, live);
		break;
	case BEHIND:
		vc_raise(&c->loss, live);
		break;
	case ELSEWHERE:
		vc_raise(&c->elsewhere, live);
		break;
	}
}

/* When a cut is reached: what the forward pass of a layer needs beyond what it leaves behind, it
 * needs once more when it is computed again. */
static void enter(struct reader *r, const struct cut *from, const struct cut *to, uint64_t live)
{
	if (from && from->zone == FORWARD)
		r->start[from->layer] = live;
	if (to->zone == BACKWARD) {
		uint64_t extra = r->peak[to->layer] > r->start[to->layer] ?
				 r->peak[to->layer] - r->start[to->layer] : 0;
		vc_raise(&r->c->at[to->layer].again, live + extra);
	}
	if (to->zone == FORWARD)
		r->peak[to->layer] = 0;
}

static void follow(struct reader *r)
{
	const struct vc_trace *t = &r->s->rec->trace;
	uint16_t device = r->s->rec->device->device;
	const struct cut *now = NULL;
	uint64_t live = 0;

	for (size_t i = 0, k = 0; i < t->n; i++) {
		const struct vc_event *e = &t->ev[i];
		bool heap = e->kind == VC_EV_HEAP_BLOCK && !(e->flags & VC_EVF_FINAL);

		for (; k < r->cuts && r->cut[k].event <= i; k++) {
			enter(r, now, &r->cut[k], live);
			now = &r->cut[k];
		}
		if (e->device != device || e->id >= r->ids)
			continue;
		if (e->kind == VC_EV_ALLOC || heap) {
			r->size[e->id] = (e->size + BLOCK - 1) / BLOCK * BLOCK;
			live += r->size[e->id];
		} else if (e->kind == VC_EV_FREE) {
			live -= r->size[e->id];
			r->size[e->id] = 0;
		}
		note(r, now, live);
	}
}

/* ---- times ---- */

/* Bytes that the forward pass of a layer asks for: each of them is written, and most kernels are as
 * fast as that. The best that is known without kernels. */
static void guess_times(struct reader *r)
{
	struct vc_layers l = { 0 };
	struct vc_error err;
	double sum = 0;

	if (layers_at(&l, r, steady_pass(r->a), &err) == VC_OK && l.n == r->c->n)
		for (size_t k = 0; k < l.n; k++)
			for (size_t i = l.at[k].from; i < l.at[k].to; i++)
				r->c->at[k].ns += (double)r->a->block[i].size;
	vc_layers_fini(&l);
	for (size_t k = 0; k < r->c->n; k++)
		sum += r->c->at[k].ns;
	for (size_t k = 0; k < r->c->n; k++)
		r->c->at[k].ns = sum > 0 ? r->c->at[k].ns / sum : 1.0 / (double)r->c->n;
}

/* Where a layer ends among the kernels is known to a kernel or two. Those that keep the same at the
 * same lines take the same time. */
static void even_out(struct vc_layer_costs *c)
{
	bool done[VC_LAYERS_MOST] = { false };

	for (size_t i = 0; i < c->n; i++) {
		double sum = 0;
		size_t n = 0;

		for (int pass = 0; pass < 2; pass++)
			for (size_t k = i; k < c->n && !done[i]; k++) {
				struct vc_layer_cost *x = &c->at[i], *y = &c->at[k];

				if (x->low != y->low || x->high != y->high || done[k] ||
				    x->kept > y->kept + y->kept / 64 ||
				    y->kept > x->kept + x->kept / 64)
					continue;
				sum += pass ? 0 : y->ns;
				n += !pass;
				if (pass && k > i) {
					y->ns = sum / (double)n;
					done[k] = true;
				}
			}
		if (n)
			c->at[i].ns = sum / (double)n;
	}
}

static int ask_times(struct reader *r, const struct vc_plan *plan, struct vc_error *err)
{
	struct vc_timing base, o;

	VC_TRY(vc_time_step(r->s, plan, &base, err));
	r->c->step_ns = (double)base.step_ns;
	snprintf(r->c->why, sizeof(r->c->why), "%s", base.why);
	for (size_t i = 0; i < r->c->n && r->c->step_ns > 0; i++) {
		struct vc_plan one = *plan;
		char text[64];
		const char **list;

		snprintf(text, sizeof(text), "checkpoint:layers=%zu", i);
		VC_TRY(vc_plan_with(&one, text, &list, err));
		int rc = vc_time_step(r->s, &one, &o, err);
		free(list);
		VC_TRY(rc);
		if (!o.step_ns) {
			r->c->step_ns = 0;
			snprintf(r->c->why, sizeof(r->c->why), "%s", o.why);
			break;
		}
		r->c->at[i].ns = o.step_ns > base.step_ns ?
				 (double)(o.step_ns - base.step_ns) : 0;
	}
	even_out(r->c);
	return VC_OK;
}

static int read(struct reader *r, const struct vc_plan *plan, struct vc_error *err)
{
	int rc = cut_all(r, err);

	VC_TRY(rc);
	if (r->cuts)
		vc_sort(r->cut, r->cuts, sizeof(*r->cut), by_event);
	r->ids = r->s->rec->meta->max_id + 1;
	r->size = calloc(r->ids, sizeof(*r->size));
	r->start = calloc(r->c->n, sizeof(*r->start));
	r->peak = calloc(r->c->n, sizeof(*r->peak));
	VC_HAVE(r->size && r->start && r->peak, "the blocks of a run", err);
	follow(r);
	for (size_t i = 0; i < r->c->n; i++)
		r->c->total += r->c->at[i].kept;
	VC_TRY(ask_times(r, plan, err));
	if (!(r->c->step_ns > 0)) {
		for (size_t i = 0; i < r->c->n; i++)
			r->c->at[i].ns = 0;
		guess_times(r);
	}
	return VC_OK;
}

int vc_layer_costs_read(struct vc_layer_costs *c, const struct vc_session *s,
			const struct vc_plan *plan, struct vc_error *err)
{
	struct vc_anatomy a = { 0 };
	struct reader r = { .s = s, .a = &a, .c = c };
	int rc;

	*c = (struct vc_layer_costs){ 0 };
	if (s->rec->streamed || !s->rec->trace.n)
		return vc_fail(err, VC_ENOSUP, "%s is too long to be searched; record fewer steps",
			       s->rec->path);
	rc = vc_anatomy_of(&a, &s->rec->trace, s->rec->device->device, err);
	if (rc == VC_OK)
		rc = read(&r, plan, err);
	vc_anatomy_fini(&a);
	VC_FREE(r.cut, r.size, r.start, r.peak);
	if (rc < 0)
		vc_layer_costs_fini(c);
	return rc;
}

void vc_layer_costs_fini(struct vc_layer_costs *c)
{
	free(c->at);
	*c = (struct vc_layer_costs){ 0 };
}
