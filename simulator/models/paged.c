/* SPDX-License-Identifier: Apache-2.0 */
/* paged.c - ideal pages: nothing that is as large as a page is ever in the way of anything.
 *
 * Requests of a page and more take whole pages, by best fit in what is mapped; before more memory
 * is taken from the device, free pages are mapped anew behind each other, as CUDA's virtual memory
 * management allows (cuMemUnmap, cuMemMap). So what is reserved for them grows only when fewer
 * pages are free than are asked for. Smaller requests share pages, by best fit. */
#include <inttypes.h>
#include <stdio.h>

#include "simulator/models/free_chunks.h"

#define ROUND 512u /* as PyTorch and CuPy have it */
enum { SMALL, LARGE }; /* sets */

struct config { uint64_t page; };
struct state { struct chunks h; uint64_t free; }; /* bytes in free chunks of LARGE */

/* New addresses; the pages behind them are there already. */
static uint32_t map_range(struct vc_model *m, const struct vc_request *rq, uint64_t size,
			  uint32_t set)
{
	struct chunks *h = &((struct state *)m->state)->h;
	uint64_t addr;

	if (!vc_device_reserve(m->device, size, &addr))
		return 0;
	vc_device_map(m->device, addr, size);
	chunks_tell(m, VC_TR_SEGMENT_ALLOC, rq->stream, addr, size);
	return chunks_region(h, addr, size, set);
}

static void unmap_range(struct vc_model *m, uint64_t addr, uint64_t size, bool whole)
{
	vc_device_unmap(m->device, addr, size);
	vc_device_unreserve(m->device, addr, size);
	chunks_tell(m, whole ? VC_TR_SEGMENT_FREE : VC_TR_SEGMENT_UNMAP, 0, addr, size);
}

/* Take `want` bytes of free pages away from where they are mapped, the largest pieces first: few
 * calls. There are so many. */
static int steal(struct vc_model *m, uint64_t want, struct vc_error *err)
{
	struct state *st = m->state;
	struct chunks *h = &st->h;

	while (want) {
		uint32_t i;

		VC_HAVE(chunks_ensure(h, LARGE), "the paged model", err);
		i = chunks_last(h, LARGE);
		chunks_cut(h, i);
		if (h->c[i].size > want)
			chunks_split(h, i, want);
		want -= h->c[i].size;
		st->free -= h->c[i].size;
		/* In the middle of a range it leaves two behind. */
		m->now.segments += h->c[i].prev && h->c[i].next;
		unmap_range(m, h->c[i].addr, h->c[i].size, chunks_is_whole(&h->c[i]));
		chunks_drop(h, i);
	}
	return VC_OK;
}

/* A range of `size` bytes from free pages and, for what is missing, from the device. */
static uint32_t take_pages(struct vc_model *m, const struct vc_request *rq, uint64_t size,
			   uint32_t set, struct vc_error *err)
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
	if (steal(m, here, err) < 0 || !chunks_ensure(&st->h, LARGE))
		return 0;
	return map_range(m, rq, size, set);
}

static uint32_t find(struct vc_model *m, uint64_t size, uint32_t set)
{
	struct state *st = m->state;
	uint32_t i = chunks_best(&st->h, set, size);

	if (!i)
		return 0;
	chunks_cut(&st->h, i);
	st->free -= set == LARGE ? size : 0;
	return i;
}

static int paged_alloc(struct vc_model *m, const struct vc_request *rq, struct vc_block *out,
		       struct vc_error *err)
{
	struct state *st = m->state;
	struct chunks *h = &st->h;
	uint64_t page = ((const struct config *)m->config)->page;
	uint64_t size = rq->size ? chunks_round(rq->size, rq->size < page ? ROUND : page) : ROUND;
	uint32_t set = size < page ? SMALL : LARGE, i = 0;

	*out = (struct vc_block){ 0 };
	VC_HAVE(chunks_ensure(h, LARGE), "the paged model", err);
	if (size >= rq->size) {
		i = find(m, size, set);
		i = i ? i : take_pages(m, rq, chunks_round(size, page), set, err);
	}
	if (!i) {
		snprintf(m->note, sizeof(m->note), "out of memory: %" PRIu64 " bytes asked for, %"
			 PRIu64 " bytes free on the device and %" PRIu64 " in free pages",
			 rq->size, vc_device_available(m->device), st->free);
		return chunks_refuse(m, rq, size, size);
	}
	if (h->c[i].size > size)
		chunks_split(h, i, size);
	chunks_give(h, m, i, rq, out);
	return VC_DONE;
}

/* A page that no small block uses any more is as good as any other. */
static int paged_free(struct vc_model *m, struct vc_block *b)
{
	struct state *st = m->state;
	struct chunks *h = &st->h;
	uint32_t i = chunks_take(h, m, b);

	st->free += h->c[i].set == LARGE ? h->c[i].size : 0;
	i = chunks_release(h, i);
	if (h->c[i].set == SMALL && chunks_is_whole(&h->c[i])) {
		chunks_cut(h, i);
		st->free += h->c[i].size;
		h->c[i].set = LARGE;
		chunks_put(h, i);
	}
	return VC_DONE;
}

static int paged_trim(struct vc_model *m, uint64_t pool, struct vc_error *err)
{
	struct state *st = m->state;
	uint64_t page = ((const struct config *)m->config)->page, less = st->free;

	(void)pool;
	if (!chunks_ensure(&st->h, LARGE) || steal(m, less, err) < 0)
		return VC_ENOMEM;
	for (; less; less -= page)
		vc_device_release(m->device, page);
	return VC_DONE;
}

static int paged_walk(const struct vc_model *m, vc_extent_fn *fn, void *arg)
{
	return chunks_walk(&((const struct state *)m->state)->h, fn, arg);
}

static int paged_check(const struct vc_model *m, struct vc_error *err)
{
	return chunks_check(&((const struct state *)m->state)->h, m, err);
}

static int paged_init(struct vc_model *m, struct vc_error *err)
{
	uint64_t page = ((const struct config *)m->config)->page;

	if (!page || page % VC_DEVICE_GRANULE)
		return vc_fail(err, VC_EUSAGE, "page is a multiple of 2 MiB, the smallest piece of "
			       "physical memory");
	return VC_OK;
}

static void paged_fini(struct vc_model *m)
{
	chunks_fini(&((struct state *)m->state)->h);
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
	.walk        = paged_walk,
	.check       = paged_check,
	.fini        = paged_fini,
};
