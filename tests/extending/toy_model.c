/* SPDX-License-Identifier: Apache-2.0 */
/* toy_model.c - an allocator that rounds to 2 MiB and never gives anything back to the device. */
#include <stdio.h>
#include <string.h>

#include "simulator/replay/model.h"

enum { MOST = 4096, PAGE = 2 << 20 };
struct piece { uint64_t addr, size, id, requested; };
struct state { struct piece at[MOST]; uint32_t n; };

static void count(struct vc_model *m, const struct piece *p, bool in)
{
	uint64_t sign = in ? 1 : UINT64_MAX;

	m->now.requested += sign * p->requested;
	m->now.allocated += sign * p->size;
	m->now.active += sign * p->size;
}

/* The place of a new piece: walk() goes from low to high addresses. */
static struct piece *insert(struct state *st, uint64_t addr)
{
	uint32_t i = st->n++;

	for (; i && st->at[i - 1].addr > addr; i--)
		st->at[i] = st->at[i - 1];
	return &st->at[i];
}

static int toy_alloc(struct vc_model *m, const struct vc_request *rq, struct vc_block *out,
		     struct vc_error *err)
{
	struct state *st = m->state;
	struct piece *p = NULL;
	uint64_t size = (rq->size + PAGE - 1) / PAGE * PAGE, addr;

	(void)err;
	for (uint32_t i = 0; i < st->n && !p; i++)
		if (!st->at[i].id && st->at[i].size == size)
			p = &st->at[i];
	if (!p) {
		if (st->n == MOST || !vc_device_alloc(m->device, size, &addr)) {
			snprintf(m->note, sizeof(m->note), "the toy is full");
			m->now.ooms++;
			return VC_REFUSED;
		}
		p = insert(st, addr);
		*p = (struct piece){ .addr = addr, .size = size };
		m->now.reserved += size;
		m->now.segments++;
	}
	p->id = rq->id;
	p->requested = rq->size;
	count(m, p, true);
	*out = (struct vc_block){ p->addr, size, NULL };
	return VC_DONE;
}

static int toy_free(struct vc_model *m, struct vc_block *b)
{
	struct state *st = m->state;

	for (uint32_t i = 0; i < st->n; i++)
		if (st->at[i].addr == b->addr) {
			count(m, &st->at[i], false);
			st->at[i].id = st->at[i].requested = 0;
		}
	return VC_DONE;
}

static int toy_walk(const struct vc_model *m, vc_extent_fn *fn, void *arg)
{
	const struct state *st = m->state;
	int r = VC_OK;

	for (uint32_t i = 0; r >= 0 && i < st->n; i++) {
		const struct piece *p = &st->at[i];
		uint64_t live = p->id ? p->size : 0;
		struct vc_extent x = { .what = VC_X_SEGMENT, .addr = p->addr, .size = p->size,
				       .requested = p->requested, .allocated = live,
				       .active = live };

		r = fn(arg, &x);
		x.what = p->id ? VC_X_LIVE : VC_X_FREE;
		x.id = p->id;
		r = r < 0 ? r : fn(arg, &x);
	}
	return r < 0 ? r : VC_OK;
}

static int toy_check(const struct vc_model *m, struct vc_error *err)
{
	return m->now.active <= m->now.reserved ? VC_OK :
	       vc_fail(err, VC_EINTERNAL, "toy: more is active than reserved");
}

const struct vc_model_type vc_model_toy = {
	.name = "toy", .summary = "whole pages, kept for good", .state_size = sizeof(struct state),
	.keeps_regions = true, .alloc = toy_alloc, .free = toy_free, .walk = toy_walk,
	.check = toy_check,
};
