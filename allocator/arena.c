/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c - see arena.h.
 *
 * All offsets of a plan are known, so a live block is its rank among them: a bit in a set of 64-way
 * words over words, in which the neighbours below and above are found in a few steps. Live blocks
 * never overlap, so these two decide whether a place is free. */
#include "allocator/arena.h"

#include "common/vec.h"

enum { LEVELS = 5, GRAM = 3 /* requests that together say where one is */ };
#define NO_RANK UINT32_MAX

struct gram { uint64_t hash; uint32_t at; };

struct vc_arena {
	struct vc_memory_plan plan;
	uint32_t *rank;    /* per request: of its offset */
	uint64_t *offset;  /* the different offsets, ascending */
	uint64_t *end;     /* per rank: of the block that lives there */
	uint32_t ranks;
	uint64_t *bits[LEVELS]; /* which ranks are live; each level: which words below have any */
	struct gram *gram; size_t grams;
	uint64_t *handle; bool *bound; /* per stream of the plan: the program's */
	size_t at;         /* the request of the plan that comes next */
	uint64_t recent[GRAM];
	struct vc_arena_counts counts;
};

/* ---- the set of live ranks ---- */

static void set_bit(struct vc_arena *a, uint32_t rank, bool on)
{
	for (int k = 0; k < LEVELS; k++, rank /= 64) {
		uint64_t *word = &a->bits[k][rank / 64], bit = 1ull << rank % 64;

		*word = on ? *word | bit : *word & ~bit;
		if (*word && !on)
			return;
	}
}

/* The highest live rank at or below `rank`. */
static uint32_t below(const struct vc_arena *a, uint32_t rank)
{
	for (int k = 0; k < LEVELS; k++) {
		uint64_t word = a->bits[k][rank / 64] & (UINT64_MAX >> (63 - rank % 64));

		if (word) {
			uint32_t at = rank / 64 * 64 + 63 - (uint32_t)__builtin_clzll(word);

			while (k--)
				at = at * 64 + 63 - (uint32_t)__builtin_clzll(a->bits[k][at]);
			return at;
		}
		if (!(rank /= 64))
			return NO_RANK;
		rank--;
	}
	return NO_RANK;
}

/* The lowest live rank above `rank`. */
static uint32_t above(const struct vc_arena *a, uint32_t rank)
{
	for (int k = 0; k < LEVELS; k++, rank /= 64) {
		uint64_t word = rank % 64 == 63 ? 0 :
			a->bits[k][rank / 64] & (UINT64_MAX << (rank % 64 + 1));

		if (word) {
			uint32_t at = rank / 64 * 64 + (uint32_t)__builtin_ctzll(word);

			while (k--)
				at = at * 64 + (uint32_t)__builtin_ctzll(a->bits[k][at]);
			return at;
		}
	}
	return NO_RANK;
}

static bool is_free(const struct vc_arena *a, uint32_t rank, uint64_t size)
{
	uint32_t low = below(a, rank), high = above(a, rank);

	return (low == NO_RANK || a->end[low] <= a->offset[rank]) &&
	       (high == NO_RANK || a->offset[high] >= a->offset[rank] + size);
}

/* ---- making one ---- */

static uint64_t word_of(uint64_t size, uint64_t stream)
{
	return (size ^ stream << 48) * 0x9e3779b97f4a7c15u;
}

static uint64_t hash_of(const uint64_t w[GRAM])
{
	uint64_t h = 0;

	for (int k = 0; k < GRAM; k++)
		h = (h ^ w[k]) * 0xff51afd7ed558ccdu + (h >> 29);
	return h;
}

VC_COMPARE(by_hash, struct gram, VC_THEN(VC_ORDER(x->hash, y->hash), VC_ORDER(x->at, y->at)))

/* The three requests up to each one; those at the start of the repetition also as they come then.
 */
static void note_grams(struct vc_arena *a)
{
	const struct vc_memory_plan *p = &a->plan;
	size_t length = p->last - p->first;
	uint64_t w[GRAM];

	for (int again = 0; again < 2; again++)
		for (size_t i = again ? p->first : GRAM - 1;
		     i < (again ? p->first + (length >= GRAM ? GRAM - 1 : 0) : p->n); i++) {
			for (size_t k = 0; k < GRAM; k++) {
				size_t j = i + (again ? length : 0) + k + 1 - GRAM;
				const struct vc_plan_request *q =
					&p->request[j >= p->last && again ? j - length : j];

				w[k] = word_of(q->size, q->stream);
			}
			a->gram[a->grams++] = (struct gram){ hash_of(w), (uint32_t)i };
		}
	if (a->grams)
		vc_sort(a->gram, a->grams, sizeof(*a->gram), by_hash);
}

static void rank_offsets(struct vc_arena *a)
{
	for (size_t i = 0; i < a->plan.n; i++)
		if (a->plan.request[i].offset != VC_PLAN_NOWHERE)
			a->offset[a->ranks++] = a->plan.request[i].offset;
	vc_sort_u64(a->offset, a->ranks);
	uint32_t n = 0;
	for (uint32_t i = 0; i < a->ranks; i++)
		if (!n || a->offset[n - 1] != a->offset[i])
			a->offset[n++] = a->offset[i];
	a->ranks = n;
	for (size_t i = 0; i < a->plan.n; i++) {
		const uint64_t *at = vc_find_u64(a->offset, n, a->plan.request[i].offset);

		a->rank[i] = at ? (uint32_t)(at - a->offset) : NO_RANK;
	}
}

struct vc_arena *vc_arena_new(struct vc_memory_plan *plan, struct vc_error *err)
{
	struct vc_arena *a = calloc(1, sizeof(*a));
	size_t n = plan->n + 1, words = n;
	bool ok = a != NULL;

	for (int k = 0; ok && k < LEVELS; k++) {
		words = words / 64 + 1;
		a->bits[k] = calloc(words, sizeof(uint64_t));
		ok = a->bits[k] != NULL;
	}
	if (ok) {
		a->rank = calloc(n, sizeof(*a->rank));
		a->offset = calloc(n, sizeof(*a->offset));
		a->end = calloc(n, sizeof(*a->end));
		a->gram = calloc(n + 2 * GRAM, sizeof(*a->gram));
		a->handle = calloc(plan->areas + 1, sizeof(*a->handle));
		a->bound = calloc(plan->areas + 1, sizeof(*a->bound));
		ok = a->rank && a->offset && a->end && a->gram && a->handle && a->bound;
	}
	if (!ok) {
		vc_arena_free(a);
		vc_nomem(err, "the plan");
		return NULL;
	}
	a->plan = *plan;
	*plan = (struct vc_memory_plan){ 0 };
	rank_offsets(a);
	note_grams(a);
	return a;
}

void vc_arena_free(struct vc_arena *a)
{
	if (!a)
		return;
	for (int k = 0; k < LEVELS; k++)
		free(a->bits[k]);
	VC_FREE(a->rank, a->offset, a->end, a->gram, a->handle, a->bound);
	vc_memory_plan_fini(&a->plan);
	free(a);
}

uint64_t vc_arena_size(const struct vc_arena *a)
{
	return a->plan.arena;
}

const struct vc_arena_counts *vc_arena_counts(const struct vc_arena *a)
{
	return &a->counts;
}

/* ---- following ---- */

/* The plan's number of a stream; SIZE_MAX: not known yet. */
static size_t stream_of(const struct vc_arena *a, uint64_t handle)
{
	for (size_t i = 0; i < a->plan.areas; i++)
		if (a->bound[i] && a->handle[i] == handle)
			return i;
	return SIZE_MAX;
}

/* Is that request of the plan this one? Streams have other handles in every run: the first request
 * of a size that was expected tells whose is whose. */
static bool matches(struct vc_arena *a, size_t at, uint64_t size, uint64_t handle, size_t *stream)
{
	const struct vc_plan_request *q = &a->plan.request[at];

	if (at >= a->plan.n || q->size != size)
		return false;
	if (*stream == SIZE_MAX && !a->bound[q->stream]) {
		a->bound[q->stream] = true;
		a->handle[q->stream] = handle;
		*stream = q->stream;
	}
	return *stream == q->stream;
}

/* Where the last requests stand in the plan, at or behind `a->at` if anywhere there. */
static size_t find(const struct vc_arena *a)
{
	uint64_t hash = hash_of(a->recent);
	size_t low = vc_first_from(a->gram, a->grams, hash, hash), first = SIZE_MAX;

	for (size_t i = low; i < a->grams && a->gram[i].hash == hash && i < low + 64; i++) {
		if (a->gram[i].at >= a->at)
			return a->gram[i].at;
		if (first == SIZE_MAX)
			first = a->gram[i].at;
	}
	return first;
}

static size_t next_of(const struct vc_arena *a, size_t at)
{
	at++;
	return at == a->plan.n && a->plan.last > a->plan.first ? a->plan.first : at;
}

/* The request of the plan that this one is; SIZE_MAX: none. */
static size_t follow(struct vc_arena *a, uint64_t size, uint64_t handle)
{
	size_t stream = stream_of(a, handle), at = a->at;

	if (at < a->plan.n && !matches(a, at, size, handle, &stream))
		at = a->plan.n;
	memmove(a->recent, a->recent + 1, sizeof(a->recent) - sizeof(*a->recent));
	a->recent[GRAM - 1] = word_of(size, stream);
	if (at >= a->plan.n) {
		at = find(a);
		if (at == SIZE_MAX || !matches(a, at, size, handle, &stream))
			return SIZE_MAX;
		a->counts.jumps++;
	}
	a->at = next_of(a, at);
	return at;
}

uint64_t vc_arena_take(struct vc_arena *a, uint64_t size, uint64_t stream)
{
	size_t at;
	uint32_t rank;

	size = (size + VC_PLAN_UNIT - 1) / VC_PLAN_UNIT * VC_PLAN_UNIT;
	a->counts.requests++;
	at = follow(a, size, stream);
	if (at == SIZE_MAX) {
		a->counts.differs++;
		return VC_PLAN_NOWHERE;
	}
	rank = a->rank[at];
	if (rank == NO_RANK) {
		a->counts.left++;
		return VC_PLAN_NOWHERE;
	}
	if (!is_free(a, rank, size)) {
		a->counts.occupied++;
		return VC_PLAN_NOWHERE;
	}
	a->end[rank] = a->offset[rank] + size;
	set_bit(a, rank, true);
	a->counts.served++;
	return a->offset[rank];
}

uint64_t vc_arena_give(struct vc_arena *a, uint64_t offset)
{
	const uint64_t *at = vc_find_u64(a->offset, a->ranks, offset);
	uint32_t rank = at ? (uint32_t)(at - a->offset) : NO_RANK;
	uint64_t size;

	if (!at || !(a->bits[0][rank / 64] >> rank % 64 & 1))
		return 0;
	size = a->end[rank] - offset;
	a->end[rank] = 0;
	set_bit(a, rank, false);
	return size;
}

void vc_arena_refuse(struct vc_arena *a, uint64_t offset)
{
	vc_arena_give(a, offset);
	a->counts.served--;
	a->counts.occupied++;
}
