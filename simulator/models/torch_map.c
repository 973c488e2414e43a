/* SPDX-License-Identifier: Apache-2.0 */
/* torch_map.c - open addressing, Robin Hood, Fibonacci hashing, at most half full.
 *
 * As ska::flat_hash_map (c10/util/flat_hash_map.h, PyTorch 2.0 - 2.15): growth 0 -> 4 -> 8 ...,
 * look ahead max(4, log2 slots), hash * 11400714819323198485 >> (64 - log2 slots). */
#include "simulator/models/torch_map.h"

static uint32_t map_home(const struct torch_map *m, uint64_t hash)
{
	uint32_t bits = 0;

	while ((1u << bits) < m->slots)
		bits++;
	return m->slots ? (uint32_t)(hash * 11400714819323198485ull >> (64 - bits)) : 0;
}

void torch_map_fini(struct torch_map *m)
{
	free(m->e);
	*m = (struct torch_map){ 0 };
}

static uint32_t map_locate(const struct torch_map *m, uint64_t hash, uint64_t key, int32_t *dist,
			   bool *found)
{
	uint32_t i = map_home(m, hash);
	int32_t d = 0;

	*found = false;
	for (; m->slots && m->e[i].dist >= d; i++, d++)
		if (m->e[i].key == key) {
			*found = true;
			break;
		}
	*dist = d;
	return i;
}

uint32_t *torch_map_find(const struct torch_map *m, uint64_t hash, uint64_t key)
{
	bool found;
	int32_t d;
	uint32_t i = map_locate(m, hash, key, &d, &found);

	return found ? &m->e[i].value : NULL;
}

static bool map_grow(struct torch_map *m)
{
	struct torch_map fresh = { .slots = m->slots ? 2 * m->slots : 4, .look = 4 };
	uint32_t n;

	for (uint32_t bits = 2; (1u << bits) <= fresh.slots; bits++)
		if (bits > fresh.look)
			fresh.look = bits;
	n = fresh.slots + fresh.look + 1;
	fresh.e = malloc(n * sizeof(*fresh.e));
	if (!fresh.e)
		return false;
	for (uint32_t i = 0; i < n; i++)
		fresh.e[i] = (struct torch_map_entry){ 0, 0, 0, -1 };
	for (uint32_t i = torch_map_next(m, 0); i != UINT32_MAX; i = torch_map_next(m, i + 1))
		if (!torch_map_put(&fresh, m->e[i].hash, m->e[i].key, m->e[i].value)) {
			free(fresh.e);
			return false;
		}
	free(m->e);
	*m = fresh;
	return true;
}

bool torch_map_put(struct torch_map *m, uint64_t hash, uint64_t key, uint32_t value)
{
	struct torch_map_entry carry = { hash, key, value, 0 }, swap;
	bool found;
	uint32_t i = map_locate(m, hash, key, &carry.dist, &found);

	if (found) {
		m->e[i].value = value;
		return true;
	}
	if (!m->slots || carry.dist == (int32_t)m->look || 2 * (m->n + 1) > m->slots)
		return map_grow(m) && torch_map_put(m, hash, key, value);
	for (; m->e[i].dist >= 0; i++, carry.dist++)
		if (m->e[i].dist < carry.dist) {
			swap = m->e[i];
			m->e[i] = carry;
			carry = swap;
		}
	m->e[i] = carry;
	m->n++;
	return true;
}

void torch_map_erase(struct torch_map *m, uint64_t hash, uint64_t key)
{
	bool found;
	int32_t d;
	uint32_t i = map_locate(m, hash, key, &d, &found);

	if (!found)
		return;
	for (; m->e[i + 1].dist > 0; i++) {
		m->e[i] = m->e[i + 1];
		m->e[i].dist--;
	}
	m->e[i].dist = -1;
	m->n--;
}

void torch_map_clear(struct torch_map *m)
{
	for (uint32_t i = 0; m->slots && i < m->slots + m->look; i++)
		m->e[i].dist = -1;
	m->n = 0;
}

uint32_t torch_map_next(const struct torch_map *m, uint32_t at)
{
	for (; m->slots && at < m->slots + m->look; at++)
		if (m->e[at].dist >= 0)
			return at;
	return UINT32_MAX;
}
