/* SPDX-License-Identifier: Apache-2.0 */
/* chunks.h - what models share that cut pieces of the device ("regions") into chunks: the chunks,
 * tied to their neighbours, any number of lists of free ones, and what a model does around them.
 *
 * Chunks tile their region. A free one stands in one list; its neighbours join it when they stand
 * in the same list. Numbers of chunks are their handles, 0 means none. `struct vc_chunks` is the
 * first member of the model's state: functions that take a model find it there. */
#pragma once

#include "common/vec.h"
#include "simulator/models/treap.h"
#include "simulator/replay/model.h"

#define VC_FIT_GRAIN 256u    /* classes begin at this size; chunks may be of any */
#define VC_FIT_CLASSES 640   /* 16 per power of two, up to 2^48 bytes */
#define VC_FIT_WORDS (VC_FIT_CLASSES / 64)

struct vc_chunk {
	uint64_t addr, size, requested, id; /* the last two while live */
	uint32_t prev, next; /* neighbours inside the region */
	uint32_t kid[2];     /* while free; kid[0] also chains unused slots */
	uint32_t stream;     /* live: the request's; free: the number of its list */
	bool live, shared; /* shared: other streams use it, too, where a model asks */
};

/* What one call of the device gave; `first` never moves, for chunks merge downwards. */
struct vc_region { uint64_t addr, size; uint32_t first; };

/* Free chunks by size and then address. A bitmap finds the class of sizes, a treap in each class
 * keeps the order. */
struct vc_fit {
	uint64_t bits[VC_FIT_WORDS];
	uint32_t root[VC_FIT_CLASSES];
};

struct vc_chunks {
	struct vc_chunk *c;
	uint32_t used, spare;
	size_t cap;
	struct vc_region *region; /* by address */
	uint32_t regions, lists;
	size_t room;
	struct vc_fit **list; /* by number, made as they are needed */
	bool by_stream; /* list k serves stream k alone, and so do its regions */
};

VC_TREAP(vc_fit, struct vc_chunk, x->size != y->size ? x->size < y->size : x->addr < y->addr)

static inline uint64_t vc_chunks_round(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

static inline uint32_t vc_fit_class(uint64_t size)
{
	uint64_t u = size / VC_FIT_GRAIN;
	uint32_t e = 63 - (uint32_t)__builtin_clzll(u | 16) - 4, c = e * 16 + (uint32_t)(u >> e);

	return c < VC_FIT_CLASSES ? c : VC_FIT_CLASSES - 1;
}

/* Into the list that it names, and out of it. Inline where they are called: a call more is what one
 * sees in the speed of a model. */
__attribute__((always_inline)) static inline void vc_chunks_put(struct vc_chunks *k, uint32_t i)
{
	struct vc_chunk *c = &k->c[i];
	struct vc_fit *f = k->list[c->stream];
	uint32_t n = vc_fit_class(c->size);

	c->live = false;
	f->bits[n / 64] |= 1ull << (n & 63);
	vc_fit_put(k->c, &f->root[n], i);
}

__attribute__((always_inline)) static inline void vc_chunks_cut(struct vc_chunks *k, uint32_t i)
{
	struct vc_fit *f = k->list[k->c[i].stream];
	uint32_t n = vc_fit_class(k->c[i].size);

	vc_fit_cut(k->c, &f->root[n], i);
	if (!f->root[n])
		f->bits[n / 64] &= ~(1ull << (n & 63));
}

/* The first class at or above n that is not empty, or VC_FIT_CLASSES. */
static inline uint32_t vc_fit_up(const struct vc_fit *f, uint32_t n)
{
	uint32_t w = n / 64;
	uint64_t x;

	if (n >= VC_FIT_CLASSES)
		return VC_FIT_CLASSES;
	for (x = f->bits[w] & ~0ull << (n & 63); !x && ++w < VC_FIT_WORDS; )
		x = f->bits[w];
	return x ? w * 64 + (uint32_t)__builtin_ctzll(x) : VC_FIT_CLASSES;
}

/* The smallest free chunk of at least `size` bytes, of equal ones the lowest; 0: none. */
static inline uint32_t vc_chunks_best(const struct vc_chunks *k, uint32_t list, uint64_t size)
{
	const struct vc_fit *f = k->list[list];
	uint32_t n = vc_fit_class(size), best = 0;

	for (uint32_t i = f->root[n]; i; ) {
		bool fits = k->c[i].size >= size;

		best = fits ? i : best;
		i = k->c[i].kid[!fits];
	}
	if (best)
		return best;
	n = vc_fit_up(f, n + 1);
	return n < VC_FIT_CLASSES ? vc_fit_end(k->c, f->root[n], 0) : 0;
}

/* The free chunk with the size and the address of x; 0: none. */
uint32_t vc_chunks_same(const struct vc_chunks *k, uint32_t list, const struct vc_chunk *x);

/* Room for the region and the `more` chunks that one request can add, and lists up to `list`. */
bool vc_chunks_more_room(struct vc_chunks *k, size_t more, uint32_t list);
static inline bool vc_chunks_room(struct vc_chunks *k, size_t more, uint32_t list)
{
	return (list < k->lists && k->used + more <= k->cap && k->regions < k->room) ||
	       vc_chunks_more_room(k, more, list);
}
/* A chunk in no region and no list, and the end of one. */
uint32_t vc_chunks_new(struct vc_chunks *k, uint64_t addr, uint64_t size, uint32_t list);
void vc_chunks_drop(struct vc_chunks *k, uint32_t i);
/* A region from the device: its one chunk, free in list `list`. */
uint32_t vc_chunks_region(struct vc_chunks *k, uint64_t addr, uint64_t size, uint32_t list);
/* Chunk i leaves its list; what it has beyond `size` bytes stays there as a chunk behind it. */
void vc_chunks_take(struct vc_chunks *k, uint32_t i, uint64_t size);
/* A chunk becomes free: it joins free neighbours of list `list` and stands in it. The number of
 * the chunk that it is a part of now. */
uint32_t vc_chunks_free(struct vc_chunks *k, uint32_t list, uint32_t i);
/* All of one list goes over to another one. */
void vc_chunks_move(struct vc_chunks *k, uint32_t from, uint32_t to);
/* Is the region one free chunk? */
bool vc_chunks_idle(const struct vc_chunks *k, const struct vc_region *r);
/* The region, one free chunk, goes back to the device. Its place in the array is empty until
 * vc_chunks_pack(). */
void vc_chunks_give_back(struct vc_model *m, struct vc_region *r, uint32_t stream);
void vc_chunks_pack(struct vc_chunks *k);

/* Chunk i, in no list, serves the request. */
void vc_chunks_serve(struct vc_model *m, uint32_t i, const struct vc_request *rq,
		     struct vc_block *out);
/* The totals without the block's chunk, which is about to become free; 0: it has none. */
uint32_t vc_chunks_unserve(struct vc_model *m, const struct vc_block *b);

/* For the rows of models. trim: all regions that are one free chunk go back. check: chunks tile
 * every region, no two neighbours of one list are free, each free one is found; the totals add up
 * to what is live and held. */
int vc_chunks_trim(struct vc_model *m, uint64_t pool, struct vc_error *err);
int vc_chunks_walk(const struct vc_model *m, vc_extent_fn *fn, void *arg);
int vc_chunks_check(const struct vc_model *m, struct vc_error *err);
void vc_chunks_fini(struct vc_model *m);

/* The history of a model; segments that come and go are counted, too. */
void vc_model_tell(struct vc_model *m, enum vc_trace_kind kind, uint32_t stream, uint64_t addr,
		   uint64_t size);
/* VC_REFUSED, counted, with what is known of it; the text is the caller's. */
int vc_model_refuse(struct vc_model *m, const struct vc_request *rq, uint64_t rounded,
		    uint64_t alloc_size);
