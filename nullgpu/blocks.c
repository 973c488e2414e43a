/* SPDX-License-Identifier: Apache-2.0 */
/* blocks.c - where the blocks of PyTorch's allocator begin and end: a kernel reads and writes no
 * more than the blocks that its arguments point into.
 *
 * A bit says that a block begins at a piece of 512 bytes, beside it stands how long it is. A block
 * that is handed out replaces what began within it before. */
#define _GNU_SOURCE
#include "nullgpu/null.h"

#include <pthread.h>
#include <sys/mman.h>

#define PIECE 512ull
#define PER 4096ull /* pieces of a page */
#define PAGES ((VC_NULL_MAPPED_PLACE + VC_NULL_MAPPED_SPAN - VC_NULL_DEVICE_PLACE) / PIECE / PER)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char *any;             /* a page holds a beginning */
static uint64_t (*begins)[PER / 64];
static uint32_t *lengths;              /* in pieces, of the block that begins there */
static uint64_t longest;               /* of all blocks that ever were, in pieces */
static bool failed;

static void *map(uint64_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	madvise(p, size, MADV_NOHUGEPAGE);
	return p;
}

static bool is_open(void)
{
	if (!any && !failed) {
		begins = map(PAGES * sizeof *begins);
		lengths = map(PAGES * PER * sizeof *lengths);
		any = begins && lengths ? map(PAGES) : NULL;
		failed = !any;
	}
	return any != NULL;
}

/* What began in these pieces begins there no longer. */
static void forget(uint64_t from, uint64_t to)
{
	for (uint64_t i = from, end; i < to; i = end) {
		uint64_t page = i / PER, word = i % PER / 64, n;
		end = (i / 64 + 1) * 64;
		n = (end < to ? end : to) - i;
		if (!any[page]) {
			end = (page + 1) * PER;
			continue;
		}
		begins[page][word] &= ~((n < 64 ? (1ull << n) - 1 : ~0ull) << i % 64);
	}
}

void vc_null_block(const void *p, uint64_t size)
{
	uint64_t at = ((uint64_t)p - VC_NULL_DEVICE_PLACE) / PIECE, n = (size + PIECE - 1) / PIECE;
	if ((uint64_t)p < VC_NULL_DEVICE_PLACE || !n || n > UINT32_MAX || at + n > PAGES * PER)
		return;
	pthread_mutex_lock(&lock);
	if (is_open()) {
		forget(at, at + n);
		begins[at / PER][at % PER / 64] |= 1ull << at % 64;
		any[at / PER] = 1;
		lengths[at] = (uint32_t)n;
		longest = n > longest ? n : longest;
	}
	pthread_mutex_unlock(&lock);
}

/* The last beginning at or before the piece; UINT64_MAX: none from where a block reaches it. */
static uint64_t begin_of(uint64_t piece)
{
	uint64_t page = piece / PER, bit = piece % PER;
	uint64_t first = piece > longest ? (piece - longest) / PER : 0;
	for (;;) {
		for (int64_t i = any[page] ? (int64_t)(bit / 64) : -1; i >= 0; i--) {
			uint64_t bits = begins[page][i];
			if ((uint64_t)i == bit / 64)
				bits &= ~0ull >> (63 - bit % 64);
			if (bits)
				return page * PER + (uint64_t)i * 64 + 63u -
				       (uint64_t)__builtin_clzll(bits);
		}
		const unsigned char *before = page > first ?
			memrchr(any + first, 1, page - first) : NULL;
		if (!before)
			return UINT64_MAX;
		page = (uint64_t)(before - any);
		bit = PER - 1;
	}
}

uint64_t vc_null_block_left(uint64_t address, bool *begins_there)
{
	uint64_t piece = (address - VC_NULL_DEVICE_PLACE) / PIECE, left = 0;
	if (address < VC_NULL_DEVICE_PLACE || piece >= PAGES * PER)
		return 0;
	pthread_mutex_lock(&lock);
	uint64_t begin = any ? begin_of(piece) : UINT64_MAX;
	if (begin != UINT64_MAX && piece < begin + lengths[begin])
		left = VC_NULL_DEVICE_PLACE + (begin + lengths[begin]) * PIECE - address;
	*begins_there = left && piece == begin && address % PIECE == 0;
	pthread_mutex_unlock(&lock);
	return left;
}
