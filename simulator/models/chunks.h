/* SPDX-License-Identifier: Apache-2.0 */
/* chunks.h - what models that cut regions of the device into chunks share: the chunks, tied to
 * their neighbours, and any number of lists of free ones in the order of best fit.
 *
 * Chunks tile their region. A free one stands in one list; its neighbours join it when they stand
 * in the same list. Numbers of chunks are their handles, 0 means none. */
#ifndef VC_CHUNKS_H
#define VC_CHUNKS_H

#include "simulator/models/treap.h"
#include "simulator/replay/model.h"

#define VC_FIT_GRAIN 256u    /* classes begin at this size; chunks may be of any */
#define VC_FIT_CLASSES 640   /* 16 per power of two, up to 2^48 bytes */
#define VC_FIT_WORDS (VC_FIT_CLASSES / 64)

struct vc_chunk {
	uint64_t addr, size, requested, id;
	uint32_t prev, next; /* neighbours inside the region */
	uint32_t kid[2];     /* while free; kid[0] also chains unused slots */
	uint32_t stream;     /* live: the request's; free: the number of its list */
	bool live, shared; /* shared: other streams use it, too, where a model asks */
};

/* What one call of the device gave; `first` never moves, for chunks merge downwards. */
struct vc_region { uint64_t addr, size; uint32_t first; };

struct vc_chunks {
	struct vc_chunk *c;
	uint32_t used, spare;
	size_t cap;
	struct vc_region *region; /* by address */
	uint32_t regions;
	size_t room;
};

/* Free chunks by size and then address. A bitmap finds the class of sizes, a treap in each class
 * keeps the order. */
struct vc_fit {
	uint64_t bits[VC_FIT_WORDS];
	uint32_t root[VC_FIT_CLASSES];
};

/* Lists by number, made as they are needed. */
struct vc_fits { struct vc_fit **at; size_t n; };

VC_TREAP(vc_fit, struct vc_chunk, x->size != y->size ? x->size < y->size : x->addr < y->addr)

static inline uint32_t vc_fit_class(uint64_t size)
{
	uint64_t u = size / VC_FIT_GRAIN;
	uint32_t e = 63 - (uint32_t)__builtin_clzll(u | 16) - 4, c = e * 16 + (uint32_t)(u >> e);

	return c < VC_FIT_CLASSES ? c : VC_FIT_CLASSES - 1;
}

static inline void vc_fit_add(struct vc_chunks *k, struct vc_fit *f, uint32_t i)
{
	uint32_t n = vc_fit_class(k->c[i].size);

	f->bits[n / 64] |= 1ull << (n & 63);
	vc_fit_put(k->c, &f->root[n], i);
}

static inline void vc_fit_remove(struct vc_chunks *k, struct vc_fit *f, uint32_t i)
{
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

/* The smallest free chunk of at least `size` bytes, of equal ones that with the lowest address; 0:
 * none. */
static inline uint32_t vc_fit_find(const struct vc_chunks *k, const struct vc_fit *f, uint64_t size)
{
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

/* The largest, of equal ones that with the highest address; 0: none. */
static inline uint32_t vc_fit_largest(const struct vc_chunks *k, const struct vc_fit *f)
{
	for (uint32_t w = VC_FIT_WORDS; w-- > 0; )
		if (f->bits[w])
			return vc_fit_end(k->c, f->root[w * 64 + 63 -
					  (uint32_t)__builtin_clzll(f->bits[w])], 1);
	return 0;
}

bool vc_fits_have(struct vc_fits *f, uint32_t list); /* false: no memory for it here */
void vc_fits_fini(struct vc_fits *f);

/* Room for the region and the `more` chunks that one request can add. */
bool vc_chunks_room(struct vc_chunks *k, size_t more);
/* A region from the device, whose one free chunk is in no list yet. */
uint32_t vc_chunks_region(struct vc_chunks *k, uint64_t addr, uint64_t size);
/* Cut chunk i to `size` bytes; the rest behind it, in no list yet. vc_chunks_room first. */
uint32_t vc_chunks_split(struct vc_chunks *k, uint32_t i, uint64_t size);
/* A chunk becomes free: it joins free neighbours of list `list`, f, and stands in it. The number of
 * the chunk that it is a part of now. */
uint32_t vc_chunks_free(struct vc_chunks *k, struct vc_fit *f, uint32_t list, uint32_t i);
/* All of one list goes over to list `list`, to. */
void vc_chunks_move(struct vc_chunks *k, struct vc_fit *from, struct vc_fit *to, uint32_t list);
/* Regions are kept in the caller's order: forget the slot of the only chunk of one that goes. */
void vc_chunks_drop(struct vc_chunks *k, uint32_t i);
/* Is the region one free chunk? */
bool vc_chunks_idle(const struct vc_chunks *k, const struct vc_region *r);

/* model->walk, and what model->check may ask of every region: chunks tile it, no two neighbours of
 * one list are free, each free one is found in `fit(arg, list)`. Adds what is live and held. */
int vc_chunks_walk(const struct vc_chunks *k, vc_extent_fn *fn, void *arg);
typedef const struct vc_fit *vc_fit_of_fn(const void *arg, uint32_t list);
int vc_chunks_check(const struct vc_model *m, const struct vc_chunks *k, vc_fit_of_fn *fit,
		    const void *arg, struct vc_error *err);
void vc_chunks_fini(struct vc_chunks *k);

/* Chunk i, cut to `size` bytes before, serves the request. */
void vc_chunks_serve(struct vc_model *m, struct vc_chunks *k, uint32_t i,
		     const struct vc_request *rq, struct vc_block *out);
/* The totals without chunk i, which is about to become free. */
void vc_chunks_unserve(struct vc_model *m, const struct vc_chunks *k, uint32_t i);

/* The history of a model. */
void vc_model_tell(const struct vc_model *m, enum vc_trace_kind kind, uint32_t stream,
		   uint64_t addr, uint64_t size);

#endif
