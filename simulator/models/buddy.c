/* SPDX-License-Identifier: Apache-2.0 */
/* buddy.c - the buddy system (Knowlton 1965; Knuth, The Art of Computer Programming, volume 1, 2.5,
 * algorithms R and S): sizes are powers of two, a block is halved until it is small enough, and
 * merges only with the half that it came from. */
#include <inttypes.h>
#include <stdio.h>

#include "simulator/models/free_chunks.h"

struct config { uint64_t smallest, region; };
struct state { struct chunks h; };

static uint64_t power_of_two(uint64_t n, uint64_t least)
{
	while (least < n && least < 1ull << 62)
		least *= 2;
	return least;
}

static uint32_t grow(struct vc_model *m, const struct vc_request *rq, uint64_t size,
		     uint64_t *asked)
{
	const struct config *k = m->config;
	struct chunks *h = &((struct state *)m->state)->h;
	uint64_t addr;
	uint32_t i;

	*asked = size > k->region ? size : k->region;
	while (!vc_device_alloc(m->device, *asked, &addr)) { /* a smaller region will do as well */
		if (*asked == size)
			return 0;
		*asked /= 2;
	}
	chunks_tell(m, VC_TR_SEGMENT_ALLOC, rq->stream, addr, *asked);
	i = chunks_region(h, addr, *asked, 0);
	return i;
}

static int buddy_alloc(struct vc_model *m, const struct vc_request *rq, struct vc_block *out,
		       struct vc_error *err)
{
	const struct config *k = m->config;
	struct chunks *h = &((struct state *)m->state)->h;
	uint64_t size = power_of_two(rq->size, k->smallest), asked = 0;
	uint32_t i = 0;

	*out = (struct vc_block){ 0 };
	VC_HAVE(chunks_ensure(h, 0), "the buddy model", err);
	if (size >= rq->size) {
		i = chunks_best(h, 0, size);
		if (i)
			chunks_cut(h, i);
		else
			i = grow(m, rq, size, &asked);
	}
	if (!i) {
		snprintf(m->note, sizeof(m->note), "out of memory: %" PRIu64 " bytes asked for, a "
			 "block of %" PRIu64 " is needed, %" PRIu64 " bytes free", rq->size, size,
			 vc_device_available(m->device));
		return chunks_refuse(m, rq, size, asked);
	}
	while (h->c[i].size > size) {
		VC_HAVE(chunks_ensure(h, 0), "the buddy model", err);
		chunks_split(h, i, h->c[i].size / 2);
	}
	chunks_give(h, m, i, rq, out);
	return VC_DONE;
}

/* The other half of what it came from, where that is free and whole; else 0. */
static uint32_t buddy_of(const struct chunks *h, uint32_t i)
{
	const struct chunk *c = &h->c[i];
	uint64_t at = c->addr - h->c[c->head].addr;
	uint32_t b = at & c->size ? c->prev : c->next;

	return b && h->c[b].state == CHUNK_FREE && h->c[b].size == c->size ? b : 0;
}

static int buddy_free(struct vc_model *m, struct vc_block *block)
{
	struct chunks *h = &((struct state *)m->state)->h;
	uint32_t i = chunks_take(h, m, block), b;

	while ((b = buddy_of(h, i))) {
		chunks_cut(h, b);
		i = h->c[i].prev == b ? b : i;
		chunks_absorb(h, i);
	}
	chunks_put(h, i);
	return VC_DONE;
}

static int buddy_trim(struct vc_model *m, uint64_t pool, struct vc_error *err)
{
	(void)pool;
	(void)err;
	chunks_give_back(&((struct state *)m->state)->h, m, UINT32_MAX);
	return VC_DONE;
}

static int buddy_walk(const struct vc_model *m, vc_extent_fn *fn, void *arg)
{
	return chunks_walk(&((const struct state *)m->state)->h, fn, arg);
}

static int buddy_check(const struct vc_model *m, struct vc_error *err)
{
	return chunks_check(&((const struct state *)m->state)->h, m, err);
}

static int buddy_init(struct vc_model *m, struct vc_error *err)
{
	const struct config *k = m->config;

	if (k->smallest < 256 || k->smallest & (k->smallest - 1) || k->region & (k->region - 1) ||
	    k->region < k->smallest)
		return vc_fail(err, VC_EUSAGE, "smallest and region are powers of two, from 256 "
			       "bytes on, and region is not the smaller one");
	((struct state *)m->state)->h.buddies = true;
	return VC_OK;
}

static void buddy_fini(struct vc_model *m)
{
	chunks_fini(&((struct state *)m->state)->h);
}

static const struct vc_param buddy_params[] = {
	{ "smallest", VC_P_SIZE, offsetof(struct config, smallest), "512",
	  "the smallest block, a power of two", NULL },
	{ "region", VC_P_SIZE, offsetof(struct config, region), "64MiB",
	  "what it takes from the device at least, a power of two", NULL },
	VC_PARAM_END };

const struct vc_model_type vc_model_buddy = {
	.name        = "buddy",
	.summary     = "the buddy system: powers of two, halved and merged again",
	.params      = buddy_params,
	.config_size = sizeof(struct config),
	.state_size  = sizeof(struct state),
	.init        = buddy_init,
	.alloc       = buddy_alloc,
	.free        = buddy_free,
	.trim        = buddy_trim,
	.walk        = buddy_walk,
	.check       = buddy_check,
	.fini        = buddy_fini,
};
