/* SPDX-License-Identifier: Apache-2.0 */
/* paged.c - ideal pages: nothing that is as large as a page is ever in the way of anything.
 *
 * Requests of a page and more take whole pages, by best fit in what is mapped; before more memory
 * is taken from the device, free pages are mapped anew behind each other, as CUDA's virtual memory
 * management allows (cuMemUnmap, cuMemMap). So what is reserved for them grows only when fewer
 * pages are free than are asked for. Smaller requests share pages, by best fit. */
#include <inttypes.h>
#include <stdio.h>

#include "simulator/models/chunks.h"

#define ROUND 512u /* as PyTorch and CuPy have it */
enum { SMALL, LARGE }; /* lists */

struct config { uint64_t page; };
struct state { struct vc_chunks k; uint64_t free; }; /* bytes in free chunks of LARGE */

/* New addresses; the pages behind them are there already. */
static uint32_t map_range(struct vc_model *m, const struct vc_request *rq, uint64_t size,
			  uint32_t list)
{
	uint64_t addr;

	if (!vc_device_reserve(m->device, size, &addr))
		return 0;
	vc_device_map(m->device, addr, size);
	vc_model_tell(m, VC_TR_SEGMENT_ALLOC, rq->stream, addr, size);
	return vc_chunks_region(m->state, addr, size, list);
}

static void unmap_range(struct vc_model *m, uint64_t addr, uint64_t size, bool whole)
{
	vc_device_unmap(m->device, addr, size);
	vc_device_unreserve(m->device, addr, size);
	vc_model_tell(m, whole ? VC_TR_SEGMENT_FREE : VC_TR_SEGMENT_UNMAP, 0, addr, size);
}

/* Take `want` bytes of free pages away from where they are mapped, the largest pieces first: few
 * calls. There are so many. */
static int steal(struct vc_model *m, uint64_t want, struct vc_error *err)
{
	struct state *st = m->state;
	struct vc_chunks *k = &st->k;

	while (want) {
		const struct vc_chunk *c;
		uint32_t i;

		VC_HAVE(vc_chunks_room(k, 2, LARGE), "the paged model", err);
		i = vc_chunks_largest(k, LARGE);
		vc_chunks_take(k, i, want < k->c[i].size ? want : k->c[i].size);
		c = &k->c[i];
		want -= c->size;
		st->free -= c->size;
		/* In the middle of a range it leaves two behind. */
		m->now.segments += c->prev && c->next;
		unmap_range(m, c->addr, c->size, !c->prev && !c->next);
		vc_chunks_lose(k, i);
	}
	return VC_OK;
}

/* A range of `size` bytes from free pages and, for what is missing, from the device. */
static uint32_t take_pages(struct vc_model *m, const struct vc_request *rq, uint64_t size,
			   uint32_t list, struct vc_error *err)
{
	struct state *st = m->state;
	uint64_t page = ((const struct config *)m->config)->page;
	uint64_t here = st->free < size ? st->free : size, more = size - here;

	for (uint64_t k = 0; k < more; k += page)
		if (!vc_device_create(m->device, page)) {
			for (; k; k -= page)
				vc_device_release(m->device, page);
			return 0;
		}
	if (steal(m, here, err) < 0 || !vc_chunks_room(&st->k, 2, LARGE))
		return 0;
	return map_range(m, rq, size, list);
}

static int paged_alloc(struct vc_model *m, const struct vc_request *rq, struct vc_block *out,
		       struct vc_error *err)
{
	struct state *st = m->state;
	struct vc_chunks *k = &st->k;
	uint64_t page = ((const struct config *)m->config)->page, least = rq->size ? rq->size : 1;
	uint64_t size = vc_chunks_round(least, least < page ? ROUND : page);
	uint32_t list = size < page ? SMALL : LARGE, i = 0;

	*out = (struct vc_block){ 0 };
	VC_HAVE(vc_chunks_room(k, 2, LARGE), "the paged model", err);
	if (size >= rq->size) {
		i = vc_chunks_best(k, list, size);
		st->free -= i && list == LARGE ? size : 0;
		i = i ? i : take_pages(m, rq, vc_chunks_round(size, page), list, err);
	}
	if (!i) {
		snprintf(m->note, sizeof(m->note), "out of memory: %" PRIu64 " bytes asked for, %"
			 PRIu64 " bytes free on the device and %" PRIu64 " in free pages",
			 rq->size, vc_device_available(m->device), st->free);
		return vc_model_refuse(m, rq, size, size);
	}
	vc_chunks_take(k, i, size);
	vc_chunks_serve(m, i, rq, out);
	return VC_DONE;
}

/* A page that no small block uses any more is as good as any other. */
static int paged_free(struct vc_model *m, struct vc_block *b)
{
	struct state *st = m->state;
	struct vc_chunks *k = &st->k;
	uint32_t i = vc_chunks_unserve(m, b);
	bool large = k->c[i].size >= ((const struct config *)m->config)->page;

	st->free += large ? k->c[i].size : 0;
	i = vc_chunks_free(k, large ? LARGE : SMALL, i);
	if (!large && !k->c[i].prev && !k->c[i].next) {
		vc_chunks_cut(k, i);
		st->free += k->c[i].size;
		vc_chunks_free(k, LARGE, i);
	}
	return VC_DONE;
}

static int paged_trim(struct vc_model *m, uint64_t pool, struct vc_error *err)
{
	struct state *st = m->state;
	uint64_t page = ((const struct config *)m->config)->page, less = st->free;

	(void)pool;
	if (!vc_chunks_room(&st->k, 2, LARGE) || steal(m, less, err) < 0)
		return VC_ENOMEM;
	for (; less; less -= page)
		vc_device_release(m->device, page);
	return VC_DONE;
}

static int paged_init(struct vc_model *m, struct vc_error *err)
{
	uint64_t page = ((const struct config *)m->config)->page;

	if (!page || page % VC_DEVICE_GRANULE)
		return vc_fail(err, VC_EUSAGE, "page is a multiple of 2 MiB, the smallest piece of "
			       "physical memory");
	return VC_OK;
}

static const struct vc_param paged_params[] = {
	{ "page", VC_P_SIZE, offsetof(struct config, page), "2MiB",
	  "the size of a page, a multiple of 2 MiB", NULL },
	VC_PARAM_END };

const struct vc_model_type vc_model_paged = {
	.name        = "paged",
	.summary     = "ideal pages: free ones are mapped behind each other before more are taken",
	.params      = paged_params,
	.config_size = sizeof(struct config),
	.state_size  = sizeof(struct state),
	.init        = paged_init,
	.alloc       = paged_alloc,
	.free        = paged_free,
	.trim        = paged_trim,
	.walk        = vc_chunks_walk,
	.check       = vc_chunks_check,
	.fini        = vc_chunks_fini,
};
