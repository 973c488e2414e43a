/* SPDX-License-Identifier: Apache-2.0 */
/* free_chunks.h - what pooling allocators share: pieces of device memory ("regions"), cut into chunks
 * that are handed out, merged with their neighbours, and found by size.
 *
 * A chunk is one cache line in an array, and links are indices; slot 0 means none. Free chunks of
 * a set stand in classes of sizes, each a treap through the chunks' own links, so nothing is
 * allocated per request. */
#ifndef VC_FREE_CHUNKS_H
#define VC_FREE_CHUNKS_H

#include "simulator/replay/model.h"

#define CHUNKS_CLASSES 640 /* 16 per power of two from 256 bytes on, up to 2^48 bytes */
#define CHUNKS_WORDS (CHUNKS_CLASSES / 64)

enum chunk_state { CHUNK_UNUSED, CHUNK_LIVE, CHUNK_FREE };

struct chunk {
	uint64_t addr, size;
	uint64_t id;         /* while live */
	union {
		uint64_t requested; /* while live */
		uint64_t order;     /* while free: among chunks of one size, see chunks.fifo */
	};
	uint32_t prev, next; /* neighbours inside the region; prev 0: the region begins here */
	uint32_t kid[2];     /* while free; kid[0] also chains unused slots */
	uint32_t head;       /* the first chunk of its region, which never moves */
	uint32_t stream;
	uint16_t set;
	uint8_t state;       /* enum chunk_state */
};

/* The free chunks of one arena: a stream's, or all there are. */
struct chunks_set {
	uint64_t bits[CHUNKS_WORDS];
	uint32_t root[CHUNKS_CLASSES];
	uint32_t low[CHUNKS_CLASSES]; /* by_place: the lowest address of the class */
};

struct chunks {
	struct chunk *c;
	uint32_t used, spare;
	size_t cap;
	struct chunks_set *set;
	size_t sets;
	uint64_t turn;
	bool by_place; /* classes are ordered by address alone, for chunks_first() */
	bool fifo;     /* among equal sizes the one that was freed first, not the lowest address */
	bool buddies;  /* free neighbours need not be merged */
	bool by_stream; /* set k serves stream k alone; else any stream may have any chunk */
};

/* Room for the chunks that one request can add, and for set `set`. */
bool chunks_ensure(struct chunks *h, uint32_t set);
void chunks_fini(struct chunks *h);

/* A free chunk of set `set` that holds `size` bytes, 0: none. Best: the smallest, of equal ones
 * the first in order. First: the lowest, with by_place. */
uint32_t chunks_best(const struct chunks *h, uint32_t set, uint64_t size);
uint32_t chunks_first(const struct chunks *h, uint32_t set, uint64_t size);

/* The largest, 0: none; not by_place. */
uint32_t chunks_last(const struct chunks *h, uint32_t set);
/* The free chunk of exactly that size at that address, 0: none; not by_place, not fifo. */
uint32_t chunks_at(const struct chunks *h, uint32_t set, uint64_t size, uint64_t addr);

/* Into and out of its set. */
void chunks_put(struct chunks *h, uint32_t i);
void chunks_cut(struct chunks *h, uint32_t i);

/* A region that the device gave: one chunk, free but in no set yet. */
uint32_t chunks_region(struct chunks *h, uint64_t addr, uint64_t size, uint32_t set);
/* The chunk keeps its first `size` bytes; the rest becomes a free chunk behind it, in its set. */
void chunks_split(struct chunks *h, uint32_t i, uint64_t size);
/* Merge with free neighbours, put into the set; the slot of the result. */
uint32_t chunks_release(struct chunks *h, uint32_t i);
/* A chunk that is in no set takes in the one behind it, which is in none either. */
void chunks_absorb(struct chunks *h, uint32_t i);
/* Forget a chunk that is in no set; its neighbours become ends of regions. */
void chunks_drop(struct chunks *h, uint32_t i);

static inline bool chunks_is_whole(const struct chunk *c)
{
	return !c->prev && !c->next;
}

/* Hand it out and count it, or take it back; both leave the sets alone. */
void chunks_give(struct chunks *h, struct vc_model *m, uint32_t i, const struct vc_request *rq,
		 struct vc_block *out);
uint32_t chunks_take(struct chunks *h, struct vc_model *m, const struct vc_block *b);

/* A segment came from the device or goes back to it: totals and the framework's history. */
void chunks_tell(struct vc_model *m, enum vc_trace_kind kind, uint32_t stream, uint64_t addr,
		 uint64_t size);
/* Give whole free regions back to the device, those of `set` or of all (UINT32_MAX). */
uint64_t chunks_give_back(struct chunks *h, struct vc_model *m, uint32_t set);
/* VC_REFUSED, counted, with what is known of it; the text is the caller's. */
int chunks_refuse(struct vc_model *m, const struct vc_request *rq, uint64_t rounded,
		  uint64_t alloc_size);

int chunks_walk(const struct chunks *h, vc_extent_fn *fn, void *arg);
int chunks_check(const struct chunks *h, const struct vc_model *m, struct vc_error *err);

static inline uint64_t chunks_round(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

#endif
