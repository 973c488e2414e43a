/* SPDX-License-Identifier: Apache-2.0 */
/* buddy.c - the buddy system (Knowlton 1965; Knuth, The Art of Computer Programming, volume 1, 2.5,
 * algorithms R and S): sizes are powers of two, a block is halved until it is small enough, and
 * merges only with the half that it came from. */
#include <inttypes.h>
#include <stdio.h>

#include "simulator/models/chunks.h"

struct config { uint64_t smallest, region; };

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
	uint64_t addr;

	*asked = size > k->region ? size : k->region;
	while (!vc_device_alloc(m->device, *asked, &addr)) { /* a smaller region will do as well */
		if (*asked == size)
			return 0;
		*asked /= 2;
	}
	vc_model_tell(m, VC_TR_SEGMENT_ALLOC, rq->stream, addr, *asked);
	return vc_chunks_region(m->state, addr, *asked, 0);
}

static int buddy_alloc(struct vc_model *m, const struct vc_request *rq, struct vc_block *out,
		       struct vc_error *err)
{
	const struct config *conf = m->config;
	struct vc_chunks *k = m->state;
	uint64_t size = power_of_two(rq->size, conf->smallest), asked = 0;
	uint32_t i = 0;

	*out = (struct vc_block){ 0 };
	VC_HAVE(vc_chunks_room(k, 2, 0), "the buddy model", err);
	if (size >= rq->size) {
		i = vc_chunks_best(k, 0, size);
		if (!i)
			i = grow(m, rq, size, &asked);
	}
	if (!i) {
		snprintf(m->note, sizeof(m->note), "out of memory: %" PRIu64 " bytes asked for, a "
			 "block of %" PRIu64 " is needed, %" PRIu64 " bytes free", rq->size, size,
			 vc_device_available(m->device));
		return vc_model_refuse(m, rq, size, asked);
	}
	vc_chunks_cut(k, i);
	while (k->c[i].size > size) {
		VC_HAVE(vc_chunks_room(k, 2, 0), "the buddy model", err);
		vc_chunks_put(k, vc_chunks_split(k, i, k->c[i].size / 2));
	}
	vc_chunks_serve(m, i, rq, out);
	return VC_DONE;
}

/* The other half of what it came from, where that is free and whole; else 0. */
static uint32_t buddy_of(const struct vc_chunks *k, const struct vc_region *r, uint32_t i)
{
	const struct vc_chunk *c = &k->c[i];
	uint32_t b = (c->addr - r->addr) & c->size ? c->prev : c->next;

	return b && !k->c[b].live && k->c[b].size == c->size ? b : 0;
}

static int buddy_free(struct vc_model *m, struct vc_block *block)
{
	struct vc_chunks *k = m->state;
	uint32_t i = vc_chunks_unserve(m, block), b;
	const struct vc_region *r = vc_chunks_at(k, k->c[i].addr);

	while ((b = buddy_of(k, r, i))) {
		vc_chunks_cut(k, b);
		i = k->c[i].prev == b ? b : i;
		vc_chunks_absorb(k, i);
	}
	k->c[i].stream = 0;
	vc_chunks_put(k, i);
	return VC_DONE;
}

static int buddy_init(struct vc_model *m, struct vc_error *err)
{
	const struct config *k = m->config;

	if (k->smallest < 256 || k->smallest & (k->smallest - 1) || k->region & (k->region - 1) ||
	    k->region < k->smallest)
		return vc_fail(err, VC_EUSAGE, "smallest and region are powers of two, from 256 "
			       "bytes on, and region is not the smaller one");
	((struct vc_chunks *)m->state)->buddies = true;
	return VC_OK;
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
	.state_size  = sizeof(struct vc_chunks),
	.init        = buddy_init,
	.alloc       = buddy_alloc,
	.free        = buddy_free,
	.trim        = vc_chunks_trim,
	.walk        = vc_chunks_walk,
	.check       = vc_chunks_check,
	.fini        = vc_chunks_fini,
};
