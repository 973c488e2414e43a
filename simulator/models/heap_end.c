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
	e->room = chunks_round(total, VC_DEVICE_GRANULE);
	return vc_device_reserve(m->device, e->room, &e->base);
}

/* Map so much more behind the end that `size` bytes lie free there; 0: the device is full. */
static uint32_t extend(struct vc_model *m, const struct vc_request *rq, uint64_t size,
		       uint64_t *asked)
{
	struct heap_end *e = BY(m);
	const struct heap_end_config *k = m->config;
	struct chunks *h = &e->h;
	uint64_t tail = e->last && h->c[e->last].state == CHUNK_FREE ? h->c[e->last].size : 0;
	uint64_t more = chunks_round(size - tail, k->grow), end = m->now.reserved;
	uint32_t i;

	*asked = more;
	if (more < size - tail || !reserve(m) || more > e->room - end ||
	    !vc_device_create(m->device, more))
		return 0;
	vc_device_map(m->device, e->base + end, more);
	chunks_tell(m, end ? VC_TR_SEGMENT_MAP : VC_TR_SEGMENT_ALLOC, rq->stream, e->base + end,
		    more);
	if (tail) {
		chunks_cut(h, e->last);
		h->c[e->last].size += more;
		return e->last;
	}
	i = chunks_region(h, e->base + end, more, 0);
	if (e->last) {
		h->c[i].prev = e->last;
		h->c[i].head = h->c[e->last].head;
		h->c[e->last].next = i;
	}
	return e->last = i;
}

int heap_end_alloc(struct vc_model *m, const struct vc_request *rq, struct vc_block *out,
		   heap_end_find *find, struct vc_error *err)
{
	struct heap_end *e = BY(m);
	const struct heap_end_config *k = m->config;
	struct chunks *h = &e->h;
	uint64_t size = rq->size ? chunks_round(rq->size, k->round) : k->round, asked = 0;
	uint32_t i;

	*out = (struct vc_block){ 0 };
	VC_HAVE(chunks_ensure(h, 0), "the model", err);
	i = size < rq->size ? 0 : find(h, 0, size);
	if (i)
		chunks_cut(h, i);
	else if (size >= rq->size)
		i = extend(m, rq, size, &asked);
	if (!i) {
		snprintf(m->note, sizeof(m->note), "out of memory: %" PRIu64 " bytes asked for, %"
			 PRIu64 " bytes free", rq->size, vc_device_available(m->device));
		return chunks_refuse(m, rq, size, asked);
	}
	if (h->c[i].size > size) {
		chunks_split(h, i, size);
		e->last = e->last == i ? h->c[i].next : e->last;
	}
	chunks_give(h, m, i, rq, out);
	return VC_DONE;
}

int heap_end_free(struct vc_model *m, struct vc_block *b)
{
	struct heap_end *e = BY(m);
	uint32_t i = chunks_release(&e->h, chunks_take(&e->h, m, b));

	e->last = e->h.c[i].next ? e->last : i;
	return VC_DONE;
}

/* What is free at the end goes back, in whole steps. */
int heap_end_trim(struct vc_model *m, uint64_t pool, struct vc_error *err)
{
	struct heap_end *e = BY(m);
	const struct heap_end_config *k = m->config;
	struct chunk *c = e->last ? &e->h.c[e->last] : NULL;
	uint64_t less = c && c->state == CHUNK_FREE ? c->size / k->grow * k->grow : 0;
	uint32_t prev;

	(void)pool;
	(void)err;
	if (!less)
		return VC_DONE;
	prev = c->prev;
	chunks_cut(&e->h, e->last);
	c->size -= less;
	vc_device_unmap(m->device, c->addr + c->size, less);
	vc_device_release(m->device, less);
	chunks_tell(m, less == m->now.reserved ? VC_TR_SEGMENT_FREE : VC_TR_SEGMENT_UNMAP, 0,
		    c->addr + c->size, less);
	if (c->size) {
		chunks_put(&e->h, e->last);
		return VC_DONE;
	}
	chunks_drop(&e->h, e->last);
	e->last = prev;
	return VC_DONE;
}

int heap_end_walk(const struct vc_model *m, vc_extent_fn *fn, void *arg)
{
	return chunks_walk(&BY(m)->h, fn, arg);
}

int heap_end_check(const struct vc_model *m, struct vc_error *err)
{
	const struct heap_end *e = BY(m);

	if (e->last && (e->h.c[e->last].next ||
			e->h.c[e->last].addr + e->h.c[e->last].size != e->base + m->now.reserved))
		return vc_fail(err, VC_EINTERNAL, "the last chunk is not the last one");
	return chunks_check(&e->h, m, err);
}

int heap_end_init(struct vc_model *m, struct vc_error *err)
{
	const struct heap_end_config *k = m->config;

	if (!k->round || !k->grow || k->grow % VC_DEVICE_GRANULE || k->grow % k->round)
		return vc_fail(err, VC_EUSAGE, "grow is a multiple of 2 MiB, the smallest piece of "
			       "physical memory, and of round");
	return VC_OK;
}

void heap_end_fini(struct vc_model *m)
{
	chunks_fini(&BY(m)->h);
}

const struct vc_param heap_end_params[] = {
	{ "round", VC_P_SIZE, offsetof(struct heap_end_config, round), "512",
	  "sizes are multiples of it", NULL },
	{ "grow", VC_P_SIZE, offsetof(struct heap_end_config, grow), "2MiB",
	  "the end of the heap moves in steps of so much", NULL },
	VC_PARAM_END };
