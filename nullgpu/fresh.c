/* SPDX-License-Identifier: Apache-2.0 */
/* fresh.c - which device memory nobody has written since PyTorch's allocator handed it out.
 *
 * No kernel writes results here, so such memory would show what its last owner left: a size read
 * back from there, or the argmax of a network's output, would differ from run to run and from a
 * card's. It reads as zeros instead. Handing out only marks (a step hands out gigabytes); whoever
 * looks at memory, or writes to it, washes it first. The tracer tells of what is handed out. */
#define _GNU_SOURCE
#include "nullgpu/null.h"

#include <pthread.h>
#include <sys/mman.h>

/* PyTorch's allocator cuts blocks in multiples of 512; a page of 2 MiB has 4,096 such pieces. */
#define PIECE 512ull
#define PAGE (2 * VC_MIB)
#define WORDS (PAGE / PIECE / 64)
#define PLACE VC_NULL_DEVICE_PLACE
#define PAGES ((VC_NULL_MAPPED_PLACE + VC_NULL_MAPPED_SPAN - PLACE) / PAGE)

enum state { WRITTEN, MIXED, FRESH }; /* of a page; the bits count where it is MIXED */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char *states;      /* of each page */
static uint64_t (*pieces)[WORDS];  /* a bit for each piece: fresh */
static bool failed;

static void *map(uint64_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static bool is_open(void)
{
	if (!states && !failed) {
		pieces = map(PAGES * sizeof *pieces);
		states = pieces ? map(PAGES) : NULL;
		failed = !states;
		if (pieces) /* a page of bits covers 16 MiB: a huge one would be mostly unused */
			madvise(pieces, PAGES * sizeof *pieces, MADV_NOHUGEPAGE);
		if (states)
			madvise(states, PAGES, MADV_NOHUGEPAGE);
	}
	return states != NULL;
}

static bool is_in_place(uint64_t at, uint64_t size)
{
	return at >= PLACE && at - PLACE < PAGES * PAGE && size <= PAGES * PAGE - (at - PLACE);
}

static void set_bits(uint64_t *bits, unsigned from, unsigned to, bool on)
{
	for (unsigned i = from; i < to; i = (i / 64 + 1) * 64) {
		unsigned end = to - i / 64 * 64 < 64 ? to % 64 : 64;
		uint64_t mask = ~0ull << i % 64 & (end < 64 ? (1ull << end) - 1 : ~0ull);
		bits[i / 64] = on ? bits[i / 64] | mask : bits[i / 64] & ~mask;
	}
}

/* Marks the pieces [from, to) of a page. */
static void mark(uint64_t page, unsigned from, unsigned to, enum state as)
{
	if (from == 0 && to == PAGE / PIECE) {
		states[page] = (unsigned char)as;
		return;
	}
	if (states[page] == as)
		return;
	if (states[page] != MIXED)
		memset(pieces[page], states[page] == FRESH ? 0xff : 0, sizeof *pieces);
	states[page] = MIXED;
	set_bits(pieces[page], from, to, as == FRESH);
}

static bool is_piece_fresh(uint64_t page, unsigned i)
{
	return states[page] == FRESH ||
		(states[page] == MIXED && (pieces[page][i / 64] >> i % 64 & 1));
}

/* Makes zeros of what is fresh among the pieces [from, to) of a page. */
static void clear(uint64_t page, unsigned from, unsigned to)
{
	char *memory = (char *)(PLACE + page * PAGE);
	for (unsigned i = from, end; i < to; i = end) {
		bool fresh = is_piece_fresh(page, i);
		for (end = i + 1; end < to && is_piece_fresh(page, end) == fresh; end++)
			;
		if (fresh)
			memset(memory + i * PIECE, 0, (end - i) * PIECE);
	}
}

/* Marks all pieces that the range touches, and clears first those that were fresh. */
static void each_page(uint64_t at, uint64_t size, enum state as, bool cleared)
{
	const uint64_t per = PAGE / PIECE;
	uint64_t first = (at - PLACE) / PIECE, last = (at - PLACE + size + PIECE - 1) / PIECE;
	for (uint64_t page = first / per; page * per < last; page++) {
		unsigned from = first > page * per ? (unsigned)(first - page * per) : 0;
		unsigned to =
			last < (page + 1) * per ? (unsigned)(last - page * per) : (unsigned)per;
		if (cleared && states[page] != WRITTEN)
			clear(page, from, to);
		mark(page, from, to, as);
	}
}

bool vc_null_mark_fresh(const void *p, uint64_t size)
{
	if (!is_in_place((uint64_t)p, size))
		return false;
	pthread_mutex_lock(&lock);
	if (is_open())
		each_page((uint64_t)p, size, FRESH, false);
	pthread_mutex_unlock(&lock);
	return true;
}

static void forget(const void *p, uint64_t size, bool cleared)
{
	if (!size || !is_in_place((uint64_t)p, size))
		return;
	pthread_mutex_lock(&lock);
	if (states)
		each_page((uint64_t)p, size, WRITTEN, cleared);
	pthread_mutex_unlock(&lock);
}

void vc_null_wash(const void *p, uint64_t size)
{
	forget(p, size, true);
}

void vc_null_written(const void *p, uint64_t size)
{
	forget(p, size, false);
}

int vc_null_is_fresh(const void *p)
{
	if (!is_in_place((uint64_t)p, 1))
		return 0;
	uint64_t piece = ((uint64_t)p - PLACE) / PIECE;
	uint64_t page = piece / (PAGE / PIECE), bit = piece % (PAGE / PIECE);
	pthread_mutex_lock(&lock);
	bool fresh = states && is_piece_fresh(page, (unsigned)bit);
	pthread_mutex_unlock(&lock);
	return fresh;
}

int vc_null_is_told(void)
{
	pthread_mutex_lock(&lock);
	bool told = states != NULL;
	pthread_mutex_unlock(&lock);
	return told;
}
