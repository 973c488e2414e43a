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
	*p = (struct vc_kv_pool){ .n = blocks, .entries = blocks, .entry_cap = blocks };
	p->block = calloc((size_t)blocks + 2, sizeof(*p->block));
	p->entry = calloc(blocks, sizeof(*p->entry));
	VC_HAVE(p->block && p->entry, "the blocks of the KV cache", err);
	p->block[HEAD(p)].next = TAIL(p);
	p->block[TAIL(p)].prev = HEAD(p);
	for (uint32_t i = 1; i < blocks; i++)
		link_between(p, p->block[TAIL(p)].prev, i, TAIL(p));
	return VC_OK;
}

void vc_kv_fini(struct vc_kv_pool *p)
{
	vc_map_fini(&p->known);
	VC_FREE(p->block, p->entry);
	p->block = NULL;
	p->entry = NULL;
}

static uint32_t oldest_of(const struct vc_kv_pool *p, uint64_t hash)
{
	const uint64_t *at = vc_map_get(&p->known, hash);

	return at ? (uint32_t)*at : 0;
}

uint32_t vc_kv_find(const struct vc_kv_pool *p, uint64_t hash)
{
	return p->entry[oldest_of(p, hash)].block;
}

void vc_kv_touch(struct vc_kv_pool *p, uint32_t block)
{
	if (!p->block[block].refs++)
		unlink_block(p, block);
}

/* Take an entry out of the list of those with its hash. */
static void forget(struct vc_kv_pool *p, uint32_t i)
{
	struct vc_kv_entry *e = &p->entry[i];

	if (e->older) {
		p->entry[e->older].newer = e->newer;
		if (e->newer)
			p->entry[e->newer].older = e->older;
		else
			p->entry[oldest_of(p, e->hash)].newest = e->older;
	} else if (e->newer) {
		p->entry[e->newer].older = 0;
		p->entry[e->newer].newest = e->newest;
		*vc_map_get(&p->known, e->hash) = e->newer;
	} else {
		vc_map_take(&p->known, e->hash);
	}
	*e = (struct vc_kv_entry){ .more = e->more };
}

bool vc_kv_unlearn(struct vc_kv_pool *p, uint32_t block)
{
	uint32_t next = p->entry[block].more;

	if (!p->entry[block].hash)
		return false;
	forget(p, block);
	p->entry[block].more = 0;
	while (next) {
		uint32_t i = next;

		next = p->entry[i].more;
		forget(p, i);
		p->entry[i].more = p->spare;
		p->spare = i;
	}
	return true;
}

uint32_t vc_kv_take(struct vc_kv_pool *p)
{
	uint32_t i = p->block[HEAD(p)].next;

	unlink_block(p, i);
	p->evicted += vc_kv_unlearn(p, i);
	p->block[i].refs = 1;
	return i;
}

bool vc_kv_known(const struct vc_kv_pool *p, uint32_t block, uint64_t hash)
{
	for (uint32_t i = block; i && p->entry[i].hash; i = p->entry[i].more)
		if (p->entry[i].hash == hash)
			return true;
	return false;
}

/* The entry of one more hash of a block; 0: no memory. */
static uint32_t further_entry(struct vc_kv_pool *p, uint32_t block)
{
	uint32_t i = p->spare;

	if (i) {
		p->spare = p->entry[i].more;
	} else {
		if (p->entries == UINT32_MAX ||
		    !vc_vec_zeroed(p->entry, p->entry_cap, p->entries + 1))
			return 0;
		i = (uint32_t)p->entries++;
	}
	p->entry[i].more = p->entry[block].more;
	p->entry[block].more = i;
	return i;
}

bool vc_kv_learn(struct vc_kv_pool *p, uint32_t block, uint64_t hash, uint64_t tokens)
{
	uint32_t i = block, oldest;
	struct vc_kv_entry *e;

	if (vc_kv_known(p, block, hash))
		return true;
	if (!p->entry[block].hash)
		p->block[block].tokens = tokens;
	else if (!(i = further_entry(p, block)))
		return false;
	oldest = oldest_of(p, hash);
	e = &p->entry[i];
	*e = (struct vc_kv_entry){ hash, block, 0, 0, i, e->more };
	if (!oldest)
		return vc_map_put(&p->known, hash, i);
	e->older = p->entry[oldest].newest;
	p->entry[e->older].newer = i;
	p->entry[oldest].newest = i;
	return true;
}

bool vc_kv_move(struct vc_kv_pool *p, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i && p->entry[i].hash; i = p->entry[i].more)
		if (!vc_kv_learn(p, to, p->entry[i].hash, p->block[from].tokens))
			return false;
	vc_kv_unlearn(p, from);
	return true;
}

void vc_kv_release(struct vc_kv_pool *p, const uint32_t *block, size_t n, bool front)
{
	uint32_t before = HEAD(p);

	while (n--) {
		uint32_t i = block[n];

		if (!i || --p->block[i].refs)
			continue;
		if (front && !p->entry[i].hash) {
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
	memset(p->entry, 0, p->entries * sizeof(*p->entry));
	p->entries = p->n;
	p->spare = 0;
	vc_map_fini(&p->known);
	return true;
}
