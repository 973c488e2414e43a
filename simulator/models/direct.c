/* SPDX-License-Identifier: Apache-2.0 */
/* direct.c - no caching: cudaMalloc and cudaFree for every request. The baseline. */

#include "common/vec.h"
#include "simulator/replay/model.h"

struct piece { uint64_t addr, size, id; uint32_t stream, prev, next; };

/* Live blocks as a list through an array, so that walk() and check() can see them; slot 0 heads
 * it. */
struct state { struct piece *at; size_t cap; uint32_t n, spare; };

static uint32_t take_slot(struct state *st)
{
	uint32_t i = st->spare;

	if (!i)
		return ++st->n;
	st->spare = st->at[i].next;
	return i;
}

static int direct_alloc(struct vc_model *m, const struct vc_request *rq, struct vc_block *out,
			struct vc_error *err)
{
	struct state *st = m->state;
	uint64_t addr = 0;
	uint32_t i;

	VC_HAVE(st->spare || vc_vec_zeroed(st->at, st->cap, st->n + 2), "the direct model", err);
	if (!vc_device_alloc(m->device, rq->size, &addr)) {
		m->now.ooms++;
		snprintf(m->note, sizeof(m->note),
			 "out of memory: %" PRIu64 " bytes asked for, %" PRIu64 " bytes free",
			 rq->size, vc_device_available(m->device));
		return VC_REFUSED;
	}
	i = take_slot(st);
	st->at[i] = (struct piece){ addr, rq->size, rq->id, rq->stream, 0, st->at[0].next };
	st->at[st->at[0].next].prev = i;
	st->at[0].next = i;
	m->now.requested += rq->size;
	m->now.allocated += rq->size;
	m->now.active += rq->size;
	m->now.reserved += rq->size;
	m->now.segments++;
	*out = (struct vc_block){ addr, rq->size, (void *)(uintptr_t)i };
	return VC_DONE;
}

static int direct_free(struct vc_model *m, struct vc_block *b)
{
	struct state *st = m->state;
	uint32_t i = (uint32_t)(uintptr_t)b->cookie;
	struct piece *p = &st->at[i];

	vc_device_free(m->device, p->addr, p->size);
	m->now.requested -= p->size;
	m->now.allocated -= p->size;
	m->now.active -= p->size;
	m->now.reserved -= p->size;
	m->now.segments--;
	st->at[p->prev].next = p->next;
	st->at[p->next].prev = p->prev;
	p->next = st->spare;
	st->spare = i;
	return VC_DONE;
}

VC_COMPARE(by_address, struct piece, VC_ORDER(x->addr, y->addr))

static int direct_walk(const struct vc_model *m, vc_extent_fn *fn, void *arg)
{
	const struct state *st = m->state;
	struct piece *all = malloc((st->n + 1) * sizeof(*all));
	size_t n = 0;
	int r = VC_OK;

	if (!all)
		return VC_ENOMEM;
	for (uint32_t i = st->n ? st->at[0].next : 0; i; i = st->at[i].next)
		all[n++] = st->at[i];
	vc_sort(all, n, sizeof(*all), by_address);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		const struct piece *p = &all[i];
		struct vc_extent x = { .what = VC_X_SEGMENT, .addr = p->addr, .size = p->size,
				       .requested = p->size, .allocated = p->size,
				       .active = p->size, .stream = p->stream };

		r = fn(arg, &x);
		x.what = VC_X_LIVE;
		x.id = p->id;
		r = r < 0 ? r : fn(arg, &x);
	}
	free(all);
	return r < 0 ? r : VC_OK;
}

static int direct_check(const struct vc_model *m, struct vc_error *err)
{
	const struct state *st = m->state;
	uint64_t sum = 0;

	for (uint32_t i = st->n ? st->at[0].next : 0; i; i = st->at[i].next)
		sum += st->at[i].size;
	if (sum != m->now.reserved)
		return vc_fail(err, VC_EINTERNAL,
			       "direct: blocks sum to %" PRIu64 ", reserved says %" PRIu64, sum,
			       m->now.reserved);
	return VC_OK;
}

static void direct_fini(struct vc_model *m)
{
	free(((struct state *)m->state)->at);
}

static const struct vc_param direct_params[] = { VC_PARAM_END };

const struct vc_model_type vc_model_direct = {
	.name = "direct", .summary = "no caching: cudaMalloc and cudaFree for every request",
	.params = direct_params, .state_size = sizeof(struct state), .alloc = direct_alloc,
	.free = direct_free, .walk = direct_walk, .check = direct_check, .fini = direct_fini,
};
