/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - bytes to a number for tables in memory; no file holds it, so it may change. */
#pragma once

#include "common/std.h"

static inline uint64_t vc_hash_bytes(const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	uint64_t h = n * 0x9e3779b97f4a7c15u, w; /* 2^64 / golden ratio: Fibonacci hashing */

	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&w, p, 8);
		h = (h ^ w) * 0xff51afd7ed558ccdu; /* MurmurHash3's finaliser constant */
		h ^= h >> 29;
	}
	w = 0;
	memcpy(&w, p, n);
	return (h ^ w) * 0xff51afd7ed558ccdu;
}
