/* SPDX-License-Identifier: Apache-2.0 */
/* torch_away.c - segments whose memory is given back, and taken again, beneath the allocator:
 * vLLM's sleep mode (vllm/device_allocator/cumem.py), torch_memory_saver. Addresses, blocks and
 * free lists stay as they are; the totals leave out what is not there.
 *
 * Both programs do it with all segments that one allocator or tag has, which is a private pool; so
 * the first segment of a pool stands for all of them, in whatever pieces they are in this run. */
#include "common/format.h"
#include "common/vec.h"
#include "simulator/models/torch_index.h"

/* The first that ends above addr. */
static size_t place_of(const struct torch *t, uint64_t addr)
{
	size_t low = 0, high = t->away.n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (t->away.at[mid].addr + t->away.at[mid].size <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool torch_is_away(const struct torch *t, uint64_t addr)
{
	size_t i = place_of(t, addr);

	return i < t->away.n && t->away.at[i].addr <= addr;
}

static bool put(struct torch *t, uint64_t addr, uint64_t size)
{
	size_t i = place_of(t, addr);

	if (!vc_vec_one(t->away.at, t->away.n))
		return false;
	memmove(&t->away.at[i + 1], &t->away.at[i], (t->away.n - i) * sizeof(*t->away.at));
	t->away.at[i].addr = addr;
	t->away.at[i].size = size;
	t->away.n++;
	return true;
}

bool torch_away_end(struct torch *t, uint64_t addr)
{
	size_t i = place_of(t, addr);

	if (i == t->away.n || t->away.at[i].addr != addr)
		return false;
	t->away.reserved -= t->away.at[i].size;
	memmove(&t->away.at[i], &t->away.at[i + 1], (--t->away.n - i) * sizeof(*t->away.at));
	return true;
}

void torch_away_count(struct torch *t)
{
	struct torch_away *a = &t->away;

	a->requested = a->allocated = a->active = a->split = 0;
	for (uint32_t i = 1; i < t->used; i++) {
		const struct torch_block *x = &t->b[i];

		if (x->state == TORCH_UNUSED || x->range || !torch_is_away(t, x->addr))
			continue;
		if (x->state == TORCH_FREE) {
			a->split += torch_is_split(x) ? x->size : 0;
			continue;
		}
		a->active += x->size;
		a->requested += x->requested;
		a->allocated += x->state == TORCH_LIVE ? x->size : 0;
	}
}

static uint64_t size_of(const struct torch *t, uint32_t first)
{
	uint64_t size = 0;

	for (uint32_t i = first; i; i = t->b[i].next)
		size += t->b[i].size;
	return size;
}

static int take_again(struct torch *t, uint64_t addr, uint64_t size)
{
	char a[32], b[32];
	uint64_t left = vc_device_available(t->m->device);

	if (vc_device_create(t->m->device, size)) {
		torch_away_end(t, addr);
		return VC_DONE;
	}
	t->m->refusal = (struct vc_refusal){ size, size, left };
	if (!t->m->first_text || !t->ooms)
		snprintf(t->m->note, sizeof(t->m->note),
			 "CUDA out of memory. Beneath PyTorch %s that were given back are asked "
			 "for again, of which %s is free.", vc_format_bytes(size, a),
			 vc_format_bytes(left, b));
	t->ooms++;
	return VC_REFUSED;
}

/* Of the segment whose first block that is. */
static int change(struct torch *t, uint32_t first, bool in)
{
	uint64_t addr = t->b[first].addr, size = size_of(t, first);

	if (torch_is_away(t, addr) != in)
		return VC_DONE;
	if (in)
		return take_again(t, addr, size);
	if (!put(t, addr, size))
		return VC_ENOMEM;
	t->away.reserved += size;
	vc_device_release(t->m->device, size);
	return VC_DONE;
}

static const struct torch_private *owner_of(const struct torch *t, uint32_t i)
{
	return torch_set_of(t, i)->pool->owner;
}

static bool begins_segment(const struct torch *t, uint32_t i)
{
	return t->b[i].state != TORCH_UNUSED && !t->b[i].prev && !t->b[i].range;
}

/* vLLM gives up what is free in a pool that it will not use again; it never comes back. */
static int change_free(struct torch *t, const struct vc_block *at, bool in)
{
	uint32_t one = 0;
	int r = VC_DONE;

	for (uint32_t i = 1; !one && i < t->used; i++)
		if (begins_segment(t, i) && t->b[i].addr == at->addr && t->b[i].size == at->size)
			one = i;
	if (one)
		return change(t, one, in);
	for (uint32_t i = 1; !in && r == VC_DONE && i < t->used; i++)
		if (begins_segment(t, i) && !t->b[i].next && t->b[i].state == TORCH_FREE &&
		    owner_of(t, i) && owner_of(t, i)->served)
			r = change(t, i, false);
	return r;
}

static int change_of(struct torch *t, uint32_t i, bool in)
{
	const struct torch_private *owner = owner_of(t, i);
	int r = VC_DONE;

	while (t->b[i].prev)
		i = t->b[i].prev;
	if (!owner)
		return change(t, i, in);
	for (i = 1; r == VC_DONE && i < t->used; i++)
		if (begins_segment(t, i) && owner_of(t, i) == owner &&
		    !(in && !t->b[i].next && t->b[i].state == TORCH_FREE))
			r = change(t, i, in);
	return r;
}

int torch_pages(struct vc_model *m, const struct vc_block *b, bool in, struct vc_error *err)
{
	struct torch *t = m->state;
	uint32_t i = (uint32_t)(uintptr_t)b->cookie;
	int r;

	if (t->torn || (i && (t->b[i].range || torch_is_away(t, b->addr) != in)))
		return VC_DONE;
	r = i ? change_of(t, i, in) : change_free(t, b, in);
	torch_away_count(t);
	return torch_finished(t, r, err);
}
