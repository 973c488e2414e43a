/* SPDX-License-Identifier: Apache-2.0 */
/* kv_blocks.c - the free queue, the map of hashes, and who is forgotten first. */
#include "simulator/serving/kv_blocks.h"

#include "common/vec.h"

#define HEAD(p) ((p)->n)     /* ends of the free queue, behind the blocks */
#define TAIL(p) ((p)->n + 1)

static void link_between(struct vc_kv_pool *p, uint32_t before, uint32_t i, uint32_t after)
{
	p->block[before].next = i;
	p->block[i].prev = before;
	p->block[i].next = after;
	p->block[after].prev = i;
	p->free++;
}

static void unlink_block(struct vc_kv_pool *p, uint32_t i)
{
	p->block[p->block[i].prev].next = p->block[i].next;
	p->block[p->block[i].next].prev = p->block[i].prev;
	p->free--;
}

int vc_kv_init(struct vc_kv_pool *p, uint32_t blocks, struct vc_error *err)
{
	*p = (struct vc_kv_pool){ .n = blocks };
	p->block = calloc((size_t)blocks + 2, sizeof(*p->block));
	VC_HAVE(p->block, "the blocks of the KV cache", err);
	p->block[HEAD(p)].next = TAIL(p);
	p->block[TAIL(p)].prev = HEAD(p);
	for (uint32_t i = 1; i < blocks; i++)
		link_between(p, p->block[TAIL(p)].prev, i, TAIL(p));
	return VC_OK;
}

void vc_kv_fini(struct vc_kv_pool *p)
{
	vc_map_fini(&p->known);
	free(p->block);
	p->block = NULL;
}

uint32_t vc_kv_find(const struct vc_kv_pool *p, uint64_t hash)
{
	const uint64_t *at = vc_map_get(&p->known, hash);

	return at ? (uint32_t)*at : 0;
}

void vc_kv_touch(struct vc_kv_pool *p, uint32_t block)
{
	if (!p->block[block].refs++)
		unlink_block(p, block);
}

/* Take a block out of the list of those with its hash. */
static void forget(struct vc_kv_pool *p, uint32_t i)
{
	struct vc_kv_block *b = &p->block[i];

	if (b->older) {
		p->block[b->older].newer = b->newer;
		if (b->newer)
			p->block[b->newer].older = b->older;
		else
			p->block[vc_kv_find(p, b->hash)].newest = b->older;
	} else if (b->newer) {
		p->block[b->newer].older = 0;
		p->block[b->newer].newest = b->newest;
		*vc_map_get(&p->known, b->hash) = b->newer;
	} else {
		vc_map_take(&p->known, b->hash);
	}
	b->hash = 0;
	b->older = b->newer = 0;
}

uint32_t vc_kv_take(struct vc_kv_pool *p)
{
	uint32_t i = p->block[HEAD(p)].next;

	unlink_block(p, i);
	if (p->block[i].hash) {
		forget(p, i);
		p->evicted++;
	}
	p->block[i].refs = 1;
	return i;
}

bool vc_kv_learn(struct vc_kv_pool *p, uint32_t i, uint64_t hash)
{
	uint32_t oldest = vc_kv_find(p, hash);
	struct vc_kv_block *b = &p->block[i];

	b->hash = hash;
	b->newest = i;
	if (!oldest)
		return vc_map_put(&p->known, hash, i);
	b->older = p->block[oldest].newest;
	p->block[b->older].newer = i;
	p->block[oldest].newest = i;
	return true;
}

void vc_kv_release(struct vc_kv_pool *p, const uint32_t *block, size_t n, bool front)
{
	uint32_t before = HEAD(p);

	while (n--) {
		uint32_t i = block[n];

		if (--p->block[i].refs)
			continue;
		if (front && !p->block[i].hash) {
			link_between(p, before, i, p->block[before].next);
			before = i;
		} else {
			link_between(p, p->block[TAIL(p)].prev, i, TAIL(p));
		}
	}
}

bool vc_kv_forget(struct vc_kv_pool *p)
{
	if (p->free != p->n - 1)
		return false;
	for (uint32_t i = 1; i < p->n; i++)
		p->block[i].hash = p->block[i].older = p->block[i].newer = 0;
	vc_map_fini(&p->known);
	return true;
}
