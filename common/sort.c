/* SPDX-License-Identifier: Apache-2.0 */
/* sort.c - see sort.h: merge sort, which has nothing to do where all is in order. */
#include "common/sort.h"

enum { SMALL = 8, AT_HAND = 4096 };

struct sort {
	size_t each;
	int (*compare)(const void *, const void *);
	char *spare; /* room for half of them */
};

/* A copy of a size that the compiler knows is a few moves. */
static inline void copy(char *to, const char *from, size_t each)
{
	switch (each) {
	case 4: memcpy(to, from, 4); break;
	case 8: memcpy(to, from, 8); break;
	case 16: memcpy(to, from, 16); break;
	case 24: memcpy(to, from, 24); break;
	case 32: memcpy(to, from, 32); break;
	default: memcpy(to, from, each);
	}
}

static void insert(const struct sort *s, char *at, size_t n)
{
	size_t each = s->each;

	for (char *next = at + each, *end = at + n * each; next < end; next += each) {
		char *to = next;

		while (to > at && s->compare(to - each, next) > 0)
			to -= each;
		if (to == next)
			continue;
		copy(s->spare, next, each);
		memmove(to + each, to, (size_t)(next - to));
		copy(to, s->spare, each);
	}
}

static void merge(const struct sort *s, char *at, size_t n)
{
	size_t half = n / 2, each = s->each;
	char *b = at + half * each, *end = at + n * each, *a = s->spare, *to = at;

	if (n <= SMALL) {
		insert(s, at, n);
		return;
	}
	merge(s, at, half);
	merge(s, b, n - half);
	if (s->compare(b - each, b) <= 0)
		return;
	memcpy(s->spare, at, half * each);
	for (char *a_end = a + half * each; a < a_end; to += each) {
		if (b < end && s->compare(a, b) > 0) {
			copy(to, b, each);
			b += each;
		} else {
			copy(to, a, each);
			a += each;
		}
	}
}

void vc_sort(void *at, size_t n, size_t each, int (*compare)(const void *, const void *))
{
	_Alignas(16) char at_hand[AT_HAND];
	char *p = at;
	struct sort s = { each, compare, at_hand };
	size_t i = 1, room = (n / 2 + 1) * each;

	while (i < n && compare(p + (i - 1) * each, p + i * each) <= 0)
		i++;
	if (i >= n)
		return;
	if (room > AT_HAND)
		s.spare = malloc(room);
	if (s.spare)
		merge(&s, at, n);
	else
		qsort(at, n, each, compare); /* without room for order among equals */
	if (s.spare != at_hand)
		free(s.spare);
}
