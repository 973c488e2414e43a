/* SPDX-License-Identifier: Apache-2.0 */
/* map.h - from 64-bit keys to 64-bit values, open addressing; for addresses of live blocks.
 * Header only, because it stands in the decoders' loops. */
#pragma once

#include "common/std.h"

struct vc_map_slot { uint64_t key, value; }; /* value 0: empty; stored values are never 0 */
struct vc_map { struct vc_map_slot *slot; size_t mask, n; };

static inline size_t vc_map_home(const struct vc_map *m, uint64_t key)
{
	key *= 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio: Fibonacci hashing */
	return (size_t)(key >> 29) & m->mask;
}

/* The value of `key`, which the caller may change (not to 0), or NULL. */
static inline uint64_t *vc_map_get(const struct vc_map *m, uint64_t key)
{
	if (!m->n)
		return NULL;
	for (size_t i = vc_map_home(m, key); m->slot[i].value; i = (i + 1) & m->mask)
		if (m->slot[i].key == key)
			return &m->slot[i].value;
	return NULL;
}

static inline bool vc_map_grow(struct vc_map *m)
{
	size_t size = m->slot ? (m->mask + 1) * 2 : 256;
	struct vc_map bigger = { calloc(size, sizeof(*bigger.slot)), size - 1, m->n };

	if (!bigger.slot)
		return false;
	for (size_t k = 0; m->slot && k <= m->mask; k++) {
		size_t i = vc_map_home(&bigger, m->slot[k].key);

		if (!m->slot[k].value)
			continue;
		while (bigger.slot[i].value)
			i = (i + 1) & bigger.mask;
		bigger.slot[i] = m->slot[k];
	}
	free(m->slot);
	*m = bigger;
	return true;
}

/* Adds or replaces; false: no memory. */
static inline bool vc_map_put(struct vc_map *m, uint64_t key, uint64_t value)
{
	uint64_t *old = vc_map_get(m, key);
	size_t i;

	if (old) {
		*old = value;
		return true;
	}
	if ((!m->slot || (m->n + 1) * 2 > m->mask + 1) && !vc_map_grow(m))
		return false;
	for (i = vc_map_home(m, key); m->slot[i].value; i = (i + 1) & m->mask)
		;
	m->slot[i] = (struct vc_map_slot){ key, value };
	m->n++;
	return true;
}

/* The value that was there, 0 when none was. Later entries move up, so no tombstones are left. */
static inline uint64_t vc_map_take(struct vc_map *m, uint64_t key)
{
	uint64_t *found = vc_map_get(m, key), value;
	size_t hole, i;

	if (!found)
		return 0;
	value = *found;
	hole = (size_t)((struct vc_map_slot *)(void *)((char *)found -
						       offsetof(struct vc_map_slot, value)) -
			m->slot);
	for (i = (hole + 1) & m->mask; m->slot[i].value; i = (i + 1) & m->mask) {
		size_t home = vc_map_home(m, m->slot[i].key);

		if (((i - home) & m->mask) >= ((i - hole) & m->mask)) {
			m->slot[hole] = m->slot[i];
			hole = i;
		}
	}
	m->slot[hole].value = 0;
	m->n--;
	return value;
}

static inline void vc_map_fini(struct vc_map *m)
{
	free(m->slot);
	*m = (struct vc_map){ 0 };
}
