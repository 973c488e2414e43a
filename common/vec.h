/* SPDX-License-Identifier: Apache-2.0 */
/* vec.h - arrays that grow, and searches in sorted ones. Header only, free of dependencies.
 *
 *	if (!vc_vec_room(s->at, s->cap, s->n + 1))
 *		return vc_nomem(err, "samples");
 *	s->at[s->n++] = sample;
 *
 * A failure leaves the array as it was. */
#pragma once

#include "common/sort.h"

/* Room for `n` elements of `each` bytes in the array to which the pointer at `array` points, and
 * which has room for *cap. The room doubles. The pointer is copied, because no C type stands for
 * "pointer to any pointer". */
static inline bool vc_vec_grow(void *array, size_t *cap, size_t n, size_t each)
{
	size_t more = *cap ? *cap : 8;
	void *at;

	while (more < n && more <= SIZE_MAX / 2)
		more *= 2;
	if (more < n || more > SIZE_MAX / each)
		return false;
	memcpy(&at, array, sizeof(at));
	at = realloc(at, more * each);
	if (!at)
		return false;
	memcpy(array, &at, sizeof(at));
	*cap = more;
	return true;
}

/* Whether the array `at` with room for `cap` elements (a size_t) now has room for `n`. */
#define vc_vec_room(at, cap, n) \
	((n) <= (cap) || vc_vec_grow(&(at), &(cap), (n), sizeof(*(at))))

/* The same, with zeroes in the new room. */
static inline bool vc_vec_grow_zeroed(void *array, size_t *cap, size_t n, size_t each)
{
	size_t known = *cap;
	char *at;

	if (!vc_vec_grow(array, cap, n, each))
		return false;
	memcpy(&at, array, sizeof(at));
	memset(at + known * each, 0, (*cap - known) * each);
	return true;
}
#define vc_vec_zeroed(at, cap, n) \
	((n) <= (cap) || vc_vec_grow_zeroed(&(at), &(cap), (n), sizeof(*(at))))

/* Room for one more behind `n` elements, for arrays that are made here only and never shrink: they
 * need no field for their room, which is the next power of two. */
static inline bool vc_vec_next(void *array, size_t n, size_t each)
{
	size_t cap = n ? n : 1;

	return (n & (n - 1)) || vc_vec_grow(array, &cap, n + 1, each);
}
#define vc_vec_one(at, n) vc_vec_next(&(at), (n), sizeof(*(at)))

/* Free several, in that order. */
#define VC_FREE(...) \
	do { \
		void *vc_all_[] = { __VA_ARGS__ }; \
		for (size_t vc_i_ = 0; vc_i_ < sizeof(vc_all_) / sizeof(*vc_all_); vc_i_++) \
			free(vc_all_[vc_i_]); \
	} while (0)

/* A compare function for vc_sort: of x and y, two pointers to `type`. As in
 *	VC_COMPARE(by_place, struct piece, VC_THEN(VC_ORDER(x->at, y->at), VC_ORDER(y->n, x->n)))
 * for ascending `at` and, where that is the same, descending `n`. */
#define VC_COMPARE(name, type, order) \
	static int name(const void *first, const void *second) \
	{ \
		const type *x = first, *y = second; \
		return order; \
	}
#define VC_ORDER(a, b) (((a) > (b)) - ((a) < (b)))
#define VC_THEN(order, next) ((order) ? (order) : (next))

static inline uint64_t vc_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline void vc_raise(uint64_t *most, uint64_t v)
{
	*most = v > *most ? v : *most;
}

static inline void vc_lower(uint64_t *least, uint64_t v)
{
	*least = v < *least ? v : *least;
}

static inline uint64_t vc_minus(uint64_t a, uint64_t b) /* not below 0 */
{
	return a > b ? a - b : 0;
}

static inline uint64_t vc_per(uint64_t n, uint64_t by) /* rounded up */
{
	return n / by + (n % by != 0);
}

static inline int vc_by_u64(const void *a, const void *b)
{
	return VC_ORDER(*(const uint64_t *)a, *(const uint64_t *)b);
}

static inline void vc_sort_u64(uint64_t *at, size_t n)
{
	if (n)
		vc_sort(at, n, sizeof(*at), vc_by_u64);
}

/* Where `key` stands in a sorted array of numbers; NULL: nowhere. */
static inline uint64_t *vc_find_u64(const uint64_t *sorted, size_t n, uint64_t key)
{
	return n ? bsearch(&key, sorted, n, sizeof(key), vc_by_u64) : NULL;
}

/* The first of `n` elements whose number, of `width` (4 or 8) bytes, is at least `key`; it stands
 * every `each` bytes from `first` on. */
static inline size_t vc_lower_bound(const void *first, size_t width, size_t n, size_t each,
				    uint64_t key)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const void *at = (const char *)first + mid * each;

		if ((width == 4 ? *(const uint32_t *)at : *(const uint64_t *)at) < key)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The first of the `n` elements of `at`, sorted by `field`, that has at least `key`; n: none. */
#define vc_first_from(at, n, field, key) \
	((n) ? vc_lower_bound(&(at)->field, sizeof((at)->field), (n), sizeof(*(at)), (key)) : 0)
/* The same where keys mostly grow from call to call: `near` is what the last call said, first 0. */
#define vc_first_from_near(at, n, field, key, near) \
	((near) <= (n) && (!(near) || (at)[(near) - 1].field < (key)) && \
	 ((near) == (n) || (at)[near].field >= (key)) ? \
		 (near) : vc_first_from(at, n, field, key))
/* The first that has more than `key`. */
#define vc_first_above(at, n, field, key) \
	((key) == UINT64_MAX ? (n) : vc_first_from(at, n, field, (key) + 1))
