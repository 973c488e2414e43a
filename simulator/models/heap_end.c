/* SPDX-License-Identifier: Apache-2.0 */
/* heap_end.c - see heap_end.h */
#include "simulator/models/heap_end.h"

#include <inttypes.h>
#include <stdio.h>

#define BY(m) ((struct heap_end *)(m)->state)

/* Addresses for all that the device can hold: reserving them costs no memory. */
static bool reserve(struct vc_model *m)
{
	struct heap_end *e = BY(m);
	uint64_t total = vc_device_config(m->device)->total;

	if (e->room)
		return true;
	e->room = vc_chunks_round(total, VC_DEVICE_GRANULE);
	return vc_device_reserve(m->device, e->room, &e->base);
}

/* Map so much more behind the end that `size` bytes lie free there; 0: the device is full. */
static uint32_t extend(struct vc_model *m, const struct vc_request *rq, uint64_t size,
		       uint64_t *asked)
{
	struct heap_end *e = BY(m);
	struct vc_chunks *k = &e->k;
	struct vc_chunk *c = e->last ? &k->c[e->last] : NULL;
	uint64_t tail = c && !c->live ? c->size : 0, end = m->now.reserved;
	uint64_t more = vc_chunks_round(size - tail,
					((const struct heap_end_config *)m->config)->grow);

	*asked = more;
	if (more < size - tail || !reserve(m) || more > e->room - end ||
	    !vc_device_create(m->device, more))
		return 0;
	vc_device_map(m->device, e->base + end, more);
	vc_model_tell(m, end ? VC_TR_SEGMENT_MAP : VC_TR_SEGMENT_ALLOC, rq->stream, e->base + end,
		      more);
	if (!c)
		return e->last = vc_chunks_region(k, e->base, more, 0);
	if (tail)
		vc_chunks_cut(k, e->last);
	k->region->size += more;
	c->size += more;
	if (!tail)
		e->last = vc_chunks_split(k, e->last, c->size - more);
	k->c[e->last].stream = 0;
	vc_chunks_put(k, e->last);
	return e->last;
}

int heap_end_alloc(struct vc_model *m, const struct vc_request *rq, struct vc_block *out,
		   heap_end_find *find, struct vc_error *err)
{
	struct heap_end *e = BY(m);
	struct vc_chunks *k = &e->k;
	uint64_t size = vc_chunks_round(rq->size ? rq->size : 1,
					((const struct heap_end_config *)m->config)->round);
	uint64_t asked = 0;
	uint32_t i;

	*out = (struct vc_block){ 0 };
	VC_HAVE(vc_chunks_room(k, 2, 0), "the model", err);
	i = size < rq->size ? 0 : find(k, 0, size);
	if (!i && size >= rq->size)
		i = extend(m, rq, size, &asked);
	if (!i) {
		snprintf(m->note, sizeof(m->note), "out of memory: %" PRIu64 " bytes asked for, %"
			 PRIu64 " bytes free", rq->size, vc_device_available(m->device));
		return vc_model_refuse(m, rq, size, asked);
	}
	vc_chunks_take(k, i, size);
	e->last = e->last == i && k->c[i].next ? k->c[i].next : e->last;
	vc_chunks_serve(m, i, rq, out);
	return VC_DONE;
}

int heap_end_free(struct vc_model *m, struct vc_block *b)
{
	struct heap_end *e = BY(m);
	uint32_t i = vc_chunks_free(&e->k, 0, vc_chunks_unserve(m, b));

	e->last = e->k.c[i].next ? e->last : i;
	return VC_DONE;
}

/* What is free at the end goes back, in whole steps. */
int heap_end_trim(struct vc_model *m, uint64_t pool, struct vc_error *err)
{
	struct heap_end *e = BY(m);
	struct vc_chunks *k = &e->k;
	uint64_t grow = ((const struct heap_end_config *)m->config)->grow, less, addr;
	uint32_t prev;

	(void)pool, (void)err;
	less = e->last && !k->c[e->last].live ? k->c[e->last].size / grow * grow : 0;
	if (!less)
		return VC_DONE;
	addr = e->base + m->now.reserved - less;
	vc_chunks_cut(k, e->last);
	vc_device_unmap(m->device, addr, less);
	vc_device_release(m->device, less);
	vc_model_tell(m, less == m->now.reserved ? VC_TR_SEGMENT_FREE : VC_TR_SEGMENT_UNMAP, 0,
		      addr, less);
	if (k->c[e->last].size > less) {
		k->c[e->last].size -= less;
		k->region->size -= less;
		vc_chunks_put(k, e->last);
		return VC_DONE;
	}
	prev = k->c[e->last].prev;
	vc_chunks_lose(k, e->last);
	e->last = prev;
	return VC_DONE;
}

int heap_end_check(const struct vc_model *m, struct vc_error *err)
{
	const struct heap_end *e = BY(m);

	if (e->last && (e->k.c[e->last].next ||
			e->k.c[e->last].addr + e->k.c[e->last].size != e->base + m->now.reserved))
		return vc_fail(err, VC_EINTERNAL, "the last chunk is not the last one");
	return vc_chunks_check(m, err);
}

int heap_end_init(struct vc_model *m, struct vc_error *err)
{
	const struct heap_end_config *k = m->config;

	if (!k->round || !k->grow || k->grow % VC_DEVICE_GRANULE || k->grow % k->round)
		return vc_fail(err, VC_EUSAGE, "grow is a multiple of 2 MiB, the smallest piece of "
			       "physical memory, and of round");
	return VC_OK;
}

const struct vc_param heap_end_params[] = {
	{ "round", VC_P_SIZE, offsetof(struct heap_end_config, round), "512",
	  "sizes are multiples of it", NULL },
	{ "grow", VC_P_SIZE, offsetof(struct heap_end_config, grow), "2MiB",
	  "the end of the heap moves in steps of so much", NULL },
	VC_PARAM_END };
