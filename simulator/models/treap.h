/* SPDX-License-Identifier: Apache-2.0 */
/* treap.h - a balanced tree of array elements through their own links: nothing is allocated.
 *
 * An element has `uint32_t kid[2]`, lower and higher ones; element 0 means none. The numbers of
 * elements, mixed, are the priorities. As in
 *	VC_TREAP(piece_by_size, struct piece, x->size < y->size)
 * which makes piece_by_size_put(), _cut(), _end() and _step(). The order must tell any two elements
 * of one tree apart. */
#pragma once

#include <stdint.h>

/* A bijective mix, so there are no ties. */
static inline uint32_t vc_treap_priority(uint32_t i)
{
	return i * 2654435761u;
}

#define VC_TREAP(name, type, order) \
	VC_TREAP_BEFORE(name, type, order) \
	VC_TREAP_PUT(name, type) \
	VC_TREAP_CUT(name, type) \
	VC_TREAP_LOOK(name, type)

#define VC_TREAP_BEFORE(name, type, order) \
	static inline _Bool name##_before(const type *x, const type *y) \
	{ \
		return order; \
	}

/* What hung at the place of the new element is parted at it. */
#define VC_TREAP_PUT(name, type) \
	static inline void name##_put(type *b, uint32_t *link, uint32_t i) \
	{ \
		const type *x = &b[i]; \
		uint32_t pri = vc_treap_priority(i), n, *l, *r; \
\
		while ((n = *link) && vc_treap_priority(n) > pri) \
			link = &b[n].kid[name##_before(&b[n], x)]; \
		*link = i; \
		l = &b[i].kid[0]; \
		r = &b[i].kid[1]; \
		while (n) { \
			if (name##_before(&b[n], x)) { \
				*l = n; \
				l = &b[n].kid[1]; \
				n = *l; \
			} else { \
				*r = n; \
				r = &b[n].kid[0]; \
				n = *r; \
			} \
		} \
		*l = *r = 0; \
	}

#define VC_TREAP_CUT(name, type) \
	static inline void name##_cut(type *b, uint32_t *link, uint32_t i) \
	{ \
		uint32_t l, r; \
\
		while (*link != i) \
			link = &b[*link].kid[name##_before(&b[*link], &b[i])]; \
		l = b[i].kid[0]; \
		r = b[i].kid[1]; \
		while (l && r) { \
			if (vc_treap_priority(l) > vc_treap_priority(r)) { \
				*link = l; \
				link = &b[l].kid[1]; \
				l = *link; \
			} else { \
				*link = r; \
				link = &b[r].kid[0]; \
				r = *link; \
			} \
		} \
		*link = l ? l : r; \
	}

/* _end: the first (side 0) or last element below n. _step: the neighbour of i in the tree, side 1
 * the next, side 0 the previous; i itself need not stand there. 0: none. */
#define VC_TREAP_LOOK(name, type) \
	static inline uint32_t name##_end(const type *b, uint32_t n, int side) \
	{ \
		while (n && b[n].kid[side]) \
			n = b[n].kid[side]; \
		return n; \
	} \
	static inline uint32_t name##_step(const type *b, uint32_t root, uint32_t i, int side) \
	{ \
		uint32_t best = 0; \
\
		for (uint32_t n = root; n; ) { \
			_Bool beyond = side ? name##_before(&b[i], &b[n]) : \
					      name##_before(&b[n], &b[i]); \
\
			best = beyond ? n : best; \
			n = b[n].kid[beyond ? !side : side]; \
		} \
		return best; \
	}
