/* SPDX-License-Identifier: Apache-2.0 */
/* pickle_again.c - see pickle_again.h */
#include "common/pickle_again.h"
#include "common/hash.h"

#include "common/vec.h"

/* A model of a few thousand operations has as many stacks, of some hundred bytes each. CPython
 * writes lists in batches of 1,000 (Lib/pickle.py, _BATCHSIZE), so fewer gets, of two bytes or five
 * each, are a whole list. */
enum { SLOT_BITS = 15, RUNS_MAX = 1 << (SLOT_BITS - 1), RUN_MAX = 2 * 1000 - 2 };
#define BYTES_MAX ((size_t)16 << 20)

/* The bytes of memo gets at p up to the APPENDS behind them; 0: something else is among them. */
static size_t length_of(const uint8_t *p, size_t have)
{
	size_t i = 0;

	while (i < have && i < RUN_MAX) {
		if (p[i] == 'h')
			i += 2;
		else if (p[i] == 'j')
			i += 5;
		else
			return p[i] == 'e' && i ? i + 1 : 0;
	}
	return 0;
}

static uint32_t hash_of(const uint8_t *p, size_t n)
{
	return (uint32_t)(vc_hash_bytes(p, n) >> 32);
}

/* Where the run of these bytes stands, or where it would. */
static uint32_t *place(const struct pickle_again *a, const uint8_t *p, size_t n, uint32_t hash)
{
	size_t mask = ((size_t)1 << SLOT_BITS) - 1, i = hash & mask;

	for (; a->slot[i]; i = (i + 1) & mask) {
		const struct pickle_run *r = &a->run[a->slot[i] - 1];

		if (r->hash == hash && r->n == n && !memcmp(p, a->bytes + r->at, n))
			break;
	}
	return &a->slot[i];
}

struct pickle_run *pickle_again_look(struct pickle_again *a, const uint8_t *p, size_t have)
{
	size_t n = a->runs ? length_of(p, have) : 0;
	uint32_t found = n ? *place(a, p, n, hash_of(p, n)) : 0;

	if (!found)
		return NULL;
	*pickle_again_next(a) = found;
	pickle_again_met(a, found);
	return &a->run[found - 1];
}

static void forget(struct pickle_again *a)
{
	if (a->runs) {
		memset(a->slot, 0, sizeof(*a->slot) << SLOT_BITS);
		memset(a->next, 0, sizeof(*a->next) << PICKLE_NEXT_BITS);
	}
	a->runs = a->used = 0;
	a->last = a->before = 0;
}

void pickle_again_keep(struct pickle_again *a, const uint8_t *p, size_t have, uint32_t list)
{
	size_t n = a->off ? 0 : length_of(p, have);
	uint32_t hash, *slot;

	if (!n)
		return;
	if (a->runs == RUNS_MAX || a->used + n > BYTES_MAX)
		forget(a);
	if (!a->slot)
		a->slot = calloc((size_t)1 << SLOT_BITS, sizeof(*a->slot));
	if (!a->next)
		a->next = calloc((size_t)1 << PICKLE_NEXT_BITS, sizeof(*a->next));
	if (!a->slot || !a->next || !vc_vec_room(a->bytes, a->bytes_cap, a->used + n) ||
	    !vc_vec_room(a->run, a->run_cap, a->runs + 1))
		return; /* it goes without */
	hash = hash_of(p, n);
	slot = place(a, p, n, hash);
	if (*slot) { /* what was made of it before cannot be repeated: this one, perhaps */
		a->run[*slot - 1].list = list;
		return;
	}
	memcpy(a->bytes + a->used, p, n);
	a->run[a->runs] = (struct pickle_run){ .hash = hash, .at = (uint32_t)a->used,
					       .n = (uint32_t)n, .list = list };
	a->used += n;
	*slot = (uint32_t)++a->runs;
	*pickle_again_next(a) = *slot;
	pickle_again_met(a, *slot);
}

void pickle_again_stop(struct pickle_again *a)
{
	forget(a);
	a->off = true;
}

void pickle_again_fini(struct pickle_again *a)
{
	VC_FREE(a->bytes, a->run, a->slot, a->next);
}
