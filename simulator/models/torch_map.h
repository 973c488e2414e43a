/* SPDX-License-Identifier: Apache-2.0 */
/* torch_map.h - a hash table whose iteration order is that of PyTorch's ska::flat_hash_map.
 *
 * The order is observable: completions of one operation and releases of private pools follow it. */
#pragma once

#include "common/std.h"

struct torch_map_entry { uint64_t hash, key; uint32_t value; int32_t dist; }; /* dist < 0: empty */

struct torch_map {
	struct torch_map_entry *e; /* slots + look + 1 entries; NULL while slots is 0 */
	uint32_t slots, look, n;
};

void torch_map_fini(struct torch_map *m);
/* `hash` is what the real program hashes the key to. The value under a key, or NULL. */
uint32_t *torch_map_find(const struct torch_map *m, uint64_t hash, uint64_t key);
/* false: out of memory */
bool torch_map_put(struct torch_map *m, uint64_t hash, uint64_t key, uint32_t value);
void torch_map_erase(struct torch_map *m, uint64_t hash, uint64_t key);
void torch_map_clear(struct torch_map *m); /* keeps the table size, as the real one does */

/* Iteration: the first used position at or after `at`, UINT32_MAX at the end. After erasing the
 * entry at a position, continue with the same position. */
uint32_t torch_map_next(const struct torch_map *m, uint32_t at);
