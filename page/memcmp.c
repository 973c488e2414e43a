/* SPDX-License-Identifier: Apache-2.0 */
/* memcmp.c - of the page alone: that of its C library compares byte by byte, and call stacks are
 * compared all the time. */
#include <stdint.h>
#include <string.h>

int memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *p = a, *q = b;
	uint64_t x, y;

	for (; n >= sizeof(x); n -= sizeof(x), p += sizeof(x), q += sizeof(x)) {
		memcpy(&x, p, sizeof(x));
		memcpy(&y, q, sizeof(y));
		if (x != y)
			break;
	}
	for (; n; n--, p++, q++)
		if (*p != *q)
			return *p < *q ? -1 : 1;
	return 0;
}
